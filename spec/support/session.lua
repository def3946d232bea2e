--- A session with built-in tools, for specs that call them as a model would.

local lattice = require "lattice"
local scripted = require "spec.support.scripted"

local session = {}

--- Runs a command of the system and returns its output.
function session.system(command)
	local pipe <close> = assert(io.popen(command, "r"))
	return pipe:read "a"
end

function session.write(path, text)
	local file <close> = assert(io.open(path, "wb"))
	assert(file:write(text))
end

function session.read(path)
	local file <close> = assert(io.open(path, "rb"))
	return file:read "a"
end

--- An empty folder under /tmp.
function session.folder()
	return (session.system("mktemp -d /tmp/lattice-spec-XXXXXX"):gsub("%s+$", ""))
end

function session.remove(folder)
	assert(folder:find "^/tmp/lattice%-spec%-")
	os.execute("rm -rf '" .. folder .. "'")
end

local class = {}
class.__index = class

--- A session in `folder` (options beyond that are the agent's).
function session.open(folder, agent_options)
	local replies, self = {}, { raw = {} }
	local given = {
		model_client = scripted.client(replies),
		workspace = folder and { path = folder },
		hooks = {
			on_tool_result = function(event)
				self.raw[#self.raw + 1] = event.result
			end,
		},
	}
	for key, value in pairs(agent_options or {}) do
		given[key] = value
	end
	self.replies = replies
	self.agent = lattice.create_agent(given)
	return setmetatable(self, class)
end

--- Runs the calls in one batch; returns their results in order.
function class:batch(calls, query_options)
	self.replies[#self.replies + 1] = calls
	self.replies[#self.replies + 1] = "done"
	self.result = self.agent:prompt("go", query_options)
	local messages = self.agent.messages
	return messages[#messages - 1].content
end

local function text_of(result)
	local content = result.content
	return type(content) == "string" and content or content[1].text
end

--- Calls one tool; returns its text, whether it is an error, and what the handler returned.
function class:call(name, input, query_options)
	local results = self:batch({ scripted.call(name, input) }, query_options)
	return text_of(results[1]), results[1].is_error == true, self.raw[#self.raw]
end

--- Runs a command with Bash.
function class:bash(command, timeout_ms, query_options)
	return self:call("Bash", { command = command, timeout_ms = timeout_ms }, query_options)
end

function class:close()
	self.agent:close()
end

class.__close = class.close

return session
