--- Waiting for time to pass.

local core = require "lattice.core"
local options = require "lattice.options"
local task = require "lattice.task"

local clock = {}

local DURATION = options.kind("a number of milliseconds from 0", function(value)
	return type(value) == "number" and value >= 0 and value < math.huge
end)

--- Waits; other handlers and agents go on meanwhile. Raises `error_abort` when the running call is stopped.
---@param ms number milliseconds; fractions count
function clock.sleep(ms)
	options.argument("lattice.sleep: ms", DURATION, ms)
	local timer <close> = core.timer(ms)
	task.await(timer)
end

return clock
