-- Puts a rendered reply on the wire, with the faults that its options ask for.
--
-- Offsets count bytes of the body as it is coded (after gzip), before chunked framing: `cut_at = 10` sends exactly ten
-- of them. `cut_wire_at` counts every byte of the reply, head and framing included.

local writer = {}

local WRITE_BYTES = 65536 -- of the body in one write when nothing asks for smaller pieces
local MAX_RANDOM_PIECE_BYTES = 64

local REASONS = {
	[200] = "OK", [201] = "Created", [204] = "No Content", [301] = "Moved Permanently", [302] = "Found",
	[303] = "See Other", [304] = "Not Modified", [307] = "Temporary Redirect", [308] = "Permanent Redirect",
	[400] = "Bad Request", [401] = "Unauthorized", [403] = "Forbidden", [404] = "Not Found",
	[405] = "Method Not Allowed", [408] = "Request Timeout", [409] = "Conflict", [413] = "Content Too Large",
	[429] = "Too Many Requests", [431] = "Request Header Fields Too Large", [500] = "Internal Server Error",
	[502] = "Bad Gateway", [503] = "Service Unavailable", [504] = "Gateway Timeout", [529] = "Overloaded",
}

-- ---- the body and where it is split ----

local function gzip(body)
	local ok, zlib = pcall(require, "zlib")
	if not ok then
		error("gzip needs the package lua-zlib", 0)
	end
	return (zlib.deflate(9, 15 + 16)(body, "finish")) -- 15 + 16: largest window, gzip header
end

