-- JSON for the model server. It has a reader of its own, for two reasons: a server that judges what the engine
-- sends must not read it with the engine's own code, and lua-cjson can't tell `[]` from `{}` after reading, takes
-- invalid UTF-8, and turns integers above 2^53 into doubles: faults that this server is here to see.

local json = {}

local MAX_DEPTH = 2000

local byte, find, match, sub, char = string.byte, string.find, string.match, string.sub, string.char
local format, gsub, concat = string.format, string.gsub, table.concat

local array_mt = { __name = "json.array" }
local raw_mt = { __name = "json.raw" }

--- Stands for JSON null, read and written.
json.null = setmetatable({}, { __name = "json.null", __tostring = function() return "null" end })
json.array_mt = array_mt

--- Marks a table as an array, so that an empty one is written as `[]`.
---@param t? table
---@return table
function json.array(t)
	return setmetatable(t or {}, array_mt)
end

--- JSON text that is written as it is, right or wrong.
---@param text string
---@return table
function json.raw(text)
	return setmetatable({ text = text }, raw_mt)
end

---@return boolean # whether t was read from, or is marked as, a JSON array
function json.is_array(t)
	return getmetatable(t) == array_mt
end

---@return boolean # whether t is a JSON object (a table that is neither array, null nor raw text)
function json.is_object(t)
	return type(t) == "table" and t ~= json.null and getmetatable(t) == nil
end

---@return boolean
function json.is_raw(t)
	return getmetatable(t) == raw_mt
end

-- ---- reading ----

local function fail(pos, what)
	error({ json = format("%s at byte %d", what, pos) }, 0)
end

local SIMPLE = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function hex4(text, pos)
	local digits = match(text, "^%x%x%x%x", pos)
	if not digits then
		fail(pos, "bad \\u escape")
	end
	return tonumber(digits, 16)
end

local function read_escape(text, pos)
	local letter = sub(text, pos, pos)
	if letter ~= "u" then
		return SIMPLE[letter] or fail(pos, "bad escape"), pos + 1
	end
	local code = hex4(text, pos + 1)
	pos = pos + 5
	if code >= 0xD800 and code < 0xDC00 and sub(text, pos, pos + 1) == "\\u" then
		local low = hex4(text, pos + 2)
		if low >= 0xDC00 and low < 0xE000 then
			return utf8.char(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), pos + 6
		end
	end
	if code >= 0xD800 and code < 0xE000 then
		fail(pos, "lone surrogate")
	end
	return utf8.char(code), pos
end

