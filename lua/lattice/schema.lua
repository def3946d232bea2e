--- Schemas: what a value must look like, for the model to read and for C to check. Rules: docs/schema.md.
---
---     local s = lattice.schema
---     local search = s.compile(s.object {
---         query = s.string { min_length = 1 }:describe "what to look for",
---         limit = s.default(s.integer { min = 1, max = 100 }, 10),
---     })
---     search:validate { query = "lua" } --> true, { query = "lua", limit = 10 }
local core = require "lattice.core"
local form = require "lattice.schema_form"
local json = require "lattice.json"
local options = require "lattice.options"

---@class lattice.schema
local schema = {}

---@class lattice.compiled_schema
local compiled = {} -- luacheck: ignore (the methods are C; this is their description)

---@class lattice.schema_error
---@field path string JSON pointer to the bad place, "" for the whole value
---@field expected string
---@field actual string
---@field message string a sentence of both

---@alias lattice.schema_like lattice.schema_node | lattice.compiled_schema | table | string | boolean

-- ---- options of constructors -----------------------------------------------

local number = options.kind("a number", function(value)
	return type(value) == "number"
end)
local integer = options.kind("an integer", function(value)
	return math.type(value) == "integer"
end)

local function shape(own)
	own.title, own.description, own.examples = options.string, options.string, options.table
	return own
end

local function number_shape(rule)
	return shape {
		min = rule,
		max = rule,
		minimum = rule,
		maximum = rule,
		exclusive_minimum = rule,
		exclusive_maximum = rule,
		multiple_of = rule,
	}
end

local SHAPES = {
	any = shape {},
	array = shape { min_items = options.natural, max_items = options.natural, unique = options.boolean },
	boolean = shape {},
	enum = shape {},
	integer = number_shape(integer),
	literal = shape {},
	null = shape {},
	number = number_shape(number),
	object = shape { open = options.any },
	record = shape { min_properties = options.natural, max_properties = options.natural, key_pattern = options.string },
	string = shape {
		min_length = options.natural,
		max_length = options.natural,
		pattern = options.string,
		format = options.string,
	},
	union = shape {},
}

-- Options and the keywords that they mean, in the order in which they are written.
local KEYWORDS = {
	{ "title", "title" },
	{ "description", "description" },
	{ "min_length", "minLength" },
	{ "max_length", "maxLength" },
	{ "pattern", "pattern" },
	{ "format", "format" },
	{ "min", "minimum" },
	{ "minimum", "minimum" },
	{ "max", "maximum" },
	{ "maximum", "maximum" },
	{ "exclusive_minimum", "exclusiveMinimum" },
	{ "exclusive_maximum", "exclusiveMaximum" },
	{ "multiple_of", "multipleOf" },
	{ "min_items", "minItems" },
	{ "max_items", "maxItems" },
	{ "unique", "uniqueItems" },
	{ "min_properties", "minProperties" },
	{ "max_properties", "maxProperties" },
	{ "examples", "examples" },
}

local function check(name, given, level)
	return options.check("schema." .. name, SHAPES[name], given, level + 1)
end

