-- The run of alloc_failure_test.c: a bare agent, three model requests (tool_use, tool_use, text).
-- Gets: the service's address, arm() to start counting allocations, disarm() to stop failing them, the phase, the mode.
-- Returns what came of it in a word: "success", "error_…", "raised"; or a sentence that begins with "broken".

local base_url, arm, disarm, phase, mode = ...
local lattice = require "lattice"
if phase == "run" then
	arm()
else
	disarm()
end

-- Every tool_use has its tool_result in the next message, in order, and roles alternate.
local function history_fault(messages)
	local expected = {}
	for i, message in ipairs(messages) do
		if message.role ~= (i % 2 == 1 and "user" or "assistant") then
			return ("message %d is the %s's"):format(i, message.role)
		end
		local calls = {}
		local results = 0
		for _, block in ipairs(type(message.content) == "table" and message.content or {}) do
			if block.type == "tool_use" then
				calls[#calls + 1] = block.id
			elseif block.type == "tool_result" then
				results = results + 1
				if block.tool_use_id ~= expected[results] then
					return ("message %d answers %s"):format(i, block.tool_use_id)
				end
			end
		end
		if results ~= #expected then
			return ("message %d has %d results for %d calls"):format(i, results, #expected)
		end
		expected = calls
	end
	return #expected > 0 and "the last call has no result" or nil
end

local function new_agent()
	local read_line = lattice.tool(
		"read_line",
		"Reads one line of a file",
		{ path = "string", line = "integer" },
		function(input)
			return { content = { { type = "text", text = input.path .. ":" .. input.line } } }
		end
	)
	return lattice.create_bare_agent {
		api_key = "test",
		base_url = base_url,
		model = "test-model",
		system_prompt = "You read files.",
		tools = { read_line },
		max_retries = 0,
	}
end

local function run(agent)
	local result
	for message in agent:query("Read two lines.", { stream = true }) do
		if message.type == "result" then
			result = message
		end
	end
	return result
end

local created, agent = pcall(new_agent)
if not created then
	return "raised"
end
local ran, result = pcall(run, agent)
local outcome = ran and result.subtype or "raised"
disarm()
if outcome == "success" then
	return outcome
end

-- One failure leaves a valid history. Without any memory there was none to write results into: then the next
-- prompt does. With memory there again, the same agent goes on where it was.
local fault = mode == "once" and history_fault(agent.messages)
if fault then
	return "broken history after " .. outcome .. ": " .. fault
end
local again = run(agent)
if again.subtype ~= "success" then
	local reason = again.error and again.error.message or again.result
	return ("broken: the next prompt ends as %s (%s)"):format(again.subtype, tostring(reason))
end
fault = history_fault(agent.messages)
return fault and "broken history after the next prompt: " .. fault or outcome
