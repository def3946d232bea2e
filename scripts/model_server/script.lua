-- Scripts: what decides which reply a request gets. A script is a Lua chunk that returns a function or a table;
-- the constructors of reply.lua are globals in it.

local builtins = require "scripts.model_server.builtins"
local json = require "scripts.model_server.json"
local reply = require "scripts.model_server.reply"

local script = {}

local KEYS = {
	replies = true, reply = true, by_turn = true, routes = true, strict = true, api_key = true, max_body = true,
	record = true, defaults = true,
}

local environment = setmetatable({ reply = reply, json = json }, { __index = function(_, name)
	return reply[name] or _G[name]
end })

-- The n-th reply of a list; running out is an answer that says so and that no client should repeat.
local function from_list(replies, n)
	if replies[n] ~= nil then
		return replies[n]
	end
	local message = ("the script has %d replies, this is request %d"):format(#replies, n)
	return reply.status(500, { ["x-should-retry"] = "false" },
		{ type = "error", error = { type = "api_error", message = message } })
end

local function assistant_turns(request)
	local turns = 0
	for _, message in ipairs(request.body.messages or {}) do
		turns = turns + (message.role == "assistant" and 1 or 0)
	end
	return turns
end

local function chooser(made)
	if made.reply then
		return made.reply
	elseif made.by_turn then
		return function(request)
			return from_list(made.replies, assistant_turns(request) + 1)
		end
	end
	local replies = made.replies or {}
	return function(_, n)
		return from_list(replies, n)
	end
end

--- Makes a script of what a chunk returned.
---@param made function|table
---@return table # `{choose(request, n), routes, strict, api_key, max_body, record, defaults}`
function script.new(made)
	if type(made) == "function" then
		made = { reply = made }
	elseif type(made) == "table" and made.kind then
		made = { replies = { made } }
	elseif type(made) ~= "table" then
		error("a script returns a function, a reply or a table with `replies`, got " .. type(made), 0)
	end
	for key in pairs(made) do
		if not KEYS[key] then
			error(("a script has no option %q"):format(tostring(key)), 0)
		end
	end
	return {
		choose = chooser(made), routes = made.routes or {}, strict = made.strict ~= false, api_key = made.api_key,
		max_body = made.max_body, record = made.record ~= false, defaults = made.defaults or {},
	}
end

--- Loads a script from its source.
---@param source string # Lua source (or a dumped function: it gets the constructors as its environment)
---@param name string # for messages
---@return table # as from script.new; raises when it is none
function script.load(source, name)
	local chunk = assert(load(source, name, "bt", environment))
	return script.new(chunk())
end

--- One of the scripts that come with the server: `demo`, `turns`, `loop:200`, `text:1000000:20`.
---@param spec string
---@return table
function script.builtin(spec)
	return script.new(builtins.open(spec))
end

return script
