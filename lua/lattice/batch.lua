--- One batch: all tool calls of one reply, from the policy's verdict to results in call order.
---
--- Order of things: the policy sees the whole batch; permission is asked call by call; safety rules and resources
--- are asked once for each call; the plan (in C) says who may start; whoever ends makes room for the next. Every
--- call gets exactly one outcome, whatever happens.

local core = require "lattice.core"
local errors = require "lattice.errors"
local gate = require "lattice.gate"
local signal = require "lattice.signal"
local task = require "lattice.task"
local tool_result = require "lattice.tool_result"

local batch = {}

---@class lattice.call
---@field index integer place in the reply, from 1
---@field id string
---@field name string
---@field kind string
---@field input any validated input; the raw one where it is invalid
---@field definition? lattice.tool_definition
---@field outcome? lattice.tool_outcome

local function unknown_tool(name, tools)
	local names = {}
	for _, definition in ipairs(tools.list) do
		names[#names + 1] = definition.name
	end
	local offer = #names > 0 and "Available tools: " .. table.concat(names, ", ") .. "." or "There are no tools."
	return tool_result.failure(string.format('Unknown tool "%s". %s', name, offer))
end

local CUT_INPUT = 'The input of tool "%s" stopped in the middle of its JSON (the reply was cut, stop_reason "%s"). '
	.. "It did not run. Call it again with a shorter input, or split the work."
local UNREADABLE_INPUT = 'The input of tool "%s" can\'t be read: %s. It did not run. Call it again with a JSON object.'

-- Where the model was stopped, a shorter input helps; else what is wrong with this one must be said.
local function incomplete_input(raw, stop_reason)
	if stop_reason == "max_tokens" or stop_reason == "model_context_window_exceeded" or not raw.problem then
		return tool_result.failure(string.format(CUT_INPUT, raw.name, tostring(stop_reason)))
	end
	return tool_result.failure(string.format(UNREADABLE_INPUT, raw.name, raw.problem))
end

-- Reads a call of the model's into a record; what can't run has its outcome at once.
local function read_call(index, raw, tools, stop_reason)
	local definition = tools.by_name[raw.name]
	local call = {
		index = index,
		id = raw.id,
		name = raw.name,
		kind = definition and definition.kind or "tool",
		definition = definition,
	}
	if not raw.complete then
		call.outcome = incomplete_input(raw, stop_reason)
	elseif not definition then
		call.outcome = unknown_tool(raw.name, tools)
	else
		local ok, value = definition.schema:validate_json(raw.input_json)
		if ok then
			call.input = value
		else
			call.outcome = tool_result.invalid_input(raw.name, value)
		end
	end
	if call.outcome then
		call.input = core.json_decode(raw.input_json) -- nil where it is no JSON
	end
	return call
end

local function read_calls(raw_calls, query)
	local calls = {}
	for index, raw in ipairs(raw_calls) do
		calls[index] = read_call(index, raw, query.tools, query.stop_reason)
	end
	return calls
end

local function ask_rule(rule, input)
	local ok, answer = pcall(rule, input)
	return ok and answer
end

local function is_name_list(value)
	if value == nil then
		return true
	elseif type(value) ~= "table" then
		return false
	end
	for key, name in pairs(value) do
		if math.type(key) ~= "integer" or type(name) ~= "string" then
			return false
		end
	end
	return true
end

local function declared_names(rule, input, about)
	local declared = rule(input, about)
	if type(declared) == "table" and is_name_list(declared.read) and is_name_list(declared.write) then
		return { read = declared.read or {}, write = declared.write or {} }
	end
end

-- What a call reads and writes, as the plan takes it: lists of names, or "*" for everything.
local function access(call, mode, about)
	if mode == "all" then
		return {}, {}
	elseif mode == "sequential" or call.outcome then
		return {}, "*"
	end
	local definition = call.definition
	if mode == "resources" and definition.resources then
		local ok, declared = pcall(declared_names, definition.resources, call.input, about)
		if ok and declared then
			return declared.read, declared.write
		end
	end
	local rule = definition.is_concurrency_safe
	if rule and ask_rule(rule, call.input) == true then
		return "*", {}
	end
	return {}, "*"
end

local function make_plan(calls, query)
	local concurrency = query.concurrency
	local about = { context = query.context, workspace = query.workspace }
	local plan = core.batch(#calls, concurrency.max_concurrency)
	for index, call in ipairs(calls) do
		local read, write = access(call, concurrency.mode, about)
		plan:reads(index, read)
		plan:writes(index, write)
	end
	return plan
end

-- A handler that computes without ever waiting can only be stopped by a hook on its own coroutine.
local HOOK_INSTRUCTIONS = 100000

local function bounded(handler, timeout_ms)
	return function(input, ctx)
		local deadline = core.now_ms() + timeout_ms
		debug.sethook(function()
			if ctx.signal.aborted or core.now_ms() > deadline then
				error(task.abort_error(ctx.signal.reason or "timed out"), 0)
			end
		end, "", HOOK_INSTRUCTIONS)
		return handler(input, ctx)
	end
end

local function context_of(call, query, own_signal)
	return {
		tool_call_id = call.id,
		tool_name = call.name,
		signal = own_signal,
		context = query.context,
		workspace = query.workspace,
	}
end

local function outcome_of(call, ok, value, traceback, controller, query)
	if call.timed_out then
		local text = string.format('Tool "%s" timed out after %s ms.', call.name, tostring(call.definition.timeout_ms))
		return tool_result.failure(text, "timeout", traceback)
	elseif ok then
		return tool_result.normalize(call.name, value)
	elseif controller.signal.aborted and errors.is(value, "error_abort") then
		local text = string.format('Tool "%s" was stopped before it ended: %s', call.name, query:stop_text())
		return tool_result.failure(text, value)
	end
	if errors.is(value, "worker_error") then
		value, traceback = value.message, value.traceback
	end
	local text = string.format('Tool "%s" failed: %s', call.name, errors.text(value))
	return tool_result.failure(text, value == nil and "nil" or value, traceback)
end

-- Events of a call that started bear the call's own span.
local function trace_call(call, query, kind, fields)
	local span = call.span or query.span
	if span then
		span:event(kind, fields)
	end
end

-- Starts a call; `ended` is called once, when its outcome is there.
local function start(call, query, ended)
	local definition = call.definition
	local controller = signal.abort_controller()
	local unfollow = controller:follow(query.signal)
	local handler, timer = definition.handler, nil
	local timeout_ms = definition.timeout_ms
	if timeout_ms then
		timer = task.after(timeout_ms, function()
			call.timed_out = true
			controller:abort(string.format("timed out after %s ms", tostring(timeout_ms)))
		end)
		if not definition.worker then
			handler = bounded(handler, timeout_ms)
		end
	end
	local ctx = context_of(call, query, controller.signal)
	call.span = query.span and query.span:child()
	controller.signal.span, controller.signal.chain = call.span, query.signal.chain
	trace_call(call, query, "tool_start", {
		tool_name = call.name,
		tool_call_id = call.id,
		kind = call.kind,
		input = call.input,
	})
	local began = core.now_ms()
	task.spawn(function()
		return handler(call.input, ctx)
	end, controller.signal, function(ok, value, traceback)
		unfollow()
		if timer then
			task.cancel_after(timer)
		end
		call.duration_ms = core.now_ms() - began
		call.ended_ms = began + call.duration_ms
		if timeout_ms and not ok and call.duration_ms >= timeout_ms then
			call.timed_out = true -- stopped by the hook: the timer had no chance to fire
		end
		call.outcome = outcome_of(call, ok, value, traceback, controller, query)
		call.traceback, call.metadata = call.outcome.traceback, call.outcome.metadata
		if query.log then
			query.log:begin("result", tool_result.block_json(call.id, call.outcome), ended)
		else
			ended()
		end
	end)
end

-- Runs what the plan lets run until nothing is left; on abort, waits for those that started.
local function run_plan(plan, calls, query)
	local changed = { done = false }
	local function wake()
		task.fire(changed)
	end
	local remove = query.signal:on_abort(function()
		plan:stop()
		wake()
	end)
	local function start_next()
		local index = plan:next()
		if not index then
			return false
		elseif calls[index].outcome then
			plan:done(index)
		else
			start(calls[index], query, function()
				plan:done(index)
				wake()
			end)
		end
		return true
	end
	while true do
		while start_next() do end -- luacheck: ignore
		if plan:running() == 0 then
			break
		end
		task.wait(changed)
		changed = { done = false }
	end
	remove()
end

local function fill_missing(calls, query)
	for _, call in ipairs(calls) do
		if not call.outcome then
			local text = string.format('Tool "%s" did not start: %s', call.name, query:stop_text())
			call.outcome = tool_result.failure(text, "not started")
		end
	end
end

-- A copy for the hook: what counts is what it returns, not what it does to this.
local function shown(outcome)
	local twin = {}
	for key, value in pairs(outcome) do
		twin[key] = value
	end
	if type(outcome.content) == "table" then
		twin.content = core.json_decode(core.json_encode(outcome.content))
	end
	return twin
end

-- Shows one outcome to the hook; returns {value=} when it raised.
local function apply_hook(hook, call, query)
	local outcome = call.outcome
	local ok, replacement = pcall(hook, {
		tool_name = call.name,
		tool_call_id = call.id,
		input = call.input,
		result = shown(outcome),
		error = outcome.error,
	})
	trace_call(call, query, "hook", {
		hook = "on_tool_result",
		tool_call_id = call.id,
		changed = replacement ~= nil,
		error = not ok and errors.text(replacement) or nil,
	})
	if not ok then
		call.outcome = tool_result.failure "The result was withheld: a hook of the host failed on it."
		return { value = replacement }
	elseif replacement ~= nil then
		call.outcome = tool_result.normalize(call.name, replacement)
	end
end

local function trace_end(call, query)
	trace_call(call, query, "tool_end", {
		tool_name = call.name,
		tool_call_id = call.id,
		is_error = call.outcome.is_error or false,
		content = call.outcome.content,
		duration_ms = call.duration_ms,
		ended_ms = call.ended_ms,
		metadata = call.metadata,
		traceback = call.traceback,
	})
end

-- The hook sees every outcome, in call order; what it raises is raised when all of them are stored.
local function apply_hooks(calls, query)
	local hook, raised = query.hooks and query.hooks.on_tool_result, nil
	for _, call in ipairs(calls) do
		if raised then
			call.outcome = tool_result.failure "The result was withheld: a hook of the host failed before it."
		elseif hook then
			raised = apply_hook(hook, call, query)
		end
		if query.span then
			trace_end(call, query)
		end
	end
	return raised
end

--- Runs the batch of one reply.
---@param raw_calls table[] as message:calls() gives them
---@param query table the running query: tools, signal, context, concurrency, policy, permission, hooks
---@return lattice.call[] calls each with its outcome, in call order
---@return table? raised {value=} when a hook raised: to be raised again when the history is whole
function batch.run(raw_calls, query)
	local calls = read_calls(raw_calls, query)
	local refusal = gate.policy(calls, query)
	if refusal then
		for _, call in ipairs(calls) do
			call.outcome = tool_result.failure(refusal)
		end
	else
		gate.permissions(calls, query)
		if not query.signal.aborted then
			run_plan(make_plan(calls, query), calls, query)
		end
		fill_missing(calls, query)
	end
	return calls, apply_hooks(calls, query)
end

return batch
