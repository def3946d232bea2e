local lattice = require "lattice"
local scripted = require "spec.support.scripted"
local tools = require "spec.support.tools"

local core = require "lattice.core"
local sh, put, get = tools.sh, tools.put, tools.get

local function exists(path)
	return sh("test -e '%s' && echo yes", path) == "yes\n"
end

-- An agent whose model makes these calls in one reply and then says "done".
local function agent_with(calls, options)
	options = options or {}
	options.model_client = scripted.client { calls, "done", "done", "done" }
	return lattice.create_agent(options)
end

local function results(agent)
	return agent.messages[3].content
end

after_each(tools.remove_folders)

describe("create_agent", function()
	it("gives a session the built-in tools before the host's own", function()
		local client = scripted.client { "done" }
		local own = lattice.tool("own", "Own", {}, function() return "" end)
		local agent <close> = lattice.create_agent { model_client = client, tools = { own } }
		agent:prompt "go"
		local names = {}
		for index, one in ipairs(client.requests[1].tools) do names[index] = one.name end
		assert.are.same({ "Read", "Write", "Edit", "LS", "Glob", "Grep", "Bash", "own" }, names)
	end)

	it("lets the model work in a private folder", function()
		local seen
		local where = lattice.tool("where", "Where", {}, function(_, ctx)
			seen = { path = ctx.workspace.path, mode = sh("stat -c %%a '%s'", ctx.workspace.path) }
			seen.text = get(ctx.workspace.path .. "/notes.txt")
			return "there"
		end)
		local agent <close> = agent_with({
			scripted.call("Write", { file_path = "notes.txt", content = "hello" }),
			scripted.call("Edit", { file_path = "notes.txt", old_string = "hello", new_string = "goodbye" }),
			scripted.call "where",
		}, { tools = { where } })
		assert.are.equal("success", agent:prompt("go").subtype)
		assert.are.equal("700\n", seen.mode)
		assert.are.equal("goodbye", seen.text)
	end)

	it("calls the tools builtin for policies", function()
		local kinds = {}
		local agent <close> = agent_with({ scripted.call("LS", {}) }, {
			tool_batch_policy = {
				validate = function(batch)
					kinds[1] = batch.tool_calls[1].kind
					return { allowed = true }
				end,
			},
		})
		agent:prompt "go"
		assert.are.same({ "builtin" }, kinds)
	end)

	it("puts what a tool did into the trace", function()
		local metadata
		local agent <close> = agent_with({ scripted.call("Write", { file_path = "f", content = "12345" }) }, {
			tracer = {
				emit = function(_, event) if event.event == "tool_end" then metadata = event.metadata end end,
			},
		})
		agent:prompt "go"
		assert(metadata, "there is no tool_end with metadata")
		assert.are.equal(5, metadata.bytes)
		assert.are.equal("number", type(metadata.duration_ms))
	end)
end)

