-- HTTP/1.1 on a raw connection: reading requests, and waiting while watching whether the peer is still there.
--
-- No HTTP library: the server's work is to break replies at an exact byte of the wire, to corrupt them and to split
-- them anywhere, and libraries keep exactly these bytes to themselves. cqueues gives the sockets, epoll and TLS.

local cqueues = require "cqueues"

local http = {}

local READ_BYTES = 65536
local MAX_HEAD_BYTES = 256 * 1024

local connection = {}
connection.__index = connection

--- Wraps an accepted cqueues socket.
---@param socket userdata
---@param id integer
---@return table
function http.connection(socket, id)
	socket:setmode("b", "bn")
	socket:onerror(function(_, _, why)
		return why
	end)
	return setmetatable({ socket = socket, id = id, buffer = "", gone = false }, connection)
end

-- Appends what has arrived; false at the end of the stream or on an error.
function connection:fill()
	local data = self.socket:xread(-READ_BYTES)
	if not data then
		self.gone = true
		return false
	end
	self.buffer = self.buffer == "" and data or self.buffer .. data
	return true
end

function connection:take(n)
	local data = self.buffer:sub(1, n)
	self.buffer = self.buffer:sub(n + 1)
	return data
end

function connection:read_exactly(n)
	if #self.buffer >= n then
		return self:take(n)
	end
	local parts, have = { self.buffer }, #self.buffer
	while have < n do
		local data = self.socket:xread(-math.min(READ_BYTES, n - have))
		if not data then
			self.gone = true
			return nil
		end
		parts[#parts + 1] = data
		have = have + #data
	end
	self.buffer = ""
	return table.concat(parts)
end

function connection:read_until(mark, limit)
	local from = 1
	while true do
		local at, stop = self.buffer:find(mark, from, true)
		if at then
			local text = self:take(stop)
			return text:sub(1, at - 1)
		elseif #self.buffer > limit then
			return nil, "too large"
		end
		from = math.max(1, #self.buffer - #mark + 2)
		if not self:fill() then
			return nil, "closed"
		end
	end
end

---@return boolean # false when the peer is gone
function connection:write(data)
	if self.gone then
		return false
	end
	if not self.socket:xwrite(data, "bn") then
		self.gone = true
	end
	return not self.gone
end

--- Waits until `over()` is true (asked after each signal of `condition`), `ms` have passed or the peer is gone.
---@param ms? number # nil: no limit
---@param condition? userdata # cqueues condition
---@param over? fun(): boolean
---@return boolean # false when the peer is gone
function connection:wait(ms, condition, over)
	local deadline = ms and cqueues.monotime() + ms / 1000
	local readable = { pollfd = self.socket:pollfd(), events = "r" }
	while not (over and over()) do
		local left = deadline and deadline - cqueues.monotime()
		if left and left <= 0 then
			return true
		end
		local what = { readable }
		what[#what + 1] = condition
		what[#what + 1] = left
		for _, ready in ipairs { cqueues.poll(table.unpack(what)) } do
			if ready == readable and not self:fill() then
				return false
			end
		end
	end
	return true
end

function connection:close()
	self.socket:close()
end

-- ---- requests ----

local function parse_head(head)
	local method, target, minor = head:match("^(%u+) (%S+) HTTP/1%.([01])\r?\n?")
	if not method then
		return nil
	end
	local headers, by_name = {}, {}
	for line in head:gmatch("\r\n([^\r\n]*)") do
		local name, value = line:match("^([^%s:]+):[ \t]*(.-)[ \t]*$")
		if not name then
			return nil
		end
		headers[#headers + 1] = { name, value }
		local key = name:lower()
		by_name[key] = by_name[key] and by_name[key] .. ", " .. value or value
	end
	return { method = method, target = target, path = target:match("^[^?#]*"), http_1_0 = minor == "0",
		headers = headers, by_name = by_name }
end

local function read_chunked(conn, limit)
	local parts, total = {}, 0
	while true do
		local line = conn:read_until("\r\n", MAX_HEAD_BYTES)
		local size = line and tonumber(line:match("^(%x+)") or "", 16)
		if not size then
			return nil, 400
		elseif size == 0 then
			break
		end
		total = total + size
		if total > limit then
			return nil, 413
		end
		parts[#parts + 1] = conn:read_exactly(size + 2)
		if #parts == 0 or conn.gone then
			return nil, 400
		end
		parts[#parts] = parts[#parts]:sub(1, -3)
	end
	repeat
		local trailer = conn:read_until("\r\n", MAX_HEAD_BYTES)
	until not trailer or trailer == ""
	return table.concat(parts)
end

local function read_body(conn, request, limit)
	local encoding, length = request.by_name["transfer-encoding"], request.by_name["content-length"]
	if length and (length:find("%D") or tonumber(length) > limit) then
		return nil, length:find("%D") and 400 or 413
	end
	if (encoding or length) and (request.by_name.expect or ""):lower() == "100-continue" then
		conn:write("HTTP/1.1 100 Continue\r\n\r\n")
	end
	if encoding then
		return read_chunked(conn, limit)
	end
	return length and conn:read_exactly(tonumber(length)) or (not length and "" or nil), 400
end

--- Reads the next request of a connection.
---@param conn table
---@param limit integer # largest body, bytes
---@return table? request # `{method, target, path, headers, by_name, raw}`; nil when there is none
---@return integer? status # 400, 413 or 431 when what came can't be served
function http.read_request(conn, limit)
	while conn.buffer:sub(1, 2) == "\r\n" do -- RFC 9112 2.2: a stray CRLF before a request line
		conn:take(2)
	end
	local head, why = conn:read_until("\r\n\r\n", MAX_HEAD_BYTES)
	if not head then
		return nil, why == "too large" and 431 or nil
	end
	local request = parse_head(head)
	if not request then
		return nil, 400
	end
	local status
	request.raw, status = read_body(conn, request, limit)
	if not request.raw then
		return nil, not conn.gone and status or nil, request
	end
	return request
end

return http