local function corrupt(body, fault)
	local offset, value = fault[1] or fault.offset, fault[2] or fault.byte
	value = type(value) == "number" and string.char(value) or value
	return body:sub(1, offset) .. value .. body:sub(offset + #value + 1)
end

-- An own generator (Knuth's MMIX constants), so that a seed means the same on every machine.
local function random_points(seed, size)
	local points, state, at = {}, seed, 0
	while true do
		state = state * 6364136223846793005 + 1442695040888963407
		at = at + 1 + (state >> 33) % MAX_RANDOM_PIECE_BYTES
		if at >= size then
			return points
		end
		points[#points + 1] = at
	end
end

local function event_ends(body)
	local points = {}
	for at in body:gmatch("\n\n()") do
		points[#points + 1] = at - 1
	end
	return points
end

-- Offsets at which to split, from `split` = n | "every_byte" | "events" | {offsets} | "random:SEED".
local function split_points(split, body)
	local points, size = {}, #body
	local seed = type(split) == "string" and split:match("^random:(%-?%d+)$")
	if type(split) == "table" then
		return split
	elseif split == "events" then
		return event_ends(body)
	elseif seed then
		return random_points(math.tointeger(tonumber(seed)), size)
	end
	local step = split == "every_byte" and 1 or split
	if math.type(step) ~= "integer" or step < 1 then
		error('split: expected a number of bytes, "every_byte", "events", "random:SEED" or a list of offsets', 0)
	end
	for at = step, size - 1, step do
		points[#points + 1] = at
	end
	return points
end

-- The body as pieces, each with where it ends; cut and stall offsets are ends of pieces too.
local function cut_into_pieces(body, options)
	local marks = { [#body] = true }
	for _, at in ipairs(split_points(options.split or WRITE_BYTES, body)) do
		marks[at] = true
	end
	local last = math.min(options.cut_at or #body, #body)
	marks[last] = true
	if options.stall_at then
		marks[math.min(options.stall_at, last)] = true
	end
	local ends = {}
	for at in pairs(marks) do
		if at <= last and at > 0 then
			ends[#ends + 1] = at
		end
	end
	table.sort(ends)
	local pieces, from = {}, 0
	for i, at in ipairs(ends) do
		pieces[i] = { body:sub(from + 1, at), at }
		from = at
	end
	return pieces
end

-- ---- head ----

local function default_headers(rendered, framing, size, closing)
	local headers = { { "content-type", rendered.type } }
	if rendered.request_id then
		headers[#headers + 1] = { "request-id", rendered.request_id }
	end
	if framing == "chunked" then
		headers[#headers + 1] = { "transfer-encoding", "chunked" }
	elseif framing == "length" then
		headers[#headers + 1] = { "content-length", tostring(size) }
	end
	if rendered.options and rendered.options.gzip then
		headers[#headers + 1] = { "content-encoding", "gzip" }
	end
	if rendered.stream then
		headers[#headers + 1] = { "cache-control", "no-cache" }
	end
	if closing then
		headers[#headers + 1] = { "connection", "close" }
	end
	return headers
end

-- headers of a script: a list of pairs, or a map in which false takes a default header away
local function with_own_headers(headers, own)
	local list, replaced = {}, {}
	for key, value in pairs(own or {}) do
		local pair = type(key) == "number" and value or { key, value }
		replaced[pair[1]:lower()] = true
		if pair[2] ~= false then
			list[#list + 1] = { pair[1], tostring(pair[2]), type(key) == "number" and key or 0 }
		end
	end
	table.sort(list, function(a, b)
		return a[3] ~= b[3] and a[3] < b[3] or a[3] == b[3] and a[1] < b[1]
	end)
	local all = {}
	for _, pair in ipairs(headers) do
		if not replaced[pair[1]] then
			all[#all + 1] = pair
		end
	end
	return table.move(list, 1, #list, #all + 1, all)
end

local function head_of(status, headers)
	local out = { ("HTTP/1.1 %d %s\r\n"):format(status, REASONS[status] or "Unknown") }
	for _, pair in ipairs(headers) do
		out[#out + 1] = pair[1] .. ": " .. pair[2] .. "\r\n"
	end
	out[#out + 1] = "\r\n"
	return table.concat(out)
end

-- ---- sending ----

-- Writes data as far as the reply's budget of wire bytes goes. False: peer gone, or the budget is spent.
local function put(sending, data)
	local budget = sending.budget
	if budget then
		if #data >= budget then
			sending.budget = 0
			sending.conn:write(data:sub(1, budget))
			return false
		end
		sending.budget = budget - #data
	end
	return sending.conn:write(data)
end

local function stall(sending, options, releases)
	local before = sending.epoch
	return sending.conn:wait(options.stall_ms, releases.condition, function()
		return releases.epoch > before
	end)
end

local function framed(piece, framing)
	if framing == "chunked" then
		return ("%x\r\n"):format(#piece) .. piece .. "\r\n"
	end
	return piece
end

local function send_quickly(sending, head, body, framing)
	if framing ~= "chunked" or body == "" then
		return put(sending, head .. body .. (framing == "chunked" and "0\r\n\r\n" or ""))
	end
	local out = { head }
	for from = 1, #body, WRITE_BYTES do
		out[#out + 1] = framed(body:sub(from, from + WRITE_BYTES - 1), framing)
	end
	out[#out + 1] = "0\r\n\r\n"
	return put(sending, table.concat(out))
end

local function send_in_pieces(sending, head, body, framing, options, releases)
	if not put(sending, head) then
		return false
	end
	if options.stall_at == 0 and not stall(sending, options, releases) then
		return false
	end
	if options.cut_at == 0 then
		return false
	end
	local pieces = cut_into_pieces(body, options)
	local last = math.min(options.cut_at or #body, #body)
	local stall_at = options.stall_at and options.stall_at > 0 and math.min(options.stall_at, last)
	for i, piece in ipairs(pieces) do
		if not put(sending, framed(piece[1], framing)) then
			return false
		end
		if piece[2] == stall_at and not stall(sending, options, releases) then
			return false
		end
		if options.split_ms and i < #pieces and not sending.conn:wait(options.split_ms) then
			return false
		end
	end
	if options.cut_at then
		return false
	end
	return framing ~= "chunked" or put(sending, "0\r\n\r\n")
end

local function is_plain(options)
	return not (options.split or options.cut_at or options.stall_at)
end

--- Sends a rendered reply.
---@param conn table # from http.connection
---@param request table
---@param rendered table # from render.reply
---@param releases table # `{epoch, condition}`: a stall ends when the epoch moves on
---@return boolean # whether the connection can serve another request
function writer.send(conn, request, rendered, releases)
	local options = rendered.options or {}
	local sending = { conn = conn, budget = options.cut_wire_at, epoch = releases.epoch }
	if options.delay_ms and not conn:wait(options.delay_ms) then
		return false
	end
	if rendered.bytes then
		return send_in_pieces(sending, "", rendered.bytes, "close", options, releases) and not options.close
			and options.framing ~= "close"
	end
	local body = options.gzip and gzip(rendered.body) or rendered.body
	body = options.corrupt and corrupt(body, options.corrupt) or body
	local framing = options.framing or (rendered.stream and not request.http_1_0 and "chunked") or "length"
	local closing = options.close or framing == "close" or request.http_1_0
		or (request.by_name.connection or ""):lower():find("close", 1, true) ~= nil
	local headers = with_own_headers(default_headers(rendered, framing, #body, closing), options.headers)
	local head = head_of(rendered.status, headers)
	local bodiless = request.method == "HEAD" or rendered.status == 204 or rendered.status == 304
	local sent
	if bodiless then
		sent = put(sending, head)
	elseif is_plain(options) then
		sent = send_quickly(sending, head, body, framing)
	else
		sent = send_in_pieces(sending, head, body, framing, options, releases)
	end
	return sent and not closing
end

return writer
