-- What a host's own values can do to the engine: errors, results, options and tracers with metamethods that raise,
-- cycles, shared parts and bytes that are no text. None of it may cost a run its result.

local lattice = require "lattice"
local server = require "spec.support.server"

local function raise()
	error "a metamethod raised"
end

local function agent_with(handler, options)
	local replies = {
		{ content = { { type = "tool_use", id = "t1", name = "t", input = {} } } },
		{ content = "done" },
	}
	local all = {
		tools = { lattice.tool("t", "A tool", {}, handler) },
		model_client = { create = function() return table.remove(replies, 1) end },
	}
	for key, value in pairs(options or {}) do
		all[key] = value
	end
	return lattice.create_bare_agent(all)
end

local HOSTILE = {
	["a locked metatable"] = setmetatable({}, { __metatable = true }),
	["a metatable shown as a number"] = setmetatable({}, { __metatable = 7 }),
	["a __tostring that raises"] = setmetatable({}, { __tostring = raise }),
	["a __tostring that gives no string"] = setmetatable({}, { __tostring = function() return 5 end }),
	["an __index that raises"] = setmetatable({}, { __index = raise }),
	["a __pairs that raises"] = setmetatable({}, { __pairs = raise }),
	["a metatable whose __index raises"] = setmetatable({}, setmetatable({}, { __index = raise })),
}

-- A table that holds itself twice: following it blindly takes 2^depth steps.
local function knot()
	local table_ = {}
	table_.a, table_.b = table_, table_
	return table_
end

local function assert_tool_failed(agent)
	local result = agent:prompt "go"
	assert.equal("success", result.subtype)
	assert.is_true(agent.messages[3].content[1].is_error)
end

