--- The examples in scripts/examples, run as their users run them.

local function run(command)
	local pipe = assert(io.popen(command .. " 2>&1"))
	local output = pipe:read "a"
	local ok = pipe:close()
	return ok == true, output
end

local function read(path)
	local file <close> = assert(io.open(path))
	return file:read "a"
end

local lua = os.getenv "LUA" or "lua5.4"

describe("code_fixer", function()
	local with_model = "scripts/with_model_server.sh --script scripts/examples/code_fixer_model.lua -- "

	it("finds the fault of a project whose specs fail, mends it in a copy, and shows the change", function()
		local ok, output = run(with_model .. lua .. " scripts/examples/code_fixer.lua")
		assert.is_true(ok, output)
		local calls = {}
		for name in output:gmatch "([A-Z]%a+) +[^\n]*\n" do
			calls[#calls + 1] = name
		end
		assert.are.same({ "Bash", "Grep", "Read", "Read", "Edit", "Bash" }, { table.unpack(calls, 1, 6) })
		assert.is_truthy(output:find("push compared with > where it needs >=", 1, true))
		assert.is_truthy(output:find("\n-\tif self.count > self.capacity then\n+\tif self.count >= self.capacity then\n", 1, true))
	end)

	it("leaves the project as it was", function()
		local before = read "scripts/examples/broken_project/queue.lua"
		run(with_model .. lua .. " scripts/examples/code_fixer.lua")
		assert.are.equal(before, read "scripts/examples/broken_project/queue.lua")
		assert.is_false((run "cd scripts/examples/broken_project && busted --lua=lua5.4"))
	end)

	it("says by its exit status that specs still fail", function()
		local ok, output = run("scripts/with_model_server.sh --builtin turns -- " .. lua .. " scripts/examples/code_fixer.lua")
		assert.is_false(ok)
		assert.is_nil(output:find "traceback", output)
	end)
end)
