--- Who may touch which files now, among all agents of this Lua state: a read waits for earlier writes of the same
--- file or of a folder around it, a write for earlier reads and writes. First come, first served, so nobody starves;
--- a call enters once, with all it needs, so nobody waits for each other.

local task = require "lattice.task"

local file_access = {}

---@class lattice.file_set paths, absolute and canonical; a folder stands for all that is beneath it
---@field read? string[]
---@field write? string[]

local first, last -- a doubly linked list of those that are in or wait, in the order they came

local function covers(folder, path)
	return folder == path
		or folder == "/"
		or #path > #folder and path:sub(1, #folder) == folder and path:byte(#folder + 1) == 47 -- "/"
end

local function overlap(paths, others)
	for _, path in ipairs(paths) do
		for _, other in ipairs(others) do
			if covers(path, other) or covers(other, path) then
				return true
			end
		end
	end
	return false
end

local function conflict(a, b)
	return overlap(a.write, b.write) or overlap(a.write, b.read) or overlap(a.read, b.write)
end

local function must_wait(entry)
	local other = first
	while other ~= entry do
		if conflict(entry, other) then
			return true
		end
		other = other.after
	end
	return false
end

local function wake_all()
	local entry = first
	while entry do
		if entry.waitable and not must_wait(entry) then
			task.fire(entry.waitable)
		end
		entry = entry.after
	end
end

---@class lattice.file_access
local entry_class = { __name = "lattice.file_access" }
entry_class.__index = entry_class

--- Leaves; whoever waited for it may go on.
function entry_class:__close()
	if self.remove then
		self.remove()
	end
	if self.before then
		self.before.after = self.after
	else
		first = self.after
	end
	if self.after then
		self.after.before = self.before
	else
		last = self.before
	end
	wake_all()
end

--- Waits until nobody who came earlier is in the way.
---@param signal lattice.signal ends the wait
---@return boolean aborted by the signal: nothing may be touched
function entry_class:wait(signal)
	self.remove = signal:on_abort(function()
		if self.waitable then
			task.fire(self.waitable)
		end
	end)
	while not signal.aborted and must_wait(self) do
		self.waitable = { done = false }
		task.wait(self.waitable)
		self.waitable = nil
	end
	return signal.aborted
end

--- Queues up, once for all that a call needs. Keep the entry in a to-be-closed variable: closing it leaves.
---@param set lattice.file_set
---@return lattice.file_access
function file_access.queue(set)
	local entry = setmetatable({ read = set.read or {}, write = set.write or {}, before = last }, entry_class)
	if last then
		last.after = entry
	else
		first = entry
	end
	last = entry
	return entry
end

return file_access
