--- One query: the agent's loop, from the prompt to the result message.
---
--- The loop runs in a coroutine of the engine's. Whoever pulls (`for message in agent:query …`, `agent:prompt`)
--- resumes it until it yields a message; when it has to wait, the puller waits in its place. So the run is exactly
--- as fast as its consumer, and nothing is buffered.

local batch = require "lattice.batch"
local core = require "lattice.core"
local errors = require "lattice.errors"
local request = require "lattice.request"
local signal = require "lattice.signal"
local task = require "lattice.task"
local tool_result = require "lattice.tool_result"
local trace = require "lattice.trace"

local MESSAGE = {} -- the tag that the loop's coroutine yields with a message

-- Reasons of the query's own signal that aren't the host's abort.
local INTERRUPTED = setmetatable({}, {
	__tostring = function()
		return "interrupted"
	end,
})

---@class lattice.query
---@field signal lattice.signal aborted when the query shall stop
local query_class = {}
query_class.__index = query_class
query_class.__name = "lattice.query"

local query = {}

function query_class:trace(kind, fields)
	local span = self.span
	if span then
		span:event(kind, fields)
	end
end

--- Why the run stopped, in words for the model.
function query_class:stop_text()
	local reason = self.signal.reason
	if reason == INTERRUPTED then
		return "the user interrupted the run."
	elseif self.signal.aborted then
		return "the run was aborted (" .. errors.text(reason) .. ")."
	end
	return "the run ended."
end

