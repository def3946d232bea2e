-- Random batches, held against what the rules say: order kept, one result a call, the limit never passed, calls that
-- conflict never overlapping, a history that can be sent. Replay a failure with SEED=… ; ROUNDS=… sets how many.

local core = require "lattice.core"
local lattice = require "lattice"
local scripted = require "spec.support.scripted"

local seed = tonumber(os.getenv "SEED") or os.time()
local scale = tonumber(os.getenv "LATTICE_SPEC_SCALE") or 1
local rounds = tonumber(os.getenv "ROUNDS") or math.ceil(2000 * scale)

local PATHS = { "a", "b", "c" }

-- What a call does is in its input, so that the reference can read it.
local INPUT = {
	safe = "boolean?",
	rule = "string?",
	path = "string?",
	writes = "boolean?",
	turns = "integer?",
	act = "string?",
	n = "integer",
}

local function random_input(random, n)
	local rules = { "plain", "plain", "plain", "wait", "raise" }
	local acts = { "ok", "ok", "ok", "ok", "raise", "shape", "swallow" }
	return {
		n = n,
		safe = random(2) == 1,
		rule = rules[random(#rules)],
		path = random(3) > 1 and PATHS[random(#PATHS)] or nil,
		writes = random(2) == 1,
		turns = random(0, 3),
		act = acts[random(#acts)],
	}
end

-- The rules in their plainest form.
local function is_safe(input)
	return input.safe == true and input.rule ~= "raise"
end

local function sets(input, mode)
	if mode == "all" then
		return {}, {}
	elseif mode == "sequential" then
		return {}, { ["*"] = true }
	elseif mode == "resources" and input.path then
		local set = { [input.path] = true }
		return input.writes and {} or set, input.writes and set or {}
	elseif is_safe(input) then
		return { ["*"] = true }, {}
	end
	return {}, { ["*"] = true }
end

local function meet(one, other)
	if (one["*"] and next(other)) or (other["*"] and next(one)) then
		return true
	end
	for name in pairs(one) do
		if other[name] then
			return true
		end
	end
	return false
end

local function conflict(one, other, mode)
	local read_one, write_one = sets(one, mode)
	local read_other, write_other = sets(other, mode)
	return meet(write_one, write_other) or meet(write_one, read_other) or meet(read_one, write_other)
end

local function new_tools(log, abort)
	local function handler(input)
		local entry = { n = input.n, from = core.now_ms() }
		log.entries[input.n] = entry
		local ok, problem = pcall(function()
			for _ = 1, input.turns do
				lattice.sleep(0)
			end
			if log.abort_at == input.n then
				abort()
				lattice.sleep(0)
			end
		end)
		entry.to = core.now_ms()
		if not ok and input.act ~= "swallow" then
			error(problem, 0)
		elseif input.act == "raise" then
			error({ message = "raised " .. input.n })
		elseif input.act == "shape" then
			return 42
		end
		return "result " .. input.n
	end
	local function rule(input)
		if input.rule == "wait" then
			lattice.sleep(0)
		elseif input.rule == "raise" then
			error "a rule that raises"
		end
		return input.safe
	end
	local function resources(input)
		return { [input.writes and "write" or "read"] = { input.path } }
	end
	-- On a thread of its own: it can't write into the log, so its result says when it ran.
	local function worker(input)
		local from = require("lattice.core").now_ms()
		local sum = 0
		for i = 1, 100 * input.turns do
			sum = sum + i
		end
		if input.act == "raise" then
			error { message = "raised " .. input.n }
		elseif input.act == "shape" then
			return 42
		end
		return ("result %d %.17g %.17g"):format(input.n, from, require("lattice.core").now_ms())
	end
	return {
		lattice.tool("worker", "", INPUT, worker, { is_concurrency_safe = rule, worker = true }),
		lattice.tool("plain", "", INPUT, handler, { is_concurrency_safe = rule }),
		lattice.tool("file", "", INPUT, handler, { is_concurrency_safe = rule, resources = resources }),
	}
end

local function expected_text(input)
	if input.act == "raise" then
		return "raised " .. input.n
	elseif input.act == "shape" then
		return "no result"
	end
	return "result " .. input.n
end

local function check_results(calls, results, log, aborted)
	assert.equal(#calls, #results)
	for i, block in ipairs(results) do
		assert.equal(calls[i].id, block.tool_use_id)
		if calls[i].name == "missing" then
			assert.matches("Unknown tool", block.content)
		elseif type(calls[i].input.n) ~= "number" then
			assert.matches("Invalid input", block.content)
		elseif not aborted then
			assert.is_truthy(block.content:find(expected_text(calls[i].input), 1, true), block.content)
		elseif not log.entries[i] and calls[i].name ~= "worker" then
			assert.matches("did not start", block.content)
		end
	end
end

local function read_worker_times(calls, results, log)
	for i, block in ipairs(results) do
		local from, to = block.content:match "^result %d+ (%S+) (%S+)$"
		if calls[i].name == "worker" and from then
			log.entries[i] = { n = i, from = tonumber(from), to = tonumber(to) }
		end
	end
end

-- How many ran at once, at the most.
local function most_at_once(log)
	local marks, running, most = {}, 0, 0
	for _, entry in pairs(log.entries) do
		marks[#marks + 1] = { at = entry.from, change = 1 }
		marks[#marks + 1] = { at = entry.to, change = -1 }
	end
	table.sort(marks, function(a, b)
		return a.at < b.at or a.at == b.at and a.change < b.change
	end)
	for _, mark in ipairs(marks) do
		running = running + mark.change
		most = math.max(most, running)
	end
	return most
end

local function check_overlap(calls, log, mode)
	for j, later in pairs(log.entries) do
		for i, earlier in pairs(log.entries) do
			if i < j and conflict(calls[i].input, calls[j].input, mode) then
				assert.is_true(earlier.to <= later.from)
			end
		end
	end
end

local function check_history(messages)
	local open = {}
	for index, message in ipairs(messages) do
		assert.equal(index % 2 == 1 and "user" or "assistant", message.role)
		local answered = {}
		for _, block in ipairs(message.content) do
			if block.type == "tool_result" then
				assert.is_true(open[block.tool_use_id])
				answered[block.tool_use_id] = true
			end
		end
		assert.same(open, answered)
		open = {}
		for _, block in ipairs(message.content) do
			if block.type == "tool_use" then
				open[block.id] = true
			end
		end
	end
	assert.same({}, open)
end

local function random_calls(random)
	local calls = {}
	for n = 1, random(1, 9) do
		local odd = random(20)
		local input = random_input(random, n)
		local name = random(4) == 1 and "worker" or input.path and "file" or "plain"
		if name == "worker" then
			input.path = nil
		end
		if odd == 1 then
			input.n = "no number"
		elseif odd == 2 then
			name = "missing"
		end
		calls[n] = scripted.call(name, input, "call_" .. n)
	end
	return calls
end

local function run_round(random)
	local modes = { "safe", "all", "sequential", "resources" }
	local mode, limit = modes[random(#modes)], random(1, 5)
	local calls = random_calls(random)
	local log = { entries = {}, abort_at = random(6) == 1 and random(#calls) or nil }
	local controller = lattice.abort_controller()
	local results, result, agent = scripted.run(calls, {
		tools = new_tools(log, function()
			controller:abort "the test said so"
		end),
		tool_concurrency = { mode = mode, max_concurrency = limit },
	}, { signal = controller.signal })
	local aborted = controller.signal.aborted
	assert.equal(aborted and "error_abort" or "success", result.subtype)
	check_results(calls, results, log, aborted)
	read_worker_times(calls, results, log)
	assert.is_true(most_at_once(log) <= limit)
	check_overlap(calls, log, mode)
	check_history(agent.messages)
	assert.equal("success", agent:prompt("again").subtype)
end

describe("random batches", function()
	it(string.format("keep every promise (%d of them, SEED=%d)", rounds, seed), function()
		math.randomseed(seed)
		for round = 1, rounds do
			local ok, problem = pcall(run_round, math.random)
			if not ok then
				error(string.format("SEED=%d, round %d: %s", seed, round, tostring(problem)), 0)
			end
		end
	end)
end)
