local lattice = require "lattice"
local scripted = require "spec.support.scripted"
local server = require "spec.support.server"

local call = scripted.call

local function path_of_own()
	local path = os.tmpname()
	return path, setmetatable({}, { __close = function()
		os.remove(path)
	end })
end

local function answering(replies, options)
	local all = { model_client = scripted.client(replies) }
	for key, value in pairs(options or {}) do
		all[key] = value
	end
	return all
end

describe("a saved session", function()
	it("goes on as a table where it was", function()
		local agent = lattice.create_bare_agent(answering({ "one" }, { name = "ann" }))
		agent:prompt "first"
		local saved = lattice.json.decode(lattice.json.encode(agent:save()))
		local options = answering { "two" }
		local loaded = lattice.load_agent(saved, options)
		assert.equal(agent.session_id, loaded.session_id)
		assert.equal("ann", loaded.name)
		assert.same(agent.messages, loaded.messages)
		assert.equal("two", loaded:prompt("second").result)
		assert.equal(3, #options.model_client.requests[1].messages)
		assert.equal(2, #agent.messages)
	end)

	it("goes on from a file where it was", function()
		local path, own = path_of_own()
		local _ <close> = own
		local echo = lattice.tool("echo", "Says it", { n = "integer" }, function(input)
			return "said " .. input.n
		end)
		local agent = lattice.create_bare_agent(answering({ { call("echo", { n = 9007199254740993 }) }, "done" }, {
			tools = { echo },
		}))
		agent:prompt "first"
		assert.is_true(agent:save(path))
		assert.same(agent.messages, lattice.load_agent(path, answering {}).messages)
	end)

	it("is replaced whole or not at all", function()
		local path, own = path_of_own()
		local _ <close> = own
		local agent = lattice.create_bare_agent(answering { "one", "two" })
		agent:prompt "first"
		assert.is_true(agent:save(path))
		local before = assert(io.open(path)):read "a"
		agent:prompt "second"
		assert.is_true(agent:save(path))
		assert.not_equal(before, assert(io.open(path)):read "a")
		local done, problem = agent:save(path .. "/not/there.json")
		assert.is_nil(done)
		assert.is_string(problem)
	end)

	it("is accepted by the service when it was saved in the middle of a batch", function()
		local saved
		local agent
		local save = lattice.tool("save", "Saves", {}, function()
			saved = saved or agent:save()
			return "saved"
		end)
		agent = lattice.create_bare_agent(answering({ { call("save", {}, "toolu_1"), call("save", {}, "toolu_2") }, "done" }, {
			tools = { save },
		}))
		agent:prompt "go"
		local own <close> = server.start { "going on" }
		local loaded = lattice.load_agent(saved, { base_url = own.url, api_key = "test-key-123456", max_retries = 0, tools = { save } })
		assert.equal("going on", loaded:prompt("go on").result)
		local results = loaded.messages[3].content
		assert.is_true(results[1].is_error and results[2].is_error)
	end)

	it("says what is wrong with what is no saved session", function()
		local path, own = path_of_own()
		local _ <close> = own
		local function problem_of(saved)
			local loaded, problem = lattice.load_agent(saved, answering {})
			assert.is_nil(loaded)
			return problem
		end
		local agent = lattice.create_bare_agent(answering {})
		local newer = agent:save()
		newer.version = 2
		assert.matches("version: expected 1, got 2", problem_of(newer))
		assert.matches('kind: expected "lattice.session", got nil', problem_of {})
		assert.matches("No such file", problem_of "/nowhere/session.json")
		assert.matches("expected a saved session", problem_of(path))
		local odd = agent:save()
		odd.messages = { { role = "nobody" } }
		assert.matches("messages: ", problem_of(odd))
		assert.error_matches(function()
			lattice.load_agent(7, answering {})
		end, "load_agent: saved: expected what agent:save gave, or the path of its file, got 7")
	end)
end)

describe("a session in a store", function()
	local function stored(store, replies, options)
		local all = answering(replies, { session_store = store, session_id = "s1" })
		for key, value in pairs(options or {}) do
			all[key] = value
		end
		return lattice.create_bare_agent(all), all.model_client
	end

	it("goes on with the same history when it is opened again", function()
		local store = lattice.create_memory_mailbox()
		local echo = lattice.tool("echo", "Says it", { n = "integer" }, function(input)
			return "said " .. input.n
		end)
		local one = stored(store, { { call("echo", { n = 9007199254740993 }), call("echo", { n = 2 }) }, "done" }, { tools = { echo } })
		assert.equal("done", one:prompt("first").result)
		local two, client = stored(store, { "on it" })
		assert.equal("s1", two.session_id)
		assert.same(one.messages, two.messages)
		assert.equal("on it", two:prompt("second").result)
		assert.equal(5, #client.requests[1].messages)
	end)

	it("keeps sessions apart", function()
		local store = lattice.create_memory_mailbox()
		stored(store, { "one" }):prompt "first"
		local other = lattice.create_bare_agent(answering({}, { session_store = store, session_id = "s2" }))
		assert.equal(0, #other.messages)
		local spec = lattice.define_agent(answering({ "a", "b" }, { session_store = store }))
		local a, b = spec:spawn(), spec:spawn()
		a:prompt "x"
		assert.not_equal(a.session_id, b.session_id)
		assert.equal(0, #b.messages)
	end)

	it("holds more entries than the mailbox takes unread", function()
		local store = lattice.create_memory_mailbox { max_queue = 3 }
		local one = stored(store, { "1", "2", "3", "4", "5" })
		for i = 1, 5 do
			assert.equal(tostring(i), one:prompt("go").result)
		end
		assert.equal(10, #stored(store, {}).messages)
	end)

	it("ends the run, before any tool, when a message can't be recorded", function()
		local ran = false
		local probe = lattice.tool("probe", "Probes", {}, function()
			ran = true
			return "ok"
		end)
		local store = lattice.create_memory_mailbox()
		local agent
		agent = lattice.create_bare_agent {
			session_store = store,
			tools = { probe },
			model_client = { create = function()
				store:close()
				return { content = { call "probe" }, stop_reason = "tool_use" }
			end },
		}
		local result = agent:prompt "go"
		assert.equal("error_during_execution", result.subtype)
		assert.equal("session_store_error", result.error.type)
		assert.matches("the mailbox is closed", result.error.message)
		assert.is_false(ran)
		assert.is_true(agent.messages[3].content[1].is_error)
	end)

	it("notices that another agent writes to it", function()
		local store = lattice.create_memory_mailbox()
		local one, two = stored(store, { "1", "2" }), stored(store, { "1" })
		assert.equal("1", one:prompt("go").result)
		local result = two:prompt "go"
		assert.equal("session_store_error", result.error.type)
		assert.matches("another agent writes to the session", result.error.message)
	end)

	it("forgets a prompt that the service refuses, here too", function()
		local own <close> = server.start { server.status(400), "fine" }
		local store = lattice.create_memory_mailbox()
		local options = { base_url = own.url, api_key = "test-key-123456", max_retries = 0, session_store = store, session_id = "s1" }
		assert.equal("error_api", lattice.create_bare_agent(options):prompt("bad").subtype)
		local again = lattice.create_bare_agent(options)
		assert.equal(0, #again.messages)
		assert.equal("fine", again:prompt("good").result)
	end)

	it("keeps the results of tools that ended in a batch that was cut, and says of the others that they may have run", function()
		local store = lattice.create_memory_mailbox()
		local runs, later, tools = {}, nil, nil
		local function named(name, handler, options)
			return lattice.tool(name, "Does", {}, function()
				runs[name] = (runs[name] or 0) + 1
				return handler()
			end, options)
		end
		tools = {
			named("ends", function() return "ended" end),
			named("again", function() return runs.again == 1 and lattice.sleep(5) or "ended again" end, { idempotent = true }),
			named("cut", function()
				lattice.sleep(1) -- "ends" is recorded by now
				if not later then -- this is all that another process would find
					later = stored(store, { "going on" }, { tools = tools })
					later:prompt "go on"
				end
				return "ended too late"
			end),
		}
		local first = stored(store, { { call "ends", call "again", call "cut" }, "never" }, {
			tools = tools,
			tool_concurrency = { mode = "all" },
		})
		assert.equal("session_store_error", first:prompt("go").error.type)
		local results = later.messages[3].content
		assert.equal("ended", results[1].content)
		assert.equal("ended again", results[2].content)
		assert.matches("The process was killed while this call ran", results[3].content)
		assert.is_true(results[3].is_error)
		assert.same({ ends = 1, again = 2, cut = 1 }, runs)
	end)

	it("refuses options that don't go together", function()
		local store = lattice.create_memory_mailbox()
		assert.error_matches(function()
			lattice.define_agent(answering({}, { session_id = "s1" }))
		end, "AgentOptions: session_id: expected none: each session of a template has its own")
		assert.error_matches(function()
			lattice.create_bare_agent(answering({}, { session_id = "a b" }))
		end, "AgentOptions: session_id: expected a name of 1 to 100")
		assert.error_matches(function()
			lattice.load_agent(lattice.create_bare_agent(answering {}):save(), answering({}, { session_store = store }))
		end, "load_agent: session_store: expected none")
	end)
end)

describe("a session whose process is killed", function()
	local LUA = os.getenv "LUA" or "lua5.4"

	local function run(own, database, effects, step)
		local command = "exec 2>/dev/null; %s spec/support/killed_session.lua %s %s %s %d"
		local pipe = assert(io.popen(command:format(LUA, own.url, database, effects, step)))
		local lines = {}
		for line in pipe:lines() do
			lines[#lines + 1] = line
		end
		pipe:close()
		return lines
	end

	local function count_effects(path)
		local counts = {}
		for line in io.lines(path) do
			counts[line] = (counts[line] or 0) + 1
		end
		return counts
	end

	it("goes on, at whatever step that was, and runs no tool twice but idempotent ones", function()
		local own <close> = server.start(function(request)
			local turns = 0
			for _, one in ipairs(request.body.messages) do
				turns = turns + (one.role == "assistant" and 1 or 0)
			end
			if turns == 0 then
				return message { tool_use("once", { n = 1 }, "toolu_1"), tool_use("again", { n = 2 }, "toolu_2") }
			elseif turns == 1 then
				return tool_use("once", { n = 3 }, "toolu_3")
			end
			return "done"
		end)
		local step, killed = 0, 0
		repeat
			step = step + 1
			local database, effects = os.tmpname(), os.tmpname()
			local first = run(own, database, effects, step)
			if #first == 0 then
				killed = killed + 1
				local second = run(own, database, effects, 0)
				assert.equal("success\tdone", second[1], "after step " .. step)
				local counts = count_effects(effects)
				assert.is_true((counts.once1 or 0) <= 1 and (counts.once3 or 0) <= 1, "after step " .. step)
				assert.is_true(counts.again2 == 1 or counts.again2 == 2, "after step " .. step)
				for _, one in ipairs(lattice.json.decode(second[3])) do
					for _, block in ipairs(one.content) do
						if block.type == "tool_result" and block.tool_use_id == "toolu_2" then
							assert.equal("effect of 2", block.content)
						end
					end
				end
			end
			for _, suffix in ipairs { "", "-wal", "-shm" } do
				os.remove(database .. suffix)
			end
			os.remove(effects)
		until #first > 0
		assert.is_true(killed >= 20, "killed at " .. killed .. " steps")
	end)
end)
