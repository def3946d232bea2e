--- Tools: a name, a description and a schema for the model, a Lua function for the work.

local core = require "lattice.core"
local options = require "lattice.options"
local schema = require "lattice.schema"
local worker = require "lattice.worker"

local tool = {}

---@class lattice.tool_definition
---@field name string
---@field description string
---@field kind "tool"|"agent_tool"|"delegate_tool"|"mcp_tool"|"builtin"
---@field schema table the compiled input schema (lattice.schema.compile)
---@field handler fun(input: any, ctx: lattice.tool_context): any
---@field is_concurrency_safe? fun(input: any): boolean
---@field resources? fun(input: any): { read?: string[], write?: string[] }
---@field timeout_ms? number
---@field worker? boolean|string
---@field strict? boolean
---@field idempotent? boolean may run again when a process was killed while it ran (agent option session_store)
---@field metadata? table as it was given; the engine neither reads it nor sends it to the model

---@class lattice.tool_context
---@field tool_call_id string
---@field tool_name string
---@field signal lattice.signal aborted when this call shall stop
---@field context any the query's host data; the model never sees it
---@field workspace? table

local TOOL_OPTIONS = {
	is_concurrency_safe = options.callable,
	resources = options.callable,
	metadata = options.table,
	timeout_ms = options.milliseconds,
	worker = options.kind("true, or the name of a module", function(value)
		return value == true or type(value) == "string" and value ~= ""
	end),
	worker_threads = options.positive_integer,
	strict = options.boolean,
	idempotent = options.boolean,
}

local definition_class = { __name = "lattice.tool_definition" }
local fields_of = setmetatable({}, { __mode = "k" })

function definition_class:__index(key)
	return fields_of[self][key]
end

function definition_class:__newindex(key)
	error(string.format('tool "%s": a definition can\'t be changed (field "%s")', self.name, tostring(key)), 2)
end

function definition_class:__pairs()
	local fields = fields_of[self]
	return function(_, key)
		return next(fields, key)
	end, self, nil
end

function definition_class:__tostring()
	return string.format("lattice.tool(%s)", self.name)
end

tool.kind = options.kind("a tool (lattice.tool)", function(value)
	return getmetatable(value) == definition_class
end)
tool.name_kind = options.kind("a name of 1 to 64 letters, digits, _ and -", function(value)
	return type(value) == "string" and #value <= 64 and value:find "^[%w_-]+$" ~= nil
end)

-- What the model is told of a tool, in a fixed order of keys: the same bytes each time keep prompt caches warm.
local function wire(fields)
	local parts = {
		'{"name":',
		core.json_encode(fields.name),
		',"description":',
		core.json_encode(fields.description),
		',"input_schema":',
		fields.schema:json(),
	}
	if fields.strict then
		parts[#parts + 1] = ',"strict":true'
	end
	parts[#parts + 1] = "}"
	return table.concat(parts)
end

--- Makes an immutable definition; for every kind of tool.
---@param fields table the fields of lattice.tool_definition; `schema` already compiled
---@return lattice.tool_definition
function tool.define(fields)
	fields.wire = wire(fields)
	local definition = setmetatable({}, definition_class)
	fields_of[definition] = fields
	return definition
end

-- The API takes only objects as tool input.
local function compile_input_schema(name, given)
	local ok, compiled = pcall(schema.compile, given == nil and {} or given)
	if not ok then
		error(string.format('tool "%s": %s', name, compiled), 4)
	end
	local document = core.json_decode(compiled:json())
	if type(document) ~= "table" or document.type ~= "object" then
		local text = 'tool "%s": schema: expected an object schema at the top ("type": "object"), got %s'
		error(string.format(text, name, compiled:json():sub(1, 100)), 4)
	end
	return compiled
end

local function worker_handler(name, handler, given)
	local ok, made = pcall(worker.handler, name, handler, given)
	if not ok then
		error(made, 4)
	end
	return made
end

local function new(name, description, input_schema, handler, given)
	options.argument("tool: name", tool.name_kind, name, 3)
	local label = string.format('tool "%s": ', name)
	options.argument(label .. "description", options.utf8_string, description, 3)
	given = options.check("ToolOptions", TOOL_OPTIONS, given, 3)
	if type(given.worker) ~= "string" then
		options.argument(label .. "handler", options.callable, handler, 3)
	end
	local fields = {
		name = name,
		description = description,
		kind = "tool",
		schema = compile_input_schema(name, input_schema),
		handler = handler,
	}
	for key, value in pairs(given) do
		fields[key] = value
	end
	if given.worker_threads and not given.worker then
		error("ToolOptions: worker_threads: expected worker = true or a module's name beside it", 3)
	end
	if given.worker then
		fields.handler = worker_handler(name, handler, given)
	end
	return tool.define(fields)
end

--- Defines a tool.
---
--- The handler gets validated input and a context, and returns a string, or
--- `{content = string or content blocks, is_error = true?, end_turn = true?, structured_result = any?}`. What it
--- raises becomes a `tool_result` with `is_error` for the model.
---@param name string 1 to 64 of letters, digits, _ and -
---@param description string for the model
---@param input_schema any a schema for an object (see lattice.schema); nil takes an empty object
---@param handler fun(input: any, ctx: lattice.tool_context): any
---@param tool_options? table is_concurrency_safe, resources, metadata, timeout_ms (ms), worker,
---  worker_threads (a pool of its own of that many threads), strict, idempotent
---@return lattice.tool_definition
function tool.new(name, description, input_schema, handler, tool_options)
	return new(name, description, input_schema, handler, tool_options)
end

return tool
