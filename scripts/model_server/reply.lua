-- What a script can answer: constructors of replies and of content blocks. They only make tables (so that a spec
-- can write them out as source for a server in another process); render.lua turns them into bytes.

local json = require "scripts.model_server.json"

local reply = { json = json }

-- Options that belong to the way over the wire; each reply takes them.
local WIRE_OPTIONS = {
	"split", "split_ms", "cut_at", "cut_wire_at", "stall_at", "stall_ms", "corrupt", "delay_ms", "wait_requests",
	"gzip", "headers", "content_type", "framing", "stream", "close", "status",
}
-- Options of a message beyond those.
local MESSAGE_OPTIONS = {
	"stop_reason", "stop_sequence", "usage", "model", "id", "pings", "insert", "eol", "bom", "comments",
	"event_lines", "delta_size", "after_stop", "drop_events",
}
-- Options of one content block.
local BLOCK_OPTIONS = {
	text = { "delta_size", "citations" },
	tool_use = { "input_split", "input_whole_at_start", "input_cut", "no_first_delta" },
	thinking = { "signature", "delta_size" },
	redacted_thinking = {},
	other = { "deltas" },
}

local function set_of(...)
	local set = {}
	for _, list in ipairs { ... } do
		for _, name in ipairs(list) do
			set[name] = true
		end
	end
	return set
end

local wire = set_of(WIRE_OPTIONS)
local whole_message = set_of(WIRE_OPTIONS, MESSAGE_OPTIONS)

local function check(what, options, ...)
	for name in pairs(options) do
		local known = type(name) ~= "string"
		for _, set in ipairs { ... } do
			known = known or set[name]
		end
		if not known then
			error(("%s: unknown option %q"):format(what, name), 3)
		end
	end
end

-- A block is also a whole reply when a script returns it alone; then its options are the message's as well.
local function new_block(block, options)
	options = options or {}
	local kind = BLOCK_OPTIONS[block.type] and block.type or "other"
	check(block.type or "block", options, whole_message, set_of(BLOCK_OPTIONS[kind]))
	return { kind = "block", block = block, options = options }
end

--- A text block.
function reply.text(text, options)
	return new_block({ type = "text", text = text }, options)
end

--- A tool call. `input` is a table, or a string of JSON that is sent as it is (right or wrong).
function reply.tool_use(name, input, id, options)
	return new_block({ type = "tool_use", name = name, input = input or {}, id = id }, options)
end

--- A thinking block; without `signature` the server signs it, and refuses it when it comes back changed.
function reply.thinking(text, options)
	return new_block({ type = "thinking", thinking = text }, options)
end

--- A redacted_thinking block.
function reply.redacted_thinking(data, options)
	return new_block({ type = "redacted_thinking", data = data }, options)
end

--- Any other block, known or not; `options.deltas` is a list of delta tables.
function reply.block(block, options)
	return new_block(block, options)
end

--- An assistant message: `message{ "text", tool_use(…), stop_reason = "max_tokens", usage = {…}, split = 7 }`.
function reply.message(blocks)
	local made = { kind = "message", blocks = {}, options = {} }
	check("message", blocks, whole_message)
	for key, value in pairs(blocks) do
		if type(key) == "string" then
			made.options[key] = value
		end
	end
	for i, block in ipairs(blocks) do
		made.blocks[i] = type(block) == "string" and reply.text(block) or block
	end
	return made
end

--- A reply by status. A table as body is written as JSON; without a body it is the API's own error of that status.
function reply.status(code, headers, body, options)
	local made = { kind = "status", code = code, body = body, options = options or {} }
	check("status", made.options, wire)
	made.options.headers = made.options.headers or headers
	return made
end

--- Bytes of one's own: `raw{ status = 200, body = "<html>", content_type = "text/html" }`, or
--- `raw{ bytes = "HTTP/1.1 …" }` for the whole wire.
function reply.raw(options)
	check("raw", options, wire, { body = true, bytes = true })
	return { kind = "raw", body = options.body or "", bytes = options.bytes, options = options }
end

--- Server-sent events one by one: `events{ {event = "ping", data = {…} or "text"}, "raw bytes", … }`.
function reply.events(options)
	check("events", options, whole_message)
	return { kind = "events", list = options, options = options }
end

--- An `error` event inside a 200 stream, after the first `after` events of `options.of` (a message).
function reply.error_event(type_name, message, after, options)
	options = options or {}
	check("error_event", options, whole_message, { of = true })
	return { kind = "error_event", type = type_name, message = message, after = after or 3, of = options.of,
		options = options }
end

--- Makes a reply of whatever a script returned (a string is a text, a block a message of that block).
---@return table? reply
---@return string? problem
function reply.normalise(value)
	if type(value) == "string" then
		value = reply.text(value)
	end
	if type(value) ~= "table" or not value.kind then
		return nil, "the script returned " .. type(value) .. ", not a reply: use text, tool_use, message, status, raw…"
	end
	if value.kind == "block" then
		return { kind = "message", blocks = { value }, options = value.options }
	end
	return value
end

return reply
