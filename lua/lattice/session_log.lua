--- The log of a session in a mailbox: each message is recorded before the next step, so that another process can go on
--- after this one was killed.
---
--- A log is a thread of its own. Entries: "user" (content blocks), "assistant" (a message), "result" (the tool_result
--- of one call that has ended while others of its batch run), "take_back" (the last entry does not count). The "user"
--- entry of a whole batch makes its "result" entries superfluous.

local core = require "lattice.core"
local errors = require "lattice.errors"
local task = require "lattice.task"

local session_log = {}

local SENDER = "session"
local PAGE = 500
local MARK_EVERY = 50 -- entries count as unread messages of the log until they are marked

---@class lattice.session_log
---@field history userdata what is recorded
---@field unfinished? table the batch that was cut: calls, and results by id
local log_class = {}
log_class.__index = log_class

local function mark(self)
	if #self.unmarked > 0 then
		self.mailbox:mark_read(self.name, self.unmarked)
		self.unmarked = {}
	end
end

local ELSEWHERE = "another agent writes to the session %s: open it once at a time"

local function send(self, kind, json)
	local message = { from = SENDER, to = self.name, thread_id = self.name, body = { kind = kind, json = json } }
	local sent, why = self.mailbox:send(message)
	if not sent and why.kind == "mailbox_full" then
		mark(self)
		sent, why = self.mailbox:send(message)
	end
	if not sent then
		return why.message
	elseif sent.position ~= self.position + 1 then
		return ELSEWHERE:format(self.name)
	end
	self.position = sent.position
	self.unmarked[#self.unmarked + 1] = sent.message_id
	if #self.unmarked >= MARK_EVERY then
		mark(self)
	end
end

local function write_in_turn(self, kind, json)
	while self.writing do
		local waitable = { done = false }
		table.insert(self.waiting, waitable)
		task.wait(waitable)
	end
	self.writing = true
	local ok, problem = pcall(send, self, kind, json)
	self.writing = false
	if problem then
		self.problem = self.problem or (ok and problem or errors.text(problem))
	end
	if self.waiting[1] then
		task.fire(table.remove(self.waiting, 1))
	end
end

--- Records an entry, in the order of the calls, whatever becomes of the run; `ended` is called when it is there. What
--- goes wrong stands in `log.problem`.
---@param kind string
---@param json string
---@param ended fun()
function log_class:begin(kind, json, ended)
	if self.problem then
		return ended()
	end
	task.spawn(function()
		write_in_turn(self, kind, json)
	end, nil, ended)
end

--- Records an entry and waits for it.
---@param kind string
---@param json string
function log_class:append(kind, json)
	local recorded = { done = false }
	self:begin(kind, json, function()
		task.fire(recorded)
	end)
	task.wait(recorded)
end

-- ---- reading ----

local function calls_of(assistant)
	local calls = {}
	for _, block in ipairs(assistant and core.json_decode(assistant).content or {}) do
		if block.type == "tool_use" then
			calls[#calls + 1] = {
				id = block.id,
				name = block.name,
				input_json = core.json_encode(block.input),
				complete = true,
			}
		end
	end
	return calls
end

local function replay(state, body)
	local messages = state.messages
	if body.kind == "user" then
		messages[#messages + 1] = '{"role":"user","content":[' .. body.json .. "]}"
		state.last, state.results = nil, {}
	elseif body.kind == "assistant" then
		messages[#messages + 1] = body.json
		state.last, state.results = body.json, {}
	elseif body.kind == "result" then
		state.results[core.json_decode(body.json).tool_use_id] = body.json
	elseif body.kind == "take_back" then
		messages[#messages], state.last = nil, nil
	end
end

local function read_all(mailbox, name)
	local state, position = { messages = {}, results = {} }, 0
	while true do
		local page, why = mailbox:thread(name, { after = position, max_messages = PAGE })
		if not page then
			return nil, why.message
		elseif #page == 0 then
			return state, position
		end
		for _, entry in ipairs(page) do
			replay(state, entry.body)
			position = entry.position
		end
	end
end

-- The history up to where the run was cut; calls of a batch that was cut are open.
local function rebuild(self, state)
	local calls = calls_of(state.last)
	if #calls > 0 then
		table.remove(state.messages)
	end
	local history, problem = core.history_from_json("[" .. table.concat(state.messages, ",") .. "]")
	if not history then
		return tostring(problem)
	end
	if #calls > 0 then
		local message
		message, problem = core.message_from_json(state.last)
		if not message then
			return tostring(type(problem) == "table" and problem.message or problem)
		end
		history:add_assistant(message)
		self.unfinished = { calls = calls, results = state.results }
	end
	self.history = history
end

--- Opens the log of a session, and reads what is there.
---@param mailbox lattice.mailbox
---@param session_id string
---@return lattice.session_log? log
---@return string? problem
function session_log.open(mailbox, session_id)
	local self = setmetatable({
		mailbox = mailbox,
		name = "session:" .. session_id,
		unmarked = {},
		waiting = {},
		writing = false,
	}, log_class)
	local state, position = read_all(mailbox, self.name)
	if not state then
		return nil, position
	end
	self.position = position
	local problem = rebuild(self, state)
	if problem then
		return nil, ("the session %s can't be read: %s"):format(session_id, problem)
	end
	for _, message in ipairs(mailbox:inbox(self.name) or {}) do -- a killed process had no time to mark them
		self.unmarked[#self.unmarked + 1] = message.message_id
	end
	mark(self)
	return self
end

return session_log
