--- Worker handlers: functions that run on threads of the engine's pool, in Lua states of their own.

local core = require "lattice.core"
local errors = require "lattice.errors"
local task = require "lattice.task"

local worker = {}

-- A cancelled worker is stopped by a hook in its own state; until then the call counts as running.
local function await_stopped(op, own_signal)
	local aborted = task.wait_op(op, own_signal)
	if aborted then
		task.wait_op(op)
	end
	return aborted
end

--- Makes a handler that runs another one on the pool.
---@param name string the tool's name
---@param handler? function the function to run there; its upvalues must be plain data
---@param source true|string true, or the module that returns the function
---@param timeout_ms? number
---@return fun(input: any, ctx: lattice.tool_context): any
function worker.handler(name, handler, source, timeout_ms)
	local made, problem = core.worker { source = source == true and handler or source }
	if not made then
		error(string.format('tool "%s": worker: %s', name, problem), 0)
	end
	return function(input, ctx)
		local plain = { tool_call_id = ctx.tool_call_id, tool_name = ctx.tool_name, context = ctx.context }
		local op <close> = made:call(input, plain, timeout_ms, ctx.signal:flag())
		local aborted = await_stopped(op, ctx.signal)
		if aborted then
			error(task.abort_error(aborted.reason), 0)
		end
		local ok, value, traceback = op:result()
		if not ok then
			error(errors.new("worker_error", errors.text(value), { traceback = traceback }), 0)
		end
		return value
	end
end

return worker
