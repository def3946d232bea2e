--- The mailbox tools of one participant of a team: what the model sends and reads as.

local core = require "lattice.core"
local schema = require "lattice.schema"
local tool = require "lattice.tool"

local team_tools = {}

local s = schema

local MAX_TEXT_BYTES = 50000 -- of one message in one call of team_read
local PREVIEW_BYTES = 200

local function failure(text)
	return { content = text, is_error = true }
end

local function as_json(value, why)
	if value == nil then
		return failure(why.message)
	end
	return core.json_encode(value)
end

--- The text of a message's body or of a work item's task, whatever JSON it is.
---@param body any
---@return string
function team_tools.text_of(body)
	if type(body) == "table" and type(body.text) == "string" then
		return body.text
	end
	return type(body) == "string" and body or core.json_encode(body)
end

local function may_see(message, name)
	if message.from == name then
		return true
	end
	for _, reader in ipairs(message.to) do
		if reader == name then
			return true
		end
	end
	return false
end

-- A part of a text that begins and ends between characters.
local function part(text, offset, bytes)
	while offset > 0 and offset < #text and text:byte(offset + 1) & 0xC0 == 0x80 do
		offset = offset - 1
	end
	local last = math.min(offset + bytes, #text)
	while last > offset and last < #text and text:byte(last + 1) & 0xC0 == 0x80 do
		last = last - 1
	end
	return text:sub(offset + 1, last), last
end

local function shown(message, offset, bytes)
	local text = team_tools.text_of(message.body)
	local piece, last = part(text, offset, bytes)
	return {
		message_id = message.message_id,
		thread_id = message.thread_id,
		from = message.from,
		kind = message.kind,
		text = piece,
		next_offset = last < #text and last or nil,
		total_bytes = last < #text and #text or nil,
	}
end

local function list(messages, why, bytes)
	if not messages then
		return failure(why.message)
	end
	local all = setmetatable({}, core.array_mt)
	for index, message in ipairs(messages) do
		all[index] = shown(message, 0, bytes)
	end
	return core.json_encode { messages = all }
end

local function read_one(mailbox, name, input)
	local message, why = mailbox:message(input.message_id)
	if not message or not may_see(message, name) then
		return failure(message and ("no message " .. input.message_id) or why.message)
	end
	mailbox:mark_read(name, { message.message_id })
	return core.json_encode(shown(message, input.offset, MAX_TEXT_BYTES))
end

local function in_thread(mailbox, name, thread_id)
	for _, participant in ipairs(mailbox:participants(thread_id) or {}) do
		if participant == name then
			return true
		end
	end
	return false
end

local TEXT = s.string { min_length = 1 }
local ID = s.string { min_length = 1, max_length = 200 }

-- Each gets the mailbox, the participant's name, the input, and the names of all.
local TOOLS = {
	{
		name = "team_send",
		description = "Sends a message to somebody in your team. It is read later; no answer comes back from this call.",
		schema = function(others)
			return s.object { to = s.enum(others), text = TEXT }
		end,
		run = function(mailbox, name, input)
			return as_json(mailbox:send { from = name, to = input.to, body = { text = input.text } })
		end,
	},
	{
		name = "team_inbox",
		description = "Lists your unread messages with their beginnings, and leaves them unread.",
		schema = { max_messages = "integer?" },
		run = function(mailbox, name, input)
			local messages, why = mailbox:inbox(name, { max_messages = input.max_messages })
			return list(messages, why, PREVIEW_BYTES)
		end,
	},
	{
		name = "team_read",
		description = "Reads your unread messages and marks them as read; with message_id, that one message, from the "
			.. "byte offset on.",
		schema = s.object {
			message_id = s.optional(ID),
			offset = s.default(s.integer { minimum = 0 }, 0),
			max_messages = s.default(s.integer { minimum = 1, maximum = 100 }, 20),
		},
		run = function(mailbox, name, input)
			if input.message_id then
				return read_one(mailbox, name, input)
			end
			local messages, why = mailbox:read(name, { max_messages = input.max_messages })
			return list(messages, why, MAX_TEXT_BYTES)
		end,
	},
	{
		name = "team_reply",
		description = "Answers a message: the text goes to its sender, in the same thread.",
		schema = s.object { message_id = ID, text = TEXT },
		run = function(mailbox, name, input)
			local message, why = mailbox:message(input.message_id)
			if not message or not may_see(message, name) then
				return failure(message and ("no message " .. input.message_id) or why.message)
			end
			return as_json(mailbox:reply(input.message_id, { from = name, body = { text = input.text } }))
		end,
	},
	{
		name = "team_followup",
		description = "Sends a further message to everybody else in a thread that you take part in.",
		schema = s.object { thread_id = ID, text = TEXT },
		run = function(mailbox, name, input)
			if not in_thread(mailbox, name, input.thread_id) then
				return failure("no thread " .. input.thread_id .. " of yours")
			end
			return as_json(mailbox:followup(input.thread_id, { from = name, body = { text = input.text } }))
		end,
	},
	{
		name = "team_status",
		description = "Shows who is in the team, and how much waits for each or is done.",
		schema = {},
		run = function(mailbox, _, _, names)
			local all = setmetatable({}, core.array_mt)
			for index, one in ipairs(names) do
				local status, why = mailbox:status(one)
				if not status then
					return failure(why.message)
				end
				status.name = one
				all[index] = status
			end
			return core.json_encode { team = all }
		end,
	},
}

--- The tools of one participant.
---@param mailbox lattice.mailbox
---@param name string who sends and reads
---@param names string[] everybody in the team
---@return lattice.tool_definition[]
function team_tools.new(mailbox, name, names)
	local others, list_of = {}, {}
	for _, one in ipairs(names) do
		others[#others + 1] = one ~= name and one or nil
	end
	for index, spec in ipairs(TOOLS) do
		list_of[index] = tool.define {
			name = spec.name,
			description = spec.description,
			kind = "builtin",
			schema = schema.compile(type(spec.schema) == "function" and spec.schema(others) or spec.schema),
			handler = function(input)
				return spec.run(mailbox, name, input, names)
			end,
		}
	end
	return list_of
end

return team_tools