-- pos is behind the opening quote; returns the string and the position behind the closing one
local function read_string(text, pos)
	local stop = find(text, '["\\%c]', pos)
	if stop and byte(text, stop) == 34 then
		return sub(text, pos, stop - 1), stop + 1
	end
	local parts = {}
	while true do
		local c = stop and byte(text, stop)
		if not c then
			fail(#text, "unterminated string")
		elseif c == 127 then -- %c takes DEL as well, JSON does not mind it
			parts[#parts + 1] = sub(text, pos, stop)
			pos = stop + 1
		elseif c < 32 then
			fail(stop, "control character in a string")
		else
			parts[#parts + 1] = sub(text, pos, stop - 1)
			if c == 34 then
				return concat(parts), stop + 1
			end
			parts[#parts + 1], pos = read_escape(text, stop + 1)
		end
		stop = find(text, '["\\%c]', pos)
	end
end

local function read_number(text, pos)
	local int, stop = match(text, "^(%-?%d+)()", pos)
	if not int or find(int, "^%-?0%d") then
		fail(pos, "bad value")
	end
	local frac = match(text, "^%.%d+()", stop) or stop
	local exp = match(text, "^[eE][+-]?%d+()", frac) or frac
	local number = tonumber(sub(text, pos, exp - 1))
	if exp == stop then
		return number, stop -- tonumber keeps what fits int64 as an integer
	end
	return number + 0.0, exp
end

local read_value

local function skip(text, pos)
	return find(text, "[^ \t\r\n]", pos) or #text + 1
end

local function read_array(text, pos, depth)
	local t, n = setmetatable({}, array_mt), 0
	pos = skip(text, pos)
	if byte(text, pos) == 93 then
		return t, pos + 1
	end
	while true do
		n = n + 1
		t[n], pos = read_value(text, pos, depth)
		pos = skip(text, pos)
		local c = byte(text, pos)
		if c == 93 then
			return t, pos + 1
		elseif c ~= 44 then
			fail(pos, "expected , or ]")
		end
		pos = skip(text, pos + 1)
	end
end

local function read_object(text, pos, depth)
	local t = {}
	pos = skip(text, pos)
	if byte(text, pos) == 125 then
		return t, pos + 1
	end
	while true do
		if byte(text, pos) ~= 34 then
			fail(pos, "expected a key")
		end
		local key
		key, pos = read_string(text, pos + 1)
		pos = skip(text, pos)
		if byte(text, pos) ~= 58 then
			fail(pos, "expected :")
		end
		t[key], pos = read_value(text, skip(text, pos + 1), depth)
		pos = skip(text, pos)
		local c = byte(text, pos)
		if c == 125 then
			return t, pos + 1
		elseif c ~= 44 then
			fail(pos, "expected , or }")
		end
		pos = skip(text, pos + 1)
	end
end

local function literal(text, pos, word, value)
	if sub(text, pos, pos + #word - 1) ~= word then
		fail(pos, "bad value")
	end
	return value, pos + #word
end

function read_value(text, pos, depth)
	local c = byte(text, pos)
	if c == 34 then
		return read_string(text, pos + 1)
	elseif c == 123 or c == 91 then
		if depth >= MAX_DEPTH then
			fail(pos, "nested too deeply")
		end
		return (c == 123 and read_object or read_array)(text, pos + 1, depth + 1)
	elseif c == 116 then
		return literal(text, pos, "true", true)
	elseif c == 102 then
		return literal(text, pos, "false", false)
	elseif c == 110 then
		return literal(text, pos, "null", json.null)
	end
	return read_number(text, pos)
end

--- Reads one JSON text (RFC 8259; invalid UTF-8 and lone surrogates are refused; of equal keys the last wins).
---@param text string
---@return any value # nil when it is no JSON
---@return string? message
function json.decode(text)
	if not utf8.len(text) then
		return nil, "invalid UTF-8"
	end
	local ok, value, pos = pcall(read_value, text, skip(text, 1), 0)
	if not ok then
		return nil, type(value) == "table" and value.json or tostring(value)
	end
	pos = skip(text, pos)
	if pos <= #text then
		return nil, format("unexpected text at byte %d", pos)
	end
	return value
end

-- ---- writing ----

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
for code = 0, 31 do
	ESCAPES[char(code)] = ESCAPES[char(code)] or format("\\u%04x", code)
end

--- The inside of a JSON string, without its quotes. Bytes above 127 stay as they are.
---@param text string
---@return string
function json.escape(text)
	if find(text, '[%c"\\]') then
		return (gsub(text, '[%c"\\]', ESCAPES))
	end
	return text
end

local write_value

local function write_object(t, out)
	local keys = {}
	for key in pairs(t) do
		if type(key) ~= "string" then
			error("a JSON object has string keys, got " .. tostring(key), 0)
		end
		keys[#keys + 1] = key
	end
	table.sort(keys)
	for i, key in ipairs(keys) do
		out[#out + 1] = (i == 1 and '{"' or ',"') .. json.escape(key) .. '":'
		write_value(t[key], out)
	end
	out[#out + 1] = #keys == 0 and "{}" or "}"
end

local function write_array(t, out)
	out[#out + 1] = "["
	for i = 1, #t do
		if i > 1 then
			out[#out + 1] = ","
		end
		write_value(t[i], out)
	end
	out[#out + 1] = "]"
end

local function write_number(v)
	if math.type(v) == "integer" then
		return tostring(v)
	elseif v ~= v or v == math.huge or v == -math.huge then
		error("NaN and infinities are no JSON", 0)
	end
	local text = format("%.17g", v)
	return find(text, "[.e]") and text or text .. ".0"
end

function write_value(v, out)
	local kind = type(v)
	if kind == "string" then
		out[#out + 1] = '"' .. json.escape(v) .. '"'
	elseif kind == "number" then
		out[#out + 1] = write_number(v)
	elseif kind == "boolean" then
		out[#out + 1] = tostring(v)
	elseif kind == "table" then
		if v == json.null then
			out[#out + 1] = "null"
		elseif getmetatable(v) == raw_mt then
			out[#out + 1] = v.text
		elseif getmetatable(v) == array_mt or #v > 0 then
			write_array(v, out)
		else
			write_object(v, out)
		end
	else
		error("no JSON for a " .. kind, 0)
	end
end

--- Writes a Lua value as JSON: keys sorted, an empty table is `{}` unless it is marked by `json.array`.
---@param value any
---@return string # raises on what JSON can't hold
function json.encode(value)
	local out = {}
	write_value(value, out)
	return concat(out)
end

return json