describe("a hostile value", function()
	for name, value in pairs(HOSTILE) do
		it("with " .. name .. " can be raised by a handler", function()
			assert_tool_failed(agent_with(function() error(value) end))
		end)
		it("with " .. name .. " can be raised by a policy and a permission", function()
			local function fail() error(value) end
			assert_tool_failed(agent_with(raise, { tool_batch_policy = { validate = fail } }))
			assert_tool_failed(agent_with(raise, { permission = fail }))
		end)
		it("with " .. name .. " that a hook raises leaves query as it is", function()
			local agent = agent_with(function() return "fine" end, { hooks = { on_tool_result = function() error(value) end } })
			local ok, raised = pcall(agent.prompt, agent, "go")
			assert.is_false(ok)
			assert.is_true(rawequal(value, raised))
		end)
		it("with " .. name .. " can be returned, as a result, its content and a block", function()
			for _, returned in ipairs { value, { content = value }, { content = { value } } } do
				local agent = agent_with(function() return returned end)
				assert.equal("success", agent:prompt("go").subtype)
				assert.equal("t1", agent.messages[3].content[1].tool_use_id)
			end
		end)
		it("with " .. name .. " can stand in what is traced, and be a wrong option's name", function()
			local events = {}
			local agent = agent_with(function() return { content = "fine", metadata = { v = value } } end, {
				tracer = { emit = function(_, event) events[#events + 1] = event.event end },
			})
			assert.equal("success", agent:prompt("go").subtype)
			assert.equal("result", events[#events])
			assert.error_matches(function()
				lattice.create_bare_agent { [value] = 1 }
			end, "AgentOptions: unknown option")
		end)
	end

	it("that holds itself many times is traced in bounded work", function()
		local agent = agent_with(function() return { content = "fine", metadata = knot() } end, {
			tracer = { emit = function() end },
		})
		assert.equal("success", agent:prompt("go").subtype)
	end)
end)

describe("a tracer that raises", function()
	local function failing() return { emit = raise } end

	it("costs no reply, and the result says so once", function()
		local agent = agent_with(function() return "fine" end, { tracer = failing() })
		local first = agent:prompt "go"
		assert.equal("success", first.subtype)
		assert.matches("the tracer raised: .*a metamethod raised", first.trace_error)
		assert.is_nil(agent:prompt("go").trace_error)
	end)

	it("does not keep events from the tracers beside it", function()
		local seen = 0
		local agent = agent_with(function() return "fine" end, {
			tracer = lattice.create_composite_context_tracer {
				failing(),
				{ emit = function() seen = seen + 1 end },
			},
		})
		assert.matches("the tracer raised", agent:prompt("go").trace_error)
		assert.is_true(seen > 0)
	end)

	it("may raise from its status too", function()
		local agent = agent_with(function() return "fine" end, { tracer = { emit = function() end, status = raise } })
		assert.equal("success", agent:prompt("go").subtype)
	end)
end)

describe("what JSON can't say", function()
	local client = { create = function() return { content = "ok" } end }

	it("is refused where it is given, by its option's name", function()
		for name, case in pairs {
			model = { "\xff", "AgentOptions: model: expected a non-empty string in UTF-8" },
			system_prompt = { "\xff\0", "AgentOptions: system_prompt: expected a string in UTF-8" },
			thinking_config = { { a = print }, "AgentOptions: thinking_config: expected a table that JSON can say" },
		} do
			assert.error_matches(function()
				lattice.create_bare_agent { model_client = client, [name] = case[1] }
			end, case[2], 1, true)
		end
		assert.error_matches(function()
			lattice.tool("t", "\xff", {}, raise)
		end, 'tool "t": description: expected a string in UTF-8', 1, true)
	end)

	it("does not lose the event that it stands in", function()
		local path = os.tmpname()
		local tracer = lattice.create_jsonl_context_tracer { path = path }
		agent_with(function() return { content = "fine", metadata = { bytes = "\xff\0", [1] = nil } } end, { tracer = tracer })
			:prompt "go"
		tracer:close()
		local found
		for line in io.lines(path) do
			local event = lattice.json.decode(line)
			found = found or event.metadata and event.metadata.bytes
		end
		os.remove(path)
		assert.equal("\u{FFFD}\0", found)
	end)

	it("is no prompt when it is blank, in any alphabet, as text or as blocks", function()
		local agent = lattice.create_bare_agent { model_client = client }
		for _, blank in ipairs { " ", "\n\t", "\u{3000}", "\u{a0}\u{2003}" } do
			for _, prompt in ipairs { blank, { { type = "text", text = blank } } } do
				assert.error_matches(function() agent:prompt(prompt) end, "got only white space", 1, true)
			end
		end
		assert.equal("success", agent:prompt("\u{4f60}").subtype)
		assert.equal(2, #agent.messages)
	end)

	it("names the misuse of a method without its agent", function()
		local agent = lattice.create_bare_agent { model_client = client }
		assert.error_matches(function() agent.interrupt {} end, "call it as agent:interrupt()", 1, true)
	end)
end)

describe("an answer of the host's", function()
	it("whose fields raise is nonsense, and costs no run", function()
		local answer = setmetatable({}, { __index = raise })
		local function give() return answer end
		assert_tool_failed(agent_with(raise, { tool_batch_policy = { validate = give } }))
		assert_tool_failed(agent_with(raise, { permission = give }))
		local client = lattice.create_bare_agent { model_client = { create = give } }
		assert.equal("error_api", client:prompt("go").subtype)
		local tool = lattice.tool("t", "A tool", {}, function() return "ran" end, { resources = give })
		local agent = agent_with(raise, { tools = { tool }, tool_concurrency = { mode = "resources" } })
		assert.equal("success", agent:prompt("go").subtype)
		assert.equal("ran", agent.messages[3].content[1].content)
	end)

	it("counts as returned: changes to the result that a hook is shown do not", function()
		for _, change in ipairs {
			function(result) result.content = nil end,
			function(result) result.content = { raise } end,
			function(result) result.is_error = "x" end,
			function(result) if type(result.content) == "table" then result.content[1].text = "\xff" end end,
		} do
			for _, content in ipairs { "fine", { { type = "text", text = "fine" } } } do
				local agent = agent_with(function() return { content = content } end, {
					hooks = { on_tool_result = function(event) change(event.result) end },
				})
				assert.equal("success", agent:prompt("go").subtype)
				assert.same(content, agent.messages[3].content[1].content)
			end
		end
	end)

	it("of a policy may name calls in any bytes", function()
		local agent = agent_with(raise, { tool_batch_policy = { validate = function()
			return { allowed = false, conflicting_tool_call_ids = { "\xff" } }
		end } })
		assert_tool_failed(agent)
	end)

	it("that can't be sent is the hook's fault by name", function()
		local agent = agent_with(raise, { hooks = { on_model_request = function() return { system = "\xff" } end } })
		local ok, raised = pcall(agent.prompt, agent, "go")
		assert.is_false(ok)
		assert.matches("^on_model_request: what it returned can't be sent: .*UTF", raised)
	end)
end)

describe("what is larger than a request may be", function()
	local function agent_on(own, tools)
		return lattice.create_bare_agent {
			api_key = "test-key-123456",
			base_url = own.url,
			max_request_bytes = 20000,
			max_retries = 0,
			tools = tools,
		}
	end

	it("fails as a prompt, and the session goes on without it", function()
		local own <close> = server.start { "fine" }
		local agent = agent_on(own)
		assert.equal("error_api", agent:prompt(("p"):rep(30000)).subtype)
		assert.same({}, agent.messages)
		assert.equal("success", agent:prompt("short").subtype)
	end)

	it("leaves one large result beside small ones alone", function()
		local own <close> = server.start { server.message { server.tool_use("t", {}), server.tool_use("u", {}) }, "fine" }
		local agent = agent_on(own, {
			lattice.tool("t", "A tool", {}, function() return ("r"):rep(15000) end),
			lattice.tool("u", "A tool", {}, function() return "small" end),
		})
		assert.equal("success", agent:prompt("go").subtype)
		assert.equal(15000, #agent.messages[3].content[1].content)
	end)

	it("never enters the history as results, however they share it", function()
		for _, size in ipairs { 9000, 11000, 30000 } do
			local own <close> = server.start { server.message { server.tool_use("t", {}), server.tool_use("t", {}) }, "fine", "again" }
			local agent = agent_on(own, { lattice.tool("t", "A tool", {}, function() return ("r"):rep(size) end) })
			assert.equal("success", agent:prompt("go").subtype)
			assert.equal(size > 9000 or nil, agent.messages[3].content[2].is_error)
		end
	end)
end)

describe("a listener of a signal that raises", function()
	it("keeps the abort from nobody, and raises out of abort", function()
		local controller = lattice.abort_controller()
		local heard = 0
		controller.signal:on_abort(function() heard = heard + 1 end)
		controller.signal:on_abort(raise)
		controller.signal:on_abort(function() heard = heard + 1 end)
		assert.error_matches(function() controller:abort() end, "a metamethod raised")
		assert.equal(2, heard)
	end)

	it("does not keep a query from ending", function()
		local controller = lattice.abort_controller()
		controller.signal:on_abort(raise)
		local agent = agent_with(function()
			pcall(controller.abort, controller)
			lattice.sleep(60000)
		end)
		assert.equal("error_abort", agent:prompt("go", { signal = controller.signal }).subtype)
	end)
end)
