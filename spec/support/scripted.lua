--- A model client for specs that need no wire: it answers with the given replies, one after the other.

local scripted = {}

--- A tool_use block.
function scripted.call(name, input, id)
	scripted.count = (scripted.count or 0) + 1
	return { type = "tool_use", id = id or "toolu_" .. scripted.count, name = name, input = input or {} }
end

--- A client; each reply is a text, a list of blocks, or a whole message. `client.requests` records what it was asked.
function scripted.client(replies)
	local client = { requests = {} }
	function client.create(request)
		client.requests[#client.requests + 1] = request
		local reply = replies[#client.requests]
		assert(reply, "the script has no reply left")
		if type(reply) == "string" then
			return { content = { { type = "text", text = reply } }, stop_reason = "end_turn" }
		elseif reply.content then
			return reply
		end
		return { content = reply, stop_reason = "tool_use" }
	end
	return client
end

--- The results of one batch: an agent whose model makes these calls in one reply and then says "done".
---@return table[] results the tool_result blocks
---@return table result
---@return table agent
function scripted.run(calls, options, query_options)
	local lattice = require "lattice"
	options.model_client = scripted.client { calls, "done", "done", "done" }
	local agent = lattice.create_bare_agent(options)
	local result = agent:prompt("go", query_options)
	return agent.messages[3].content, result, agent
end

return scripted
