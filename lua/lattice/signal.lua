--- Abort signals: how a script, a timer or another agent tells running work to stop.
---
--- `controller:abort(reason)` sets `controller.signal.aborted`, once; listeners run in the order they came.

local core = require "lattice.core"
local errors = require "lattice.errors"
local options = require "lattice.options"
local task = require "lattice.task"

local signal = {}

---@class lattice.signal
---@field aborted boolean
---@field reason any what abort was called with; "aborted" when it was called with nothing
local signal_class = {}
signal_class.__index = signal_class
signal_class.__name = "lattice.signal"

---@class lattice.abort_controller
---@field signal lattice.signal
local controller_class = {}
controller_class.__index = controller_class
controller_class.__name = "lattice.abort_controller"

local function nothing() end

-- Listeners are a doubly linked list: adding and taking off cost the same however many there are.
local function unlink(owner, entry)
	if entry.before then
		entry.before.after = entry.after
		if entry.after then
			entry.after.before = entry.before
		else
			owner.last = entry.before
		end
		entry.before = nil
	end
end

--- Calls `listener(reason)` when the signal is aborted; at once when it already is.
---@param listener fun(reason: any)
---@return fun() remove takes the listener off again
function signal_class:on_abort(listener)
	if self.aborted then
		listener(self.reason)
		return nothing
	end
	local last = self.last
	local entry = { listener = listener, before = last }
	last.after, self.last = entry, entry
	return function()
		unlink(self, entry)
	end
end

--- Raises `error_abort` when the signal is aborted; for handlers that compute for long.
function signal_class:throw_if_aborted()
	if self.aborted then
		error(task.abort_error(self.reason), 0)
	end
end

--- The flag that other threads can read; made when the first one asks.
---@return userdata
function signal_class:flag()
	local flag = self.shared_flag
	if not flag then
		flag = core.flag()
		self.shared_flag = flag
		if self.aborted then
			flag:set(errors.text(self.reason))
		end
	end
	return flag
end

--- Aborts the signal. A second call does nothing.
---@param reason any what signal.reason shall be
function controller_class:abort(reason)
	local own = self.signal
	if own.aborted then
		return
	end
	own.aborted = true
	own.reason = reason == nil and "aborted" or reason
	if own.shared_flag then
		own.shared_flag:set(errors.text(own.reason))
	end
	local entry = own.first.after
	own.first.after, own.last = nil, own.first
	local failure
	while entry do
		local following = entry.after
		entry.before = nil
		local ok, problem = pcall(entry.listener, own.reason)
		failure = failure or not ok and { value = problem }
		entry = following
	end
	if failure then
		error(failure.value, 0) -- only now: whoever listens behind must hear of it
	end
end

--- Ties this controller to another signal: when that one is aborted, this one is too, with its reason.
---@param other lattice.signal?
---@return fun() unfollow
function controller_class:follow(other)
	if not other then
		return nothing
	end
	return other:on_abort(function(reason)
		self:abort(reason)
	end)
end

--- A new controller with its signal.
---@return lattice.abort_controller
function signal.abort_controller()
	local first = {}
	local own = setmetatable({ aborted = false, first = first, last = first }, signal_class)
	return setmetatable({ signal = own }, controller_class)
end

--- A signal that aborts itself after some time.
---@param ms number milliseconds
---@return lattice.signal
function signal.abort_timeout(ms)
	options.argument("lattice.abort_timeout: ms", options.milliseconds, ms)
	local controller = signal.abort_controller()
	local reason = string.format("timed out after %s ms", tostring(ms))
	task.after(ms, function()
		controller:abort(reason)
	end)
	return controller.signal
end

signal.kind = options.kind("a signal (lattice.abort_controller().signal)", function(value)
	return getmetatable(value) == signal_class
end)

return signal
