--- A mailbox's store on a database: what memory.lua does, as lists of statements (sql.lua), each one transaction.
---
--- The database below is one of lua/lattice/store: it has run, close and dialect, and calls `on_notice` when another
--- process has sent something (PostgreSQL). Where it has no notices (SQLite), waiting calls look again by themselves,
--- soon at first, then less and less often.

local changes = require "lattice.mailbox.changes"
local common = require "lattice.mailbox.common"
local core = require "lattice.core"
local schema = require "lattice.store.schema"
local sql = require "lattice.mailbox.sql"

local failure = common.failure
local null = core.null

local FIRST_LOOK_MS, LAST_LOOK_MS = 2, 100 -- how long a wait sleeps before it looks again, where nobody tells it
local LONGEST_SLEEP_MS = 30000 -- and where somebody does: notices may be lost with a connection

local database = {}

---@class lattice.mailbox.database
local class = {}
class.__index = class

local function translated(list, dialect)
	local result = {}
	for i, text in ipairs(list) do
		result[i] = sql.translate(text, dialect)
	end
	return result
end

local function as_failure(why)
	return failure("database", "%s", why.message)
end

--- A store on a database, whose tables it makes or brings up to date.
---@param db table one of lua/lattice/store
---@return lattice.mailbox.database? store
---@return lattice.MailboxFailure? failure
function database.new(db)
	local steps = {}
	for i, step in ipairs(sql.SCHEMA) do
		steps[i] = translated(step, db.dialect)
	end
	local done, why = schema.migrate(db, "mailbox", steps)
	if not done then
		return nil, as_failure(why)
	end
	local self = setmetatable({ db = db, changed = changes.new(), texts = {} }, class)
	db.on_notice = function()
		self.changed:fire()
	end
	return self
end

-- One transaction of {name or text of a statement, parameter…}.
local function run(self, writes, ...)
	local statements = { ... }
	for _, statement in ipairs(statements) do
		local name = statement[1]
		local text = self.texts[name]
		if not text then
			text = sql.translate(sql[name] or name, self.db.dialect)
			self.texts[name] = text
		end
		statement[1] = text
		for i = 2, #statement do
			if statement[i] == false then
				statement[i] = null
			end
		end
	end
	local results, why = self.db:run(statements, writes)
	if results then
		return results
	elseif self.closed then -- whatever the database made of that
		return nil, failure("closed", "the mailbox is closed")
	end
	return nil, as_failure(why)
end

local function to_row(columns, fields)
	local row = {}
	for i, name in ipairs(fields) do
		local value = columns[i]
		if value ~= null then
			row[name] = value
		end
	end
	return row
end

local function to_message(columns)
	local row = to_row(columns, sql.MESSAGE_FIELDS)
	row.to = setmetatable(core.json_decode(row.to), nil)
	return row
end

local function to_item(columns)
	return to_row(columns, sql.ITEM_FIELDS)
end

local function to_rows(results, convert)
	local rows = {}
	for i, columns in ipairs(results) do
		rows[i] = convert(columns)
	end
	return rows
end

