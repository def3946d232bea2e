--- Agents for specs that talk to a model server.

local lattice = require "lattice"

local agents = {}

agents.KEY = "test-key-0123456789"

--- An agent on a server, without retries unless the options say otherwise.
function agents.on(own, options)
	local all = { api_key = agents.KEY, base_url = own.url, model = "test-model", max_retries = 0 }
	for key, value in pairs(options or {}) do
		all[key] = value
	end
	return lattice.create_bare_agent(all)
end

--- A tool that takes any object and remembers its inputs in `seen`.
function agents.recorder(seen, name)
	return lattice.tool(name or "probe", "Remembers", '{"type":"object"}', function(input)
		seen[#seen + 1] = input
		return "seen"
	end)
end

--- All messages of a query.
function agents.collect(agent, prompt, query_options)
	local messages = {}
	for message in agent:query(prompt, query_options) do
		messages[#messages + 1] = message
	end
	return messages, messages[#messages]
end

return agents
