-- Writes a script as Lua source, so that a spec can hand a table of replies, or a function, to a server in another
-- process. Data is written out; a function goes as its bytecode together with its upvalues, each of which must be
-- data, a function of the same kind, or one of the constructors.

local json = require "scripts.model_server.json"
local reply = require "scripts.model_server.reply"

local source = {}

local PRELUDE = [[
local function fn(code, upvalues)
	local made = load(code, "=spec", "b")
	for i, value in pairs(upvalues) do
		debug.setupvalue(made, i, value)
	end
	return made
end
]]

local MAX_DEPTH = 100

-- Values that both processes have: written by their name.
local names = { [reply] = "reply", [json] = "json", [json.null] = "json.null" }
for name, value in pairs(reply) do
	names[value] = names[value] or "reply." .. name
end
for name, value in pairs(json) do
	names[value] = names[value] or "json." .. name
end

--- Another table that stands for the constructors (a helper that offers them too).
---@param alias table
function source.alias(alias)
	names[alias] = "reply"
end

local write

local function write_function(f, where, depth)
	if debug.getinfo(f, "S").what == "C" then
		error(where .. ": a C function can't go to the server", 0)
	end
	local upvalues, i = {}, 1
	while true do
		local name, value = debug.getupvalue(f, i)
		if not name then
			break
		end
		local text = name == "_ENV" and "_ENV" or write(value, where .. ": upvalue " .. name, depth)
		upvalues[i] = ("[%d]=%s"):format(i, text)
		i = i + 1
	end
	return ("fn(%q,{%s})"):format(string.dump(f), table.concat(upvalues, ","))
end

local function write_table(t, where, depth)
	if json.is_raw(t) then
		return ("json.raw(%q)"):format(t.text)
	end
	local parts = {}
	for key, value in pairs(t) do
		local at = where .. "." .. tostring(key)
		parts[#parts + 1] = ("[%s]=%s"):format(write(key, at, depth), write(value, at, depth))
	end
	local text = "{" .. table.concat(parts, ",") .. "}"
	return json.is_array(t) and "json.array(" .. text .. ")" or text
end

function write(value, where, depth)
	if value ~= nil and names[value] then
		return names[value]
	elseif depth > MAX_DEPTH then
		error(where .. ": nested too deeply, or it contains itself", 0)
	elseif type(value) == "table" then
		return write_table(value, where, depth + 1)
	elseif type(value) == "function" then
		return write_function(value, where, depth + 1)
	elseif type(value) == "userdata" or type(value) == "thread" then
		error(where .. ": a " .. type(value) .. " can't go to the server", 0)
	end
	return ("%q"):format(value)
end

--- Source of a chunk that returns `value`.
---@param value any
---@return string # raises, naming the place, when a part of it can't cross
function source.write(value)
	return PRELUDE .. "return " .. write(value, "script", 0)
end

return source