-- Statements that tell other processes; where a database has no such thing, they look by themselves.
local function told(self, who, ...)
	local statements = { ... }
	if self.db.dialect.notify then
		statements[#statements + 1] = { self.db.dialect.notify, who }
	end
	return table.unpack(statements)
end

function class:version()
	if self.db.look_for_notices then
		self.db:look_for_notices()
	end
	return self.changed:version()
end

-- Takes the database's attention back with the last one who waits.
local guard = {}
guard.__index = guard
function guard:__close()
	if not next(self.changed.waiting) then
		self.db:ignore()
	end
end

--- `round` counts the looks since something changed; `told` is false for what nobody tells about.
function class:wait_change(version, ms, signal, round, is_told)
	local longest = LONGEST_SLEEP_MS
	if not (is_told and self.db.dialect.notify) then
		longest = math.min(FIRST_LOOK_MS * 2 ^ math.min(round, 10), LAST_LOOK_MS)
	end
	local _ <close> = self.db.attend and setmetatable({ db = self.db, changed = self.changed }, guard) or nil
	if self.db.attend then
		self.db:attend()
	end
	self.changed:wait(version, math.min(ms, longest), signal)
end

function class:close()
	self.closed = true
	self.changed:fire()
	self.db:close()
end

-- ---- messages ----

function class:add_message(message, max_queue)
	local to = core.json_encode(message.to)
	local id = message.message_id
	local results, why = run(self, true, told(self, to,
		{ "touch_thread_for_readers", message.thread_id, id, to, max_queue },
		{ "insert_message", id, message.thread_id, message.kind, message.from, to, message.body,
			message.in_reply_to or false },
		{ "insert_deliveries", id, to },
		{ "position", id }))
	if not results then
		return nil, why
	end
	local row = results[4][1]
	if not row then
		return nil, common.full(table.concat(message.to, ", "), "unread messages", max_queue)
	end
	self.changed:fire()
	return row[1]
end

function class:unread(reader, thread_id, limit, takes)
	local results, why
	if takes then
		local token = common.new_id ""
		results, why = run(self, true, { "take_unread", reader, thread_id or false, limit, token }, { "taken", token })
	else
		results, why = run(self, false, { "unread", reader, thread_id or false, limit })
	end
	if not results then
		return nil, why
	end
	return to_rows(results[#results], to_message)
end

function class:mark_read(reader, message_ids)
	local results, why = run(self, true, { "mark_read", reader, core.json_encode(message_ids) })
	if not results then
		return nil, why
	end
	return #results[1]
end

-- The first row of the first result, or nil.
local function one(self, convert, ...)
	local results, why = run(self, false, ...)
	if not results then
		return nil, why
	end
	local row = results[1][1]
	return row and convert(row)
end

local function many(self, convert, ...)
	local results, why = run(self, false, ...)
	if not results then
		return nil, why
	end
	return to_rows(results[1], convert)
end

function class:message(id)
	return one(self, to_message, { "message", id })
end

function class:thread(id, after, limit)
	return many(self, to_message, { "thread", id, after, limit })
end

local function first_column(columns)
	return columns[1]
end

function class:participants(id)
	local names, why = many(self, first_column, { "participants", id })
	if not names then
		return nil, why
	end
	table.sort(names)
	return names
end

function class:receipts(id)
	local results, why = run(self, false, { "position", id }, { "receipts", id })
	if not results then
		return nil, why
	elseif #results[1] == 0 then
		return nil, failure("not_found", "no message %s", id)
	end
	local rows = to_rows(results[2], function(columns)
		return to_row(columns, { "reader", "read_at" })
	end)
	table.sort(rows, function(a, b)
		return a.reader < b.reader
	end)
	return rows
end

function class:status(who)
	local results, why = run(self, false, { "count_unread", who or false }, { "count_items", who or false })
	if not results then
		return nil, why
	end
	local counts = { unread = results[1][1][1] }
	for _, status in ipairs(common.STATUSES) do
		counts[status] = 0
	end
	for _, row in ipairs(results[2]) do
		counts[row[1]] = row[2]
	end
	return counts
end

-- ---- work items ----

function class:add_work_item(message, item, max_queue)
	local to = core.json_encode(message.to)
	local id = message.message_id
	local results, why = run(self, true, told(self, to,
		{ "touch_thread_for_member", message.thread_id, id, item.member_id, max_queue },
		{ "insert_message", id, message.thread_id, message.kind, message.from, to, message.body, false },
		{ "insert_item", item.work_item_id, id, item.member_id, item.max_attempts },
		{ "position", id }))
	if not results then
		return nil, why
	elseif not results[4][1] then
		return nil, common.full(item.member_id, "open work items", max_queue)
	end
	self.changed:fire()
	return true
end

function class:claim(member_id, lease_ms, serial)
	local token = common.new_id ""
	local statements = {
		{ "set_aside_of_member", member_id },
		{ serial and "claim_serial" or "claim", member_id, token, lease_ms },
		{ "claimed", member_id, token },
	}
	if serial and self.db.dialect.lock_name then
		table.insert(statements, 1, { self.db.dialect.lock_name, member_id })
	end
	local results, why = run(self, true, table.unpack(statements))
	if not results then
		return nil, why
	end
	local row = results[#results][1]
	return row and to_item(row)
end

-- Runs an update of a claimed item. Returns its first column, or nil, failure and the state of the item.
local function update_held(self, id, token, name, ...)
	local results, why = run(self, true, { name, id, token, ... }, { "state", id })
	if not results then
		return nil, why
	elseif results[1][1] then
		return results[1][1][1]
	end
	local state = results[2][1]
	if not state then
		return nil, failure("not_found", "no work item %s", id)
	end
	local item = { status = state[1], attempt = state[2], fencing_token = state[3] }
	return nil, common.stale(item), item
end

function class:heartbeat(id, token, lease_ms)
	local status, why = update_held(self, id, token, "heartbeat", lease_ms)
	return status and true, why
end

function class:finish(id, token, status, field, json)
	local outcome, wrong = field == "outcome" and json, field == "error" and json
	local done, why, item = update_held(self, id, token, "finish", status, outcome, wrong)
	if done then
		self.changed:fire()
		return "recorded"
	elseif item and item.status == status and item.fencing_token == token then
		return "repeated"
	end
	return nil, why
end

-- Puts the item back under the queue's eyes.
local function update_and_tell(self, id, token, name, ...)
	local status, why = update_held(self, id, token, name, ...)
	if not status then
		return nil, why
	end
	self.changed:fire()
	if self.db.dialect.notify then
		run(self, true, { self.db.dialect.notify, core.json_encode { id } }) -- others look anyway, only later
	end
	return status
end

function class:retry(id, token, json, delay_ms)
	return update_and_tell(self, id, token, "retry", json, delay_ms)
end

function class:release(id, token, delay_ms)
	local status, why = update_and_tell(self, id, token, "release", delay_ms)
	return status and true, why
end

function class:cancel(id, json)
	local results, why = run(self, true, { "cancel", id, json }, { "state", id })
	if not results then
		return nil, why
	elseif not results[2][1] then
		return nil, failure("not_found", "no work item %s", id)
	end
	self.changed:fire()
	return #results[1] > 0
end

function class:requeue(id)
	local results, why = run(self, true, told(self, core.json_encode { id }, { "requeue", id }, { "state", id }))
	if not results then
		return nil, why
	elseif not results[2][1] then
		return nil, failure("not_found", "no work item %s", id)
	elseif #results[1] == 0 then
		return nil, common.not_requeued(results[2][1][1])
	end
	self.changed:fire()
	return true
end

function class:work_item(id)
	return one(self, to_item, { "item", id })
end

function class:work_items(filter, limit)
	return many(self, to_item,
		{ "items", filter.member_id or false, filter.thread_id or false, filter.status or false, limit })
end

-- ---- looking, for those who wait ----

function class:look(ids)
	local list = core.json_encode(ids)
	local results, why = run(self, false, { "look", list })
	if not results then
		return nil, nil, why
	end
	local has, soonest, dead = {}, nil, false
	for _, row in ipairs(results[1]) do
		has[row[1]] = row[2] == 1
		soonest = row[3] ~= null and math.min(soonest or math.huge, row[3]) or soonest
		dead = dead or row[4] == 1
	end
	if dead then
		run(self, true, { "set_aside_of_members", list })
		self.changed:fire()
	end
	for _, id in ipairs(ids) do
		if has[id] then
			return id
		end
	end
	return nil, soonest
end

function class:look_finished(ids)
	local list = core.json_encode(ids)
	local results, why = run(self, false, { "look_items", list })
	if not results then
		return nil, nil, why
	end
	local found, open, dead = table.unpack(results[1][1])
	if found < #ids then
		return nil, nil, failure("not_found", "%d of %d work items are unknown", #ids - found, #ids)
	elseif dead > 0 then
		run(self, true, { "set_aside_items", list })
		self.changed:fire()
		open = open - dead
	end
	if open == 0 then
		return true
	end
	return nil
end

return database
