--- One model request: its bytes, its tries, its time limit.
---
--- Wire: Anthropic Messages API (POST …/v1/messages, anthropic-version 2023-06-01, server-sent events).

local core = require "lattice.core"
local errors = require "lattice.errors"
local signal = require "lattice.signal"
local task = require "lattice.task"

local request = {}

local RETRY_BASE_MS = 500
local RETRY_LONGEST_MS = 8000
local RETRY_JITTER = 0.25 -- up to this share is taken off at random, so that clients don't come back in step

local encode = core.json_encode

--- Where requests go: a base URL with or without a trailing path.
---@param base_url string
---@return string
function request.url(base_url)
	local base = base_url:gsub("/+$", "")
	if base:find "/v1/messages$" then
		return base
	elseif base:find "/v1$" then
		return base .. "/messages"
	end
	return base .. "/v1/messages"
end

local CACHE_MARK = ',"cache_control":{"type":"ephemeral"}'

local function system_json(system, prompt_cache)
	if not prompt_cache then
		return encode(system)
	end
	return '[{"type":"text","text":' .. encode(system) .. CACHE_MARK .. "}]"
end

local function output_config_json(settings)
	local parts = {}
	if settings.reasoning_effort then
		parts[#parts + 1] = '"effort":' .. encode(settings.reasoning_effort)
	end
	if settings.output_schema then
		parts[#parts + 1] = '"format":{"type":"json_schema","schema":' .. settings.output_schema:json() .. "}"
	end
	return #parts > 0 and "{" .. table.concat(parts, ",") .. "}" or nil
end

--- Everything of a request's body that stands before the messages, in a fixed order of keys.
---@param settings table model, max_tokens, system, tools_json, thinking_config, reasoning_effort, output_schema
---@return string
function request.prefix(settings)
	local parts = { '{"model":', encode(settings.model), ',"max_tokens":', encode(settings.max_tokens) }
	local function add(key, json)
		if json then
			parts[#parts + 1] = string.format(',"%s":', key)
			parts[#parts + 1] = json
		end
	end
	local system = settings.system
	add("system", system and system ~= "" and system_json(system, settings.prompt_cache) or nil)
	add("tools", settings.tools_json)
	add("thinking", settings.thinking_config and encode(settings.thinking_config))
	add("output_config", output_config_json(settings))
	parts[#parts + 1] = ',"stream":true,"messages":['
	return table.concat(parts)
end

local function backoff_ms(attempt)
	local ms = math.min(RETRY_LONGEST_MS, RETRY_BASE_MS * 2 ^ (attempt - 1))
	return ms * (1 - RETRY_JITTER * core.random())
end

local function timeout_error(query)
	local ms = tostring(query.settings.request_timeout_ms)
	return { kind = "timeout", type = "timeout", message = "the model request took longer than " .. ms .. " ms" }
end

-- Hands over events as they come, until the try has ended. Returns the signal that ended it early, if one did.
local function follow_exchange(exchange, query)
	while true do
		local message = exchange:next_message()
		if message then
			query:emit(message)
		elseif exchange:done() then
			return nil
		else
			local aborted = task.wait_op(exchange, query.signal)
			if aborted then
				return aborted
			end
		end
	end
end

local function try_once(query, shaped, timeout_ms)
	local api, settings = query.api, query.settings
	local exchange <close> = core.exchange {
		url = api.url,
		headers = api.headers,
		secrets = api.secrets,
		prefix = shaped.prefix or settings.prefix,
		history = not shaped.messages and query.history or nil,
		messages = shaped.messages,
		suffix = "]}",
		stream = true,
		events = query.stream and not query.discard, -- prompt has nobody to hand them to
		cache_mark = settings.prompt_cache and not shaped.messages or nil,
		timeout_ms = timeout_ms,
		idle_timeout_ms = settings.idle_timeout_ms,
		max_reply_bytes = settings.max_reply_bytes,
		max_request_bytes = settings.max_request_bytes,
	}
	query.exchange = exchange -- the consumer takes further events straight from it
	local aborted = follow_exchange(exchange, query)
	query.exchange = nil
	if aborted then
		return nil, { kind = "abort" }
	end
	return exchange:message()
end

local function announce_retry(query, attempt, delay_ms, problem)
	local event = {
		type = "system",
		subtype = "retry",
		attempt = attempt,
		max_retries = query.settings.max_retries,
		delay_ms = delay_ms,
		error = { type = problem.type, status = problem.status, message = problem.message },
	}
	query:trace("retry", { attempt = attempt, delay_ms = delay_ms, error = event.error })
	query:emit(event) -- what was streamed of the failed try is void
end

-- Waits before the next try; returns an error when that can't be.
local function pause(query, delay_ms, deadline)
	local remaining = deadline - core.now_ms()
	local timer <close> = core.timer(math.max(0, math.min(delay_ms, remaining)))
	if task.wait_op(timer, query.signal) then
		return { kind = "abort" }
	elseif delay_ms >= remaining then
		return timeout_error(query)
	end
end

-- Silence that broke the last try is a failure of the service, not the end of the request's own time.
local function as_final(problem)
	if problem.kind == "timeout" then
		problem.kind, problem.type = "io", problem.type or "idle_timeout"
	end
	return problem
end

local function send_http(query, shaped)
	local settings = query.settings
	local deadline = core.now_ms() + settings.request_timeout_ms
	local attempt = 0
	while true do
		local remaining = deadline - core.now_ms()
		if remaining <= 0 then
			return nil, timeout_error(query)
		end
		local message, problem = try_once(query, shaped, remaining)
		if message then
			return message
		elseif problem.kind == "timeout" and not problem.retryable then
			return nil, timeout_error(query)
		elseif not problem.retryable or attempt >= settings.max_retries or query.signal.aborted then
			return nil, as_final(problem)
		end
		attempt = attempt + 1
		local delay_ms = problem.retry_after_ms or backoff_ms(attempt)
		announce_retry(query, attempt, delay_ms, problem)
		local ended = pause(query, delay_ms, deadline)
		if ended then
			return nil, ended
		end
	end
end

local function client_problem(message)
	return { kind = "api", type = "model_client_error", message = message }
end

-- A Lua message, as a model_client returns it, goes through the same reader as a reply of the wire.
local function read_message(value)
	if type(value) ~= "table" or type(value.content) ~= "table" and type(value.content) ~= "string" then
		return nil, client_problem 'model_client.create: expected {role = "assistant", content = {…}}'
	end
	local content = value.content
	if type(content) == "table" then
		content = setmetatable({ table.unpack(content) }, core.array_mt)
	end
	local ok, json = pcall(encode, {
		type = "message",
		role = value.role or "assistant",
		id = value.provider_response_id,
		model = value.model,
		content = content,
		stop_reason = value.stop_reason,
		usage = value.usage,
	})
	if not ok then
		return nil, client_problem("model_client.create returned what can't be encoded: " .. errors.text(json))
	end
	local message, problem = core.message_from_json(json)
	if not message then
		local text = type(problem) == "table" and problem.message or tostring(problem)
		return nil, client_problem("model_client.create returned an invalid message: " .. text)
	end
	return message
end

local function message_of(value)
	local ok, message, problem = pcall(read_message, value)
	if not ok then
		return nil, client_problem("reading what model_client.create returned raised: " .. errors.text(message))
	end
	return message, problem
end

local function client_request(query, shaped, own_signal, on_event)
	local settings = query.settings
	local messages = shaped.message_list or query.history:messages()
	return {
		system = shaped.system or settings.system,
		messages = messages,
		tools = query.tools.descriptions(),
		model = settings.model,
		max_tokens = settings.max_tokens,
		stream = query.stream,
		signal = own_signal,
		timeout_ms = settings.request_timeout_ms,
		on_event = on_event,
	}
end

-- Runs model_client.create as a task of its own, so that its time can be bounded and its events handed over.
local function send_client(query, shaped)
	local controller = signal.abort_controller()
	local unfollow = controller:follow(query.signal)
	controller.signal.chain = query.signal.chain
	local changed, events, outcome, timed_out = { done = false }, {}, nil, false
	local timer = task.after(query.settings.request_timeout_ms, function()
		timed_out = true
		controller:abort "the request timed out"
	end)
	local asked = client_request(query, shaped, controller.signal, function(event)
		events[#events + 1] = event
		task.fire(changed)
	end)
	local client = query.model_client
	task.spawn(function()
		return client.create(asked)
	end, controller.signal, function(ok, value)
		outcome = { ok = ok, value = value }
		task.fire(changed)
	end)
	while true do
		local arrived = events
		events, changed = {}, { done = false }
		for _, event in ipairs(arrived) do
			query:emit { type = "stream_event", event = event }
		end
		if outcome and #events == 0 then
			break
		elseif #events == 0 then
			task.wait(changed)
		end
	end
	unfollow()
	task.cancel_after(timer)
	if outcome.ok then
		return message_of(outcome.value)
	elseif timed_out then
		return nil, timeout_error(query)
	elseif query.signal.aborted then
		return nil, { kind = "abort" }
	end
	return nil, client_problem(errors.text(outcome.value))
end

--- Sends the history (or what a hook made of it) and returns the assistant's message.
---@param query table the running query
---@param shaped table what on_model_request changed: prefix, system, messages (JSON), message_list
---@return userdata? message
---@return table? problem {kind = "api"|"timeout"|"abort"|"io"|"reply", type, message, status}
function request.send(query, shaped)
	if query.model_client then
		return send_client(query, shaped)
	end
	return send_http(query, shaped)
end

return request
