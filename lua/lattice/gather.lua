--- Running many functions at once on the engine's loop.

local errors = require "lattice.errors"
local options = require "lattice.options"
local signal = require "lattice.signal"
local task = require "lattice.task"

local FUNCTIONS = options.list(options.callable, "a list of functions")

local GATHER_OPTIONS = {
	max_concurrency = options.positive_integer,
	signal = signal.kind,
}

--- Runs functions at once (they overlap wherever they wait inside the engine) and waits for all of them.
---
--- One that raises loses nothing of the others. When the signal is aborted, running ones are told to stop and waited
--- for, the rest does not start.
---@param functions (fun(): any)[]
---@param gather_options? table max_concurrency (no limit), signal
---@return table[] results in the order of the functions: {ok = true, value = any} or {ok = false, error = any}
local function gather(functions, gather_options)
	options.argument("lattice.gather: functions", FUNCTIONS, functions)
	local given = options.check("lattice.gather", GATHER_OPTIONS, gather_options)
	local controller = signal.abort_controller()
	local unfollow = controller:follow(given.signal)
	local unfollow_scope = controller:follow(task.scope())
	local scope = task.scope()
	if scope then
		controller.signal.span, controller.signal.chain = scope.span, scope.chain
	end
	local count, running, following = #functions, 0, 1
	local limit = given.max_concurrency or math.huge
	local results, changed = {}, { done = false }

	local function start(index)
		running = running + 1
		task.spawn(functions[index], controller.signal, function(ok, value, traceback)
			running = running - 1
			results[index] = ok and { ok = true, value = value }
				or { ok = false, error = value == nil and errors.text(nil) or value, traceback = traceback }
			task.fire(changed)
		end)
	end

	while true do
		while following <= count and running < limit and not controller.signal.aborted do
			start(following)
			following = following + 1
		end
		if running == 0 then
			break
		end
		task.wait(changed)
		changed = { done = false }
	end
	unfollow()
	unfollow_scope()
	for index = following, count do
		results[index] = { ok = false, error = task.abort_error(controller.signal.reason) }
	end
	return results
end

return gather
