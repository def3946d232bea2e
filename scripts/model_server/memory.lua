-- What the server has sent and must recognise when it comes back in a history: signatures that a script chose itself,
-- redacted data, types of blocks that the API doesn't know, and the thinking that went before a tool call.
-- What the server signs by its own key needs no memory (signature.lua).

local memory = {}
memory.__index = memory

local KNOWN = { text = true, tool_use = true, thinking = true, redacted_thinking = true }

function memory.new()
	return setmetatable({ signatures = {}, redacted = {}, block_types = {}, thinking_before = {} }, memory)
end

--- Notes the blocks of a message that is about to be sent.
---@param entries table # list of `{block = …}`
function memory:sent(entries)
	local thinking = {}
	for _, entry in ipairs(entries) do
		local block = entry.block
		if block.type == "thinking" then
			self.signatures[block.signature] = block.thinking
			thinking[#thinking + 1] = block.signature
		elseif block.type == "redacted_thinking" then
			self.redacted[block.data] = true
			thinking[#thinking + 1] = block.data
		elseif block.type == "tool_use" then
			self.thinking_before[block.id] = #thinking > 0 and { table.unpack(thinking) } or nil
		elseif not KNOWN[block.type] then
			self.block_types[block.type] = true
		end
	end
end

return memory
