--- Coroutines that the engine runs, and the one way in which anything waits.
---
--- A *waitable* is `{done = false}`; `task.fire` makes it done and wakes whoever waits for it. Code in a coroutine
--- of the engine's waits by yielding the waitable to whoever resumed it. Other code (the main chunk, a callback
--- inside table.sort, the script's own coroutine) can't yield to the engine: it turns the loop itself until the
--- waitable is done, and everybody else goes on meanwhile.
---
--- A coroutine runs in a *scope*: the signal that its waits obey. Nested work inherits it.

local core = require "lattice.core"
local errors = require "lattice.errors"

local task = {}

local WAIT = {} -- the tag that an engine coroutine yields with its waitable
task.WAIT = WAIT

task.FOREIGN_YIELD = "yielded to nobody: in code that the engine runs, wait with lattice.sleep, lattice.http, "
	.. "lattice.process or lattice.gather, or yield inside a coroutine of your own"

local engine_coroutines = setmetatable({}, { __mode = "k" })
local scopes = setmetatable({}, { __mode = "k" }) -- coroutine → signal
local on_end = setmetatable({}, { __mode = "k" }) -- task → what to call with (ok, value, traceback)
local by_id = {} -- id of an op → the waitable, or the function to call, when it is ready
local waiting = 0 -- entries in by_id
local ids = {} -- filled by core.turn

local ready, head, tail = {}, 1, 0
local current_scope -- the signal of the code that runs now

--- The value that a cancelled wait raises: an error named "error_abort".
---@param reason any
---@return table
function task.abort_error(reason)
	return errors.new("error_abort", errors.text(reason), { reason = reason })
end

--- The signal that the running code's waits obey, or nil.
---@return lattice.signal?
function task.scope()
	return current_scope
end

--- A coroutine that may yield waitables, with a scope.
---@param fn function
---@param scope? lattice.signal
---@return thread
function task.coroutine(fn, scope)
	local co = coroutine.create(fn)
	engine_coroutines[co] = true
	scopes[co] = scope
	return co
end

--- Resumes a coroutine in its own scope.
function task.resume(co, ...)
	local outer = current_scope
	current_scope = scopes[co]
	local ok, a, b = coroutine.resume(co, ...)
	current_scope = outer
	return ok, a, b
end

local function enqueue(co)
	tail = tail + 1
	ready[tail] = co
end

--- Makes a waitable done and wakes its waiter.
---@param waitable table
function task.fire(waitable)
	if waitable.done then
		return
	end
	waitable.done = true
	local co = waitable.waiter
	if co then
		waitable.waiter = nil
		enqueue(co)
	end
end

local function finish(co, ok, value, trace)
	local callback = on_end[co]
	on_end[co] = nil
	callback(ok, value, trace)
end

-- A handler that swallows its abort and waits again gets the error again, but not for ever: then it is closed.
local REFUSED_WAITS = 100
local GIVE_UP = {}

local function refuse_wait(signal)
	signal.refused_waits = (signal.refused_waits or 0) + 1
	if signal.refused_waits > REFUSED_WAITS and engine_coroutines[coroutine.running()] and coroutine.isyieldable() then
		coroutine.yield(GIVE_UP)
	end
	error(task.abort_error(signal.reason), 0)
end

-- Runs a task until it waits or ends.
local function step(co)
	local ok, tag, value = task.resume(co)
	if not ok then
		local trace = debug.traceback(co, "")
		coroutine.close(co) -- an error alone leaves to-be-closed variables open
		return finish(co, false, tag, trace)
	elseif coroutine.status(co) == "dead" then
		return finish(co, true, tag)
	elseif tag ~= WAIT then
		coroutine.close(co)
		local why = task.FOREIGN_YIELD
		if tag == GIVE_UP then
			why = task.abort_error "it went on waiting after it was stopped"
		end
		return finish(co, false, why)
	elseif value.done then
		enqueue(co)
	else
		value.waiter = co
	end
end

