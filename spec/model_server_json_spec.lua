-- The model server's own JSON reader and writer: it judges the engine, so it is judged here.

local json = require "scripts.model_server.json"

local CASES = "../shared/cases/json-parsing"

local function case_files(prefix)
	local names = {}
	local pipe = assert(io.popen(("ls '%s' 2>/dev/null"):format(CASES)))
	for name in pipe:lines() do
		names[#names + 1] = name:sub(1, 2) == prefix and name or nil
	end
	pipe:close()
	return names
end

local function read(name)
	local file = assert(io.open(CASES .. "/" .. name, "rb"))
	local text = file:read("a")
	file:close()
	return text
end

describe("the model server's JSON", function()
	local must_parse, must_fail = case_files "y_", case_files "n_"

	if #must_parse == 0 then
		pending("reads " .. CASES .. ": not there")
	end

	for _, name in ipairs(must_parse) do
		it("takes " .. name, function()
			local value, problem = json.decode(read(name))
			assert.is_nil(problem)
			assert.is_not_nil(value)
		end)
	end

	for _, name in ipairs(must_fail) do
		it("refuses " .. name, function()
			assert.is_string(select(2, json.decode(read(name))))
		end)
	end

	it("keeps all 64 bits of an integer, and integers apart from floats", function()
		local list = json.decode("[9223372036854775807, -9223372036854775808, 1618065507111835497, 1.0, 1e2, "
			.. "18446744073709551616]")
		assert.same({ math.maxinteger, math.mininteger, 1618065507111835497 }, { list[1], list[2], list[3] })
		assert.equal("float", math.type(list[4]))
		assert.equal("float", math.type(list[5]))
		assert.equal(2.0 ^ 64, list[6])
	end)

	it("writes back what it read", function()
		local text = [=[{"a":[],"b":{},"c":[1,2.5,true,null,"\u0000\"\\\n😀"],"d":9007199254740993}]=]
		assert.equal(text, json.encode(json.decode(text)))
	end)

	it("refuses to write what JSON can't hold", function()
		for _, value in ipairs { 0 / 0, math.huge, print } do
			assert.is_false(pcall(json.encode, { value }))
		end
		assert.is_false(pcall(json.encode, { [1.5] = 1 }))
	end)
end)
