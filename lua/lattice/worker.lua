--- Worker handlers: functions that run on threads of the engine's pool, in Lua states of their own.

local core = require "lattice.core"
local errors = require "lattice.errors"
local task = require "lattice.task"

local worker = {}

-- A context that can't cross to another thread (it holds functions, say) stays behind: the worker sees none.
local function start_call(made, input, ctx, timeout_ms)
	local plain = {
		tool_call_id = ctx.tool_call_id,
		tool_name = ctx.tool_name,
		signal = ctx.signal:flag(),
		context = ctx.context,
	}
	local ok, op = pcall(made.call, made, input, plain, timeout_ms)
	if not ok and tostring(op):find("ctx.context", 1, true) then
		plain.context = nil
		ok, op = pcall(made.call, made, input, plain, timeout_ms)
	end
	if not ok then
		error(op, 0)
	end
	return op
end

--- Makes a handler that runs another one on the pool. A call that is aborted is stopped by its flag, in its own
--- state, and counts as running until it has stopped.
---@param name string the tool's name
---@param handler? function the function to run there; its upvalues must be plain data
---@param given table ToolOptions: worker (true, or the module that returns the function), worker_threads, timeout_ms
---@return fun(input: any, ctx: lattice.tool_context): any
function worker.handler(name, handler, given)
	local source = given.worker == true and handler or given.worker
	local ok, made = pcall(core.worker, { source = source, pool_size = given.worker_threads })
	if not ok then
		error(string.format('tool "%s": %s', name, errors.text(made)), 0)
	end
	return function(input, ctx)
		local op <close> = start_call(made, input, ctx, given.timeout_ms)
		task.wait_op(op)
		local good, value, traceback, kind = op:result()
		if good then
			return value
		elseif kind == "abort" then
			error(task.abort_error(ctx.signal.reason), 0)
		end
		error(errors.new("worker_error", errors.text(value), { traceback = traceback }), 0)
	end
end

return worker
