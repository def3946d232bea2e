--- Mailboxes: messages in threads, and work items that members claim under a lease.
---
--- One interface over three stores: memory, SQLite, PostgreSQL. The files in lua/lattice/mailbox check what callers
--- hand over, turn values into JSON and back, and wait (messages, work_items, waiting); a store keeps rows. What a
--- store has to do: memory.lua.
---
--- Misuse raises. What the world does comes back as `nil, failure`, an error value with `kind`:
---   "mailbox_full"  the reader or member has as much waiting as the mailbox takes
---   "stale"         the work item isn't the caller's any more (finished, or given to another worker)
---   "not_found"     no such message, thread or work item
---   "too_large"     a body, task or outcome over 16 MiB of JSON
---   "database"      the database said no, or could not be reached in time
---   "closed"        the mailbox was closed

local common = require "lattice.mailbox.common"
local options = require "lattice.options"

local BUSY_TIMEOUT_MS = 10000
local CONNECT_TIMEOUT_MS = 10000
local RETRY_MS = 30000

local mailbox = {}

---@alias lattice.MailboxFailure table an error value with kind and message

---@class lattice.Message
---@field message_id string
---@field thread_id string
---@field position integer 1 for the first message of its thread
---@field kind string "message", "reply", "followup" or "task"
---@field from string
---@field to string[]
---@field body any
---@field in_reply_to string?
---@field created_at integer milliseconds since 1970

---@class lattice.WorkItem
---@field work_item_id string
---@field message_id string the message that carries the task
---@field thread_id string
---@field member_id string
---@field from string
---@field task any
---@field status string "queued", "claimed", "completed", "failed", "cancelled" or "set_aside"
---@field attempt integer how often it was claimed; 1 at the first claim
---@field max_attempts integer
---@field fencing_token integer grows with each claim
---@field lease_ms integer?
---@field outcome any what complete recorded
---@field error any what fail, cancel or setting aside recorded
---@field created_at integer milliseconds since 1970
---@field claimed_at integer? of the last claim
---@field finished_at integer?

---@class lattice.mailbox
local mailbox_class = {}
mailbox_class.__index = mailbox_class
mailbox_class.__name = "lattice.mailbox"

for _, part in ipairs { "messages", "work_items", "waiting" } do
	for name, method in pairs(require("lattice.mailbox." .. part)) do
		mailbox_class[name] = method
	end
end

local COMMON_OPTIONS = {
	max_queue = options.positive_integer,
	max_attempts = options.positive_integer,
	lease_ms = common.lease,
}

--- Closes the mailbox: waiting calls return `nil, failure` of kind "closed", later ones too. Closing twice is fine.
function mailbox_class:close()
	local store = self.store
	self.store = nil
	if store then
		store:close()
	end
end

mailbox_class.__close = mailbox_class.close

function mailbox_class:__tostring()
	return ("lattice.mailbox(%s%s)"):format(self.kind, self.store and "" or ", closed")
end

--- A mailbox over a store, with the checked common options.
local function over(kind, store, given)
	return setmetatable({
		kind = kind,
		store = store,
		max_queue = given.max_queue or common.DEFAULTS.max_queue,
		max_attempts = given.max_attempts or common.DEFAULTS.max_attempts,
		lease_ms = given.lease_ms or common.DEFAULTS.lease_ms,
	}, mailbox_class)
end

local function on_database(kind, db, given)
	local store, why = require("lattice.mailbox.database").new(db)
	if not store then
		db:close()
		return nil, why
	end
	return over(kind, store, given)
end

local function shape(own)
	for name, rule in pairs(COMMON_OPTIONS) do
		own[name] = rule
	end
	return own
end

local MEMORY_OPTIONS = shape {}

--- A mailbox in the memory of this process; it is gone with it.
---@param mailbox_options? table max_queue (10000 unread messages and open work items each, for each member),
---  max_attempts (3), lease_ms (30000)
---@return lattice.mailbox
function mailbox.create_memory(mailbox_options)
	local given = options.check("create_memory_mailbox", MEMORY_OPTIONS, mailbox_options)
	return over("memory", require("lattice.mailbox.memory").new(), given)
end

local SQLITE_OPTIONS = shape {
	path = options.text,
	busy_timeout_ms = options.milliseconds,
	synchronous = options.one_of { "full", "normal" },
}

--- A mailbox in a file, for several processes on one machine. Waits until its tables are there.
---@param mailbox_options table path; busy_timeout_ms (10000: how long a change waits for other processes), synchronous
---  ("full": a change survives a loss of power; "normal": of the process only, and is faster), and what
---  create_memory_mailbox takes
---@return lattice.mailbox? mailbox
---@return lattice.MailboxFailure? failure "database"
function mailbox.create_sqlite(mailbox_options)
	local given = options.check("create_sqlite_mailbox", SQLITE_OPTIONS, mailbox_options)
	common.required("create_sqlite_mailbox", given, { "path" }, 2)
	local db, message = require("lattice.store.sqlite").open(given.path, {
		busy_timeout_ms = given.busy_timeout_ms or BUSY_TIMEOUT_MS,
		synchronous = given.synchronous ~= "normal",
	})
	if not db then
		return nil, common.failure("database", "%s", message)
	end
	return on_database("sqlite", db, given)
end

local POSTGRES_OPTIONS = shape {
	dsn = options.secret,
	connect_timeout_ms = options.milliseconds,
	retry_ms = options.milliseconds,
}

--- A mailbox in a PostgreSQL database, for processes on many machines. Waits until it is connected and its tables are
--- there.
---@param mailbox_options table dsn (as libpq takes it: keywords or a URI); connect_timeout_ms (10000), retry_ms (30000:
---  how long a call goes on trying when the connection is lost), and what create_memory_mailbox takes
---@return lattice.mailbox? mailbox
---@return lattice.MailboxFailure? failure "database"
function mailbox.create_postgres(mailbox_options)
	local given = options.check("create_postgres_mailbox", POSTGRES_OPTIONS, mailbox_options)
	common.required("create_postgres_mailbox", given, { "dsn" }, 2)
	local db, message = require("lattice.store.postgres").open(given.dsn, {
		connect_timeout_ms = given.connect_timeout_ms or CONNECT_TIMEOUT_MS,
		retry_ms = given.retry_ms or RETRY_MS,
	})
	if not db then
		return nil, common.failure("database", "%s", message)
	end
	return on_database("postgres", db, given)
end

--- The kind of an option that takes a mailbox.
mailbox.kind = options.kind("a mailbox (lattice.create_memory_mailbox())", function(value)
	return getmetatable(value) == mailbox_class
end)

return mailbox
