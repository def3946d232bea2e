--- The part of a mailbox that is about messages: threads, replies, read markers, receipts.

local common = require "lattice.mailbox.common"
local options = require "lattice.options"

---@class lattice.mailbox
local methods = {}

local SEND = { from = common.id, to = common.one_or_more, body = options.any, thread_id = common.id }
local REPLY = { from = common.id, body = options.any }
local FOLLOWUP = { from = common.id, to = common.one_or_more, body = options.any }
local READ = { thread_id = common.id, max_messages = options.positive_integer }
local THREAD = { after = options.natural, max_messages = options.positive_integer }

local function to_messages(rows, why)
	if not rows then
		return nil, why
	end
	for _, row in ipairs(rows) do
		common.to_message(row)
	end
	return rows
end

local function add_message(self, message)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	message.message_id = common.new_id "msg_"
	message.thread_id = message.thread_id or common.new_id "thr_"
	local position, why = store:add_message(message, self.max_queue)
	if not position then
		return nil, why
	end
	return { status = "sent", message_id = message.message_id, thread_id = message.thread_id, position = position }
end

--- Sends a message. Each reader it is sent to reads it once; within a thread messages keep the order of their sends.
---@param message table from, to (one reader or a list), body (anything with a JSON form), thread_id? (a new one if left
---  out; one that nobody knows begins a thread of that name)
---@return table? receipt {status = "sent", message_id, thread_id, position}
---@return lattice.MailboxFailure? failure "mailbox_full": nobody got it
function methods:send(message)
	options.check("mailbox:send", SEND, message)
	common.required("mailbox:send", message or {}, { "from", "to", "body" }, 2)
	local body, why = common.encode("mailbox:send: body", message.body, 2)
	if not body then
		return nil, why
	end
	local to = common.list_of(message.to)
	return add_message(self, {
		kind = "message", from = message.from, to = to, body = body, thread_id = message.thread_id,
	})
end

--- Answers a message, in its thread, to the one who sent it.
---@param message_id string
---@param reply table from, body
---@return table? receipt as of send
---@return lattice.MailboxFailure? failure
function methods:reply(message_id, reply)
	options.argument("mailbox:reply: message_id", common.id, message_id)
	options.check("mailbox:reply", REPLY, reply)
	common.required("mailbox:reply", reply or {}, { "from", "body" }, 2)
	local body, why = common.encode("mailbox:reply: body", reply.body, 2)
	if not body then
		return nil, why
	end
	local original
	original, why = self:message(message_id)
	if not original then
		return nil, why
	end
	return add_message(self, {
		kind = "reply", from = reply.from, to = { original.from }, body = body,
		thread_id = original.thread_id, in_reply_to = message_id,
	})
end

--- Sends a further message in a thread: to all who take part in it but the sender, or to those that are named.
---@param thread_id string
---@param followup table from, body, to?
---@return table? receipt as of send
---@return lattice.MailboxFailure? failure "not_found" where nobody else takes part
function methods:followup(thread_id, followup)
	options.argument("mailbox:followup: thread_id", common.id, thread_id)
	options.check("mailbox:followup", FOLLOWUP, followup)
	common.required("mailbox:followup", followup or {}, { "from", "body" }, 2)
	local body, why = common.encode("mailbox:followup: body", followup.body, 2)
	if not body then
		return nil, why
	end
	local to = followup.to and common.list_of(followup.to)
	if not to then
		to, why = self:participants(thread_id)
		if not to then
			return nil, why
		end
		for i = #to, 1, -1 do
			if to[i] == followup.from then
				table.remove(to, i)
			end
		end
	end
	if #to == 0 then
		return nil, common.failure("not_found", "thread %s: nobody else takes part in it; send to somebody", thread_id)
	end
	return add_message(self, {
		kind = "followup", from = followup.from, to = to, body = body, thread_id = thread_id,
	})
end

--- Who sent or got a message in a thread, in alphabetical order; nobody where there is no such thread.
---@param thread_id string
---@return string[]? ids
---@return lattice.MailboxFailure? failure
function methods:participants(thread_id)
	options.argument("mailbox:participants: thread_id", common.id, thread_id)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	return store:participants(thread_id)
end

local function unread(self, name, reader, given, takes)
	options.argument(("mailbox:%s: reader"):format(name), common.id, reader, 3)
	given = options.check("mailbox:" .. name, READ, given, 3)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	return to_messages(store:unread(reader, given.thread_id, given.max_messages or common.MAX_LIST, takes))
end

--- Takes what a reader hasn't read yet, oldest first, and marks it as read: no call gives it to this reader again.
---@param reader string
---@param read_options? table thread_id, max_messages (1000)
---@return lattice.Message[]? messages
---@return lattice.MailboxFailure? failure
function methods:read(reader, read_options)
	local messages, why = unread(self, "read", reader, read_options, true)
	return messages, why
end

--- What a reader hasn't read yet, oldest first, without marking it. With `mark_read` behind the work on it, a message
--- whose reader dies is read again.
---@param reader string
---@param read_options? table thread_id, max_messages (1000)
---@return lattice.Message[]? messages
---@return lattice.MailboxFailure? failure
function methods:inbox(reader, read_options)
	local messages, why = unread(self, "inbox", reader, read_options, false)
	return messages, why
end

--- Marks messages as read by a reader.
---@param reader string
---@param message_ids string[]
---@return integer? count how many of them were unread
---@return lattice.MailboxFailure? failure
function methods:mark_read(reader, message_ids)
	options.argument("mailbox:mark_read: reader", common.id, reader)
	options.argument("mailbox:mark_read: message_ids", common.ids, message_ids)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	return store:mark_read(reader, message_ids)
end

--- One message. Reading it so marks nothing.
---@param message_id string
---@return lattice.Message? message
---@return lattice.MailboxFailure? failure "not_found"
function methods:message(message_id)
	options.argument("mailbox:message: message_id", common.id, message_id)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	local row, why = store:message(message_id)
	if not row then
		return nil, why or common.failure("not_found", "no message %s", message_id)
	end
	return common.to_message(row)
end

--- The messages of a thread, in order; empty where there is no such thread. Marks nothing.
---@param thread_id string
---@param thread_options? table after (a position: 0), max_messages (1000)
---@return lattice.Message[]? messages
---@return lattice.MailboxFailure? failure
function methods:thread(thread_id, thread_options)
	options.argument("mailbox:thread: thread_id", common.id, thread_id)
	local given = options.check("mailbox:thread", THREAD, thread_options)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	return to_messages(store:thread(thread_id, given.after or 0, given.max_messages or common.MAX_LIST))
end

--- Who got a message, and when each read it. A task counts as read when it is first claimed.
---@param message_id string
---@return table[]? receipts {reader, read_at?} in alphabetical order of the readers
---@return lattice.MailboxFailure? failure
function methods:receipts(message_id)
	options.argument("mailbox:receipts: message_id", common.id, message_id)
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	return store:receipts(message_id)
end

--- How much is there: for one reader or member, or for all.
---@param who? string
---@return table? counts {unread, queued, claimed, completed, failed, cancelled, set_aside}
---@return lattice.MailboxFailure? failure
function methods:status(who)
	if who ~= nil then
		options.argument("mailbox:status: who", common.id, who)
	end
	local store, closed = common.store_of(self)
	if not store then
		return nil, closed
	end
	return store:status(who)
end

return methods