function query_class:emit(message)
	if self.discard and message.type ~= "result" then
		return
	end
	if coroutine.running() == self.co and coroutine.isyieldable() then
		coroutine.yield(MESSAGE, message)
	else
		self.pending[#self.pending + 1] = message
	end
end

local USAGE = { "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens" }

local function add_usage(total, usage)
	for _, key in ipairs(USAGE) do
		total[key] = total[key] + (math.tointeger(usage[key]) or 0)
	end
end

local function read_shape(answer, settings)
	local shaped = {}
	if answer.messages then
		local list = setmetatable({ table.unpack(answer.messages) }, core.array_mt)
		shaped.message_list = list
		shaped.messages = core.json_encode(list):sub(2, -2)
	end
	if answer.system then
		shaped.system = answer.system
		local changed = setmetatable({ system = answer.system }, { __index = settings })
		shaped.prefix = request.prefix(changed)
	end
	return shaped
end

-- What on_model_request changes in one request; the stored history stays as it is.
local function shape_request(self)
	local hook = self.hooks and self.hooks.on_model_request
	if not hook then
		return {}
	end
	local settings = self.settings
	local answer = hook { messages = self.history:messages(), turn = self.num_turns, system = settings.system }
	self:trace("hook", { hook = "on_model_request", changed = answer ~= nil })
	if answer == nil then
		return {}
	elseif type(answer) ~= "table" then
		error("on_model_request: expected a table with messages or system, or nil, got " .. type(answer), 0)
	end
	local ok, shaped = pcall(read_shape, answer, settings)
	if not ok then
		error("on_model_request: what it returned can't be sent: " .. errors.text(shaped), 0)
	end
	return shaped
end

local function ask_model(self)
	self.num_turns = self.num_turns + 1
	local began = core.now_ms()
	self:trace("model_request", { turn = self.num_turns, model = self.settings.model })
	local message, problem = request.send(self, shape_request(self))
	if not message then
		self:trace("model_error", { turn = self.num_turns, error = problem, duration_ms = core.now_ms() - began })
		return nil, problem
	end
	local usage = message:usage()
	add_usage(self.usage, usage)
	self.message = message
	self:trace("model_response", { turn = self.num_turns, usage = usage, duration_ms = core.now_ms() - began })
	return message
end

local SUBTYPES = { timeout = "error_timeout", abort = "error_abort" }

local function failed(self, problem)
	if self.signal.aborted then
		return { subtype = self.signal.reason == INTERRUPTED and "interrupted" or "error_abort" }
	end
	local shown = { type = problem.type or problem.kind, message = problem.message }
	shown.status, shown.request_id = problem.status, problem.request_id
	return { subtype = SUBTYPES[problem.kind] or "error_api", error = shown }
end

local function stopped(self)
	return failed(self, { kind = "abort" })
end

-- A hook that raised: remembered while the history is made whole, raised again by next().
local function raise_later(self, raised)
	self.raised = raised
	return { subtype = "error_during_execution", error = { type = "hook_error", message = errors.text(raised.value) } }
end

-- With a session store, what is added to the history is recorded before anything else happens.
local function record(self, kind, json)
	if self.log then
		self.log:append(kind, json)
	end
end

local function not_recorded(self)
	local problem = self.log and self.log.problem
	if problem then
		local text = "the session could not be recorded: " .. problem
		return { subtype = "error_during_execution", error = { type = "session_store_error", message = text } }
	end
end

local function add_user(self, blocks_json)
	self.history:add_user(blocks_json)
	record(self, "user", blocks_json)
end

-- What follows a batch before the model is asked again (a team's members at work): it gives text for the model.
local function after_batch(self)
	local texts = self.after_batch(self)
	local blocks, list = {}, {}
	for index, text in ipairs(texts) do
		list[index] = { type = "text", text = text }
		blocks[index] = '{"type":"text","text":' .. core.json_encode(text) .. "}"
	end
	if #blocks > 0 then
		add_user(self, table.concat(blocks, ","))
		self:emit { type = "user", message = { role = "user", content = list } }
	end
end

local TOO_LARGE = "The result has %d bytes and was dropped: a request may have %d. Ask for less of it."

-- Results that no request could carry together would make each later request fail: those that take more than their
-- share go. Without a wire of its own the engine knows no bound.
local function carried_blocks(self, calls)
	local blocks, total = {}, 0
	for index, call in ipairs(calls) do
		blocks[index] = tool_result.block_json(call.id, call.outcome)
		total = total + #blocks[index]
	end
	local limit = self.settings.max_request_bytes
	if not self.api or total <= limit then
		return blocks
	end
	for index, call in ipairs(calls) do
		if #blocks[index] > limit // #calls then
			call.outcome = tool_result.failure(TOO_LARGE:format(#blocks[index], limit))
			blocks[index] = tool_result.block_json(call.id, call.outcome)
		end
	end
	return blocks
end

local function run_batch(self, message_calls)
	local calls, raised = batch.run(message_calls, self)
	local blocks, list, ending = carried_blocks(self, calls), {}, nil
	for index, call in ipairs(calls) do
		if not self.discard then
			list[index] = tool_result.block(call.id, call.outcome)
		end
		ending = ending or (call.outcome.end_turn and call.outcome)
	end
	add_user(self, table.concat(blocks, ","))
	self:emit { type = "user", message = { role = "user", content = list } }
	if self.after_batch then
		after_batch(self)
	end
	if raised then
		return raise_later(self, raised)
	elseif ending then
		return {
			subtype = "success",
			result = tool_result.text(ending),
			structured_result = ending.structured_result,
		}
	end
end

local function finished(self)
	local ending = { subtype = "success", result = self.message:text() }
	local output_schema = self.settings.output_schema
	if output_schema and self.stop_reason ~= "refusal" then
		local ok, value = output_schema:validate_json(ending.result)
		if ok then
			ending.structured_result = value
		else
			ending.subtype = "error_during_execution"
			ending.error = { type = "invalid_output", message = tool_result.list_problems(value, "(output)") }
		end
	end
	return ending
end

-- A prompt that the service refuses as such would be refused again with each later request: it goes out of the
-- history again. (Not where it was joined to a message that was there before.)
local REFUSED = { [400] = true, [413] = true, [422] = true }

local function take_back_prompt(self, problem)
	local before = self.messages_before
	local refused = REFUSED[problem.status] or (self.api and #self.prompt_json > self.settings.max_request_bytes)
	if self.num_turns == 1 and refused and self.history:count() == before + 1 then
		self.history:truncate(before)
		record(self, "take_back", "null")
	end
end

-- The server paused a long turn of its own tools; the same history goes back to go on.
local PAUSED = "pause_turn"

local function loop(self)
	while true do
		local unrecorded = not_recorded(self)
		if unrecorded then
			return unrecorded
		elseif self.signal.aborted then
			return stopped(self)
		elseif self.max_turns and self.num_turns >= self.max_turns then
			return { subtype = "error_max_turns" }
		end
		local message, problem = ask_model(self)
		if not message then
			take_back_prompt(self, problem)
			return failed(self, problem)
		end
		self.stop_reason = message:stop_reason()
		self.history:add_assistant(message)
		record(self, "assistant", message:json())
		if not self.discard then
			self:emit { type = "assistant", message = message:table() }
		end
		local calls = message:calls()
		if #calls > 0 and not not_recorded(self) then
			local ending = run_batch(self, calls)
			if ending then
				return ending
			end
		elseif self.stop_reason ~= PAUSED then
			return not_recorded(self) or finished(self)
		end
	end
end

local ERROR_TEXT = {
	interrupted = "the query was interrupted",
	error_abort = "the query was aborted",
	error_max_turns = "the query reached max_turns",
}

local function result_message(self, ending)
	local is_error = ending.subtype ~= "success"
	local shown = ending.error
	if is_error and not shown then
		local text = ERROR_TEXT[ending.subtype]
		if ending.subtype == "error_abort" then
			text = text .. ": " .. errors.text(self.signal.reason)
		end
		shown = { type = ending.subtype, message = text }
	end
	return {
		type = "result",
		subtype = ending.subtype,
		is_error = is_error,
		result = ending.result,
		structured_result = ending.structured_result,
		usage = self.usage,
		stop_reason = self.stop_reason,
		num_turns = self.num_turns,
		duration_ms = core.now_ms() - self.began_ms,
		session_id = self.session_id,
		model = self.message and self.message:model() or self.settings.model,
		error = shown,
	}
end

-- A tracer whose disk is full costs no reply; the first result after it says so, once.
local reported = setmetatable({}, { __mode = "k" })

local function trace_error(self)
	local tracer = self.span and self.span.tracer
	local problem = tracer and trace.problem(tracer)
	if problem and not reported[tracer] then
		reported[tracer] = true
		return problem
	end
end

local KILLED = "The process was killed while this call ran: whether it took effect isn't known. Check before you "
	.. "call it again."

-- Ends a batch that another process was killed in: what had ended keeps its result, idempotent tools run again.
local function finish_batch(self, unfinished)
	local again, blocks = {}, {}
	for _, call in ipairs(unfinished.calls) do
		local definition = self.tools.by_name[call.name]
		if not unfinished.results[call.id] and definition and definition.idempotent then
			again[#again + 1] = call
		end
	end
	local results = unfinished.results
	local calls, raised = {}, nil
	if #again > 0 then
		calls, raised = batch.run(again, self)
	end
	for _, call in ipairs(calls) do
		results[call.id] = tool_result.block_json(call.id, call.outcome)
	end
	for index, call in ipairs(unfinished.calls) do
		blocks[index] = results[call.id] or tool_result.block_json(call.id, tool_result.failure(KILLED))
	end
	add_user(self, table.concat(blocks, ","))
	self.raised = raised
end

local function begin(self)
	local unfinished = self.log and self.log.unfinished
	if unfinished then
		self.log.unfinished = nil
		finish_batch(self, unfinished)
	else
		self.history:close_calls "The run ended before this call did."
	end
	self.messages_before = self.history:count()
	add_user(self, self.prompt_json)
end

local function body(self)
	self.started = true
	begin(self)
	self:trace("query_start", { model = self.settings.model })
	if not self.discard then
		self:emit(self.agent_info)
	end
	local result = result_message(self, self.raised and raise_later(self, self.raised) or loop(self))
	self:release()
	self:trace("result", {
		subtype = result.subtype,
		num_turns = result.num_turns,
		usage = result.usage,
		duration_ms = result.duration_ms,
		error = result.error,
	})
	result.trace_error = trace_error(self)
	if self.raised then
		error(self.raised.value, 0)
	end
	self:emit(result)
end

-- Gives the agent back to the next query; whatever happened, its history is whole.
function query_class:release()
	if not self.released then
		self.released = true
		self.unfollow()
		self.unfollow_scope()
		self.history:close_calls("The call was stopped: " .. self:stop_text())
		self.on_release()
	end
end

--- The next message, or nil at the end. Raises what a hook raised.
---@return table? message
function query_class:next()
	if #self.pending > 0 then
		return table.remove(self.pending, 1)
	end
	local exchange = self.exchange
	if exchange and not self.signal.aborted then
		local message = exchange:next_message()
		if message then
			return message
		end
	end
	while not self.finished do
		local ok, tag, value = task.resume(self.co, self)
		if not ok then
			self.finished = true
			coroutine.close(self.co) -- what it left to be closed: the exchange, a wait
			self:release()
			error(tag, 0)
		elseif coroutine.status(self.co) == "dead" then
			self.finished = true
		elseif tag == task.WAIT then
			task.wait(value)
		elseif tag == MESSAGE then
			self.pending[#self.pending + 1] = value
		else
			self.finished = true
			self:discard_now()
			error("a hook, a policy or a permission " .. task.FOREIGN_YIELD, 0)
		end
		if #self.pending > 0 then
			return table.remove(self.pending, 1)
		end
	end
end

query_class.__call = query_class.next

--- Ends the query as `interrupted`; what runs is told to stop.
function query_class:interrupt()
	self.controller:abort(INTERRUPTED)
end

-- For a collector that can't wait: drops the run where it stands.
function query_class:discard_now()
	self.finished = true
	self.controller:abort(INTERRUPTED)
	coroutine.close(self.co)
	self:release()
end

--- Leaving the `for` ends the query: started handlers are told to stop and waited for.
function query_class:close()
	if self.finished then
		return
	elseif not self.started then
		return self:discard_now()
	end
	if coroutine.status(self.co) ~= "suspended" then
		return self:interrupt()
	end
	self:interrupt()
	self.discard, self.pending = true, {}
	while self:next() do -- the result, which nobody reads
	end
end

query_class.__close = query_class.close

function query_class:__gc()
	if not self.finished and coroutine.status(self.co) == "suspended" then
		self:discard_now()
	end
end

--- Makes a query; nothing runs until the first message is pulled.
---@param fields table what the loop needs: history, tools, settings, api or model_client, …, on_release
---@param host_signal? lattice.signal
---@return lattice.query
function query.new(fields, host_signal)
	local self = fields
	local controller = signal.abort_controller()
	self.controller, self.signal = controller, controller.signal
	self.pending = {}
	self.num_turns = 0
	self.began_ms = core.now_ms()
	self.usage = {
		input_tokens = 0,
		output_tokens = 0,
		cache_creation_input_tokens = 0,
		cache_read_input_tokens = 0,
	}
	self.unfollow = controller:follow(host_signal)
	self.unfollow_scope = controller:follow(task.scope())
	local outer = task.scope() and task.scope().chain
	controller.signal.chain = {
		agent = self.agent,
		usage = self.usage,
		parent = outer,
		depth = outer and outer.depth + 1 or 1,
	}
	self.co = task.coroutine(body, controller.signal)
	return setmetatable(self, query_class)
end

return query
