--- Chaining hooks.

local options = require "lattice.options"

local hooks = {}

local HOOKS = {
	on_tool_result = options.callable,
	on_model_request = options.callable,
}

local function list_of(parts, name)
	local list = {}
	for _, part in ipairs(parts) do
		list[#list + 1] = part[name]
	end
	return list
end

-- Each hook sees what the one before it made of the result.
local function chain_tool_result(list)
	return function(event)
		local replacement
		for _, hook in ipairs(list) do
			local answer = hook(event)
			if answer ~= nil then
				replacement = answer
				local seen = {}
				for key, value in pairs(event) do
					seen[key] = value
				end
				seen.result = type(answer) == "string" and { content = answer } or answer
				event = seen
			end
		end
		return replacement
	end
end

local function chain_model_request(list)
	return function(event)
		local changed
		for _, hook in ipairs(list) do
			local answer = hook(event)
			if answer ~= nil then
				changed = changed or {}
				changed.messages = answer.messages or changed.messages
				changed.system = answer.system or changed.system
				event = {
					turn = event.turn,
					messages = changed.messages or event.messages,
					system = changed.system or event.system,
				}
			end
		end
		return changed
	end
end

--- Puts several hooks into one; they run in the given order, each on what the one before returned.
---@param parts table[] hooks: {on_tool_result = function?, on_model_request = function?}
---@return table hooks
function hooks.create_composite(parts)
	options.argument("create_composite_agent_hooks: hooks", options.list(options.table, "a list of hooks"), parts)
	for index, part in ipairs(parts) do
		options.check(string.format("create_composite_agent_hooks: hooks[%d]", index), HOOKS, part)
	end
	local results, requests = list_of(parts, "on_tool_result"), list_of(parts, "on_model_request")
	return {
		on_tool_result = #results > 0 and chain_tool_result(results) or nil,
		on_model_request = #requests > 0 and chain_model_request(requests) or nil,
	}
end

return hooks
