-- Values for the specs of JSON: exact comparison, and random ones.

local core = require "lattice.core"

local json_values = {}

local function is_array(t)
	return getmetatable(t) == core.array_mt or t[1] ~= nil
end

--- Equal with nothing rounded or lost: 1 isn't 1.0, -0.0 isn't 0.0, an empty array isn't an empty object.
---@param a any
---@param b any
---@return boolean
function json_values.equal(a, b)
	if type(a) ~= "table" or type(b) ~= "table" then
		if math.type(a) == "float" and math.type(b) == "float" and a == 0 and b == 0 then
			return 1 / a == 1 / b
		end
		return a == b and math.type(a) == math.type(b)
	end
	if is_array(a) ~= is_array(b) or #a ~= #b then
		return false
	end
	for key, value in pairs(a) do
		if not json_values.equal(value, b[key]) then
			return false
		end
	end
	for key in pairs(b) do
		if a[key] == nil then
			return false
		end
	end
	return true
end

local CHARACTERS = { "a", "B", "7", " ", '"', "\\", "/", "\0", "\n", "\u{1f}", "\u{7f}", "é", "€", "\u{2028}",
	"\u{ffff}", "\u{1F600}", "\u{10ffff}", "word of eight", "{}[],:" }

local function random_string(random)
	local parts = {}
	for i = 1, random(0, 8) do
		parts[i] = CHARACTERS[random(#CHARACTERS)]
	end
	return table.concat(parts)
end

local function random_float(random)
	while true do
		local x = string.unpack("<d", string.pack("<i8", random(0)))
		if random(3) == 1 then
			x = random(-10000000, 10000000) / 10 ^ random(0, 9)
		end
		if x == x and x ~= math.huge and x ~= -math.huge then
			return x
		end
	end
end

--- Any value that JSON has a form for.
---@param random fun(m?: integer, n?: integer): integer as math.random
---@param depth integer levels that it may have
---@return any
function json_values.random(random, depth)
	local kind = random(depth > 0 and 10 or 7)
	if kind == 1 then
		return core.null
	elseif kind == 2 then
		return random(2) == 1
	elseif kind == 3 then
		return random(0) >> random(0, 63)
	elseif kind == 4 then
		return random_float(random)
	elseif kind <= 7 then
		return random_string(random)
	end
	local t = {}
	if kind == 8 then
		setmetatable(t, core.array_mt)
		for i = 1, random(0, 6) do
			t[i] = json_values.random(random, depth - 1)
		end
	else
		for _ = 1, random(0, 20) do
			t[random_string(random)] = json_values.random(random, depth - 1)
		end
	end
	return t
end

return json_values
