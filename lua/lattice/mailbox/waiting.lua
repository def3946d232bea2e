--- The part of a mailbox that waits.

local common = require "lattice.mailbox.common"
local core = require "lattice.core"
local options = require "lattice.options"
local signal = require "lattice.signal"

---@class lattice.mailbox
local methods = {}

local WAIT_MS = options.kind("a number of milliseconds from 0", function(value)
	return type(value) == "number" and value >= 0 and value < math.huge
end)
local WAIT = { timeout_ms = WAIT_MS, signal = signal.kind }

local function check_wait(name, given)
	return options.check("mailbox:" .. name, WAIT, given, 3)
end

-- Asks the store again whenever something may have changed. `ask` gives a value when it is time to stop, or nil and
-- the milliseconds after which time alone may have changed the answer. `is_told`: other processes tell of such changes.
local function wait_until(self, given, is_told, ask)
	local ends = given.timeout_ms and core.now_ms() + given.timeout_ms or math.huge
	local round, last_version = 0, nil
	while true do
		local store, closed = common.store_of(self)
		if not store then
			return nil, closed
		end
		local version = store:version()
		local answer, after_ms, why = ask(store)
		if answer ~= nil then
			return answer
		elseif why then
			return nil, why
		end
		local left = ends - core.now_ms()
		if left <= 0 then
			return nil
		end
		round = version == last_version and round + 1 or 0
		last_version = version
		store:wait_change(version, math.min(left, after_ms or math.huge), given.signal, round, is_told)
	end
end

--- Waits until one of these has a message to read or a work item to claim. Other handlers go on meanwhile.
---@param who string | string[] readers and members
---@param wait_options? table timeout_ms (no limit), signal
---@return string? id the first of them that has something; nil when the time is over
---@return lattice.MailboxFailure? failure
function methods:wait(who, wait_options)
	options.argument("mailbox:wait: who", common.one_or_more, who)
	local given = check_wait("wait", wait_options)
	local ids = common.list_of(who)
	return wait_until(self, given, true, function(store)
		return store:look(ids)
	end)
end

--- Waits until work items are finished: completed, failed, cancelled or set aside.
---@param work_item_ids string | string[]
---@param wait_options? table timeout_ms (no limit), signal
---@return boolean? finished true; nil when the time is over
---@return lattice.MailboxFailure? failure "not_found"
function methods:wait_finished(work_item_ids, wait_options)
	options.argument("mailbox:wait_finished: work_item_ids", common.one_or_more, work_item_ids)
	local given = check_wait("wait_finished", wait_options)
	local ids = common.list_of(work_item_ids)
	return wait_until(self, given, false, function(store)
		return store:look_finished(ids)
	end)
end

return methods
