-- The model server, driven byte by byte: what it serves, and that every fault does what it says.

local http = require "spec.support.raw_http"
local server = require "spec.support.server"

local json, text, tool_use, message = server.json, server.text, server.tool_use, server.message

local STREAM = { stream = true }

local function event_names(body)
	local names = {}
	for i, event in ipairs(http.events(body)) do
		names[i] = event.name
	end
	return names
end

-- What a client would put together of a stream's deltas.
local function joined(body, field)
	local parts = {}
	for _, event in ipairs(http.events(body)) do
		parts[#parts + 1] = event.data.delta and event.data.delta[field]
	end
	return table.concat(parts)
end

describe("the model server", function()
	it("answers as one JSON document when the request asks for no stream", function()
		local s <close> = server.start { "hello" }
		local reply = http.post(s)
		assert.equal(200, reply.status)
		assert.same({ { type = "text", text = "hello" } }, { reply.json.content[1] })
		assert.equal("end_turn", reply.json.stop_reason)
		assert.equal("m", reply.json.model)
	end)

	it("streams when the request asks for it", function()
		local s <close> = server.start { text("hello", { delta_size = 2 }) }
		local reply = http.post(s, STREAM)
		assert.matches("content%-type: text/event%-stream", reply.head)
		assert.same({ "message_start", "content_block_start", "ping", "content_block_delta", "content_block_delta",
			"content_block_delta", "content_block_stop", "message_delta", "message_stop" }, event_names(reply.body))
		assert.equal("hello", joined(reply.body, "text"))
	end)

	it("gives replies in the order of requests, and says when there are no more", function()
		local s <close> = server.start { "one", "two" }
		assert.equal("one", http.post(s).json.content[1].text)
		assert.equal("two", http.post(s).json.content[1].text)
		local third = http.post(s)
		assert.equal(500, third.status)
		assert.equal("the script has 2 replies, this is request 3", third.json.error.message)
		assert.matches("x%-should%-retry: false", third.head)
	end)

	it("gives replies by the turns of the history when the script says so", function()
		local s <close> = server.start { replies = { "one", "two" }, by_turn = true }
		local later = { messages = json.array { { role = "user", content = "a" }, { role = "assistant", content = "one" },
			{ role = "user", content = "b" } } }
		assert.equal("two", http.post(s, later).json.content[1].text)
		assert.equal("one", http.post(s).json.content[1].text)
	end)

	it("asks a function, with its upvalues, for the reply to each request", function()
		local word = "seen"
		local s <close> = server.start(function(request, n)
			return text(("%s %d: %s"):format(word, n, request.body.messages[1].content))
		end)
		assert.equal("seen 1: hi", http.post(s).json.content[1].text)
		assert.equal("seen 2: hi", http.post(s).json.content[1].text)
	end)

	it("takes a script as source", function()
		local s <close> = server.start [[return function(request) return tool_use("add", { a = #request.raw > 0 and 1 }) end]]
		assert.equal("add", http.post(s).json.content[1].name)
	end)

	it("answers 500 with the reason when the script fails", function()
		local s <close> = server.start { quiet = true, script = [[return function() error "no idea" end]] }
		local reply = http.post(s)
		assert.equal(500, reply.status)
		assert.matches("no idea", reply.json.error.message)
	end)

	it("refuses to start with a script that is none, and says why", function()
		assert.error_matches(function()
			server.start { quiet = true, script = "return 1 +" }
		end, "unexpected symbol")
		assert.error_matches(function()
			server.start { quiet = true, script = "return 7" }
		end, "a script returns")
	end)

	it("serves routes of the script beside the API", function()
		local s <close> = server.start { routes = {
			["GET /page"] = server.raw { body = "<html>", content_type = "text/html" },
			["/echo"] = function(request)
				return server.status(201, nil, request.method)
			end,
		} }
		local page = http.get(s, "/page?x=1")
		assert.equal("<html>", page.body)
		assert.matches("content%-type: text/html", page.head)
		assert.equal("GET", http.get(s, "/echo").body)
		assert.equal(404, http.get(s, "/elsewhere").status)
	end)

	it("takes the API under any prefix, and only by POST", function()
		local s <close> = server.start { "hello" }
		assert.equal(200, http.post(s, nil, nil, "/some/base/v1/messages?beta=true").status)
		assert.equal(405, http.get(s, "/v1/messages").status)
		assert.equal(404, http.post(s, nil, nil, "/v1/complete").status)
	end)

	it("serves several requests on one connection, also when they come at once", function()
		local s <close> = server.start { "one", "two" }
		local both = http.exchange(s, http.request(http.body(), http.headers) .. http.request(http.body()))
		assert.matches('"text":"one".*"text":"two"', both)
		assert.equal(1, s:stats().connections)
		assert.equal(2, s:stats().requests)
	end)

	it("reads a chunked request body", function()
		local s <close> = server.start { "hello" }
		local body = http.body()
		local bytes = ("POST /v1/messages HTTP/1.1\r\n%stransfer-encoding: chunked\r\n\r\n"):format(http.closing)
		for at = 1, #body, 7 do
			local piece = body:sub(at, at + 6)
			bytes = bytes .. ("%x\r\n%s\r\n"):format(#piece, piece)
		end
		assert.equal(200, http.parse((http.exchange(s, bytes .. "0\r\n\r\n"))).status)
		assert.equal(body, s:requests()[1].body)
	end)

	it("answers Expect: 100-continue before the body", function()
		local s <close> = server.start { "hello" }
		local peer, body = http.connect(s), http.body()
		peer:send(("POST /v1/messages HTTP/1.1\r\n%sexpect: 100-continue\r\ncontent-length: %d\r\n\r\n")
			:format(http.closing, #body))
		assert.equal("HTTP/1.1 100 Continue", peer:receive("*l"))
		peer:send(body)
		assert.matches('"text":"hello"', (peer:receive("*a")))
		peer:close()
	end)

	it("answers bytes that are no HTTP with 400, and a body over the bound with 413", function()
		local s <close> = server.start { replies = { "hello" }, max_body = 1000 }
		assert.equal(400, http.parse((http.exchange(s, "NONSENSE\r\n\r\n"))).status)
		local reply = http.post(s, ("x"):rep(5000000))
		assert.same({ 413, "request_too_large" }, { reply.status, reply.json.error.type })
	end)

	it("takes a large body", function()
		local s <close> = server.start { "hello" }
		local long = ("lorem ipsum "):rep(500000)
		local reply = http.post(s, { messages = json.array { { role = "user", content = long } } })
		assert.equal(200, reply.status)
		assert.equal(long, s:requests()[1].json.messages[1].content)
	end)

	it("holds 200 connections at once", function()
		local s <close> = server.start { by_turn = true, replies = { text("hello", { wait_requests = 200 }) } }
		local peers = {}
		for i = 1, 200 do
			peers[i] = http.connect(s)
			assert(peers[i]:send(http.request(http.body(), http.headers)))
		end
		for _, peer in ipairs(peers) do
			assert.equal("HTTP/1.1 200 OK", peer:receive("*l"))
		end
		assert.equal(200, s:stats().open)
		for _, peer in ipairs(peers) do
			peer:close()
		end
		assert.equal(0, s:wait({ open = 0 }).open)
	end)

	it("sends 50,000 events whole", function()
		local s <close> = server.start { builtin = "text:1000000:20" }
		local body = http.post(s, STREAM).body
		assert.equal(1000000, #joined(body, "text"))
		local _, deltas = body:gsub("event: content_block_delta", "")
		assert.equal(50000, deltas)
	end)

	it("ends when its helper is stopped", function()
		local s = server.start { "hello" }
		s:stop()
		assert.is_nil(require("socket").connect("127.0.0.1", s.port))
	end)
end)

describe("a message", function()
	it("carries its options: stop_reason, usage, model, id", function()
		local s <close> = server.start { message { "cut", stop_reason = "max_tokens", model = "other", id = "msg_x",
			usage = { input_tokens = 7, output_tokens = 9 } } }
		local body = http.post(s).json
		assert.same({ "max_tokens", "other", "msg_x", 7, 9 },
			{ body.stop_reason, body.model, body.id, body.usage.input_tokens, body.usage.output_tokens })
	end)

	it("splits usage over its first and its last event", function()
		local s <close> = server.start { message { "hi", usage = { input_tokens = 7, output_tokens = 9 } } }
		local events = http.events(http.post(s, STREAM).body)
		assert.equal(7, events[1].data.message.usage.input_tokens)
		assert.equal(9, events[#events - 1].data.usage.output_tokens)
	end)

	it("streams a tool's input in fragments, an empty one first", function()
		local s <close> = server.start { tool_use("add", '{"a":1}', "toolu_x", { input_split = { 2, 3 } }) }
		local fragments = {}
		for _, event in ipairs(http.events(http.post(s, STREAM).body)) do
			fragments[#fragments + 1] = event.data.delta and event.data.delta.partial_json
		end
		assert.same({ "", '{"', "a", '":1}' }, fragments)
	end)

	it("can give a tool's input whole at the start", function()
		local s <close> = server.start { tool_use("read", { path = "a" }, nil, { input_whole_at_start = true }) }
		local body = http.post(s, STREAM).body
		assert.matches('"input":{"path":"a"}', body)
		assert.not_matches("input_json_delta", body)
	end)

	it("can stop a tool's input in the middle", function()
		local s <close> = server.start { message { tool_use("read", { path = "abc" }, nil, { input_cut = 8 }),
			stop_reason = "max_tokens" } }
		assert.equal('{"path":', joined(http.post(s, STREAM).body, "partial_json"))
	end)

	it("splits text at characters, never inside one", function()
		local s <close> = server.start { text("aé日😀b", { delta_size = 1 }) }
		local body = http.post(s, STREAM).body
		assert.is_truthy(utf8.len(body))
		assert.equal("aé日😀b", joined(body, "text"))
	end)

	it("signs thinking, and sends blocks that nobody knows", function()
		local s <close> = server.start { message { server.thinking "hm", server.redacted_thinking(),
			server.block({ type = "novel", x = 1 }, { deltas = { { type = "novel_delta", y = 2 } } }), "ok" } }
		local body = http.post(s, STREAM).body
		assert.matches("^sig/", joined(body, "signature"))
		assert.matches('"content_block":{"data":"red/', body)
		assert.matches('"content_block":{"type":"novel","x":1}', body)
		assert.matches('"delta":{"type":"novel_delta","y":2}', body)
	end)

	it("puts pings and other events in between", function()
		local s <close> = server.start { text("ab", { delta_size = 1, pings = 1,
			insert = { { after = 1, "novel", { x = 1 } } } }) }
		assert.same({ "message_start", "novel", "ping", "content_block_start", "ping", "content_block_delta", "ping",
			"content_block_delta", "ping", "content_block_stop", "ping", "message_delta", "ping", "message_stop", "ping" },
			event_names(http.post(s, STREAM).body))
	end)

	it("varies what the event stream format allows to vary", function()
		local s <close> = server.start { text("ab", { eol = "\r\n", bom = true, comments = true, event_lines = false }) }
		local body = http.post(s, STREAM).body
		assert.matches("^\u{FEFF}data: ", body)
		assert.matches("\r\n\r\n: keep%-alive\r\n\r\n", body)
		assert.not_matches("event:", body)
		assert.not_matches("[^\r]\n", body)
	end)

	it("can end in an error event", function()
		local s <close> = server.start { server.error_event("overloaded_error", "Overloaded", 4) }
		local events = http.events(http.post(s, STREAM).body)
		assert.equal(5, #events)
		assert.equal("overloaded_error", events[5].data.error.type)
	end)

	it("becomes a status when the error event meets a request without stream", function()
		local s <close> = server.start { server.error_event("overloaded_error", "Overloaded", 4) }
		assert.equal(529, http.post(s).status)
	end)
end)

describe("a reply by status", function()
	it("is the API's error of that status, with any headers", function()
		local s <close> = server.start { server.status(429, { ["retry-after"] = 3 }), server.status(529) }
		local reply = http.post(s)
		assert.equal(429, reply.status)
		assert.matches("retry%-after: 3\r\n", reply.head)
		assert.equal("rate_limit_error", reply.json.error.type)
		assert.equal("overloaded_error", http.post(s).json.error.type)
	end)

	it("can be bytes of one's own, head included", function()
		local s <close> = server.start { server.raw { bytes = "HTTP/1.1 200 Fine\r\n\r\nabc", close = true } }
		assert.equal("HTTP/1.1 200 Fine\r\n\r\nabc", (http.exchange(s, http.request(http.body()))))
	end)

	it("replaces and drops default headers", function()
		local s <close> = server.start { text("x", { headers = { ["content-type"] = false, ["request-id"] = "mine" } }) }
		local head = http.post(s).head
		assert.not_matches("content%-type", head)
		assert.matches("request%-id: mine\r\n", head)
	end)
end)

describe("a fault", function()
	it("cuts the body at each byte: that many come, and not the end", function()
		local s <close> = server.start(function(_, n)
			return text("hi", { cut_at = (n - 1) * 50 })
		end)
		for n = 1, 10 do
			local reply = http.post(s, STREAM)
			assert.equal((n - 1) * 50, #reply.body)
			assert.is_false(reply.whole)
		end
	end)

	it("cuts a plain body short of its length", function()
		local s <close> = server.start { text("hello", { cut_at = 10 }) }
		local reply = http.post(s)
		assert.equal(10, #reply.body)
		assert.is_false(reply.whole)
	end)

	it("cuts the wire at a byte of head, framing or body", function()
		local s <close> = server.start(function(_, n)
			return text("hi", { cut_wire_at = n * 37, split = 5 })
		end)
		for n = 1, 10 do
			assert.equal(n * 37, #http.exchange(s, http.request(http.body(STREAM))))
		end
	end)

	it("splits the body where it says, and loses nothing", function()
		local function body_with(split)
			local s <close> = server.start { text("hello", { split = split }) }
			local reply = http.post(s, STREAM)
			assert.is_true(reply.whole)
			return reply
		end
		local whole = body_with(nil)
		local by_seven, bytes, at, events = body_with(7), body_with "every_byte", body_with { 3, 10 }, body_with "events"
		for _, reply in ipairs { by_seven, bytes, at, events, body_with "random:42" } do
			assert.equal(whole.body, reply.body)
		end
		assert.equal(#whole.body // 7 + 1, #by_seven.chunks)
		assert.equal(#whole.body, #bytes.chunks)
		assert.same({ 3, 7, #whole.body - 10 }, { #at.chunks[1], #at.chunks[2], #at.chunks[3] })
		assert.equal(#http.events(whole.body), #events.chunks)
		assert.same(body_with("random:42").chunks, body_with("random:42").chunks)
	end)

	it("changes a byte", function()
		local s <close> = server.start { server.raw { body = "abcdef", corrupt = { 2, "\xFF" } } }
		assert.equal("ab\xFFdef", http.post(s).body)
	end)

	it("stalls after a byte until it is released", function()
		local s <close> = server.start { server.raw { body = "abcdef", stall_at = 4 } }
		local peer = http.connect(s)
		peer:send(http.request(http.body()))
		repeat
			local line = peer:receive("*l")
		until line == ""
		assert.equal("abcd", peer:receive(4))
		assert.equal(1, s:stats().in_flight)
		s:release()
		assert.equal("ef", peer:receive("*a"))
		peer:close()
	end)

	it("stalls before the first byte of the body, but after the head", function()
		local s <close> = server.start { server.raw { body = "abcdef", stall_at = 0 } }
		local peer = http.connect(s)
		peer:send(http.request(http.body()))
		assert.equal("HTTP/1.1 200 OK", peer:receive("*l"))
		s:release()
		assert.matches("abcdef$", (peer:receive("*a")))
		peer:close()
	end)

	it("notices a client that leaves in a stall", function()
		local s <close> = server.start { text("hi", { stall_at = 10 }) }
		local peer = http.connect(s)
		peer:send(http.request(http.body(STREAM)))
		peer:receive("*l")
		peer:close()
		assert.equal(1, s:wait({ abandoned = 1, in_flight = 0, open = 0 }).abandoned)
	end)

	it("goes on by itself after stall_ms, and waits delay_ms before the head", function()
		local s <close> = server.start { server.raw { body = "abcdef", stall_at = 3, stall_ms = 5, delay_ms = 5 } }
		assert.equal("abcdef", http.post(s).body)
	end)

	it("holds a reply until another request has come", function()
		local s <close> = server.start { text("one", { wait_requests = 2 }), "two" }
		local first = http.connect(s)
		first:send(http.request(http.body()))
		s:wait { requests = 1 }
		assert.equal(1, s:stats().in_flight)
		assert.equal("two", http.post(s).json.content[1].text)
		assert.matches('"text":"one"', (first:receive("*a")))
		first:close()
	end)

	it("compresses", function()
		local s <close> = server.start { text("hello", { gzip = true }), text("hello", { gzip = true, cut_at = 20 }) }
		local reply = http.post(s)
		assert.matches("content%-encoding: gzip", reply.head)
		assert.matches('"text":"hello"', (require("zlib").inflate()(reply.body)))
		assert.equal(20, #http.post(s).body)
	end)

	it("ends a body by closing, without a length", function()
		local s <close> = server.start { text("hello", { framing = "close" }) }
		local reply = http.post(s, STREAM)
		assert.not_matches("transfer%-encoding", reply.head)
		assert.not_matches("content%-length", reply.head)
		assert.matches("message_stop", reply.body)
	end)

	it("applies to all replies by defaults", function()
		local s <close> = server.start { replies = { "hello" }, defaults = { split = "every_byte" } }
		local reply = http.post(s, STREAM)
		assert.equal(#reply.body, #reply.chunks)
	end)

	it("is refused at the constructor when nobody knows its name", function()
		assert.error_matches(function()
			text("x", { cut_it = 4 })
		end, 'text: unknown option "cut_it"')
	end)
end)

describe("the control endpoints", function()
	it("tell the requests as they came", function()
		local s <close> = server.start { "hello" }
		local body = http.body()
		http.post(s, body, http.closing .. "X-Twice: 1\r\nX-Twice: 2\r\n", "/base/v1/messages?q=1")
		local request = s:requests()[1]
		assert.same({ "POST", "/base/v1/messages?q=1", body, 200 },
			{ request.method, request.path, request.body, request.status })
		local twice = {}
		for _, pair in ipairs(request.headers) do
			twice[#twice + 1] = pair[1] == "X-Twice" and pair[2] or nil
		end
		assert.same({ "1", "2" }, twice)
		assert.equal("test", request:header "X-API-Key")
	end)

	it("tell a body that is no UTF-8 byte for byte", function()
		local s <close> = server.start { "hello" }
		http.post(s, "\xFF\0\x80")
		assert.equal("\xFF\0\x80", s:requests()[1].body)
		assert.equal(400, s:requests()[1].status)
	end)

	it("count connections and requests, but not themselves", function()
		local s <close> = server.start { "one", "two" }
		http.post(s)
		http.post(s, "{}")
		local stats = s:wait { open = 0 }
		assert.same({ 2, 2, 1, 1 }, { stats.connections, stats.requests, stats.accepted, stats.refused })
	end)

	it("forget on reset, and the script starts anew", function()
		local s <close> = server.start { "one", "two" }
		http.post(s)
		s:reset()
		assert.same({}, s:requests())
		assert.equal(0, s:stats().requests)
		assert.equal("one", http.post(s).json.content[1].text)
	end)
end)

describe("over TLS", function()
	local function curl(s, options)
		local config = os.tmpname()
		local file = assert(io.open(config, "w"))
		file:write(http.body())
		file:close()
		local pipe = io.popen(("curl -sS --max-time 10 --cacert '%s' %s -H x-api-key:k -H anthropic-version:2023-06-01 "
			.. "-H content-type:application/json -w ' %%{http_version} %%{errormsg}' -d @%s '%s/v1/messages' 2>&1")
			:format(s.ca_file, options or "", config, s.url))
		local out = pipe:read("a")
		pipe:close()
		os.remove(config)
		return out
	end

	it("serves with a certificate of the test CA", function()
		local s <close> = server.start { "hello", tls = true }
		assert.matches('"text":"hello".* 1%.1', curl(s))
	end)

	it("can have a certificate that is over, or another host's", function()
		local expired <close> = server.start { "hello", tls = "expired" }
		assert.matches("expired", curl(expired))
		local elsewhere <close> = server.start { "hello", tls = "wrong_host" }
		assert.matches("subject name", curl(elsewhere))
		assert.equal(0, elsewhere:stats().requests)
	end)

	it("keeps its faults", function()
		local s <close> = server.start { text("hello", { cut_at = 9 }), tls = true }
		assert.matches('{"content 1%.1 ', curl(s)) -- nine bytes, and then what curl says
		assert.equal(1, s:stats().accepted)
	end)

	it("speaks HTTP/2 when asked to", function()
		local s <close> = server.start { "hello", text("hello", { cut_at = 9 }), http2 = true }
		assert.matches('"text":"hello".* 2 ', curl(s, "--http2"))
		assert.matches("stream", curl(s, "--http2"))
	end)
end)
