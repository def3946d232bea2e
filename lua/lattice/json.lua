--- JSON texts and Lua values, one for one. Rules and limits: docs/json.md.
local core = require "lattice.core"

---@class lattice.json
local json = {}

--- JSON null, as a value that a table can hold. It is true in conditions; compare with `== json.null`.
json.null = core.null

--- The JSON text of a value: UTF-8, no spaces, the keys of an object sorted by their bytes (`json.ordered`
--- gives another order), `1` for an integer and `1.0` for a float.
---
--- Raises for what has no JSON form: NaN, infinities, cycles, more than 1000 levels, mixed and sparse tables,
--- keys that aren't strings, strings that aren't UTF-8, functions. The message names the place: `$.a[2].b`.
---
---     json.encode{ id = 7, tags = json.array() } --> {"id":7,"tags":[]}
---@type fun(value: any): string
json.encode = core.json_encode

--- The value of a JSON text. Objects become plain tables, arrays become tables marked as by `json.array`,
--- null becomes `json.null`, numbers without fraction and exponent integers if they fit 64 bits, else floats.
---
---     json.decode '{"id":7}' --> { id = 7 }
---
--- Returns nil and a message if the text isn't JSON or passes a limit: `max_bytes` (default 64 MiB) or
--- `max_depth` levels of nesting (default and most: 1000). The message says what is wrong, and at which byte.
---@type fun(text: string, max_bytes?: integer, max_depth?: integer): any, string?
json.decode = core.json_decode

local function mark(t, metatable, name)
	if type(t) ~= "table" then
		error(("%s: expected a table, got %s"):format(name, type(t)), 3)
	end
	local current = debug.getmetatable(t)
	if current ~= nil and current ~= metatable then
		error(("%s: the table has a metatable already; give a plain table"):format(name), 3)
	end
	setmetatable(t, metatable)
end

--- Marks a table as an array, which an empty one needs: without a mark it is `{}`.
---
---     json.encode(json.array{}) --> []
---@generic T
---@param t? T[] marked in place; a new table if left out
---@return T[] t
function json.array(t)
	if t == nil then
		t = {}
	end
	mark(t, core.array_mt, "json.array") -- no tail call: its errors count levels
	return t
end

--- An object whose keys keep the order in which they are given.
---
---     json.encode(json.ordered{ { "b", 1 }, { "a", 2 } }) --> {"b":1,"a":2}
---@param pairs_in_order { [1]: string, [2]: any }[] marked in place; each key once
---@return table pairs_in_order
function json.ordered(pairs_in_order)
	mark(pairs_in_order, core.ordered_mt, "json.ordered")
	return pairs_in_order
end

return json
