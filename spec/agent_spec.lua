local lattice = require "lattice"
local server = require "spec.support.server"

local s = lattice.schema

local function agent_on(own, options)
	local all = { api_key = "test-key-123456", base_url = own.url, model = "test-model", max_retries = 0 }
	for key, value in pairs(options or {}) do
		all[key] = value
	end
	return lattice.create_bare_agent(all)
end

local function echo_tool(seen, options)
	return lattice.tool("echo", "Says it again", s.object { text = s.string }, function(input, ctx)
		if seen then
			seen[#seen + 1] = { input = input, ctx = ctx }
		end
		return "echo: " .. input.text
	end, options)
end

local function collect(iterator, nothing, control, closer)
	local messages = {}
	local _ <close> = closer
	for message in iterator, nothing, control do
		messages[#messages + 1] = message
	end
	return messages
end

local function kinds(messages)
	local list = {}
	for i, message in ipairs(messages) do
		list[i] = message.subtype and message.type .. "/" .. message.subtype or message.type
	end
	return table.concat(list, " ")
end

describe("an agent", function()
	it("answers a prompt with the text of the reply", function()
		local own <close> = server.start [[return { replies = { text "Hello there" } }]]
		local result = agent_on(own):prompt "Hi"
		assert.equal("success", result.subtype)
		assert.is_false(result.is_error)
		assert.equal("Hello there", result.result)
		assert.equal("end_turn", result.stop_reason)
		assert.equal(1, result.num_turns)
		assert.is_true(result.usage.input_tokens > 0)
		assert.is_true(result.duration_ms >= 0)
	end)

	it("sends what the API asks for", function()
		local own <close> = server.start [[return { replies = { text "ok" } }]]
		agent_on(own, { system_prompt = "Be brief.", max_tokens = 77, headers = { ["x-extra"] = "1" } }):prompt "Hi"
		local request = own:requests()[1]
		local body = lattice.json.decode(request.body)
		assert.equal("POST", request.method)
		assert.equal("/v1/messages", request.path)
		assert.equal("test-model", body.model)
		assert.equal(77, body.max_tokens)
		assert.equal("Be brief.", body.system)
		assert.is_true(body.stream)
		assert.same({ { role = "user", content = { { type = "text", text = "Hi" } } } }, body.messages)
		local headers = {}
		for _, pair in ipairs(request.headers) do
			headers[pair[1]:lower()] = pair[2]
		end
		assert.equal("test-key-123456", headers["x-api-key"])
		assert.equal("2023-06-01", headers["anthropic-version"])
		assert.equal("1", headers["x-extra"])
	end)

	it("runs tools until the model is done, and yields each message", function()
		local own <close> = server.start [[return { replies = {
			message { "Let me see.", tool_use("echo", { text = "a" }, "toolu_1") },
			tool_use("echo", { text = "b" }, "toolu_2"),
			text "done",
		} }]]
		local seen = {}
		local agent = agent_on(own, { tools = { echo_tool(seen) } })
		local messages = collect(agent:query("go", { context = { user = 7 } }))
		assert.equal("system/init assistant user assistant user assistant result/success", kinds(messages))
		assert.equal("done", messages[7].result)
		assert.equal(3, messages[7].num_turns)
		assert.same({ type = "tool_result", tool_use_id = "toolu_1", content = "echo: a" }, messages[3].message.content[1])
		assert.equal("b", seen[2].input.text)
		assert.equal("toolu_2", seen[2].ctx.tool_call_id)
		assert.equal("echo", seen[2].ctx.tool_name)
		assert.equal(7, seen[2].ctx.context.user)
		assert.is_false(seen[2].ctx.signal.aborted)
		assert.equal(6, #agent.messages)
	end)

	it("goes on from its history in the next prompt", function()
		local own <close> = server.start [[return { replies = { text "one", text "two" } }]]
		local agent = agent_on(own)
		agent:prompt "first"
		assert.equal("two", agent:prompt("second").result)
		assert.equal(3, #lattice.json.decode(own:requests()[2].body).messages)
	end)

	it("hands out copies of its history", function()
		local own <close> = server.start [[return { replies = { text "one" } }]]
		local agent = agent_on(own)
		agent:prompt "first"
		local copy = agent.messages
		copy[1].content[1].text = "changed"
		assert.equal("first", agent.messages[1].content[1].text)
	end)

	it("yields the provider's own events when asked to stream", function()
		local own <close> = server.start [[return { replies = { text("Hello there", { delta_size = 3 }) } }]]
		local text, types = {}, {}
		for message in agent_on(own):query("Hi", { stream = true }) do
			if message.type == "stream_event" then
				types[message.event.type] = true
				if message.event.type == "content_block_delta" then
					text[#text + 1] = message.event.delta.text
				end
			end
		end
		assert.equal("Hello there", table.concat(text))
		assert.is_true(#text > 2)
		assert.is_true(types.message_start and types.message_stop)
	end)

	it("sums usage over its requests", function()
		local own <close> = server.start [[return { replies = {
			message { tool_use("echo", { text = "a" }), usage = { input_tokens = 10, output_tokens = 3, cache_read_input_tokens = 5 } },
			message { "done", usage = { input_tokens = 20, output_tokens = 4 } },
		} }]]
		local usage = agent_on(own, { tools = { echo_tool() } }):prompt("go").usage
		assert.equal(30, usage.input_tokens)
		assert.equal(7, usage.output_tokens)
		assert.equal(5, usage.cache_read_input_tokens)
	end)

	it("stops at max_turns with a history that the next prompt can use", function()
		local own <close> = server.start [[return { replies = {
			tool_use("echo", { text = "a" }), tool_use("echo", { text = "b" }), text "fine" } }]]
		local agent = agent_on(own, { tools = { echo_tool() }, max_turns = 2 })
		local result = agent:prompt "go"
		assert.equal("error_max_turns", result.subtype)
		assert.is_true(result.is_error)
		assert.equal(2, result.num_turns)
		assert.equal("fine", agent:prompt("and now?").result)
	end)

	it("refuses a second query while one is running", function()
		local own <close> = server.start [[return { replies = { text "one", text "two" } }]]
		local agent = agent_on(own)
		for message in agent:query "first" do
			if message.type == "system" then
				local ok, problem = pcall(agent.prompt, agent, "second")
				assert.is_false(ok)
				assert.equal("ConcurrentQueryError", problem.name)
				assert.matches("ConcurrentQueryError", tostring(problem))
			end
		end
		assert.equal("two", agent:prompt("third").result)
	end)

	it("can be used again after an iterator was dropped in the middle", function()
		local own <close> = server.start [[return { replies = { tool_use("echo", { text = "a" }), text "two" } }]]
		local agent = agent_on(own, { tools = { echo_tool() } })
		do
			local iterator = agent:query "first"
			iterator() -- init
			iterator() -- the assistant's tool_use
		end
		assert.equal("two", agent:prompt("second").result)
	end)

	it("forgets a prompt that the service refuses, so that the next one is not refused with it", function()
		local own <close> = server.start(function(request)
			if request.raw:find("poison", 1, true) then
				return server.status(400)
			end
			return "fine"
		end)
		local agent = agent_on(own)
		assert.equal("fine", agent:prompt("hello").result)
		assert.equal("error_api", agent:prompt("poison").subtype)
		assert.equal(2, #agent.messages)
		assert.equal("fine", agent:prompt("hello again").result)
	end)

	it("keeps nothing of a query that was never begun", function()
		local agent = lattice.create_bare_agent { api_key = "k-1234567" }
		do
			local _ <close> = agent:query "never"
		end
		assert.equal(0, #agent.messages)
	end)

	it("ends a query as interrupted when the loop is left, and keeps the history valid", function()
		local own <close> = server.start [[return { replies = {
			message { tool_use("echo", { text = "a" }, "toolu_1"), tool_use("echo", { text = "b" }, "toolu_2") }, text "fine" } }]]
		local agent = agent_on(own, { tools = { echo_tool() } })
		for message in agent:query "first" do
			if message.type == "assistant" then
				break
			end
		end
		assert.equal("fine", agent:prompt("second").result)
	end)

	it("is interrupted by agent:interrupt, also from a handler", function()
		local own <close> = server.start [[return { replies = {
			message { tool_use("stop", {}, "toolu_1"), tool_use("stop", {}, "toolu_2") }, text "fine" } }]]
		local agent
		local stop = lattice.tool("stop", "Stops the run", {}, function()
			agent:interrupt()
			return "stopping"
		end)
		agent = agent_on(own, { tools = { stop } })
		local result = agent:prompt "go"
		assert.equal("interrupted", result.subtype)
		local results = agent.messages[3].content
		assert.equal("toolu_1", results[1].tool_use_id)
		assert.equal("toolu_2", results[2].tool_use_id)
		assert.is_true(results[2].is_error)
		assert.equal("fine", agent:prompt("again").result)
	end)

	it("gives fresh sessions from a template", function()
		local own <close> = server.start [[return function() return text "hi" end]]
		local spec = lattice.define_agent { api_key = "k-123456789", base_url = own.url, model = "m", name = "twin" }
		local one, two = spec:spawn(), spec:spawn()
		one:prompt "a"
		assert.equal(2, #one.messages)
		assert.equal(0, #two.messages)
		assert.not_equal(one.session_id, two.session_id)
		assert.equal("twin", two.name)
	end)

	it("takes a base_url with a trailing path, slash or version", function()
		local own <close> = server.start [[return function() return text "hi" end]]
		for _, path in ipairs { "", "/", "/anthropic", "/anthropic/", "/v1", "/v1/messages" } do
			local result = agent_on(own, { base_url = own.url .. path }):prompt "Hi"
			assert.equal("success", result.subtype, path)
		end
		assert.equal("/anthropic/v1/messages", own:requests()[3].path)
		assert.equal("/v1/messages", own:requests()[6].path)
	end)

	it("never shows its key", function()
		local own <close> = server.start [[return function(request)
			return status(401, {}, { type = "error", error = { type = "authentication_error", message = "bad key test-key-123456" } })
		end]]
		local agent = agent_on(own)
		local result = agent:prompt "Hi"
		assert.equal("error_api", result.subtype)
		assert.equal("authentication_error", result.error.type)
		assert.equal(401, result.error.status)
		assert.is_nil(lattice.json.encode(result):find("test-key-123456", 1, true))
		assert.is_nil(tostring(agent):find("test-key-123456", 1, true))
		for _, value in pairs(agent) do
			error("an agent shows its insides: " .. tostring(value))
		end
	end)
end)

describe("options of an agent", function()
	local function refused(options, expected)
		options.api_key = options.api_key or "k-1234567"
		local ok, problem = pcall(lattice.create_bare_agent, options)
		assert.is_false(ok)
		assert.is_truthy(tostring(problem):find(expected, 1, true), problem)
	end

	it("are refused when unknown, with the closest known one", function()
		refused({ bogus_option = 1 }, 'AgentOptions: unknown option "bogus_option". Check for a typo, or upgrade '
			.. "lattice if this option was added in a newer version.")
		refused({ modle = "x" }, 'Did you mean "model"?')
		refused({ maxTurns = 3 }, 'Did you mean "max_turns"?')
		refused({ tool_concurrency = { max = 3 } }, 'tool_concurrency: unknown option "max"')
	end)

	it("are refused when of a wrong type or out of range", function()
		refused({ tool_concurrency = { max_concurrency = 0 } },
			"tool_concurrency.max_concurrency: expected a positive integer, got 0")
		refused({ max_tokens = "many" }, 'max_tokens: expected a positive integer, got "many"')
		refused({ tool_concurrency = { mode = "fast" } }, "tool_concurrency.mode: expected one of")
		refused({ tools = { "x" } }, "tools: expected a list of tools")
		refused({ base_url = "ftp://x" }, "base_url: expected an http:// or https:// URL")
		refused({ headers = { a = "b\r\nc: d" } }, "headers: expected")
		refused({ max_turns = 0 }, "max_turns: expected a positive integer, got 0")
	end)

	it("never show a key, even when it is of the wrong type", function()
		local ok, problem = pcall(lattice.create_bare_agent, { api_key = 12345678 })
		assert.is_false(ok)
		assert.is_nil(tostring(problem):find("12345678", 1, true))
	end)

	it("name two tools of one name", function()
		local one = lattice.tool("same", "", {}, function() return "" end)
		local two = lattice.tool("same", "", {}, function() return "" end)
		refused({ tools = { one, two } }, 'there is already a tool named "same"')
	end)

	it("raise at the line of the caller", function()
		local ok, problem = pcall(function()
			lattice.create_bare_agent { bogus = 1 }
		end)
		assert.is_false(ok)
		assert.matches("^[^:]*spec/agent_spec.lua:%d+: AgentOptions", problem)
	end)

	it("of a query are as strict", function()
		local agent = lattice.create_bare_agent { api_key = "k-1234567" }
		local ok, problem = pcall(agent.prompt, agent, "x", { contxt = 1 })
		assert.is_false(ok)
		assert.is_truthy(problem:find('QueryOptions: unknown option "contxt"', 1, true))
		ok, problem = pcall(agent.prompt, agent, "")
		assert.is_false(ok)
		assert.is_truthy(problem:find("expected a non-empty string", 1, true))
	end)
end)

describe("a model_client", function()
	local function client_agent(create, options)
		options = options or {}
		options.model_client = { create = create }
		return lattice.create_bare_agent(options)
	end

	it("stands in for the service, without a key", function()
		local turns = 0
		local agent = client_agent(function(request)
			turns = turns + 1
			assert.equal(2 * turns - 1, #request.messages)
			assert.equal("echo", request.tools[1].name)
			if turns == 1 then
				return { role = "assistant", stop_reason = "tool_use", content = {
					{ type = "tool_use", id = "t1", name = "echo", input = { text = "x" } } } }
			end
			return { role = "assistant", stop_reason = "end_turn", content = { { type = "text", text = "fine" } },
				usage = { input_tokens = 3, output_tokens = 1 } }
		end, { tools = { echo_tool() } })
		local result = agent:prompt "go"
		assert.equal("fine", result.result)
		assert.equal(3, result.usage.input_tokens)
	end)

	it("may wait in the engine and hand over stream events", function()
		local agent = client_agent(function(request)
			request.on_event { type = "one" }
			lattice.sleep(1)
			request.on_event { type = "two" }
			return { content = { { type = "text", text = "fine" } } }
		end)
		local types = {}
		for message in agent:query("go", { stream = true }) do
			types[#types + 1] = message.event and message.event.type or message.type
		end
		assert.equal("system one two assistant result", table.concat(types, " "))
	end)

	it("turns what it raises into error_api", function()
		local agent = client_agent(function()
			error("the model is on holiday", 0)
		end)
		local result = agent:prompt "go"
		assert.equal("error_api", result.subtype)
		assert.equal("the model is on holiday", result.error.message)
	end)

	it("is refused when it returns nonsense", function()
		for _, nonsense in ipairs { 1, "text", {}, { content = { { type = 3 } } }, { content = { print } } } do
			local result = client_agent(function()
				return nonsense
			end):prompt "go"
			assert.equal("error_api", result.subtype)
		end
	end)

	it("is bounded by request_timeout_ms", function()
		local agent = client_agent(function()
			lattice.sleep(3600000)
		end, { request_timeout_ms = 5 })
		assert.equal("error_timeout", agent:prompt("go").subtype)
	end)
end)