describe("the folder of a session", function()
	local function folder_of(options)
		local path
		local where = lattice.tool("where", "Where", {}, function(_, ctx)
			path = ctx.workspace.path
			return "there"
		end)
		options = options or {}
		options.tools = { where }
		local agent = agent_with({ scripted.call "where" }, options)
		agent:prompt "go"
		return path, agent
	end

	it("is removed when the variable is closed, with all that is in it, and no link is followed", function()
		local outside = tools.folder()
		put(outside .. "/precious", "1")
		local path
		do
			local found, made = folder_of()
			local _ <close> = made
			path = found
			assert.is_true(exists(path))
		end
		assert.is_false(exists(path))
		local again, agent = folder_of()
		sh("cd '%s' && mkdir -p a/b/c && touch a/b/c/f && ln -s '%s' link && ln -s '%s' a/link && chmod 0 a/b && mkfifo p",
			again, outside, outside)
		agent:close()
		assert.is_false(exists(again))
		assert.are.equal("1", get(outside .. "/precious"))
	end)

	it("is removed however deep it is", function()
		local path, agent = folder_of()
		local deep = (("d"):rep(100) .. "/"):rep(30) -- three of them are longer than any path may be
		sh("cd '%s' && mkdir -p '%s' && cd '%s' && mkdir -p '%s'", path, deep, deep, deep)
		agent:close()
		assert.is_false(exists(path))
	end)

	it("is removed when the agent is collected", function()
		local path = folder_of()
		collectgarbage()
		collectgarbage()
		assert.is_false(exists(path))
	end)

	it("is removed when the process exits, by os.exit too, and after a kill at the next start", function()
		local script = tools.folder() .. "/s.lua"
		put(script, [[
			local lattice = require "lattice"
			Agent = lattice.create_agent { model_client = { create = function() end } }
			local tools = require "spec.support.tools"
			io.stdout:write(tools.sh "ls -d $TMPDIR/lattice-session-*")
			io.stdout:flush()
			if arg[1] == "exit" then os.exit(3) end
			if arg[1] == "raise" then error "x" end
			if arg[1] == "kill" then tools.sh("kill -9 %d", tools.get "/proc/self/stat":match "%d+") end
		]])
		local tmp = tools.folder()
		local function run(how)
			return tools.script(script, how .. " 2>/dev/null", ("TMPDIR='%s'"):format(tmp))
		end
		for _, how in ipairs { "end", "exit", "raise" } do
			assert(run(how):find("lattice-session-", 1, true))
			assert.are.equal("", sh("ls -A '%s'", tmp))
		end
		run "kill"
		assert(sh("ls -A '%s'", tmp):find "^lattice%-session%-%w+\n$")
		run "end"
		assert.are.equal("", sh("ls -A '%s'", tmp))
	end)

	it("stays with keep", function()
		local path, agent = folder_of { workspace = { keep = true } }
		agent:close()
		assert.is_true(exists(path))
		sh("rm -r '%s'", path)
	end)

	it("can be one of the host's, which then stays", function()
		local mine = tools.folder()
		put(mine .. "/f", "mine")
		local path, agent = folder_of { workspace = { path = mine, keep = false } }
		assert.are.equal(mine, path)
		agent:close()
		assert.are.equal("mine", get(mine .. "/f"))
		path, agent = folder_of { workspace = { path = mine .. "/a/b" } }
		agent:close()
		assert.is_true(exists(path))
		path, agent = folder_of { workspace = { path = mine .. "/c", keep = false } }
		agent:close()
		assert.is_false(exists(path))
	end)

	it("is another for each session of a template", function()
		local where = lattice.tool("where", "Where", {}, function(_, ctx) return ctx.workspace.path end)
		local call = scripted.call "where"
		local spec = lattice.define_agent {
			model_client = scripted.client { { call }, "done", { call }, "done" },
			workspace = {},
			tools = { where },
		}
		local one <close> = spec:spawn()
		local two <close> = spec:spawn()
		one:prompt "go"
		two:prompt "go"
		assert.are_not.equal(results(one)[1].content, results(two)[1].content)
		assert.is_true(exists(results(one)[1].content) and exists(results(two)[1].content))
	end)

	it("can't be used once the agent is closed", function()
		local _, agent = folder_of()
		agent:close()
		agent:close()
		assert.has_error(function() agent:prompt "again" end)
	end)
end)

describe("options of workspaces", function()
	local function message(fn)
		local ok, problem = pcall(fn)
		assert.is_false(ok)
		return tostring(problem)
	end

	it("are checked when the agent is assembled", function()
		local client = scripted.client {}
		for text, given in pairs {
			['AgentOptions: workspace: unknown option "pth".'] = { workspace = { pth = "/tmp" } },
			["AgentOptions: workspace.keep: expected a boolean, got 1"] = { workspace = { keep = 1 } },
			["AgentOptions: allowed_directories: expected a list of folders"] = { allowed_directories = "/tmp" },
			["AgentOptions: can't open the folder \"/nope\""] = { allowed_directories = { "/nope" } },
		} do
			given.model_client = client
			local problem = message(function() lattice.create_agent(given) end)
			assert(problem:find(text, 1, true), problem)
			assert(problem:find("workspace_spec.lua", 1, true), problem)
		end
	end)

	it("don't go with an agent that has no workspace", function()
		local problem = message(function()
			lattice.create_bare_agent { model_client = scripted.client {}, allowed_directories = { "/tmp" } }
		end)
		assert(problem:find("allowed_directories", 1, true), problem)
	end)

	it("are checked for grants when the query starts", function()
		local agent <close> = agent_with {}
		for text, grant in pairs {
			['permissions.workspace_grants[1]: unknown option "rot".'] = { rot = "/tmp" },
			["permissions.workspace_grants[1]: root: expected a folder"] = { access = { "write" } },
			["permissions.workspace_grants[1]: access: expected a list"] = { root = "/tmp" },
			["permissions.workspace_grants[1]: access: expected a list of \"read\" and \"write\""] =
				{ root = "/tmp", access = { "wrte" } },
			["can't open the folder \"/nope\""] = { root = "/nope", access = { "read" } },
		} do
			local problem = message(function()
				agent:prompt("go", { permissions = { workspace_grants = { grant } } })
			end)
			assert(problem:find(text, 1, true), problem)
		end
		local problem = message(function() agent:prompt("go", { permissions = { grants = {} } }) end)
		assert(problem:find('QueryOptions: permissions: unknown option "grants"', 1, true), problem)
	end)
end)

