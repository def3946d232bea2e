--- What the parts of a mailbox share: kinds of arguments, JSON, failures.

local core = require "lattice.core"
local errors = require "lattice.errors"
local options = require "lattice.options"

local common = {}

local ID_BYTES = 12
local MAX_BODY_BYTES = 16 * 1024 * 1024

common.DEFAULTS = { max_queue = 10000, max_attempts = 3, lease_ms = 30000 }
common.HOST = "host" -- who sends where nobody is named
common.MAX_LIST = 1000 -- rows that a list gives where no limit is named

-- ---- kinds of arguments ----

common.id = options.kind("a name of 1 to 200 bytes of UTF-8 without control characters", function(value)
	return type(value) == "string" and #value > 0 and #value <= 200 and not value:find "%c" and utf8.len(value) ~= nil
end)
common.ids = options.kind("a list of at least one name", function(value)
	return type(value) == "table" and #value > 0 and options.list(common.id, "").test(value)
end)
common.one_or_more = options.kind("a name, or a list of names", function(value)
	return common.id.test(value) or common.ids.test(value)
end)
common.lease = options.kind("a whole number of milliseconds from 1", options.positive_integer.test)
common.item = options.kind("a claimed work item", function(value)
	return type(value) == "table" and common.id.test(value.work_item_id) and math.type(value.fencing_token) == "integer"
end)

--- Raises when one of these options was left out.
---@param prefix string
---@param given table
---@param names string[]
---@param level integer whose line the error names: 1 the caller's
function common.required(prefix, given, names, level)
	for _, name in ipairs(names) do
		if given[name] == nil then
			error(("%s: %s: expected a value, got nil"):format(prefix, name), level + 1)
		end
	end
end

--- A name or a list of names as a list without repetitions.
---@param one_or_more string | string[]
---@return string[]
function common.list_of(one_or_more)
	if type(one_or_more) == "string" then
		return { one_or_more }
	end
	local list, seen = {}, {}
	for _, name in ipairs(one_or_more) do
		if not seen[name] then
			seen[name] = true
			list[#list + 1] = name
		end
	end
	return list
end

-- ---- failures, ids, JSON ----

--- A failure as stores and mailboxes return it.
---@param kind string
---@param message string a format for what follows
---@return lattice.MailboxFailure
function common.failure(kind, message, ...)
	return errors.new(kind, message:format(...), { kind = kind })
end
local failure = common.failure

--- Everything that a work item can be.
common.STATUSES = { "queued", "claimed", "completed", "failed", "cancelled", "set_aside" }

--- The failures that stores share.
---@param who string
---@param what string
---@param limit integer
---@return lattice.MailboxFailure
function common.full(who, what, limit)
	return failure("mailbox_full", "%s: %d %s wait already: wait until there are less, or give the mailbox a larger "
		.. "max_queue", who, limit, what)
end

---@param item table status, attempt
---@return lattice.MailboxFailure
function common.stale(item)
	return failure("stale", "this claim is over: the work item is %s (attempt %d)", item.status, item.attempt)
end

---@param status string
---@return lattice.MailboxFailure
function common.not_requeued(status)
	return failure("stale", "the work item is %s: expected failed, cancelled or set_aside", status)
end

--- An id that no other process makes.
---@param prefix string
---@return string
function common.new_id(prefix)
	return prefix .. core.random_hex(ID_BYTES)
end

--- The JSON of a value. Raises for values that have none: that is misuse.
---@param what string
---@param value any
---@param level integer whose line the error names: 1 the caller's
---@return string? json
---@return lattice.MailboxFailure? failure "too_large"
function common.encode(what, value, level)
	local ok, json = pcall(core.json_encode, value)
	if not ok then
		error(("%s: %s"):format(what, json), level + 1)
	elseif #json > MAX_BODY_BYTES then
		return nil, failure("too_large", "%s: expected at most %d bytes of JSON, got %d", what, MAX_BODY_BYTES, #json)
	end
	return json
end

local function decoded(json)
	if json ~= nil then
		return (core.json_decode(json))
	end
end

--- A store's row as a message.
---@param row table
---@return lattice.Message
function common.to_message(row)
	row.body = decoded(row.body)
	return row
end

--- A store's row as a work item.
---@param row table
---@return lattice.WorkItem
function common.to_item(row)
	row.task, row.outcome, row.error = decoded(row.task), decoded(row.outcome), decoded(row.error)
	return row
end

--- The store of a mailbox that is open.
---@return table? store
---@return lattice.MailboxFailure? failure "closed"
function common.store_of(mailbox)
	local store = mailbox.store
	if store then
		return store
	end
	return nil, failure("closed", "the mailbox is closed")
end

return common
