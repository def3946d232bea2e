--- Tracing: what a run did and when, as events with span ids.
---
--- A tracer is a table with a method `emit(event)`. The shapes of the events are in docs/tracing.md.

local core = require "lattice.core"
local errors = require "lattice.errors"
local options = require "lattice.options"
local tool_result = require "lattice.tool_result"

local trace = {}

local REDACTED = "[redacted]"

local SPAN_BYTES, TRACE_BYTES = 8, 16

local DEEPEST, MOST_VALUES = 50, 200000 -- of one event

local function blot(text, secrets)
	text = tool_result.clean(text)
	for _, secret in ipairs(secrets) do
		local from = text:find(secret, 1, true)
		while from do
			text = text:sub(1, from - 1) .. REDACTED .. text:sub(from + #secret)
			from = text:find(secret, from + #REDACTED, true)
		end
	end
	return text
end

-- A copy of a value in which the given secrets are blotted out, and what JSON can't say is named. It reads tables raw
-- and counts what it copies: values of the host's may have metamethods that raise, cycles, and shared parts.
local function presentable(value, secrets, depth, count)
	local kind = type(value)
	if kind == "string" then
		return blot(value, secrets)
	elseif kind == "table" then
		local meta = debug.getmetatable(value)
		if meta and rawget(meta, "__tostring") then
			return blot(errors.text(value), secrets)
		elseif depth > DEEPEST then
			return "[too deep]"
		end
		local copy = setmetatable({}, meta == core.array_mt and meta or nil)
		for key, field in next, value do
			count.values = count.values + 1
			if count.values > MOST_VALUES then
				break
			end
			copy[type(key) == "string" and blot(key, secrets) or key] = presentable(field, secrets, depth + 1, count)
		end
		return copy
	elseif kind == "function" or kind == "thread" or (kind == "userdata" and value ~= core.null) then
		return "[" .. kind .. "]"
	end
	return value
end

local raised = setmetatable({}, { __mode = "k" }) -- tracer → what it raised first

-- A tracer that raises costs no reply, as a full disk doesn't.
local function deliver(tracer, event)
	local ok, problem = pcall(tracer.emit, tracer, event)
	if not ok and not raised[tracer] then
		raised[tracer] = "the tracer raised: " .. errors.text(problem)
	end
end

local function status_of(tracer)
	return tracer.status and tracer:status()
end

--- What is wrong with a tracer: what it raised, or the error that its status names.
---@param tracer table
---@return string?
function trace.problem(tracer)
	if raised[tracer] then
		return raised[tracer]
	end
	local ok, status = pcall(status_of, tracer)
	return ok and type(status) == "table" and status.error or nil
end

---@class lattice.span
local span_class = {}
span_class.__index = span_class

--- Sends one event to the tracer.
---@param kind string
---@param fields? table
function span_class:event(kind, fields)
	local event = presentable(fields or {}, self.secrets, 0, { values = 0 })
	event.event = kind
	event.trace_id, event.span_id, event.parent_span_id = self.trace_id, self.span_id, self.parent_span_id
	event.session_id, event.agent = self.session_id, self.agent
	event.monotonic_ms, event.wall_ms = core.now_ms(), core.wall_ms()
	deliver(self.tracer, event)
end

--- A span below this one, with the same tracer.
---@return lattice.span
function span_class:child()
	local twin = {}
	for key, value in pairs(self) do
		twin[key] = value
	end
	twin.span_id, twin.parent_span_id = core.random_hex(SPAN_BYTES), self.span_id
	return setmetatable(twin, span_class)
end

--- The span of a query.
---@param tracer table with emit(self, event)
---@param about table session_id, agent
---@param secrets string[] never shown
---@param parent? lattice.span the tool call that this query runs in
---@return lattice.span
function trace.span(tracer, about, secrets, parent)
	return setmetatable({
		tracer = tracer,
		secrets = secrets,
		session_id = about.session_id,
		agent = about.agent,
		trace_id = parent and parent.trace_id or core.random_hex(TRACE_BYTES),
		span_id = core.random_hex(SPAN_BYTES),
		parent_span_id = parent and parent.span_id,
	}, span_class)
end

local JSONL_OPTIONS = {
	path = options.text,
	max_bytes = options.positive_integer,
	keep = options.positive_integer,
	max_queue_bytes = options.positive_integer,
	redact = options.callable,
}

local jsonl_class = { __name = "lattice.jsonl_tracer" }
jsonl_class.__index = jsonl_class

--- Writes one event; never blocks. What the redact function returns is written in its place; false drops it.
---@param event table
function jsonl_class:emit(event)
	local redact = self.redact
	if redact then
		local ok, changed = pcall(redact, event)
		if not ok or changed == false then
			self.withheld = self.withheld + 1
			return
		end
		event = changed == nil and event or changed
	end
	local ok, line = pcall(core.json_encode, event)
	if not ok then
		line = core.json_encode { event = event.event, span_id = event.span_id, unencodable = tostring(line) }
	end
	self.writer:write(line)
end

--- Waits until everything so far is in the file.
---@param timeout_ms? number
---@return boolean flushed
function jsonl_class:flush(timeout_ms)
	return self.writer:flush(timeout_ms)
end

--- What became of the events: {written, dropped, withheld, error}.
---@return table
function jsonl_class:status()
	local status = self.writer:status()
	status.withheld = self.withheld
	return status
end

--- Writes what is queued and ends the writer's thread.
function jsonl_class:close()
	self.writer:close()
end

jsonl_class.__close = jsonl_class.close

--- A tracer that appends one JSON line for each event to a file, on a thread of its own. When the file passes
--- max_bytes it is renamed to `path.1` (and so on up to `keep`). A disk that is full never stops a run: the result
--- message says so once, in `trace_error`.
---@param tracer_options table path; max_bytes (64 MiB), keep (3 old files), max_queue_bytes (8 MiB), redact =
---  function(event) → event, false to drop it, nil to leave it as it is
---@return table tracer with emit, flush, status, close
function trace.create_jsonl(tracer_options)
	local given = options.check("create_jsonl_context_tracer", JSONL_OPTIONS, tracer_options)
	if not given.path then
		error("create_jsonl_context_tracer: path: expected a non-empty string, got nil", 2)
	end
	local file, problem = io.open(given.path, "a") -- a wrong path is a mistake to be told of now, a full disk is not
	if not file then
		error("create_jsonl_context_tracer: path: " .. tostring(problem), 2)
	end
	file:close()
	local writer = core.trace_writer {
		path = given.path,
		max_bytes = given.max_bytes,
		keep = given.keep,
		max_queue_bytes = given.max_queue_bytes,
	}
	return setmetatable({ writer = writer, redact = given.redact, withheld = 0 }, jsonl_class)
end

local composite_class = { __name = "lattice.composite_tracer" }
composite_class.__index = composite_class

function composite_class:emit(event)
	for _, part in ipairs(self.parts) do
		deliver(part, event)
	end
end

function composite_class:status()
	local first = {}
	for _, part in ipairs(self.parts) do
		first.error = first.error or trace.problem(part)
	end
	return first
end

--- A tracer that hands each event to several, in order.
---@param parts table[] tracers
---@return table tracer
function trace.create_composite(parts)
	options.argument("create_composite_context_tracer: tracers", options.list(trace.kind, "a list of tracers"), parts)
	return setmetatable({ parts = table.move(parts, 1, #parts, 1, {}) }, composite_class)
end

trace.kind = options.kind("a tracer (a table with a method emit)", function(value)
	return type(value) == "table" and options.is_callable(value.emit)
end)

return trace