describe("files outside of the workspace", function()
	it("are denied in a way that says what is allowed", function()
		local outside = tools.folder()
		put(outside .. "/secret", "secret")
		local agent <close> = agent_with {
			scripted.call("Read", { file_path = outside .. "/secret" }),
			scripted.call("Write", { file_path = outside .. "/new", content = "x" }),
		}
		agent:prompt "go"
		for index, access in ipairs { "read", "write" } do
			local block = results(agent)[index]
			assert.is_true(block.is_error)
			local denial = core.json_decode(block.content)
			assert.are.equal("permission_denied", denial.code)
			assert.are.equal(outside .. (index == 1 and "/secret" or "/new"), denial.path)
			assert.are.equal(access, denial.access)
			assert.are.equal(1, #denial.allowed_roots)
			assert.are.equal("string", type(denial.suggested_next_step))
		end
		assert.are.equal("secret\n", sh("ls -A '%s'", outside))
	end)

	it("are there with allowed_directories, and the model is told", function()
		local shared = tools.folder()
		put(shared .. "/f", "text")
		local agent <close> = agent_with({
			scripted.call("Read", { file_path = shared .. "/f" }),
			scripted.call("Write", { file_path = shared .. "/g", content = "x" }),
		}, { allowed_directories = { shared } })
		agent:prompt "go"
		assert.are.equal("     1\ttext", results(agent)[1].content)
		assert.are.equal("x", get(shared .. "/g"))
	end)

	it("are there for one query by its grants", function()
		local granted = tools.folder()
		local write = scripted.call("Write", { file_path = granted .. "/f", content = "x" })
		local client = scripted.client { { write }, "done", { write }, "done" }
		local agent <close> = lattice.create_agent { model_client = client }
		local grant = { root = granted, access = { "write" }, reason = "the report goes there" }
		agent:prompt("go", { permissions = { workspace_grants = { grant } } })
		assert.are.equal("x", get(granted .. "/f"))
		agent:prompt "again"
		local messages = agent.messages
		assert.is_true(messages[#messages - 1].content[1].is_error)
	end)

	it("may be granted for reading alone", function()
		local granted = tools.folder()
		put(granted .. "/f", "text")
		local agent <close> = agent_with {
			scripted.call("Read", { file_path = granted .. "/f" }),
			scripted.call("Write", { file_path = granted .. "/f", content = "x" }),
		}
		local grant = { root = granted, access = { "read" } }
		agent:prompt("go", { permissions = { workspace_grants = { grant } } })
		assert.is_nil(results(agent)[1].is_error)
		assert.is_true(results(agent)[2].is_error)
		assert.are.equal("text", get(granted .. "/f"))
	end)
end)

describe("create_builtin_tools", function()
	it("gives tools for a folder of the host's choice to any agent", function()
		local folder, other = tools.folder(), tools.folder()
		local list = lattice.create_builtin_tools { cwd = folder, allowed_directories = { other } }
		local blocks = scripted.run({
			scripted.call("Write", { file_path = "f", content = "1" }),
			scripted.call("Write", { file_path = other .. "/f", content = "2" }),
			scripted.call("Write", { file_path = "/nowhere/f", content = "3" }),
		}, { tools = list })
		assert.are.equal("1", get(folder .. "/f"))
		assert.are.equal("2", get(other .. "/f"))
		assert.is_true(blocks[3].is_error)
	end)

	it("checks its options", function()
		assert.error_matches(function() lattice.create_builtin_tools { cdw = "/" } end,
			'create_builtin_tools: unknown option "cdw"')
		assert.error_matches(function() lattice.create_builtin_tools { cwd = "/nope" } end, "can't open the folder")
	end)
end)

describe("create_agent_workspace_tools", function()
	it("gives tools for the workspace of whichever agent calls them", function()
		local folder = tools.folder()
		scripted.run({ scripted.call("Write", { file_path = "f", content = "1" }) },
			{ tools = lattice.create_agent_workspace_tools(), workspace = { path = folder } })
		assert.are.equal("1", get(folder .. "/f"))
	end)

	it("fails where the agent has none", function()
		local blocks = scripted.run({ scripted.call("LS", {}) }, { tools = lattice.create_agent_workspace_tools() })
		assert.is_true(blocks[1].is_error)
		assert(blocks[1].content:find("the agent has none", 1, true))
	end)
end)

describe("built-in tools in the mode resources", function()
	it("see the writes that come before them in the batch, by whatever name", function()
		local folder = tools.folder()
		sh("mkdir '%s/d' && ln -s d '%s/l'", folder, folder)
		local calls = {}
		for i = 1, 20 do
			local name = ("f%d"):format(i)
			calls[#calls + 1] = scripted.call("Write", { file_path = "d/" .. name, content = "new " .. i })
			calls[#calls + 1] = scripted.call("Read", { file_path = "l/../l/" .. name })
			calls[#calls + 1] = scripted.call("Edit",
				{ file_path = "./l/" .. name, old_string = "new", new_string = "newer" })
			calls[#calls + 1] = scripted.call("Read", { file_path = folder .. "/d/" .. name })
		end
		calls[#calls + 1] = scripted.call("LS", { path = "d" })
		local agent <close> = agent_with(calls,
			{ workspace = { path = folder }, tool_concurrency = { mode = "resources" } })
		agent:prompt "go"
		local blocks = results(agent)
		for i = 1, 20 do
			assert.are.equal("     1\tnew " .. i, blocks[4 * i - 2].content)
			assert.are.equal("     1\tnewer " .. i, blocks[4 * i].content)
		end
		assert.are.equal(20, select(2, blocks[81].content:gsub("f%d+", "")))
	end)
end)

describe("two agents on one folder", function()
	it("never see half of a write, and lose none of their edits", function()
		local folder = tools.folder()
		put(folder .. "/count", "0")
		local rounds = math.ceil(60 * tools.scale())
		-- Each adds lines of its own by an Edit that finds the last line of its own.
		put(folder .. "/f", "A0\nB0\n")
		local function writer(letter)
			return function()
				local calls = {}
				for i = 1, rounds do
					local last, following = letter .. (i - 1) .. "\n", letter .. i .. "\n"
					calls[i] = scripted.call("Edit",
						{ file_path = "f", old_string = last, new_string = last .. following })
				end
				local agent <close> = agent_with(calls, { workspace = { path = folder } })
				agent:prompt "go"
				return results(agent)
			end
		end
		local a, b = table.unpack(lattice.gather { writer "A", writer "B" })
		for _, blocks in ipairs { a.value, b.value } do
			for index, block in ipairs(blocks) do
				assert(not block.is_error or block.content:find("changed since", 1, true), index .. ": " .. block.content)
			end
		end
		local text = get(folder .. "/f")
		local _, lines = text:gsub("[AB]%d+\n", "")
		assert.are.equal(#text, #text:gsub("[^AB%d\n]", ""))
		assert.is_true(lines > rounds)
	end)

	it("wait for each other: a read that comes later sees the write, whoever makes it", function()
		local folder = tools.folder()
		local big = ("x"):rep(1 << 20)
		local list = lattice.create_builtin_tools { cwd = folder }
		local by_name = {}
		for _, one in ipairs(list) do by_name[one.name] = one end
		local function run(name, input)
			return by_name[name].handler(input, { signal = lattice.abort_controller().signal })
		end
		local outcomes = lattice.gather {
			function() return run("Write", { file_path = "f", content = big .. "\nend" }) end,
			function() return run("Read", { file_path = "f", offset = 2 }) end,
			function() return run("LS", {}) end,
		}
		assert.are.equal("     2\tend", outcomes[2].value.content)
		assert.are.equal("f", outcomes[3].value.content)
	end)
end)

describe("lattice.features", function()
	it("says what the kernel and the libraries can do", function()
		local features = lattice.features()
		assert.are.equal("boolean", type(features.openat2))
		assert.are.equal("boolean", type(features.pcre2_jit))
		assert.is_true(features.landlock == false or math.type(features.landlock) == "integer")
	end)
end)
