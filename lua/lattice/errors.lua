--- Errors that carry a name: values that a script can tell apart and that print well.

local errors = {}

local class = {}
class.__index = class

function class:__tostring()
	return self.name .. ": " .. self.message
end

--- An error value: a table with `name` and `message` (and what `fields` adds) that `tostring` shows as "name: message".
---@param name string for instance "ConcurrentQueryError" or "error_abort"
---@param message string what was wrong, and what would be right
---@param fields? table further fields
---@return table
function errors.new(name, message, fields)
	local value = setmetatable({}, class)
	for key, field in pairs(fields or {}) do
		value[key] = field
	end
	value.name, value.message = name, message
	return value
end

--- Whether `value` is an error made by `errors.new`, of that name where one is given.
---@param value any
---@param name? string
---@return boolean
function errors.is(value, name)
	return getmetatable(value) == class and (name == nil or value.name == name)
end

--- One line of text for any value that Lua can raise, without a traceback.
---@param value any
---@return string
function errors.text(value)
	if value == nil then
		return "an error without a value (nil) was raised"
	end
	if type(value) == "table" then
		local meta = debug.getmetatable(value) -- the real one: what getmetatable shows may be any value
		if not (meta and rawget(meta, "__tostring")) then
			local message = rawget(value, "message")
			if type(message) == "string" then
				return message
			end
			local ok, json = pcall(require("lattice.core").json_encode, value)
			if ok then
				return json
			end
		end
	end
	local ok, text = pcall(tostring, value)
	return ok and text or "an error value of type " .. type(value) .. " that can't be printed"
end

return errors
