--- Ctrl-C that interrupts an agent instead of ending the program.

local agent = require "lattice.agent"
local core = require "lattice.core"
local options = require "lattice.options"
local task = require "lattice.task"

local AGENT = options.kind("an agent", agent.is_session)

--- Lets Ctrl-C (SIGINT) interrupt the agent's running query, which then ends as `interrupted`. A second Ctrl-C, when
--- the first could not be handled because the script computes, ends the program as usual. One agent at a time.
---@param session lattice.agent
---@return fun() undo gives Ctrl-C its former effect back
local function interrupt_on_sigint(session)
	options.argument("interrupt_on_sigint: agent", AGENT, session)
	local ok, op = pcall(core.sigint)
	if not ok then
		error("interrupt_on_sigint: " .. tostring(op), 2)
	end
	local function wait()
		task.on_ready(op, function()
			op:rearm()
			wait()
			session:interrupt()
		end)
	end
	wait()
	return function()
		task.forget(op)
		op:cancel()
	end
end

return interrupt_on_sigint
