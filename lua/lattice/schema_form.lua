--- The ways to write a schema, brought into one: nodes, whose `json` is JSON Schema with its keys in order.
--- Internal to lattice.schema; the rules are in docs/schema.md.
local core = require "lattice.core"
local json = require "lattice.json"

local form = {}

form.TYPES = {
	string = true,
	integer = true,
	number = true,
	boolean = true,
	array = true,
	object = true,
	null = true,
}

-- What each keyword of the draft holds, where that matters for reading a table.
local DRAFT = {
	type = "type",
	properties = "map",
	patternProperties = "map",
	dependentSchemas = "map",
	definitions = "map",
	allOf = "list",
	anyOf = "list",
	oneOf = "list",
	prefixItems = "list",
	items = "schema",
	contains = "schema",
	["not"] = "schema",
	["if"] = "schema",
	["then"] = "schema",
	["else"] = "schema",
	propertyNames = "schema",
	additionalProperties = "schema",
	unevaluatedItems = "schema",
	unevaluatedProperties = "schema",
	contentSchema = "schema",
	required = "values",
	enum = "values",
	examples = "values",
	dependentRequired = "lists",
	const = "value",
	default = "default",
	uniqueItems = "boolean",
	minLength = "number",
	maxLength = "number",
	minimum = "number",
	maximum = "number",
	exclusiveMinimum = "number",
	exclusiveMaximum = "number",
	multipleOf = "number",
	minItems = "number",
	maxItems = "number",
	minContains = "number",
	maxContains = "number",
	minProperties = "number",
	maxProperties = "number",
	title = "note",
	description = "note",
	format = "note",
	pattern = "note",
	contentEncoding = "note",
	contentMediaType = "note",
	deprecated = "note",
	readOnly = "note",
	writeOnly = "note",
}

---@class lattice.schema_node an immutable description; constructors make it, `schema.compile` reads it
---@field json table the JSON Schema, marked by json.ordered
---@field is_optional? boolean as a property: may be left out
---@field call? fun(given: table): lattice.schema_node for what can be called with options
local node = {}

local node_meta = {
	__index = node,
	__name = "lattice.schema_node",
	__call = function(self, given)
		if not self.call then
			error("schema: this schema is complete and takes no options", 2)
		end
		return self.call(given)
	end,
}

--- The same schema with a description, which the model reads.
---
---     s.string:describe "a path, relative to the workspace"
---@param text string
---@return lattice.schema_node
function node:describe(text)
	if type(text) ~= "string" then
		error("schema: describe: expected a string, got " .. type(text), 2)
	end
	return form.with(self, "description", text)
end

--- A node of a JSON Schema's pairs.
---@param pairs_in_order { [1]: string, [2]: any }[]
---@param is_optional? boolean
---@return lattice.schema_node
function form.node(pairs_in_order, is_optional)
	return setmetatable({ json = setmetatable(pairs_in_order, core.ordered_mt), is_optional = is_optional }, node_meta)
end

