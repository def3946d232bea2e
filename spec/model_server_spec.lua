-- The model server, driven with raw luasocket: every fault does what it says, every rule refuses.

local socket = require "socket"
local server = require "spec.support.server"

local json, text, tool_use, message = server.json, server.text, server.tool_use, server.message

local HEADERS = "x-api-key: test\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n"

local function connect(s)
	local peer = assert(socket.connect("127.0.0.1", s.port))
	peer:settimeout(10)
	return peer
end

local function request_bytes(body, headers)
	return ("POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n%scontent-length: %d\r\n\r\n%s")
		:format(headers or HEADERS, #body, body)
end

local function body_of(fields)
	local body = { model = "m", max_tokens = 100, messages = json.array { { role = "user", content = "hi" } } }
	for key, value in pairs(fields or {}) do
		body[key] = value
	end
	return json.encode(body)
end

-- Everything the server sends on a connection of its own, until it closes or `limit` bytes are there.
local function exchange(s, bytes)
	local peer = connect(s)
	assert(peer:send(bytes))
	local all, _, partial = peer:receive("*a")
	peer:close()
	return all or partial
end

local function dechunk(wire)
	local parts, at = {}, 1
	while true do
		local size, start = wire:match("^(%x+)\r\n()", at)
		if not size then
			return table.concat(parts), false, #parts
		end
		local n = tonumber(size, 16)
		if n == 0 then
			return table.concat(parts), true, #parts
		end
		parts[#parts + 1] = wire:sub(start, start + n - 1)
		at = start + n + 2
	end
end

local CLOSING = HEADERS .. "connection: close\r\n"

local function post(s, fields, headers)
	local body = type(fields) == "string" and fields or body_of(fields)
	local all = exchange(s, request_bytes(body, headers or CLOSING))
	local head, rest = all:match("^(.-\r\n)\r\n(.*)$")
	local reply = { status = tonumber(head:match("^HTTP/1.1 (%d+)")), head = head, wire = rest }
	reply.body, reply.whole, reply.chunks = rest, true, 1
	if head:find("transfer-encoding: chunked", 1, true) then
		reply.body, reply.whole, reply.chunks = dechunk(rest)
	end
	return reply
end

describe("the model server", function()
	it("answers as one JSON document when the request asks for no stream", function()
		local s <close> = server.start { "hello" }
		local reply = post(s)
		assert.equal(200, reply.status)
		local body = json.decode(reply.body)
		assert.equal("hello", body.content[1].text)
		assert.equal("end_turn", body.stop_reason)
		assert.equal("m", body.model)
	end)

	it("streams when the request asks for it", function()
		local s <close> = server.start { text("hello", { delta_size = 2 }) }
		local reply = post(s, { stream = true })
		assert.matches("content%-type: text/event%-stream", reply.head)
		local names = {}
		for name in reply.body:gmatch("event: ([%w_]+)") do
			names[#names + 1] = name
		end
		assert.same({ "message_start", "content_block_start", "ping", "content_block_delta", "content_block_delta",
			"content_block_delta", "content_block_stop", "message_delta", "message_stop" }, names)
	end)
end)
