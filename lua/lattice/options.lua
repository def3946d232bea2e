--- One strict checker for every options table: unknown keys, wrong types and wrong ranges are errors when the
--- table is handed over, in one format.
---
---   AgentOptions: unknown option "modle". Check for a typo, or upgrade lattice if this option was added in a
---   newer version. Did you mean "model"?
---   AgentOptions: tool_concurrency.max_concurrency: expected a positive integer, got 0

local options = {}

---@class lattice.kind
---@field expected string how an error names what would be right: "a positive integer"
---@field test fun(value: any): boolean
---@field shape? table<string, lattice.kind> for a nested options table
---@field secret? boolean the value is never shown

--- A rule for one option.
---@param expected string
---@param test fun(value: any): boolean
---@return lattice.kind
function options.kind(expected, test)
	return { expected = expected, test = test }
end

local kind = options.kind

--- Whether a value can be called: a function, or something with `__call`.
---@param value any
---@return boolean
function options.is_callable(value)
	if type(value) == "function" then
		return true
	end
	local meta = getmetatable(value)
	return type(meta) == "table" and meta.__call ~= nil
end

local function of_type(name, expected)
	return kind(expected, function(value)
		return type(value) == name
	end)
end

local function integer_from(least, expected)
	return kind(expected, function(value)
		return math.type(value) == "integer" and value >= least
	end)
end

options.any = kind("any value", function()
	return true
end)
options.string = of_type("string", "a string")
options.boolean = of_type("boolean", "a boolean")
options.table = of_type("table", "a table")
options.callable = kind("a function", options.is_callable)
options.text = kind("a non-empty string", function(value)
	return type(value) == "string" and value ~= ""
end)
options.utf8_string = kind("a string in UTF-8", function(value)
	return type(value) == "string" and utf8.len(value) ~= nil
end)
options.utf8_text = kind("a non-empty string in UTF-8", function(value)
	return type(value) == "string" and value ~= "" and utf8.len(value) ~= nil
end)
options.positive_integer = integer_from(1, "a positive integer")
options.natural = integer_from(0, "an integer from 0")
options.milliseconds = kind("a positive number of milliseconds", function(value)
	return type(value) == "number" and value > 0 and value < math.huge
end)
options.secret = { expected = "a non-empty string", test = options.text.test, secret = true }

local function is_list(value)
	if type(value) ~= "table" then
		return false
	end
	local count = 0
	for _ in pairs(value) do
		count = count + 1
	end
	return count == #value
end

--- A list (array) whose items are of one kind.
---@param item lattice.kind
---@param expected string
---@return lattice.kind
function options.list(item, expected)
	return kind(expected, function(value)
		if not is_list(value) then
			return false
		end
		for _, one in ipairs(value) do
			if not item.test(one) then
				return false
			end
		end
		return true
	end)
end

--- One of some strings.
---@param names string[]
---@return lattice.kind
function options.one_of(names)
	local known, quoted = {}, {}
	for i, name in ipairs(names) do
		known[name], quoted[i] = true, string.format("%q", name)
	end
	return kind("one of " .. table.concat(quoted, ", "), function(value)
		return known[value] == true
	end)
end

--- A nested options table, checked by the same rules.
---@param shape table<string, lattice.kind>
---@return lattice.kind
function options.nested(shape)
	return { expected = "a table", test = options.table.test, shape = shape }
end

--- How an error shows a value: short, and never a secret.
---@param value any
---@param secret? boolean
---@return string
function options.got(value, secret)
	local name = type(value)
	if secret then
		return name == "string" and "an empty string" or "a " .. name
	elseif name == "string" then
		return #value > 40 and string.format("%q…", value:sub(1, 40)) or string.format("%q", value)
	elseif name == "number" or name == "boolean" or name == "nil" then
		return tostring(value)
	end
	return "a " .. name
end

-- Edit distance, bounded by the lengths of option names; for "did you mean" only.
local function distance(a, b)
	local row = {}
	for j = 0, #b do
		row[j] = j
	end
	for i = 1, #a do
		local diagonal = row[0]
		row[0] = i
		for j = 1, #b do
			local cost = a:byte(i) == b:byte(j) and 0 or 1
			local best = math.min(row[j] + 1, row[j - 1] + 1, diagonal + cost)
			diagonal, row[j] = row[j], best
		end
	end
	return row[#b]
end

--- The known name that is closest to a mistyped one, or nil when none is close.
---@param name string
---@param known table<string, any> names as keys
---@return string?
function options.closest(name, known)
	local plain = name:gsub("[_-]", ""):lower()
	local best, best_distance = nil, #plain <= 4 and 1 or math.max(2, #plain // 4)
	for candidate in pairs(known) do
		local d = distance(plain, (candidate:gsub("[_-]", ""):lower()))
		if d < best_distance or d == best_distance and (not best or candidate < best) then
			best, best_distance = candidate, d
		end
	end
	return best
end

local function key_text(key) -- tostring may run a __tostring that raises
	return type(key) == "string" and key or options.got(key)
end

local function unknown_option(key, shape)
	local text = string.format(
		'unknown option "%s". Check for a typo, or upgrade lattice if this option was added in a newer version.',
		key_text(key)
	)
	local close = type(key) == "string" and #key <= 100 and options.closest(key, shape)
	return close and string.format('%s Did you mean "%s"?', text, close) or text
end

local check_table

local function problem(path, value, rule)
	if not rule.test(value) then
		return string.format("%s: expected %s, got %s", path, rule.expected, options.got(value, rule.secret))
	end
	if rule.shape then
		return check_table(path, value, rule.shape)
	end
end

local function sorted_keys(given)
	local keys = {}
	for key in pairs(given) do
		keys[#keys + 1] = key
	end
	table.sort(keys, function(a, b)
		return key_text(a) < key_text(b)
	end)
	return keys
end

-- Returns what is wrong with the first bad key in alphabetical order, so that an error is the same each time.
function check_table(path, given, shape)
	for _, key in ipairs(sorted_keys(given)) do
		local rule = shape[key]
		if not rule then
			return (path and path .. ": " or "") .. unknown_option(key, shape)
		end
		local wrong = problem(path and path .. "." .. key or key, given[key], rule)
		if wrong then
			return wrong
		end
	end
end

--- Checks an options table and raises when something is wrong.
---@param prefix string "AgentOptions", "ToolOptions", `agent_tool("name")`
---@param shape table<string, lattice.kind> the known options
---@param given any nil counts as an empty table
---@param level? integer whose line the error names: 1 the caller of check, 2 its caller (default)
---@return table given the same table, or an empty one
function options.check(prefix, shape, given, level)
	level = (level or 2) + 1
	if given == nil then
		return {}
	end
	if type(given) ~= "table" then
		error(string.format("%s: expected a table of options, got %s", prefix, options.got(given)), level)
	end
	local wrong = check_table(nil, given, shape)
	if wrong then
		error(prefix .. ": " .. wrong, level)
	end
	return given
end

--- Checks one argument by a kind and raises when it is wrong.
---@param name string how the error names it: "lattice.sleep: ms"
---@param rule lattice.kind
---@param value any
---@param level? integer as in options.check
function options.argument(name, rule, value, level)
	local wrong = problem(name, value, rule)
	if wrong then
		error(wrong, (level or 2) + 1)
	end
end

return options
