--- The tools of one agent: their names, the JSON that a model gets, and the hint about overlap.

local core = require "lattice.core"

local toolset = {}

---@class lattice.toolset
---@field list lattice.tool_definition[]
---@field by_name table<string, lattice.tool_definition>
---@field json? string the value of a request's "tools"; nil when there are none

local HINT = "You may call several tools in one reply. Calls in one reply can run at the same time, so put calls "
	.. "that do not depend on each other into the same reply. When a call needs the result of another one, or must "
	.. "see its effect, wait for that result and make the call in a later reply."

local function lazily(list)
	local descriptions
	return function()
		if not descriptions then
			descriptions = {}
			for index, definition in ipairs(list) do
				descriptions[index] = core.json_decode(definition.wire)
			end
		end
		return descriptions
	end
end

--- Puts tools together; two tools of one name are an error.
---@param prefix string for the error
---@param list lattice.tool_definition[]
---@param level integer whose line the error names
---@return lattice.toolset
function toolset.new(prefix, list, level)
	local by_name, wires = {}, {}
	for index, definition in ipairs(list) do
		if by_name[definition.name] then
			local text = '%s: tools[%d]: there is already a tool named "%s"; names must be unique'
			error(string.format(text, prefix, index, definition.name), level + 1)
		end
		by_name[definition.name] = definition
		wires[index] = definition.wire
	end
	return {
		list = list,
		by_name = by_name,
		json = #list > 0 and "[" .. table.concat(wires, ",") .. "]" or nil,
		descriptions = lazily(list),
	}
end

local function can_overlap(definition, mode)
	return mode == "all"
		or definition.is_concurrency_safe ~= nil
		or (mode == "resources" and definition.resources ~= nil)
end

--- What the model is told about several calls in one reply; nil when nothing could overlap.
---@param tools lattice.toolset
---@param concurrency table mode, max_concurrency
---@return string?
function toolset.hint(tools, concurrency)
	if concurrency.mode == "sequential" or concurrency.max_concurrency == 1 then
		return nil
	end
	for _, definition in ipairs(tools.list) do
		if can_overlap(definition, concurrency.mode) then
			return HINT
		end
	end
end

return toolset
