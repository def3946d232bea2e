-- Replies as bytes: a message as one JSON document or as a stream of server-sent events.
--
-- A context carries what a reply needs beyond itself: `request`, `id(prefix)` that numbers ids, and `memory`
-- (what was sent, for strict.lua to recognise when it comes back).

local json = require "scripts.model_server.json"
local reply = require "scripts.model_server.reply"
local signature = require "scripts.model_server.signature"

local render = {}

local encode, escape = json.encode, json.escape

local DEFAULT_DELTA_CHARACTERS = 16
local DEFAULT_USAGE = { input_tokens = 10, output_tokens = 5, cache_creation_input_tokens = 0,
	cache_read_input_tokens = 0 }

local PING = 'event: ping\ndata: {"type":"ping"}\n\n'

local ERROR_TYPES = {
	[400] = "invalid_request_error", [401] = "authentication_error", [402] = "billing_error",
	[403] = "permission_error", [404] = "not_found_error", [405] = "invalid_request_error",
	[413] = "request_too_large", [429] = "rate_limit_error", [500] = "api_error", [504] = "timeout_error",
	[529] = "overloaded_error",
}
local ERROR_STATUS = {}
for code, name in pairs(ERROR_TYPES) do
	ERROR_STATUS[name] = code ~= 405 and code or nil
end
ERROR_STATUS.invalid_request_error = 400

-- ---- pieces of text ----

