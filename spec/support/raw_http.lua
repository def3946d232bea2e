-- A raw HTTP client for specs of the model server itself: luasocket, every byte as it came.

local socket = require "socket"
local json = require "scripts.model_server.json"

local raw_http = {}

local LIMIT_S = 10

local HEADERS = "x-api-key: test\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n"

--- Headers that the service wants, as one text; `raw_http.closing` asks for the end of the connection as well.
raw_http.headers = HEADERS
raw_http.closing = HEADERS .. "connection: close\r\n"

---@return table peer # a connected luasocket
function raw_http.connect(server)
	local peer = assert(socket.connect("127.0.0.1", server.port))
	peer:settimeout(LIMIT_S)
	return peer
end

--- The bytes of a request.
function raw_http.request(body, headers, path)
	return ("POST %s HTTP/1.1\r\nhost: localhost\r\n%scontent-length: %d\r\n\r\n%s")
		:format(path or "/v1/messages", headers or raw_http.closing, #body, body)
end

--- A valid request body with `fields` over it (`raw_http.absent` takes one away).
raw_http.absent = {}
function raw_http.body(fields)
	local body = { model = "m", max_tokens = 100, messages = json.array { { role = "user", content = "hi" } } }
	for key, value in pairs(fields or {}) do
		body[key] = value ~= raw_http.absent and value or nil
	end
	return json.encode(body)
end

--- Sends bytes on a connection of its own and returns all that comes until the server closes it.
---@return string bytes
---@return string? error # "closed" is no error
function raw_http.exchange(server, bytes)
	local peer = raw_http.connect(server)
	assert(peer:send(bytes))
	local all, problem, partial = peer:receive("*a")
	peer:close()
	return all or partial, problem ~= "closed" and problem or nil
end

--- Takes chunked framing off: the chunks, and whether the last one came.
function raw_http.dechunk(wire)
	local chunks, at = {}, 1
	while true do
		local size, start = wire:match("^(%x+)\r\n()", at)
		local n = tonumber(size or "", 16)
		if not n or n == 0 then
			return chunks, n == 0
		end
		chunks[#chunks + 1] = wire:sub(start, start + n - 1)
		at = start + n + 2
	end
end

--- Takes a reply apart: `{status, head, wire, body, chunks, whole}`; `json` is the decoded body.
function raw_http.parse(all)
	local head, wire = all:match("^(.-\r\n)\r\n(.*)$")
	local reply = { all = all, head = head, wire = wire, body = wire, chunks = { wire }, whole = true }
	reply.status = tonumber(head:match("^HTTP/1.1 (%d+)"))
	local length = tonumber(head:match("content%-length: (%d+)"))
	if head:find("transfer-encoding: chunked", 1, true) then
		reply.chunks, reply.whole = raw_http.dechunk(wire)
		reply.body = table.concat(reply.chunks)
	elseif length then
		reply.whole = #wire == length
	end
	reply.json = json.decode(reply.body)
	return reply
end

--- Posts to /v1/messages. `fields` go over a valid body; a string is the body as it is.
function raw_http.post(server, fields, headers, path)
	local body = type(fields) == "string" and fields or raw_http.body(fields)
	return raw_http.parse((raw_http.exchange(server, raw_http.request(body, headers, path))))
end

--- A GET of a path.
function raw_http.get(server, path)
	return raw_http.parse((raw_http.exchange(server, "GET " .. path .. " HTTP/1.1\r\nconnection: close\r\n\r\n")))
end

--- The events of a stream: `{name, data (decoded)}`.
function raw_http.events(body)
	local list = {}
	for name, data in body:gmatch("event: ([^\n]+)\ndata: ([^\n]*)\n\n") do
		list[#list + 1] = { name = name, data = json.decode(data) }
	end
	return list
end

return raw_http