local function apply(node, checked)
	for _, keyword in ipairs(KEYWORDS) do
		local value = checked[keyword[1]]
		if value ~= nil then
			if keyword[1] == "examples" then
				value = json.array(table.move(value, 1, #value, 1, {}))
			end
			node = form.with(node, keyword[2], value)
		end
	end
	return node
end

local function read(value, level)
	return form.protect(level + 1, form.read, value, "")
end

-- ---- constructors -----------------------------------------------------------

-- A type that stands for itself and can be called with options.
local function basic(name)
	local bare = form.node(name == "any" and {} or { { "type", name } })
	function bare.call(given)
		return apply(bare, check(name, given, 3))
	end
	return bare
end

--- Text. Options: min_length, max_length (characters), pattern (ECMA-262), format; for every constructor also
--- title, description, examples.
---
---     s.string
---     s.string { min_length = 1, pattern = "^[a-z]+$" }
---@type lattice.schema_node
schema.string = basic "string"

--- Whole numbers; 1.0 counts and is handed on as 1. Options: min, max (also minimum, maximum),
--- exclusive_minimum, exclusive_maximum, multiple_of.
---
---     s.integer { min = 1, max = 100 }
---@type lattice.schema_node
schema.integer = basic "integer"

--- Numbers. Options as for s.integer.
---@type lattice.schema_node
schema.number = basic "number"

--- true and false.
---@type lattice.schema_node
schema.boolean = basic "boolean"

--- JSON null (lattice.null in Lua).
---@type lattice.schema_node
schema.null = basic "null"

--- Any value.
---@type lattice.schema_node
schema.any = basic "any"

--- An object with these fields and, unless `open`, no others. Fields are required unless optional or with a
--- default. A table's fields are written sorted by name; a list of pairs keeps its order.
---
---     s.object { path = s.string, line = s.optional(s.integer) }
---     s.object({ { "path", s.string }, { "line", s.optional(s.integer) } }, { open = true })
---@param fields table<string, lattice.schema_like> | { [1]: string, [2]: lattice.schema_like }[]
---@param given? table open: true for any other members, or the schema that they must fit
---@return lattice.schema_node
function schema.object(fields, given)
	local checked = check("object", given, 2)
	local additional = checked.open or false
	if additional and additional ~= true then
		additional = read(additional, 2).json
	end
	return apply(form.protect(2, form.object, fields, "", additional), checked)
end

--- One of some values.
---
---     s.enum { "low", "high" }
---@param values any[]
---@param given? table
---@return lattice.schema_node
function schema.enum(values, given)
	if type(values) ~= "table" or values[1] == nil then
		error("schema.enum: expected a list of at least one value", 2)
	end
	local all_strings, list = true, json.array {}
	for i, value in ipairs(values) do
		list[i] = value
		all_strings = all_strings and type(value) == "string"
	end
	local node = form.node(all_strings and { { "type", "string" }, { "enum", list } } or { { "enum", list } })
	return apply(node, check("enum", given, 2))
end

--- Exactly this value.
---@param value any
---@param given? table
---@return lattice.schema_node
function schema.literal(value, given)
	if value == nil then
		error("schema.literal: expected a value (lattice.null for null)", 2)
	end
	return apply(form.node { { "const", value } }, check("literal", given, 2))
end

--- A list of items that all fit one schema. Options: min_items, max_items, unique.
---
---     s.array(s.string, { max_items = 10 })
---@param item lattice.schema_like
---@param given? table
---@return lattice.schema_node
function schema.array(item, given)
	local node = form.node { { "type", "array" }, { "items", read(item, 2).json } }
	return apply(node, check("array", given, 2))
end

--- An object with any names whose values all fit one schema. Options: min_properties, max_properties, key_pattern.
---
---     s.record(s.number)
---@param value lattice.schema_like
---@param given? table
---@return lattice.schema_node
function schema.record(value, given)
	local checked = check("record", given, 2)
	local list = { { "type", "object" }, { "additionalProperties", read(value, 2).json } }
	if checked.key_pattern then
		list[3] = { "propertyNames", json.ordered { { "pattern", checked.key_pattern } } }
	end
	return apply(form.node(list), checked)
end

--- A value that fits at least one of the schemas.
---
---     s.union { s.string, s.array(s.string) }
---@param alternatives lattice.schema_like[]
---@param given? table
---@return lattice.schema_node
function schema.union(alternatives, given)
	if type(alternatives) ~= "table" or form.is_node(alternatives) or alternatives[1] == nil then
		error("schema.union: expected a list of at least one schema", 2)
	end
	local list = json.array {}
	for i, alternative in ipairs(alternatives) do
		list[i] = read(alternative, 2).json
	end
	return apply(form.node { { "anyOf", list } }, check("union", given, 2))
end

--- The schema, or null.
---@param inner lattice.schema_like
---@return lattice.schema_node
function schema.nullable(inner)
	local node = read(inner, 2)
	local name = form.get(node, "type")
	if type(name) == "string" and name ~= "null" and not form.get(node, "enum") then
		return form.with(node, "type", json.array { name, "null" })
	end
	local either = json.array { node.json, json.ordered { { "type", "null" } } }
	return form.node({ { "anyOf", either } }, node.is_optional)
end

--- The schema of a field that may be left out.
---
---     s.object { path = s.string, line = s.optional(s.integer) }
---@param inner lattice.schema_like
---@return lattice.schema_node
function schema.optional(inner)
	local list = read(inner, 2).json
	return form.node(table.move(list, 1, #list, 1, {}), true)
end

--- The schema of a field that has a value when it is left out. The value must fit.
---
---     s.default(s.integer, 10)
---@param inner lattice.schema_like
---@param value any
---@return lattice.schema_node
function schema.default(inner, value)
	local node = read(inner, 2)
	if value == nil then
		error("schema.default: expected a value (lattice.null for null); for none use s.optional", 2)
	end
	local judge, fault = core.schema_compile(core.json_encode(node.json))
	if not judge then
		error("schema: " .. fault, 2)
	end
	local fits, detail = judge:validate(value)
	if not fits then
		local first = detail[1]
		error(("schema.default: the default doesn't fit: %s%s"):format(
			first.path == "" and "" or first.path .. ": ", first.message), 2)
	end
	local with_default = form.with(node, "default", value)
	with_default.is_optional = true
	return with_default
end

-- ---- compiling --------------------------------------------------------------

local COMPILE = { registered = options.table, format_assertion = options.boolean }

-- The JSON text of anything that means a schema. Text that is JSON already keeps its bytes.
local function text_of(value, level)
	if type(value) == "string" and (value:find "^%s*{" or value == "true" or value == "false") then
		return value
	end
	local ok, text = pcall(core.json_encode, read(value, level + 1).json)
	if not ok then
		error("schema: " .. tostring(text):gsub("^.-json%.encode: ", ""), level + 1)
	end
	return text
end

--- Compiles a schema, once, to a program that checks values in C. Raises when the schema is bad, with the place
--- in it: `schema: /properties/x/type: expected one of …`.
---
---     local point = s.compile { x = "number", y = "number", label = "string?" }
---     point:validate_json '{"x":1,"y":"2"}' --> false, { { path = "/y", expected = "number", … } }
---@param value lattice.schema_like constructors, the short form, JSON Schema in a table or in a string
---@param given? table registered: documents that "$ref" may reach, by URI; format_assertion: check "format" too
---@return lattice.compiled_schema
function schema.compile(value, given)
	local checked = options.check("schema.compile", COMPILE, given)
	if form.is_compiled(value) and next(checked) == nil then
		return value
	end
	local registered = {}
	for uri, document in pairs(checked.registered or {}) do
		if type(uri) ~= "string" then
			error("schema.compile: registered: expected documents by URI, got the key " .. tostring(uri), 2)
		end
		registered[uri] = form.is_compiled(document) and document:json() or text_of(document, 2)
	end
	local text = form.is_compiled(value) and value:json() or text_of(value, 2)
	local made, fault = core.schema_compile(text, registered, { format_assertion = checked.format_assertion })
	if not made then
		error("schema: " .. fault, 2)
	end
	return made
end

return schema
