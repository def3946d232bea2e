--- A mailbox's store in the memory of this process, and the reference for what each store does.
---
--- Rows are tables; bodies, tasks, outcomes and errors are JSON texts, so that nobody shares a table.
--- Nothing here waits, so each method is one step that no other handler sees half of. Leases run on the monotonic
--- clock.

local changes = require "lattice.mailbox.changes"
local common = require "lattice.mailbox.common"
local core = require "lattice.core"
local ordered = require "lattice.mailbox.ordered"

local memory = {}

---@class lattice.mailbox.memory
local class = {}
class.__index = class

function memory.new()
	return setmetatable({
		changed = changes.new(),
		threads = {}, -- thread_id → its messages
		messages = {}, -- message_id → message
		delivered = 0, -- deliveries so far
		readers = {}, -- reader → its unread deliveries, ordered
		receivers = {}, -- message_id → { reader = delivery }
		items = {}, -- work_item_id → item
		order = {}, -- all items, as queued
		queues = {}, -- member_id → { open = items that are open, ordered; claimed = { item = true } }
		task_items = {}, -- message_id → item
	}, class)
end

local failure = common.failure

local function now_ms()
	return math.floor(core.wall_ms())
end

local function copy(row)
	local result = {}
	for key, value in pairs(row) do
		result[key] = value
	end
	return result
end

