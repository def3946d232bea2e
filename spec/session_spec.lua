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