-- Cuts text into pieces of n characters, never inside one. Plain ASCII goes the quick way.
local function pieces_of(text, n)
	local pieces = {}
	if not text:find("[\128-\255]") then
		for at = 1, #text, n do
			pieces[#pieces + 1] = text:sub(at, at + n - 1)
		end
		return pieces
	end
	local at = 1
	while at <= #text do
		local stop = utf8.offset(text, n + 1, at) or #text + 1
		pieces[#pieces + 1] = text:sub(at, stop - 1)
		at = stop
	end
	return pieces
end

-- `split` is a number of characters, "every_byte" or a list of byte offsets.
local function split_text(text, split)
	if split == "every_byte" then
		return pieces_of(text, 1)
	elseif type(split) == "number" then
		return pieces_of(text, split)
	end
	local pieces, at = {}, 0
	for _, offset in ipairs(split) do
		pieces[#pieces + 1] = text:sub(at + 1, offset)
		at = offset
	end
	pieces[#pieces + 1] = text:sub(at + 1)
	return pieces
end

-- ---- blocks ----

-- The JSON text of a tool's input: given as a table, or as text that may be wrong or cut on purpose.
local function input_text(block, options)
	local text = type(block.input) == "string" and block.input or encode(block.input)
	return options.input_cut and text:sub(1, options.input_cut) or text
end

-- Fills in what the script left out: ids, signatures.
local function complete_block(entry, context)
	local block, options = {}, entry.options or {}
	for key, value in pairs(entry.block) do
		block[key] = value
	end
	if block.type == "tool_use" then
		block.id = block.id or context.id "toolu_"
	elseif block.type == "thinking" then
		block.signature = options.signature or signature.of_thinking(block.thinking)
	elseif block.type == "redacted_thinking" then
		block.data = block.data or signature.redacted(context.id "r")
	elseif block.type == "text" and options.citations then
		block.citations = options.citations
	end
	return block, options
end

local function complete_blocks(message, context)
	local done = {}
	for i, entry in ipairs(message.blocks) do
		local block, options = complete_block(entry, context)
		done[i] = { block = block, options = options }
	end
	context.memory:sent(done)
	return done
end

-- One block as JSON with its whole content.
local function block_json(block, options)
	if block.type ~= "tool_use" then
		return encode(block)
	end
	return ('{"type":"tool_use","id":%s,"name":%s,"input":%s}'):format(encode(block.id), encode(block.name),
		input_text(block, options))
end

-- ---- events ----

local function add(out, name, data)
	out[#out + 1] = "event: " .. name .. "\ndata: " .. data .. "\n\n"
end

local function add_delta(out, index, delta)
	add(out, "content_block_delta", ('{"type":"content_block_delta","index":%d,"delta":%s}'):format(index, delta))
end

local function add_deltas(out, index, kind, field, pieces)
	local head = ('event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":"')
		:format(index, kind, field)
	local n = #out
	for i = 1, #pieces do
		out[n + i] = head .. escape(pieces[i]) .. '"}}\n\n'
	end
end

local function start_block(out, index, block)
	add(out, "content_block_start", ('{"type":"content_block_start","index":%d,"content_block":%s}'):format(index, block))
end

local streams = {}

function streams.text(out, index, block, options)
	start_block(out, index, '{"type":"text","text":""}')
	add_deltas(out, index, "text_delta", "text", pieces_of(block.text, options.delta_size))
	for _, citation in ipairs(block.citations or {}) do
		add_delta(out, index, ('{"type":"citations_delta","citation":%s}'):format(encode(citation)))
	end
end

function streams.tool_use(out, index, block, options)
	local text = input_text(block, options)
	local whole = options.input_whole_at_start
	start_block(out, index, ('{"type":"tool_use","id":%s,"name":%s,"input":%s}')
		:format(encode(block.id), encode(block.name), whole and text or "{}"))
	if whole then
		return
	end
	local pieces = split_text(text, options.input_split or DEFAULT_DELTA_CHARACTERS)
	if not options.no_first_delta then
		table.insert(pieces, 1, "") -- the service opens each input with an empty fragment
	end
	add_deltas(out, index, "input_json_delta", "partial_json", pieces)
end

function streams.thinking(out, index, block, options)
	start_block(out, index, '{"type":"thinking","thinking":"","signature":""}')
	add_deltas(out, index, "thinking_delta", "thinking", pieces_of(block.thinking, options.delta_size))
	add_deltas(out, index, "signature_delta", "signature", { block.signature })
end

local function stream_other(out, index, block, options)
	start_block(out, index, encode(block))
	for _, delta in ipairs(options.deltas or {}) do
		add_delta(out, index, encode(delta))
	end
end

local function usage_of(options)
	local usage = {}
	for key, value in pairs(DEFAULT_USAGE) do
		usage[key] = value
	end
	for key, value in pairs(options.usage or {}) do
		usage[key] = value
	end
	return usage
end

-- What message_start says of usage: everything but the output, which has only begun.
local function first_usage(usage)
	local first = {}
	for key, value in pairs(usage) do
		first[key] = value
	end
	first.output_tokens = math.min(1, usage.output_tokens)
	return first
end

local function stop_reason_of(message, blocks)
	if message.options.stop_reason then
		return message.options.stop_reason
	end
	for _, entry in ipairs(blocks) do
		if entry.block.type == "tool_use" then
			return "tool_use"
		end
	end
	return "end_turn"
end

local function envelope(message, context)
	local options = message.options
	return {
		type = "message", role = "assistant", id = options.id or context.id "msg_",
		model = options.model or context.request:model() or "scripted-model",
	}
end

local function add_pings(out, every)
	local with, since = {}, 0
	for _, event in ipairs(out) do
		with[#with + 1] = event
		since = since + 1
		if since == every then
			with[#with + 1] = PING
			since = 0
		end
	end
	return with
end

local function event_text(event)
	if type(event) == "string" then
		return event
	end
	local data = type(event[2]) == "table" and encode(event[2]) or event[2] or ""
	return (event[1] and "event: " .. event[1] .. "\n" or "") .. "data: " .. data:gsub("\n", "\ndata: ") .. "\n\n"
end

-- insert = { {after = number of events, "name", data}, … }, offsets in the events as they are without it
local function insert_events(out, insert)
	for i = #insert, 1, -1 do
		table.insert(out, insert[i].after + 1, event_text(insert[i]))
	end
end

local function add_blocks(out, blocks, options)
	for i, entry in ipairs(blocks) do
		local from, block_options = #out, setmetatable({}, { __index = entry.options })
		block_options.delta_size = entry.options.delta_size or options.delta_size or DEFAULT_DELTA_CHARACTERS
		local stream = streams[entry.block.type] or stream_other
		stream(out, i - 1, entry.block, block_options)
		if i == 1 and options.pings == nil then -- the service sends one behind the first start
			table.insert(out, from + 2, PING)
		end
		add(out, "content_block_stop", ('{"type":"content_block_stop","index":%d}'):format(i - 1))
	end
end

-- The list of event texts of a message.
local function message_events(message, context)
	local options, blocks = message.options, complete_blocks(message, context)
	local usage, out = usage_of(options), {}
	local start = envelope(message, context)
	start.content, start.stop_reason, start.stop_sequence = json.array(), json.null, json.null
	start.usage = first_usage(usage)
	add(out, "message_start", ('{"type":"message_start","message":%s}'):format(encode(start)))
	add_blocks(out, blocks, options)
	local delta = { stop_reason = stop_reason_of(message, blocks), stop_sequence = options.stop_sequence or json.null }
	add(out, "message_delta", ('{"type":"message_delta","delta":%s,"usage":{"output_tokens":%d}}')
		:format(encode(delta), usage.output_tokens))
	add(out, "message_stop", '{"type":"message_stop"}')
	for _ = 1, options.drop_events or 0 do
		out[#out] = nil
	end
	if options.pings then
		out = add_pings(out, options.pings == true and 1 or options.pings)
	end
	insert_events(out, options.insert or {})
	return out
end

-- Joins events; the options change only what the SSE text allows to vary.
local function stream_body(events, options)
	local body = table.concat(events)
	if options.event_lines == false then
		body = body:gsub("event: [^\n]*\n", "")
	end
	if options.comments then
		body = body:gsub("\n\n", "\n\n: keep-alive\n\n")
	end
	if options.after_stop then
		body = body .. options.after_stop
	end
	if options.eol then
		body = body:gsub("\n", options.eol)
	end
	return (options.bom and "\u{FEFF}" or "") .. body
end

local function as_stream(events, options)
	return { status = 200, type = "text/event-stream; charset=utf-8", stream = true, body = stream_body(events, options) }
end

local function message_json(message, context)
	local blocks, parts = complete_blocks(message, context), {}
	for i, entry in ipairs(blocks) do
		parts[i] = block_json(entry.block, entry.options)
	end
	local whole = envelope(message, context)
	whole.content = json.raw("[" .. table.concat(parts, ",") .. "]")
	whole.stop_reason = stop_reason_of(message, blocks)
	whole.stop_sequence = message.options.stop_sequence or json.null
	whole.usage = usage_of(message.options)
	return encode(whole)
end

-- ---- replies ----

local function wants_stream(made, context)
	if made.options.stream ~= nil then
		return made.options.stream
	end
	return context.request:wants_stream()
end

local kinds = {}

function kinds.message(made, context)
	if wants_stream(made, context) then
		return as_stream(message_events(made, context), made.options)
	end
	return { status = 200, type = "application/json", body = message_json(made, context) }
end

function kinds.events(made)
	local out = {}
	for i, event in ipairs(made.list) do
		out[i] = event_text(event)
	end
	return as_stream(out, made.options)
end

function kinds.error_event(made, context)
	if not wants_stream(made, context) then
		return render.api_error(ERROR_STATUS[made.type] or 500, made.type, made.message, context.id "req_")
	end
	local of = assert(reply.normalise(made.of or "a partial answer that an error cuts off"))
	local all = message_events(of, context)
	local out = table.move(all, 1, math.min(made.after, #all), 1, {})
	add(out, "error", encode { type = "error", error = { type = made.type, message = made.message } })
	return as_stream(out, made.options)
end

function kinds.status(made, context)
	if made.body == nil and made.code >= 400 then
		return render.api_error(made.code, nil, nil, context.id "req_")
	end
	local is_text = type(made.body) == "string"
	local body = is_text and made.body or made.body and encode(made.body) or ""
	return { status = made.code, type = is_text and "text/plain" or "application/json", body = body }
end

function kinds.raw(made)
	return { status = 200, type = "application/octet-stream", body = made.body, bytes = made.bytes }
end

--- The error document of the API for a status.
---@param code integer
---@param type_name? string # left out: the API's type of that status
---@param message? string
---@param request_id string
---@return table # rendered reply
function render.api_error(code, type_name, message, request_id)
	type_name = type_name or ERROR_TYPES[code] or (code < 500 and "invalid_request_error" or "api_error")
	return { status = code, type = "application/json", request_id = request_id, body = encode {
		type = "error", request_id = request_id,
		error = { type = type_name, message = message or type_name:gsub("_", " ") },
	} }
end

--- Renders a reply: `{status, type, body, stream, bytes, headers, options}`; `bytes` is the whole wire when set.
---@param made table # as from reply.normalise
---@param context table
---@return table
function render.reply(made, context)
	local rendered = kinds[made.kind](made, context)
	local options = made.options
	rendered.options = options
	rendered.status = options.status or rendered.status
	rendered.type = options.content_type or rendered.type
	return rendered
end

return render