local function copy_message(message)
	local result = copy(message)
	result.to = table.move(message.to, 1, #message.to, 1, {})
	return result
end

function class:version()
	return self.changed:version()
end

function class:wait_change(version, ms, signal)
	self.changed:wait(version, ms, signal)
end

function class:close()
	self.changed:fire()
end

-- ---- messages ----

local function reader_of(self, name)
	local unread = self.readers[name]
	if not unread then
		unread = ordered.new()
		self.readers[name] = unread
	end
	return unread
end

local function insert_message(self, message)
	local thread = self.threads[message.thread_id]
	if not thread then
		thread = {}
		self.threads[message.thread_id] = thread
	end
	message.position = #thread + 1
	message.created_at = now_ms()
	thread[message.position] = message
	self.messages[message.message_id] = message
	return message.position
end

--- Adds a message for each of message.to, or for nobody.
---@return integer? position
---@return table? failure mailbox_full
function class:add_message(message, max_queue)
	for _, name in ipairs(message.to) do
		if reader_of(self, name).count >= max_queue then
			return nil, common.full(table.concat(message.to, ", "), "unread messages", max_queue)
		end
	end
	local position = insert_message(self, message)
	local receivers = {}
	self.receivers[message.message_id] = receivers
	for _, name in ipairs(message.to) do
		local delivery = { message = message, reader = name }
		self.delivered = self.delivered + 1
		delivery.node = reader_of(self, name):insert(self.delivered, delivery)
		receivers[name] = delivery
	end
	self.changed:fire()
	return position
end

local function mark(self, delivery)
	delivery.read_at = now_ms()
	self.readers[delivery.reader]:remove(delivery.node)
end

function class:unread(name, thread_id, limit, takes)
	local found, rows = {}, {}
	for delivery in reader_of(self, name):values() do
		if not thread_id or delivery.message.thread_id == thread_id then
			found[#found + 1] = delivery
			rows[#found] = copy_message(delivery.message)
			if #found == limit then
				break
			end
		end
	end
	if takes then
		for _, delivery in ipairs(found) do
			mark(self, delivery)
		end
	end
	return rows
end

function class:mark_read(name, message_ids)
	local count = 0
	for _, id in ipairs(message_ids) do
		local delivery = (self.receivers[id] or {})[name]
		if delivery and not delivery.read_at then
			mark(self, delivery)
			count = count + 1
		end
	end
	return count
end

function class:message(id)
	local message = self.messages[id]
	return message and copy_message(message)
end

function class:thread(id, after, limit)
	local thread, rows = self.threads[id] or {}, {}
	for i = after + 1, math.min(#thread, after + limit) do
		rows[#rows + 1] = copy_message(thread[i])
	end
	return rows
end

function class:participants(id)
	local seen, list = {}, {}
	local function see(name)
		if not seen[name] then
			seen[name] = true
			list[#list + 1] = name
		end
	end
	for _, message in ipairs(self.threads[id] or {}) do
		see(message.from)
		for _, name in ipairs(message.to) do
			see(name)
		end
	end
	table.sort(list)
	return list
end

function class:receipts(id)
	local message, rows = self.messages[id], {}
	if not message then
		return nil, failure("not_found", "no message %s", id)
	end
	local item = self.task_items[id]
	if item then
		return { { reader = item.member_id, read_at = item.first_claimed_at } }
	end
	for name, delivery in pairs(self.receivers[id]) do
		rows[#rows + 1] = { reader = name, read_at = delivery.read_at }
	end
	table.sort(rows, function(a, b)
		return a.reader < b.reader
	end)
	return rows
end

function class:status(who)
	local counts = { unread = 0 }
	for _, status in ipairs(common.STATUSES) do
		counts[status] = 0
	end
	for name, reader in pairs(self.readers) do
		if not who or name == who then
			counts.unread = counts.unread + reader.count
		end
	end
	for _, item in ipairs(self.order) do
		if not who or item.member_id == who then
			counts[item.status] = counts[item.status] + 1
		end
	end
	return counts
end

-- ---- work items ----

local function queue_of(self, member_id)
	local queue = self.queues[member_id]
	if not queue then
		queue = { open = ordered.new(), claimed = {} }
		self.queues[member_id] = queue
	end
	return queue
end

local OPEN = { queued = true, claimed = true }

local function open_item(self, item)
	item.status = "queued"
	item.node = queue_of(self, item.member_id).open:insert(item.number, item)
end

local function close_item(self, item, status)
	local queue = self.queues[item.member_id]
	queue.open:remove(item.node)
	queue.claimed[item] = nil
	item.status, item.finished_at = status, now_ms()
	self.changed:fire()
end

function class:add_work_item(message, item, max_queue)
	if queue_of(self, item.member_id).open.count >= max_queue then
		return nil, common.full(item.member_id, "open work items", max_queue)
	end
	insert_message(self, message)
	self.receivers[message.message_id] = {}
	item.message_id, item.thread_id, item.from = message.message_id, message.thread_id, message.from
	item.task, item.created_at = message.body, message.created_at
	item.attempt, item.fencing_token, item.available_ms = 0, 0, 0
	self.items[item.work_item_id] = item
	item.number = #self.order + 1
	self.order[item.number] = item
	self.task_items[message.message_id] = item
	open_item(self, item)
	self.changed:fire()
	return true
end

local function row_of(item)
	local row = copy(item)
	row.available_ms, row.first_claimed_at, row.number, row.node = nil, nil, nil, nil
	return row
end

local LOST = '"%d of %d attempts ended without an outcome: the worker died, or let its lease run out"'

-- Sets aside what has used up its attempts; returns whether the item can be claimed now.
local function claimable(self, item, now)
	if not OPEN[item.status] or item.available_ms > now then
		return false
	elseif item.attempt >= item.max_attempts then
		item.error = LOST:format(item.attempt, item.max_attempts)
		close_item(self, item, "set_aside")
		return false
	end
	return true
end

local function is_busy(queue, now)
	for item in pairs(queue.claimed) do
		if item.available_ms > now then
			return true
		end
	end
	return false
end

function class:claim(member_id, lease_ms, serial)
	local queue, now = queue_of(self, member_id), core.now_ms()
	if serial and is_busy(queue, now) then
		return nil
	end
	for item in queue.open:values() do
		if claimable(self, item, now) then
			queue.claimed[item] = true
			item.status, item.attempt, item.fencing_token = "claimed", item.attempt + 1, item.fencing_token + 1
			item.available_ms, item.lease_ms, item.claimed_at = now + lease_ms, lease_ms, now_ms()
			item.first_claimed_at = item.first_claimed_at or item.claimed_at
			return row_of(item)
		end
	end
end

-- The item when this claim of it holds, or nil, failure and the item.
local function held(self, id, token)
	local item = self.items[id]
	if not item then
		return nil, failure("not_found", "no work item %s", id)
	elseif item.status ~= "claimed" or item.fencing_token ~= token then
		return nil, common.stale(item), item
	end
	return item
end

function class:heartbeat(id, token, lease_ms)
	local item, why = held(self, id, token)
	if not item then
		return nil, why
	end
	item.available_ms = core.now_ms() + lease_ms
	return true
end

--- Records an outcome or error. Returns "recorded", or "repeated" where this claim has recorded it before.
function class:finish(id, token, status, field, json)
	local item, why, other = held(self, id, token)
	if item then
		item[field] = json
		close_item(self, item, status)
		return "recorded"
	elseif other and other.status == status and other.fencing_token == token then
		return "repeated"
	end
	return nil, why
end

local function back_to_queue(self, item, delay_ms)
	self.queues[item.member_id].claimed[item] = nil
	item.status, item.available_ms = "queued", core.now_ms() + delay_ms
	self.changed:fire()
end

function class:retry(id, token, json, delay_ms)
	local item, why = held(self, id, token)
	if not item then
		return nil, why
	end
	item.error = json
	if item.attempt >= item.max_attempts then
		close_item(self, item, "set_aside")
		return "set_aside"
	end
	back_to_queue(self, item, delay_ms)
	return "queued"
end

function class:release(id, token, delay_ms)
	local item, why = held(self, id, token)
	if not item then
		return nil, why
	end
	item.attempt = item.attempt - 1
	back_to_queue(self, item, delay_ms)
	return true
end

--- True when it was queued and is cancelled now, false when it wasn't queued.
function class:cancel(id, json)
	local item = self.items[id]
	if not item then
		return nil, failure("not_found", "no work item %s", id)
	elseif item.status ~= "queued" then
		return false
	end
	item.error = json
	close_item(self, item, "cancelled")
	return true
end

local AGAIN = { failed = true, cancelled = true, set_aside = true }

function class:requeue(id)
	local item = self.items[id]
	if not item then
		return nil, failure("not_found", "no work item %s", id)
	elseif not AGAIN[item.status] then
		return nil, common.not_requeued(item.status)
	end
	item.attempt, item.available_ms = 0, 0
	item.error, item.finished_at = nil, nil
	open_item(self, item)
	self.changed:fire()
	return true
end

function class:work_item(id)
	local item = self.items[id]
	return item and row_of(item)
end

function class:work_items(filter, limit)
	local rows = {}
	for _, item in ipairs(self.order) do
		if (not filter.member_id or item.member_id == filter.member_id)
			and (not filter.thread_id or item.thread_id == filter.thread_id)
			and (not filter.status or item.status == filter.status)
		then
			rows[#rows + 1] = row_of(item)
			if #rows == limit then
				break
			end
		end
	end
	return rows
end

-- ---- looking, for those who wait ----

-- Whether a member has something to claim; else after how many milliseconds a lease or a delay ends.
local function look_queue(self, member_id, now)
	local next_ms
	for item in queue_of(self, member_id).open:values() do
		if claimable(self, item, now) then
			return true
		elseif item.available_ms > now then
			next_ms = math.min(next_ms or math.huge, item.available_ms - now)
		end
	end
	return false, next_ms
end

--- The first of these ids that has something to read or to claim, or nil and the milliseconds after which time alone
--- may change that.
function class:look(ids)
	local now, soonest = core.now_ms(), nil
	for _, id in ipairs(ids) do
		local reader = self.readers[id]
		if reader and reader.count > 0 then
			return id
		end
		local has, next_ms = look_queue(self, id, now)
		if has then
			return id
		elseif next_ms then
			soonest = math.min(soonest or math.huge, next_ms)
		end
	end
	return nil, soonest
end

--- True when all of these work items are finished, or nil and the milliseconds after which time alone may change that.
function class:look_finished(ids)
	local now, soonest = core.now_ms(), nil
	for _, id in ipairs(ids) do
		local item = self.items[id]
		if not item then
			return nil, nil, failure("not_found", "no work item %s", id)
		end
		claimable(self, item, now) -- sets aside what died in its last attempt
		if OPEN[item.status] then
			local left = item.available_ms - now
			soonest = math.min(soonest or math.huge, left > 0 and left or math.huge)
		end
	end
	if soonest then
		return nil, soonest
	end
	return true
end

return memory
