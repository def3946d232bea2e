-- One try of a model request (core.exchange), against the model server.

local core = require "lattice.core"
local server = require "spec.support.server"

local text, tool_use, message, status, raw = server.text, server.tool_use, server.message, server.status, server.raw

local ids = {}
local PREFIX = '{"model":"m","max_tokens":100,"stream":true,"messages":['
local HEADERS = {
	{ "content-type", "application/json" }, { "anthropic-version", "2023-06-01" }, { "x-api-key", "sk-ant-hush" },
}
local HELLO = '{"role":"user","content":"hi"}'

local function start(s, options)
	options.url = options.url or s.url .. "/v1/messages"
	options.headers = options.headers or HEADERS
	options.prefix = options.prefix or PREFIX
	options.suffix = options.suffix or "]}"
	options.messages = options.messages or not options.history and HELLO or nil
	options.secrets = options.secrets or { "sk-ant-hush" }
	return core.exchange(options)
end

-- Runs it to the end, taking all events: message or nil, problem, events.
local function finish(exchange)
	local events = {}
	while true do
		local event = exchange:next_event()
		if event then
			events[#events + 1] = event
		elseif exchange:done() then
			local got, problem = exchange:message()
			return got, problem, events
		else
			core.turn(nil, ids)
		end
	end
end

local function ask(s, options)
	local exchange <close> = start(s, options or {})
	return finish(exchange)
end

local function content_of(got, problem)
	return got and got:table().content or error(problem.message)
end

local function history_of(...)
	local history = core.history()
	for i, json in ipairs { ... } do
		if i % 2 == 1 then
			history:add_user('{"type":"text","text":' .. core.json_encode(json) .. "}")
		else
			history:add_assistant(core.message_from_json(core.json_encode { role = "assistant", content = json }))
		end
	end
	return history
end

describe("an exchange", function()
	it("gives the message of a stream, and of a reply that is one JSON text", function()
		for _, streams in ipairs { true, false } do
			local reply = message { "hello", tool_use("add", { a = 1 }, "toolu_1"), stream = streams }
			local s <close> = server.start { replies = { reply } }
			local content = content_of(ask(s))
			assert.equal("hello", content[1].text)
			assert.same({ a = 1 }, content[2].input)
		end
	end)

	it("hands over the service's own events when asked to, and none otherwise", function()
		local s <close> = server.start { text("hello", { delta_size = 2 }), text("hello", { delta_size = 2 }) }
		local got, _, events = ask(s, { events = true })
		local types, joined = {}, ""
		for i, event in ipairs(events) do
			types[i] = event.type
			joined = joined .. (event.delta and event.delta.text or "")
		end
		assert.equal("hello", joined)
		assert.equal("message_start", types[1])
		assert.equal("message_stop", types[#types])
		assert.equal("hello", got:table().content[1].text)
		_, _, events = ask(s)
		assert.same({}, events)
	end)

	it("is ready while an event waits and when it is done, and is handed out by the loop then", function()
		local s <close> = server.start { text("hello", { stall_at = 300, stall_ms = 600000 }) }
		local exchange <close> = start(s, { events = true })
		assert.is_false(exchange:ready())
		while not exchange:ready() do
			core.turn(nil, ids)
		end
		assert.equal(exchange:id(), ids[1])
		while exchange:next_event() do
			assert.is_false(exchange:done())
		end
		assert.is_false(exchange:ready())
		assert.error_matches(function()
			exchange:message()
		end, "still running")
		s:release()
		assert.is_truthy(finish(exchange))
	end)

	it("sends prefix, history and suffix as they are, whatever their size", function()
		local s <close> = server.start { strict = false, replies = { "a", "b", "c" } }
		for _, size in ipairs { 10, 60000, 400000 } do
			local history = history_of(("x"):rep(size), "yes", ("y"):rep(size))
			local json = history:json()
			assert.is_truthy(ask(s, { history = history }))
			local records = s:requests()
			assert.is_true(records[#records].body == PREFIX .. json .. "]}")
		end
	end)

	it("sends the history of its start, whatever happens to it meanwhile", function()
		local s <close> = server.start { strict = false, replies = { "a" } }
		local history = history_of(("x"):rep(300000))
		local json = history:json()
		local exchange <close> = start(s, { history = history })
		history:add_user('{"type":"text","text":"' .. ("z"):rep(500000) .. '"}')
		history:truncate(0)
		history = nil -- luacheck: ignore 311
		collectgarbage()
		assert.is_truthy(finish(exchange))
		assert.is_true(s:requests()[1].body == PREFIX .. json .. "]}")
	end)

	it("marks the end of the history for the prompt cache when asked to", function()
		local s <close> = server.start { "a", "b" }
		local history = history_of("one", "two", "three")
		assert.is_truthy(ask(s, { history = history, cache_mark = true }))
		assert.is_truthy(ask(s, { history = history }))
		local records = s:requests()
		local blocks = records[1].json.messages[3].content
		assert.same({ type = "ephemeral" }, blocks[#blocks].cache_control)
		assert.is_nil(records[1].json.messages[1].content[1].cache_control)
		assert.is_nil(records[2].body:find("cache_control", 1, true))
	end)

	it("uses one connection for one request after the other", function()
		local s <close> = server.start { "a", "b", "c", text("d", { stream = false }), status(529), "e" }
		for _ = 1, 6 do
			ask(s)
		end
		assert.equal(1, s:stats().connections)
	end)

	it("pauses the service while nobody takes the events, and loses none", function()
		local long = ("0123456789abcdef"):rep(1 << 20)
		local s <close> = server.start { reply = function()
			return text(("0123456789abcdef"):rep(1 << 20), { delta_size = 1000 })
		end }
		local exchange <close> = start(s, { events = true })
		while not exchange:ready() do
			core.turn(nil, ids)
		end
		for _ = 1, 50 do
			core.turn(1, ids)
		end
		assert.equal(1, s:stats().in_flight)
		local got, _, events = finish(exchange)
		local parts = {}
		for _, event in ipairs(events) do
			parts[#parts + 1] = event.delta and event.delta.text
		end
		assert.is_true(table.concat(parts) == long)
		assert.is_true(got:table().content[1].text == long)
	end)
end)

describe("an exchange that fails", function()
	it("says what the service said, with status, type, request id and when to come back", function()
		local s <close> = server.start { status(429, { ["retry-after"] = "3", ["request-id"] = "req_x" }) }
		local got, problem = ask(s)
		assert.is_nil(got)
		assert.equal("api", problem.kind)
		assert.equal(429, problem.status)
		assert.equal("rate_limit_error", problem.type)
		assert.equal("req_x", problem.request_id)
		assert.equal(3000, problem.retry_after_ms)
		assert.is_true(problem.retryable)
	end)

	it("may do so by an error event inside a stream", function()
		local s <close> = server.start { server.error_event("overloaded_error", "busy", 3) }
		local _, problem, events = ask(s, { events = true })
		assert.equal("api", problem.kind)
		assert.equal("busy", problem.message:match "busy")
		assert.is_true(problem.retryable)
		assert.equal(3, #events)
	end)

	it("does so when the stream is cut, at whatever event", function()
		for _, at in ipairs { 0, 1, 200, 400, 700 } do
			local s <close> = server.start { text("hello", { cut_at = at }) }
			local got, problem = ask(s)
			assert.is_nil(got)
			assert.is_true(problem.retryable)
			assert.is_truthy(problem.kind == "io" or problem.kind == "reply")
		end
	end)

	it("says what came when that was no message", function()
		local s <close> = server.start { raw { status = 200, body = "<html>Log in</html>", content_type = "text/html" } }
		local _, problem = ask(s)
		assert.equal("reply", problem.kind)
		assert.equal(200, problem.status)
		assert.matches("text/html", problem.message, 1, true)
		assert.matches("<html>Log in", problem.message, 1, true)
		assert.is_false(problem.retryable)
	end)

	it("tells a silent service, worth another try, from a whole time that is over", function()
		local s <close> = server.start { reply = function()
			return { kind = "message", blocks = {}, options = { stall_at = 50, stall_ms = 600000 } }
		end }
		local _, problem = ask(s, { idle_timeout_ms = 20 })
		assert.equal("timeout", problem.kind)
		assert.is_true(problem.retryable)
		_, problem = ask(s, { timeout_ms = 20 })
		assert.equal("timeout", problem.kind)
		assert.is_false(problem.retryable)
	end)

	it("is not tried again when it is too large, either way", function()
		local s <close> = server.start { text(("x"):rep(5000)) }
		local _, problem = ask(s, { max_request_bytes = 50 })
		assert.equal("io", problem.kind)
		assert.is_false(problem.retryable)
		assert.equal(0, s:stats().requests)
		_, problem = ask(s, { max_reply_bytes = 3000 })
		assert.is_false(problem.retryable)
		assert.matches("3000", problem.message)
	end)

	it("never follows a redirect: the conversation stays where it was sent", function()
		local other <close> = server.start { "x" }
		local s <close> = server.start { status(307, { location = other.url .. "/v1/messages" }, "moved") }
		local _, problem = ask(s)
		assert.equal(307, problem.status)
		assert.equal(0, other:stats().requests)
	end)

	it("shows no secret, whoever repeats it", function()
		local leak = "you sent sk-ant-hush"
		local body = { type = "error", error = { type = "sk-ant-hush", message = leak } }
		local s <close> = server.start {
			status(400, { ["request-id"] = "sk-ant-hush" }, body), raw { body = leak, content_type = "text/plain" },
			server.error_event("api_error", leak, 1),
		}
		for _ = 1, 3 do
			local _, problem = ask(s)
			for _, value in pairs(problem) do
				assert.is_nil(tostring(value):find("hush", 1, true))
			end
		end
		local _, problem = ask(s, { headers = { { "x-api-key", "sk-ant-hush\n" } } })
		assert.is_false(problem.retryable)
		assert.is_nil(problem.message:find("hush", 1, true))
		assert.is_nil(tostring(start(s, {})):find("hush", 1, true))
	end)

	it("is an abort when it was cancelled, and stays what it was when that came too late", function()
		local s <close> = server.start { text("hello", { stall_at = 300, stall_ms = 600000 }), "done" }
		local exchange <close> = start(s, { events = true })
		while not exchange:ready() do
			core.turn(nil, ids)
		end
		exchange:cancel()
		local _, problem = exchange:message()
		assert.equal("abort", problem.kind)
		assert.is_nil(exchange:next_event())
		local late <close> = start(s, {})
		while not late:done() do
			core.turn(nil, ids)
		end
		late:cancel()
		assert.equal("done", late:message():table().content[1].text)
	end)

	it("raises when an option has the wrong type, naming it", function()
		for option, value in pairs {
			url = 1, headers = 1, prefix = {}, suffix = 1, messages = 1, secrets = "x", cache_mark = 1, events = 1,
			timeout_ms = -1, max_reply_bytes = 0,
		} do
			local options = { url = "http://127.0.0.1:1", [option] = value }
			assert.error_matches(function()
				core.exchange(options)
			end, "exchange: " .. option .. ": expected ")
		end
		assert.has_error(function()
			core.exchange { url = "http://127.0.0.1:1", history = {} }
		end)
	end)
end)
