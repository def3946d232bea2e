--- Waiting for a store to change: a version that grows, and those who wait for the next one.

local core = require "lattice.core"
local task = require "lattice.task"

---@class lattice.mailbox.changes
local class = {}
class.__index = class

local changes = {}

---@return lattice.mailbox.changes
function changes.new()
	return setmetatable({ count = 0, waiting = {} }, class)
end

---@return integer
function class:version()
	return self.count
end

--- Something changed: everybody who waits looks again.
function class:fire()
	self.count = self.count + 1
	local waiting = self.waiting
	self.waiting = {}
	for waitable in pairs(waiting) do
		task.fire(waitable)
	end
end

-- Takes everything back that a wait has put up, also when its coroutine is closed.
local guard = {}
guard.__index = guard
function guard:__close()
	self.owner.waiting[self.waitable] = nil
	if self.timer then
		task.cancel_after(self.timer)
	end
	for _, remove in ipairs(self.removes) do
		remove()
	end
end

local function listen(own, signal)
	if signal then
		own.removes[#own.removes + 1] = signal:on_abort(function()
			task.fire(own.waitable)
		end)
	end
end

--- Waits until the version is another one than `version`, or that time is over. Raises `error_abort` like each wait.
---@param version integer
---@param ms number
---@param signal? lattice.signal
function class:wait(version, ms, signal)
	if self.count == version then
		local waitable = { done = false }
		local own <close> = setmetatable({ owner = self, waitable = waitable, removes = {} }, guard)
		self.waiting[waitable] = true
		if ms < math.huge then
			own.timer = task.after(math.max(ms, 0), function()
				task.fire(waitable)
			end)
		end
		listen(own, task.scope())
		listen(own, signal)
		task.wait(waitable)
	end
	if (signal and signal.aborted) or (task.scope() and task.scope().aborted) then
		local timer <close> = core.timer(0)
		task.await(timer, signal) -- raises
	end
end

return changes
