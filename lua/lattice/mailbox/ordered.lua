--- A list kept in the order of a number, from which anything can be taken in one step.

local ordered = {}

---@class lattice.mailbox.ordered
local class = {}
class.__index = class

---@return lattice.mailbox.ordered
function ordered.new()
	local ends = {}
	ends.before, ends.after = ends, ends
	return setmetatable({ ends = ends, count = 0 }, class)
end

--- Adds a value behind all whose number isn't larger. The newest numbers, which are the usual ones, cost one step.
---@param number integer
---@param value any
---@return table node for remove
function class:insert(number, value)
	local before = self.ends.before
	while before ~= self.ends and before.number > number do
		before = before.before
	end
	local node = { number = number, value = value, before = before, after = before.after }
	before.after.before, before.after = node, node
	self.count = self.count + 1
	return node
end

---@param node table
function class:remove(node)
	node.before.after, node.after.before = node.after, node.before
	self.count = self.count - 1
end

--- The values in order; the one at hand may be removed meanwhile.
---@return fun(): any
function class:values()
	local node = self.ends.after
	return function()
		if node ~= self.ends then
			local value = node.value
			node = node.after
			return value
		end
	end
end

return ordered