--- A copy of a node with one key set: in its place when it was there, else at the end.
---@param of lattice.schema_node
---@param key string
---@param value any
---@return lattice.schema_node
function form.with(of, key, value)
	local copy, found = {}, false
	for i, pair in ipairs(of.json) do
		copy[i] = pair
		if pair[1] == key then
			copy[i], found = { key, value }, true
		end
	end
	if not found then
		copy[#copy + 1] = { key, value }
	end
	return form.node(copy, of.is_optional)
end

--- The value of a key in a node's JSON Schema.
---@param of lattice.schema_node
---@param key string
---@return any
function form.get(of, key)
	for _, pair in ipairs(of.json) do
		if pair[1] == key then
			return pair[2]
		end
	end
end

---@param value any
---@return boolean
function form.is_node(value)
	return getmetatable(value) == node_meta
end

---@param value any
---@return boolean
function form.is_compiled(value)
	return type(value) == "userdata" and getmetatable(value) == "lattice.schema"
end

-- A fault travels as a table up to the constructor that the user called, which knows the line.
local function fail(path, text, ...)
	error({ schema_fault = (path == "" and "" or path .. ": ") .. text:format(...) }, 0)
end

local function token(name)
	return (name:gsub("~", "~0"):gsub("/", "~1"))
end

local function sorted_keys(fields, path)
	local keys = {}
	for key in pairs(fields) do
		if type(key) ~= "string" then
			fail(path, "expected names as keys, got %s", tostring(key))
		end
		keys[#keys + 1] = key
	end
	table.sort(keys)
	return keys
end

-- ---- short form -------------------------------------------------------------

local function from_name(text, path)
	local name, mark = text:match "^(%a+)(%??)$"
	if name == "any" then
		return form.node({}, mark == "?" or nil)
	elseif not name or not form.TYPES[name] then
		fail(
			path,
			'expected "string", "integer", "number", "boolean", "array", "object", "null" or "any", with "?" behind it '
				.. 'when it may be left out, got "%s"',
			text
		)
	end
	return form.node({ { "type", name } }, mark == "?" or nil)
end

local function from_list(list, path)
	for key in pairs(list) do
		if key ~= 1 then
			fail(path, 'expected one item, the schema of an array\'s items ({"string"}); for alternatives use s.union')
		end
	end
	return form.node { { "type", "array" }, { "items", form.read(list[1], path .. "/items").json } }
end

-- Fields as { {name, schema}, … }: given so, or a table's, sorted by name.
local function ordered_fields(fields, path)
	if type(fields) ~= "table" or form.is_node(fields) then
		fail(path, "expected a table of fields, got %s", form.is_node(fields) and "a schema" or type(fields))
	end
	local list = {}
	if fields[1] == nil then
		for i, name in ipairs(sorted_keys(fields, path)) do
			list[i] = { name, fields[name] }
		end
		return list
	end
	for i, pair in ipairs(fields) do
		if type(pair) ~= "table" or type(pair[1]) ~= "string" or pair[2] == nil then
			fail(path, "expected {name, schema} as field %d", i)
		end
		list[i] = pair
	end
	return list
end

--- An object of named fields. All that aren't optional are required; `additional` says what other members may be.
---@param fields table<string, any> | { [1]: string, [2]: any }[]
---@param path string of the object in the schema, for errors
---@param additional boolean | table JSON Schema; true writes nothing
---@return lattice.schema_node
function form.object(fields, path, additional)
	local properties, required, seen = {}, {}, {}
	for i, field in ipairs(ordered_fields(fields, path)) do
		local name = field[1]
		if seen[name] then
			fail(path, 'the field "%s" stands twice', name)
		end
		seen[name] = true
		local inner = form.read(field[2], path .. "/properties/" .. token(name))
		properties[i] = { name, inner.json }
		if not inner.is_optional then
			required[#required + 1] = name
		end
	end
	local list = { { "type", "object" }, { "properties", json.ordered(properties) } }
	if #required > 0 then
		list[#list + 1] = { "required", json.array(required) }
	end
	if additional ~= true then
		list[#list + 1] = { "additionalProperties", additional }
	end
	return form.node(list)
end

-- ---- JSON Schema in a table -------------------------------------------------

local function is_list(value)
	return type(value) == "table" and (value[1] ~= nil or getmetatable(value) == core.array_mt)
end

local function is_plain(value)
	return type(value) == "table" and not form.is_node(value)
end

local function is_type(value)
	if type(value) ~= "table" then
		return form.TYPES[value] == true
	end
	for _, name in ipairs(value) do
		if not form.TYPES[name] then
			return false
		end
	end
	return value[1] ~= nil
end

-- Whether a keyword's value shows that a JSON Schema is meant, by what the keyword holds. Notes never show it.
local PROVES = {
	type = is_type,
	map = is_plain,
	list = is_list,
	values = is_list,
	lists = is_plain,
	schema = function(value)
		return type(value) == "boolean" or type(value) == "table"
	end,
	value = function()
		return true
	end,
	number = function(value)
		return type(value) == "number"
	end,
	boolean = function(value)
		return type(value) == "boolean"
	end,
}

local function is_json_schema(t)
	if getmetatable(t) == core.ordered_mt or (t.type == "object" and is_plain(t.properties)) then
		return true
	end
	local proven = false
	for key, value in pairs(t) do
		if type(key) == "string" and key:sub(1, 1) == "$" then
			return true
		elseif not DRAFT[key] then
			return false
		end
		local proves = PROVES[DRAFT[key]]
		proven = proven or (proves ~= nil and proves(value))
	end
	return proven
end

local WANTS_LIST = { type = true, list = true, values = true }

-- What stands below a value of one kind: in a schema by the keyword, in a map or list of schemas a schema.
local function kind_below(holds, key)
	if holds == "schema" then
		return key == "$defs" and "map" or DRAFT[key] or "value"
	elseif holds == "map" or holds == "list" then
		return "schema"
	end
	return holds == "lists" and "values" or "value"
end

-- Copies a JSON Schema. Nodes in it are written out; {} becomes a list where the draft wants one.
local function copy_json(value, holds, owner_type)
	if form.is_node(value) then
		return value.json
	elseif form.is_compiled(value) then
		return json.decode(value:json())
	elseif type(value) ~= "table" then
		return value
	end
	local meta = getmetatable(value)
	if next(value) == nil and meta == nil then
		local list = WANTS_LIST[holds] or (holds == "default" and owner_type == "array")
		return list and json.array {} or {}
	end
	local copy = {}
	if meta == core.ordered_mt then
		for i, pair in ipairs(value) do
			copy[i] = { pair[1], copy_json(pair[2], kind_below(holds, pair[1])) }
		end
	else
		for key, inner in pairs(value) do
			copy[key] = copy_json(inner, kind_below(holds, key), value.type)
		end
	end
	return setmetatable(copy, meta)
end

local function from_json_schema(t, path)
	local copy = copy_json(t, "schema")
	if getmetatable(copy) == core.ordered_mt then
		return form.node(copy)
	end
	local list = {}
	for i, key in ipairs(sorted_keys(copy, path)) do
		list[i] = { key, copy[key] }
	end
	return form.node(list)
end

-- ---- all of them ------------------------------------------------------------

--- The node of anything that means a schema; raises a fault (see form.protect).
---@param value any
---@param path string of the value in the schema, for errors
---@return lattice.schema_node
function form.read(value, path)
	if form.is_node(value) then
		return value
	elseif form.is_compiled(value) then
		return form.read(json.decode(value:json()), path)
	elseif type(value) == "string" then
		return from_name(value, path)
	elseif type(value) == "boolean" then
		return form.node(value and {} or { { "not", {} } })
	elseif type(value) ~= "table" then
		fail(path, "expected a schema, got %s", type(value))
	elseif getmetatable(value) ~= core.ordered_mt and value[1] ~= nil then
		return from_list(value, path)
	elseif is_json_schema(value) then
		return from_json_schema(value, path)
	end
	return form.object(value, path, false)
end

--- Calls a function that may raise a fault, and raises that at the line of the caller `level` levels up.
---@param level integer as for error()
---@param fn function
---@param ... any
---@return any
function form.protect(level, fn, ...)
	local ok, result = pcall(fn, ...)
	if ok then
		return result
	elseif type(result) == "table" and result.schema_fault then
		error("schema: " .. result.schema_fault, level + 1)
	end
	error(result, 0)
end

return form
