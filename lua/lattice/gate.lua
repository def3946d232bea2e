--- What stands before a batch: the host's policy for the whole of it, and its permission for each call.

local core = require "lattice.core"
local errors = require "lattice.errors"
local options = require "lattice.options"
local tool_result = require "lattice.tool_result"

local gate = {}

-- The host's functions get copies: what they change in them must not get round the validation.
local function copy(value)
	if type(value) ~= "table" then
		return value
	end
	local twin = setmetatable({}, getmetatable(value))
	for key, field in pairs(value) do
		twin[key] = copy(field)
	end
	return twin
end

local function is_string_list(value)
	return value == nil or options.list(options.string, "").test(value)
end

local function is_text(value)
	return value == nil or type(value) == "string"
end

-- Says what is wrong with a policy's answer, or nil.
local function nonsense(answer)
	if type(answer) ~= "table" or type(answer.allowed) ~= "boolean" then
		return "expected {allowed = true} or {allowed = false, code, message, …}, got " .. options.got(answer)
	elseif answer.allowed then
		return nil
	elseif not is_text(answer.code) or not is_text(answer.message) or not is_text(answer.suggested_next_step) then
		return "code, message and suggested_next_step: expected strings"
	elseif not is_string_list(answer.conflicting_tool_call_ids) then
		return "conflicting_tool_call_ids: expected a list of strings"
	end
end

local function cleaned_list(list)
	local cleaned = setmetatable({}, core.array_mt)
	for index, text in ipairs(list) do
		cleaned[index] = tool_result.clean(text)
	end
	return cleaned
end

local function refusal_json(answer)
	local parts = { '{"allowed":false' }
	local function add(key, value)
		if value ~= nil then
			parts[#parts + 1] = string.format(",%s:%s", core.json_encode(key), core.json_encode(value))
		end
	end
	local ids = answer.conflicting_tool_call_ids
	add("code", tool_result.clean(answer.code or "invalid_tool_batch"))
	add("message", tool_result.clean(answer.message or "This combination of tool calls is not allowed."))
	add("conflicting_tool_call_ids", ids and cleaned_list(ids))
	add("suggested_next_step", answer.suggested_next_step and tool_result.clean(answer.suggested_next_step))
	parts[#parts + 1] = "}"
	return table.concat(parts)
end

--- Asks the policy about the whole batch, before any handler, safety rule or permission runs.
---@param calls lattice.call[]
---@param query table
---@return string? refusal the JSON that every call gets as its result; nil when the batch may run
function gate.policy(calls, query)
	local policy = query.policy
	if not policy then
		return nil
	end
	local seen = { tool_calls = {} }
	for index, call in ipairs(calls) do
		seen.tool_calls[index] = { id = call.id, name = call.name, input = copy(call.input), kind = call.kind }
	end
	local ok, answer = pcall(policy.validate, seen)
	local problem
	if ok then
		ok, problem = pcall(nonsense, answer)
	else
		problem = answer
	end
	problem = (problem ~= nil or not ok) and errors.text(problem) or nil
	if problem then
		answer = { allowed = false, code = "tool_batch_policy_error", message = "The tool batch policy failed: " .. problem }
	end
	query:trace("policy", { allowed = answer.allowed, code = answer.code, message = answer.message })
	return not answer.allowed and refusal_json(answer) or nil
end

local function denied(call, message)
	local text = string.format('Permission denied for tool "%s": %s', call.name, message)
	return tool_result.failure(text)
end

local function read_answer(answer)
	if type(answer) == "table" then
		return { behavior = answer.behavior, message = answer.message, updated_input = answer.updated_input }
	end
end

-- Asks for one call; returns the outcome of a denial, or nil.
local function ask(call, query)
	local ok, answer = pcall(query.permission, {
		tool_name = call.name,
		tool_call_id = call.id,
		kind = call.kind,
		input = copy(call.input),
		context = query.context,
		signal = query.signal,
	})
	if ok then
		ok, answer = pcall(read_answer, answer)
	end
	if not ok then
		return denied(call, "the permission check failed: " .. errors.text(answer))
	elseif type(answer) ~= "table" or (answer.behavior ~= "allow" and answer.behavior ~= "deny") then
		return denied(call, "the permission check gave no valid answer (expected behavior = \"allow\" or \"deny\")")
	elseif answer.behavior == "deny" then
		return denied(call, is_text(answer.message) and answer.message or "the host said no")
	elseif answer.updated_input ~= nil then
		local valid, value = call.definition.schema:validate(answer.updated_input)
		if not valid then
			return tool_result.invalid_input(call.name, value)
		end
		call.input = value
	end
end

--- Asks permission for each call that could run, one at a time, in call order, before anything starts.
---@param calls lattice.call[]
---@param query table
function gate.permissions(calls, query)
	if not query.permission then
		return
	end
	for _, call in ipairs(calls) do
		if not call.outcome and not query.signal.aborted then
			call.outcome = ask(call, query)
			query:trace("permission", {
				tool_name = call.name,
				tool_call_id = call.id,
				behavior = call.outcome and "deny" or "allow",
			})
		end
	end
end

return gate
