--- The part of a mailbox that is about work items: queued, claimed under a lease, finished once.

local common = require "lattice.mailbox.common"
local core = require "lattice.core"
local options = require "lattice.options"

---@class lattice.mailbox
local methods = {}

local STATUS = options.one_of(common.STATUSES)
local ENQUEUE = { from = common.id, thread_id = common.id, max_attempts = options.positive_integer }
local CLAIM = { lease_ms = common.lease, serial = options.boolean }
local HEARTBEAT = { lease_ms = common.lease }
local FAIL = { retry = options.boolean, delay_ms = options.natural }
local RELEASE = { delay_ms = options.natural }
local LIST = { member_id = common.id, thread_id = common.id, status = STATUS, limit = options.positive_integer }

--- Queues a task for a member: a message in a thread and a work item that one worker at a time can claim.
---@param member_id string
---@param work any the task: anything with a JSON form
---@param enqueue_options? table from ("host"), thread_id (a new one), max_attempts (the mailbox's)
---@return table? receipt {status = "accepted", phase = "queued", message_id, work_item_id, thread_id}
---@return lattice.MailboxFailure? failure "mailbox_full"
function methods:enqueue(member_id, work, enqueue_options)
	options.argument("mailbox:enqueue: member_id", common.id, member_id)
	local given = options.check("mailbox:enqueue", ENQUEUE, enqueue_options)
	local body, why = common.encode("mailbox:enqueue: task", work, 2)
	if not body then
		return nil, why
	end
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	local message = {
		message_id = common.new_id "msg_", thread_id = given.thread_id or common.new_id "thr_", kind = "task",
		from = given.from or common.HOST, to = { member_id }, body = body,
	}
	local item = {
		work_item_id = common.new_id "wrk_", member_id = member_id,
		max_attempts = given.max_attempts or self.max_attempts,
	}
	local added
	added, why = store:add_work_item(message, item, self.max_queue)
	if not added then
		return nil, why
	end
	return {
		status = "accepted", phase = "queued", message_id = message.message_id,
		work_item_id = item.work_item_id, thread_id = message.thread_id,
	}
end

--- Claims the oldest work item of a member that nobody works on. The claim is a lease: when it runs out without a
--- heartbeat, the item can be claimed again (attempt + 1); after max_attempts it is set aside instead.
---@param member_id string
---@param claim_options? table lease_ms (the mailbox's), serial (true: nothing while the member has another item
---  claimed)
---@return lattice.WorkItem? item nil when there is nothing to claim
---@return lattice.MailboxFailure? failure
function methods:claim_next(member_id, claim_options)
	options.argument("mailbox:claim_next: member_id", common.id, member_id)
	local given = options.check("mailbox:claim_next", CLAIM, claim_options)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	local row, why = store:claim(member_id, given.lease_ms or self.lease_ms, given.serial or false)
	if not row then
		return nil, why
	end
	return common.to_item(row)
end

local function item_store(self, name, item)
	options.argument(("mailbox:%s: item"):format(name), common.item, item, 3)
	return common.store_of(self)
end

--- Renews the lease of a claimed item, from now on.
---@param item lattice.WorkItem
---@param heartbeat_options? table lease_ms (as at the claim)
---@return boolean? renewed
---@return lattice.MailboxFailure? failure "stale": stop working on it
function methods:heartbeat(item, heartbeat_options)
	local store, closed = item_store(self, "heartbeat", item)
	local given = options.check("mailbox:heartbeat", HEARTBEAT, heartbeat_options)
	if not store then
		return nil, closed
	end
	return store:heartbeat(item.work_item_id, item.fencing_token, given.lease_ms or item.lease_ms or self.lease_ms)
end

local function finish(self, item, status, field, json)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	local how, why = store:finish(item.work_item_id, item.fencing_token, status, field, json)
	if not how then
		return nil, why
	end
	return { status = status, repeated = how == "repeated" }
end

--- Records the outcome of a claimed item. Saying it twice records it once; a worker that has lost the item is told so.
---@param item lattice.WorkItem
---@param outcome any anything with a JSON form
---@return table? done {status = "completed", repeated = boolean}
---@return lattice.MailboxFailure? failure "stale"
function methods:complete(item, outcome)
	options.argument("mailbox:complete: item", common.item, item)
	local json, why = common.encode("mailbox:complete: outcome", outcome == nil and core.null or outcome, 2)
	if not json then
		return nil, why
	end
	return finish(self, item, "completed", "outcome", json)
end

--- Records that a claimed item failed. With `retry` it goes back into the queue while it has attempts left, and is set
--- aside when it has none.
---@param item lattice.WorkItem
---@param what any a text or anything with a JSON form
---@param fail_options? table retry (false), delay_ms (0: how long a retry is held back)
---@return table? done {status = "failed", "queued" or "set_aside", repeated = boolean}
---@return lattice.MailboxFailure? failure "stale"
function methods:fail(item, what, fail_options)
	options.argument("mailbox:fail: item", common.item, item)
	local given = options.check("mailbox:fail", FAIL, fail_options)
	local json, why = common.encode("mailbox:fail: error", what == nil and core.null or what, 2)
	if not json then
		return nil, why
	end
	if not given.retry then
		return finish(self, item, "failed", "error", json)
	end
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	local status
	status, why = store:retry(item.work_item_id, item.fencing_token, json, given.delay_ms or 0)
	if not status then
		return nil, why
	end
	return { status = status, repeated = false }
end

--- Gives a claimed item back without having tried it: the attempt doesn't count.
---@param item lattice.WorkItem
---@param release_options? table delay_ms (0)
---@return boolean? released
---@return lattice.MailboxFailure? failure "stale"
function methods:release(item, release_options)
	local store, closed = item_store(self, "release", item)
	local given = options.check("mailbox:release", RELEASE, release_options)
	if not store then
		return nil, closed
	end
	return store:release(item.work_item_id, item.fencing_token, given.delay_ms or 0)
end

--- Cancels a work item that has not started; one that is claimed or finished stays as it is.
---@param work_item_id string
---@param reason any recorded as its error
---@return table? done {status = what it is now, cancelled = whether this call did it}
---@return lattice.MailboxFailure? failure "not_found"
function methods:cancel(work_item_id, reason)
	options.argument("mailbox:cancel: work_item_id", common.id, work_item_id)
	local json, why = common.encode("mailbox:cancel: reason", reason == nil and "cancelled" or reason, 2)
	if not json then
		return nil, why
	end
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	local cancelled
	cancelled, why = store:cancel(work_item_id, json)
	if cancelled == nil then
		return nil, why
	elseif cancelled then
		return { status = "cancelled", cancelled = true }
	end
	local item
	item, why = self:work_item(work_item_id)
	if not item then
		return nil, why
	end
	return { status = item.status, cancelled = false }
end

--- Puts a failed, cancelled or set-aside item back into its queue, with all its attempts again.
---@param work_item_id string
---@return boolean? requeued
---@return lattice.MailboxFailure? failure "not_found", or "stale" where it is open or completed
function methods:requeue(work_item_id)
	options.argument("mailbox:requeue: work_item_id", common.id, work_item_id)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	return store:requeue(work_item_id)
end

--- One work item, as it is now.
---@param work_item_id string
---@return lattice.WorkItem? item
---@return lattice.MailboxFailure? failure "not_found"
function methods:work_item(work_item_id)
	options.argument("mailbox:work_item: work_item_id", common.id, work_item_id)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	local row, why = store:work_item(work_item_id)
	if not row then
		return nil, why or common.failure("not_found", "no work item %s", work_item_id)
	end
	return common.to_item(row)
end

--- Work items in the order in which they were queued.
---@param list_options? table member_id, thread_id, status, limit (1000)
---@return lattice.WorkItem[]? items
---@return lattice.MailboxFailure? failure
function methods:work_items(list_options)
	local given = options.check("mailbox:work_items", LIST, list_options)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	local rows, why = store:work_items(given, given.limit or common.MAX_LIST)
	if not rows then
		return nil, why
	end
	for _, row in ipairs(rows) do
		common.to_item(row)
	end
	return rows
end

return methods