--- Starts a function as a task; it runs at once, up to its first wait.
---@param fn fun(): any
---@param scope? lattice.signal the signal its waits obey
---@param callback fun(ok: boolean, value: any, traceback?: string) called when it has ended
---@return thread
function task.spawn(fn, scope, callback)
	local co = task.coroutine(fn, scope)
	on_end[co] = callback
	step(co)
	return co
end

--- Ends a task that waits: it is closed and not resumed again.
---@param co thread
---@param reason any
function task.abandon(co, reason)
	if on_end[co] and coroutine.status(co) == "suspended" then
		coroutine.close(co)
		finish(co, false, task.abort_error(reason))
	end
end

local function run_ready()
	local last = tail -- those that become ready meanwhile wait for the next round, after a look at the loop
	while head <= last do
		local co = ready[head]
		ready[head] = nil
		head = head + 1
		if coroutine.status(co) == "suspended" then
			step(co)
		end
	end
	if head > tail then
		head, tail = 1, 0
	end
end

local function expect(id, entry)
	if not by_id[id] then
		waiting = waiting + 1
	end
	by_id[id] = entry
end

local function forget(id)
	if by_id[id] then
		by_id[id] = nil
		waiting = waiting - 1
	end
end

local function wake(n)
	for i = 1, n do
		local id = ids[i]
		local entry = by_id[id]
		if entry then
			forget(id)
			if type(entry) == "function" then
				entry()
			else
				task.fire(entry)
			end
		end
	end
end

-- Turns the loop until the waitable is done: for code that can't yield.
local function block(waitable)
	while not waitable.done do
		run_ready()
		if not waitable.done then
			local idle = head > tail
			if idle and waiting == 0 then
				error("lattice: nothing is left that could end this wait", 0)
			end
			wake(core.turn(not idle and 0 or nil, ids))
		end
	end
end

--- Waits until a waitable is done.
---@param waitable table
function task.wait(waitable)
	if not waitable.done and engine_coroutines[coroutine.running()] and coroutine.isyieldable() then
		coroutine.yield(WAIT, waitable)
	end
	block(waitable)
end

-- Cancels an op when the signal is aborted; the listener wakes `slot.waitable`, the wait of the moment.
local function cancel_on_abort(signal, op, slot)
	return signal and signal:on_abort(function()
		slot.aborted = signal
		op:cancel()
		if slot.waitable then
			task.fire(slot.waitable)
		end
	end)
end

--- Waits until an op of the engine is ready, or a signal is aborted: then the op is cancelled.
---@param op userdata with id(), ready(), cancel()
---@param signal? lattice.signal
---@param other? lattice.signal a second one
---@return lattice.signal? aborted the signal that ended the wait; nil when the op is ready
function task.wait_op(op, signal, other)
	local slot = {}
	local remove = cancel_on_abort(signal, op, slot)
	local remove_other = other and other ~= signal and cancel_on_abort(other, op, slot)
	local id = op:id()
	while not slot.aborted and not op:ready() do
		slot.waitable = { done = false }
		expect(id, slot.waitable)
		task.wait(slot.waitable)
	end
	forget(id)
	if remove then
		remove()
	end
	if remove_other then
		remove_other()
	end
	return slot.aborted
end

--- The same for public calls: obeys the running scope too, and raises `error_abort` when it is cancelled.
---@param op userdata
---@param signal? lattice.signal
function task.await(op, signal)
	local aborted = task.wait_op(op, current_scope, signal)
	if aborted then
		refuse_wait(aborted)
	end
end

--- Calls a function once, when the loop turns and an op is ready. The op is kept until then.
---@param op userdata
---@param fn fun()
function task.on_ready(op, fn)
	expect(op:id(), function()
		local _ = op
		fn()
	end)
end

--- Takes back `task.on_ready`.
---@param op userdata
function task.forget(op)
	forget(op:id())
end

--- Calls a function once, some time from now, when the loop turns.
---@param ms number milliseconds
---@param fn fun()
---@return userdata timer for task.cancel_after
function task.after(ms, fn)
	local timer = core.timer(ms)
	task.on_ready(timer, fn)
	return timer
end

--- Takes back what `task.after` started.
---@param timer userdata
function task.cancel_after(timer)
	forget(timer:id())
	timer:cancel()
end

return task
