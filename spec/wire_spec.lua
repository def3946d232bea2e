-- What comes over the wire, and what becomes of it: kinds of fault that clients of this API were seen to have.

local agents = require "spec.support.agents"
local lattice = require "lattice"
local server = require "spec.support.server"

local text, tool_use, message, status = server.text, server.tool_use, server.message, server.status
local thinking, block, raw, events, error_event = server.thinking, server.block, server.raw, server.events, server.error_event

local function input_of(reply)
	local own <close> = server.start { reply, "done" }
	local seen = {}
	local result = agents.on(own, { tools = { agents.recorder(seen) } }):prompt "go"
	assert.equal("success", result.subtype, result.error and result.error.message)
	return seen[1], own:requests()[2].json.messages[2].content[1].input
end

-- A call whose start has an input already, and what comes behind it in pieces.
local function call_stream(start_input, pieces)
	local list = {
		{ "message_start", { type = "message_start", message = { id = "msg_1", type = "message", role = "assistant",
			content = {}, model = "m", usage = { input_tokens = 1, output_tokens = 1 } } } },
		{ "content_block_start", { type = "content_block_start", index = 0,
			content_block = { type = "tool_use", id = "toolu_x", name = "probe", input = start_input } } },
	}
	for _, piece in ipairs(pieces) do
		list[#list + 1] = { "content_block_delta", { type = "content_block_delta", index = 0,
			delta = { type = "input_json_delta", partial_json = piece } } }
	end
	list[#list + 1] = { "content_block_stop", { type = "content_block_stop", index = 0 } }
	list[#list + 1] = { "message_delta", { type = "message_delta", delta = { stop_reason = "tool_use" } } }
	list[#list + 1] = { "message_stop", { type = "message_stop" } }
	return events(list)
end

describe("a tool's input", function()
	it("given whole at the block's start reaches the handler", function()
		local input, echoed = input_of(tool_use("probe", { path = "a" }, nil, { input_whole_at_start = true }))
		assert.same({ path = "a" }, input)
		assert.same({ path = "a" }, echoed)
	end)

	it("given whole at the start, then an empty delta, still counts", function()
		local own <close> = server.start { call_stream({ path = "a" }, { "" }), "done" }
		local seen = {}
		agents.on(own, { tools = { agents.recorder(seen) } }):prompt "go"
		assert.same({ path = "a" }, seen[1])
	end)

	it("in deltas wins over the start's", function()
		local own <close> = server.start { call_stream({ path = "old" }, { "", '{"path":', '"new"}' }), "done" }
		local seen = {}
		agents.on(own, { tools = { agents.recorder(seen) } }):prompt "go"
		assert.same({ path = "new" }, seen[1])
	end)

	it("that is empty is an empty object", function()
		for _, options in ipairs { {}, { input_whole_at_start = true }, { no_first_delta = true } } do
			local input, echoed = input_of(tool_use("probe", {}, nil, options))
			assert.same({}, input)
			assert.same({}, echoed)
		end
	end)

	it("split between any two bytes is the same: escapes, surrogates, numbers", function()
		local json = [[{"a":"x\u00e9\ud83d\ude00\\\"\n","b":-12.5e-3,"c":1618065507111835497,"d":[true,null]}]]
		local whole = input_of(tool_use("probe", json))
		assert.equal("xé😀\\\"\n", whole.a)
		assert.equal(1618065507111835497, whole.c)
		for at = 1, #json - 1 do
			assert.same(whole, (input_of(tool_use("probe", json, nil, { input_split = { at } }))))
		end
		assert.same(whole, (input_of(tool_use("probe", json, nil, { input_split = "every_byte" }))))
	end)

	it("keeps all of int64, both ways", function()
		for _, n in ipairs { "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808",
			"1618065507111835497", "0", "-1" } do
			local own <close> = server.start { tool_use("probe", '{"id":' .. n .. "}"), "done" }
			local seen = {}
			agents.on(own, { tools = { agents.recorder(seen) } }):prompt "go"
			assert.equal(math.tointeger(n), seen[1].id)
			assert.equal("integer", math.type(seen[1].id))
			assert.is_truthy(own:requests()[2].body:find('"id":' .. n .. "}", 1, true))
		end
	end)

	it("with an integer past int64 is an error where the schema says integer, a double where it says number", function()
		for kind, refused in pairs { integer = true, number = false } do
			local own <close> = server.start { tool_use("probe", '{"id":18446744073709551616}'), "done" }
			local seen
			local probe = lattice.tool("probe", "", { id = kind }, function(input)
				seen = input.id
				return ""
			end)
			local agent = agents.on(own, { tools = { probe } })
			agent:prompt "go"
			assert.equal(refused or nil, agent.messages[3].content[1].is_error)
			assert.equal(not refused and 18446744073709551616.0 or nil, seen)
		end
	end)

	it("that stopped mid-JSON never reaches the handler, and the history stays valid", function()
		local json = '{"path":"a","text":"hello"}'
		for cut = 1, #json - 1 do
			local own <close> = server.start {
				message { tool_use("probe", json, nil, { input_cut = cut }), stop_reason = "max_tokens" },
				"done",
			}
			local seen = {}
			local agent = agents.on(own, { tools = { agents.recorder(seen) } })
			local result = agent:prompt "go"
			assert.equal("success", result.subtype)
			assert.equal(0, #seen)
			assert.is_true(agent.messages[3].content[1].is_error)
			assert.matches("stopped in the middle of its JSON", agent.messages[3].content[1].content)
		end
	end)
end)

describe("an error event inside a 200 stream", function()
	it("is retried like HTTP 529, and the consumer is told that what came is void", function()
		local own <close> = server.start {
			error_event("overloaded_error", "busy", 4, { of = text "never shown", headers = { ["retry-after-ms"] = "1" } }),
			"fine",
		}
		local messages, result = agents.collect(agents.on(own, { max_retries = 2 }), "go", { stream = true })
		assert.equal("fine", result.result)
		local retry
		for _, one in ipairs(messages) do
			if one.subtype == "retry" then
				retry = one
			end
		end
		assert.equal("system", retry.type)
		assert.equal("overloaded_error", retry.error.type)
		assert.equal(529, retry.error.status)
		assert.equal(1, retry.attempt)
	end)

	it("ends as error_api when the tries run out", function()
		local own <close> = server.start(function()
			return error_event("overloaded_error", "busy", 3, { headers = { ["retry-after-ms"] = "1" } })
		end)
		local result = agents.on(own, { max_retries = 2 }):prompt "go"
		assert.equal("error_api", result.subtype)
		assert.equal("overloaded_error", result.error.type)
		assert.equal(529, result.error.status)
		assert.equal("busy", result.error.message)
		assert.equal(3, #own:requests())
	end)

	it("of every type has the status of that type, and is retried only where that makes sense", function()
		local types = { overloaded_error = 529, rate_limit_error = 429, api_error = 500, invalid_request_error = 400,
			authentication_error = 401, permission_error = 403, not_found_error = 404, request_too_large = 413,
			something_new = 500 }
		for type_name, code in pairs(types) do
			local own <close> = server.start(function()
				return error_event(type_name, "no", 2, { headers = { ["retry-after-ms"] = "1" } })
			end)
			local result = agents.on(own, { max_retries = 1 }):prompt "go"
			assert.equal("error_api", result.subtype)
			assert.equal(type_name, result.error.type)
			assert.equal(code, result.error.status)
			assert.equal((code >= 500 or code == 429) and 2 or 1, #own:requests(), type_name)
		end
	end)

	it("at any place of the stream drops the partial message", function()
		for after = 0, 8 do
			local own <close> = server.start {
				error_event("overloaded_error", "busy", after, { of = message { "some text", tool_use("probe", { a = 1 }) },
					headers = { ["retry-after-ms"] = "1" } }),
				"fine",
			}
			local seen = {}
			local agent = agents.on(own, { max_retries = 1, tools = { agents.recorder(seen) } })
			assert.equal("fine", agent:prompt("go").result)
			assert.equal(0, #seen)
			assert.equal(2, #agent.messages)
		end
	end)
end)

describe("an error status", function()
	it("is retried for 408, 409, 429, 5xx and 529 only", function()
		for _, code in ipairs { 400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529 } do
			local own <close> = server.start(function()
				return status(code, { ["retry-after-ms"] = "1" })
			end)
			local result = agents.on(own, { max_retries = 1 }):prompt "go"
			local again = code == 408 or code == 409 or code == 429 or code >= 500
			assert.equal("error_api", result.subtype)
			assert.equal(code, result.error.status)
			assert.equal(again and 2 or 1, #own:requests(), tostring(code))
		end
	end)

	it("says in seconds, milliseconds or as a date how long to wait", function()
		local waits = {
			{ { ["retry-after-ms"] = "7" }, 7, 7 },
			{ { ["retry-after"] = "0" }, 0, 0 },
			{ { ["retry-after"] = "0.02" }, 20, 20 },
			{ { ["retry-after"] = "Sun, 06 Nov 1994 08:49:37 GMT" }, 0, 0 },
			{ { ["retry-after"] = "nonsense" }, 375, 500 },
			{ {}, 375, 500 },
		}
		for _, case in ipairs(waits) do
			local own <close> = server.start { status(529, case[1]), "fine" }
			local messages, result = agents.collect(agents.on(own, { max_retries = 1 }), "go")
			assert.equal("fine", result.result)
			assert.equal("retry", messages[2].subtype)
			assert.is_true(messages[2].delay_ms >= case[2] and messages[2].delay_ms <= case[3], tostring(messages[2].delay_ms))
		end
	end)

	it("with a body of any make gives a message", function()
		local bodies = {
			{ '{"type":"error","error":{"type":"invalid_request_error","message":"too long"}}', "too long" },
			{ '{"error":{"message":"other make","code":"bad"}}', "other make" },
			{ '{"error":"plain"}', "plain" },
			{ '{"message":"short"}', "short" },
			{ "<html>Bad gateway</html>", "<html>Bad gateway" },
			{ "", "HTTP status 400" },
			{ "\255\0\1", "HTTP status 400" },
		}
		for _, case in ipairs(bodies) do
			local own <close> = server.start { raw { status = 400, body = case[1], content_type = "application/json" } }
			local result = agents.on(own):prompt "go"
			assert.equal("error_api", result.subtype)
			assert.is_truthy(result.error.message:find(case[2], 1, true), result.error.message)
			assert.is_truthy(utf8.len(result.error.message))
		end
	end)

	it("names the request's id", function()
		local own <close> = server.start { status(400, { ["request-id"] = "req_abc" }) }
		assert.equal("req_abc", agents.on(own):prompt("go").error.request_id)
	end)
end)

describe("a reply that isn't what was asked", function()
	it("becomes error_api with status, content type and the first 200 bytes", function()
		local bodies = {
			{ "<html><body>Log in</body></html>", "text/html" },
			{ "", "application/json" },
			{ '{"type":"message","role":"assistant","content":[', "application/json" },
			{ "[1,2]", "application/json" },
			{ '"text"', "application/json" },
			{ ("x"):rep(5000), "text/plain" },
			{ "data: <html>\n\n", "text/event-stream" },
			{ "", "text/event-stream" },
		}
		for _, case in ipairs(bodies) do
			local own <close> = server.start(function()
				return raw { status = 200, body = case[1], content_type = case[2] }
			end)
			local result = agents.on(own):prompt "go"
			assert.equal("error_api", result.subtype)
			assert.equal(200, result.error.status)
			assert.is_truthy(result.error.message:find(case[2], 1, true), result.error.message)
			assert.is_true(#result.error.message < 600)
			assert.is_truthy(result.error.message:find(case[1]:sub(1, 12), 1, true), result.error.message)
		end
	end)

	it("may be a whole message although a stream was asked for", function()
		local own <close> = server.start { text("whole", { stream = false }) }
		assert.equal("whole", agents.on(own):prompt("go").result)
	end)

	it("may be compressed", function()
		local own <close> = server.start { text("squeezed", { gzip = true }), text("again", { gzip = true, stream = false }) }
		local agent = agents.on(own)
		assert.equal("squeezed", agent:prompt("go").result)
		assert.equal("again", agent:prompt("go").result)
	end)
end)

-- A reply with everything in it.
local function rich()
	return message {
		thinking("Let me think. é😀"),
		"Here it is: ",
		block({ type = "server_tool_use", id = "srvtoolu_1", name = "web_search", input = { q = "x" } }),
		block({ type = "brand_new_block", payload = { 1, 2, { deep = "ü" } } }),
		tool_use("probe", { path = "a", n = 1618065507111835497 }, "toolu_a"),
		"text behind a call",
		tool_use("probe", {}, "toolu_b"),
		usage = { input_tokens = 11, output_tokens = 22, cache_read_input_tokens = 3 },
	}
end

local function run_rich(options, agent_options)
	local reply = rich()
	for key, value in pairs(options) do
		reply.options[key] = value
	end
	local own <close> = server.start { reply, "done" }
	agent_options = agent_options or {}
	agent_options.tools = { agents.recorder {} }
	local agent = agents.on(own, agent_options)
	local result = agent:prompt "go"
	return agent.messages, result, own:requests()
end

describe("a stream", function()
	local whole = run_rich({})

	it("is accepted back by a service that checks what it gets", function()
		local _, result = run_rich({})
		assert.equal("done", result.result)
		assert.equal("thinking", whole[2].content[1].type)
		assert.is_true(#whole[2].content[1].signature > 0)
		assert.same({ type = "brand_new_block", payload = { 1, 2, { deep = "ü" } } }, whole[2].content[4])
	end)

	it("split at every byte and in random pieces gives equal messages", function()
		assert.same(whole, (run_rich({ split = "every_byte" })))
		for seed = 1, 20 do
			assert.same(whole, (run_rich({ split = "random:" .. seed })))
		end
	end)

	it("may vary in line ends, comments, pings, byte order mark and missing event names", function()
		for _, options in ipairs { { eol = "\r\n" }, { eol = "\r" }, { bom = true }, { comments = true }, { pings = true },
			{ pings = false }, { event_lines = false }, { eol = "\r\n", split = "every_byte", bom = true } } do
			assert.same(whole, (run_rich(options)))
		end
	end)

	it("may hold events of kinds not known yet", function()
		assert.same(whole, (run_rich({ insert = { { after = 1, "brand_new_event", { type = "brand_new_event", x = 1 } },
			{ after = 5, "other", { type = "other" } } } })))
	end)

	it("equals the same message sent whole", function()
		local function plain(options)
			local messages = run_rich(options)
			return messages[2]
		end
		assert.same(plain {}, plain { stream = false })
	end)

	it("cut at any byte is a failed try: nothing of it stays", function()
		local short = message { "Hi ", tool_use("probe", { a = 1 }), pings = false }
		local length
		do
			local own <close> = server.start { short, "done" }
			agents.on(own, { tools = { agents.recorder {} } }):prompt "go"
			local probe <close> = server.start { short }
			local reply = lattice.http.request {
				url = probe.url .. "/v1/messages",
				method = "POST",
				headers = { ["x-api-key"] = "k", ["anthropic-version"] = "2023-06-01", ["content-type"] = "application/json" },
				body = '{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}]}',
			}
			length = #reply.body
		end
		local own <close> = server.start(function(_, n)
			return message { "Hi ", tool_use("probe", { a = 1 }), pings = false, cut_at = n - 1 }
		end)
		local seen = {}
		for cut = 0, length - 2 do -- the last byte is the end of the blank line behind message_stop
			local agent = agents.on(own, { tools = { agents.recorder(seen) } })
			local result = agent:prompt "go"
			if result.subtype == "success" then
				error("cut at " .. cut .. " of " .. length .. " passed for a whole reply")
			end
			assert.equal("error_api", result.subtype)
			assert.equal(1, #agent.messages)
		end
		assert.equal(0, #seen)
	end)

	it("that stays silent too long is a failed try", function()
		local own <close> = server.start { text("slow", { stall_at = 100 }), "fine" }
		local messages, result = agents.collect(agents.on(own, { idle_timeout_ms = 30, max_retries = 1 }), "go")
		assert.equal("fine", result.result)
		assert.equal("retry", messages[2].subtype)
	end)

	it("that stays silent in every try ends as error_api", function()
		local own <close> = server.start(function()
			return text("slow", { stall_at = 100, headers = { ["retry-after-ms"] = "1" } })
		end)
		local result = agents.on(own, { idle_timeout_ms = 20, max_retries = 1 }):prompt "go"
		assert.equal("error_api", result.subtype)
		assert.equal("idle_timeout", result.error.type)
	end)

	it("that doesn't end within request_timeout_ms ends the query as error_timeout", function()
		for _, options in ipairs { { stall_at = 0 }, { stall_at = 150 }, { delay_ms = 3600000 } } do
			local own <close> = server.start { text("slow", options), "fine" }
			local agent = agents.on(own, { request_timeout_ms = 40, max_retries = 5 })
			assert.equal("error_timeout", agent:prompt("go").subtype)
			assert.equal("fine", agent:prompt("again", { request_timeout_ms = 60000 }).result)
		end
	end)

	it("out of protocol is a failed try that says what is wrong", function()
		local start = { "message_start", { type = "message_start", message = { id = "m", type = "message", role = "assistant",
			content = {}, model = "x", usage = { input_tokens = 1, output_tokens = 1 } } } }
		local odd = {
			events { { "content_block_delta", { type = "content_block_delta", index = 0, delta = {} } } },
			events { start, start },
			events { start, { "content_block_delta", { type = "content_block_delta", index = 3, delta = {} } } },
			events { start, { "content_block_start", { type = "content_block_start", index = -1, content_block = { type = "text", text = "" } } } },
			events { start, "data: {broken\n\n" },
			events { start, "data: [1]\n\n" },
		}
		for _, reply in ipairs(odd) do
			local own <close> = server.start { reply }
			local result = agents.on(own):prompt "go"
			assert.equal("error_api", result.subtype)
			assert.is_true(#result.error.message > 0)
		end
	end)
end)

describe("what is sent back", function()
	it("has no empty text block, keeps the order and leaves signatures untouched", function()
		local own <close> = server.start {
			message { thinking "deep", text "", tool_use("probe", { a = 1 }), text "", text "after" },
			"done",
		}
		local agent = agents.on(own, { tools = { agents.recorder {} } })
		local result = agent:prompt "go"
		assert.equal("done", result.result)
		local sent = own:requests()[2].json.messages[2].content
		assert.equal("thinking", sent[1].type)
		assert.equal("tool_use", sent[2].type)
		assert.equal("after", sent[3].text)
		assert.equal(3, #sent)
	end)

	it("leaves out a reply that was empty altogether", function()
		for _, reply in ipairs { message {}, message { "" }, message { stop_reason = "refusal" } } do
			local own <close> = server.start { reply, "fine" }
			local agent = agents.on(own)
			local result = agent:prompt "go"
			assert.equal("success", result.subtype)
			assert.equal("", result.result)
			assert.equal("fine", agent:prompt("again").result)
		end
	end)

	it("gives calls with one id or none an id and a result of their own", function()
		local own <close> = server.start {
			message {
				block { type = "tool_use", id = "same", name = "probe", input = { n = 1 } },
				block { type = "tool_use", id = "same", name = "probe", input = { n = 2 } },
				block { type = "tool_use", id = "", name = "probe", input = { n = 3 } },
				block { type = "tool_use", name = "probe", input = { n = 4 } },
			},
			"done",
		}
		local seen = {}
		local result = agents.on(own, { tools = { agents.recorder(seen) } }):prompt "go"
		assert.equal("done", result.result)
		assert.equal(4, #seen)
		for n = 1, 4 do
			assert.equal(n, seen[n].n)
		end
	end)
end)

describe("an interruption", function()
	local function start(stop)
		local own <close> = server.start {
			message { "Working. ", tool_use("probe", { n = 1 }, "toolu_1"), tool_use("probe", { n = 2 }, "toolu_2") },
			"fine",
		}
		local controller = lattice.abort_controller()
		local probe = lattice.tool("probe", "", { n = "integer" }, function(input)
			if input.n == 1 then
				stop(controller)
			end
			return "ran"
		end)
		local agent = agents.on(own, { tools = { probe } })
		local first = agent:prompt("go", { signal = controller.signal })
		local second = agent:prompt "and now?"
		assert.equal("fine", second.result, second.error and second.error.message)
		return first, own:requests()[2].json.messages
	end

	it("in the middle of a call leaves no call without its result", function()
		local first, messages = start(function(controller)
			controller:abort "stop"
		end)
		assert.equal("error_abort", first.subtype)
		assert.equal("toolu_1", messages[3].content[1].tool_use_id)
		assert.equal("toolu_2", messages[3].content[2].tool_use_id)
		assert.equal("text", messages[3].content[3].type)
	end)

	it("in the middle of a stream drops the half-streamed call with its message", function()
		local own <close> = server.start {
			message { "Working. ", tool_use("probe", { long = ("x"):rep(500) }), stall_at = 600 },
			"fine",
		}
		local agent = agents.on(own, { tools = { agents.recorder {} } })
		for one in agent:query("go", { stream = true }) do
			if one.type == "stream_event" and one.event.type == "content_block_start" then
				agent:interrupt()
			elseif one.type == "result" then
				assert.equal("interrupted", one.subtype)
			end
		end
		assert.equal(1, #agent.messages)
		assert.equal("fine", agent:prompt("again").result)
	end)
end)

describe("an input that can't be read though the reply was not cut", function()
	local function answer_to(input)
		local own <close> = server.start { by_turn = true, strict = false, replies = { server.tool_use("t", input), "done" } }
		local called = false
		local agent = lattice.create_bare_agent {
			api_key = "test-key-123456",
			base_url = own.url,
			tools = { lattice.tool("t", "A tool", { x = "any?" }, function() called = true return "ran" end) },
		}
		assert.equal("success", agent:prompt("go").subtype)
		assert.is_false(called)
		return agent.messages[3].content[1].content
	end

	it("is refused with the reason, not as cut", function()
		assert.matches("nested deeper than %d+ levels", answer_to('{"x":' .. ("["):rep(1500) .. ("]"):rep(1500) .. "}"))
		assert.matches("can't be read: .*JSON", answer_to '{"x":tru}')
		assert.matches("can't be read: .*", answer_to '{"x":1}}')
	end)
end)
