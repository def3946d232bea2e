local core = require "lattice.core"

local SCALE = tonumber(os.getenv "LATTICE_SPEC_SCALE") or 1
local BATCHES = math.max(20, math.floor(4000 * SCALE))

-- The model: literally "a call waits for the earlier calls that it conflicts with".
local function overlaps(a, b)
	if #a == 0 or #b == 0 then return false end
	for _, x in ipairs(a) do
		for _, y in ipairs(b) do
			if x == "*" or y == "*" or x == y then return true end
		end
	end
	return false
end

local function conflict(a, b)
	-- "*" is everything: also what the other call touches only by reading
	return overlaps(a.writes, b.writes) or overlaps(a.writes, b.reads) or overlaps(a.reads, b.writes)
end

local function new_model(calls, max)
	local model = { calls = calls, max = max, running = 0, stopped = false }
	for i, call in ipairs(calls) do
		call.state = "waiting"
		call.waits_for = {}
		for j = 1, i - 1 do
			if conflict(calls[j], call) then table.insert(call.waits_for, j) end
		end
	end
	return model
end

local function model_next(model)
	if model.stopped or model.running >= model.max then return nil end
	for i, call in ipairs(model.calls) do
		local free = call.state == "waiting"
		for _, j in ipairs(call.waits_for) do
			free = free and model.calls[j].state == "done"
		end
		if free then
			call.state = "running"
			model.running = model.running + 1
			return i
		end
	end
	return nil
end

local function model_done(model, i)
	model.calls[i].state = "done"
	model.running = model.running - 1
end

local function random_set(random, names, chance_of_all)
	if random(100) <= chance_of_all then return { "*" } end
	local set = {}
	for _ = 1, random(0, 3) do
		table.insert(set, names[random(#names)])
	end
	return set
end

local NAMES = { "a", "b", "c", "a/b", "", "\0", "**", "a\0b" }

local function random_calls(random)
	local calls = {}
	local chance_of_all = random(0, 40)
	local names = { table.unpack(NAMES, 1, random(#NAMES)) }
	for i = 1, random(0, 24) do
		calls[i] = { reads = {}, writes = {} }
		if random(4) > 1 then calls[i].reads = random_set(random, names, chance_of_all) end
		if random(3) > 1 then calls[i].writes = random_set(random, names, chance_of_all // 2) end
	end
	return calls
end

local function new_plan(calls, max)
	local plan = core.batch(#calls, max)
	for i, call in ipairs(calls) do
		plan:reads(i, call.reads[1] == "*" and "*" or call.reads)
		plan:writes(i, call.writes)
	end
	return plan
end

-- One batch run through both, step by step; what ends next is drawn by lot.
local function compare(random)
	local calls = random_calls(random)
	local max = random(1, 8)
	local model, plan = new_model(calls, max), new_plan(calls, max)
	local running, started = {}, 0
	while true do
		if random(200) == 1 then
			model.stopped = true
			plan:stop()
		end
		local expected, got = model_next(model), plan:next()
		assert.are.equal(expected, got)
		if got then
			started = started + 1
			table.insert(running, got)
		end
		assert.are.equal(model.running, plan:running())
		assert.are.equal(#calls - started, plan:pending())
		if #running > 0 and (not got or random(3) == 1) then
			local ended = table.remove(running, random(#running))
			model_done(model, ended)
			plan:done(ended)
		elseif not got then
			break
		end
	end
	assert.is_true(model.stopped or started == #calls)
end

describe("a batch plan", function()
	it("starts the same calls as the sentence it stands for, on random batches", function()
		local seed = tonumber(os.getenv "SEED") or os.time()
		print("SEED=" .. seed)
		math.randomseed(seed)
		for _ = 1, BATCHES do
			compare(math.random)
		end
	end)

	it("runs neighbouring safe calls together and an unsafe one alone, in its place", function()
		local plan = core.batch(5, 10)
		for i, set in ipairs { "reads", "reads", "writes", "reads", "reads" } do
			plan[set](plan, i, "*")
		end
		assert.are.same({ 1, 2, nil }, { plan:next(), plan:next(), plan:next() })
		plan:done(2)
		assert.is_nil(plan:next())
		plan:done(1)
		assert.are.equal(3, plan:next())
		assert.is_nil(plan:next())
		plan:done(3)
		assert.are.same({ 4, 5, nil }, { plan:next(), plan:next(), plan:next() })
	end)

	it("lets edits of two files overlap, while a read after a write of the same file waits", function()
		local plan = core.batch(3, 10)
		plan:writes(1, { "/w/a" })
		plan:writes(2, { "/w/b" })
		plan:reads(3, { "/w/a" })
		assert.are.same({ 1, 2, nil }, { plan:next(), plan:next(), plan:next() })
		plan:done(2)
		assert.is_nil(plan:next())
		plan:done(1)
		assert.are.equal(3, plan:next())
	end)

	it("compares names byte by byte: a folder isn't its files", function()
		local plan = core.batch(2, 2)
		plan:writes(1, { "/w" })
		plan:writes(2, { "/w/a" })
		assert.are.same({ 1, 2 }, { plan:next(), plan:next() })
	end)

	it("starts calls with empty sets together, up to max_concurrency", function()
		local plan = core.batch(4, 3)
		assert.are.same({ 1, 2, 3, nil }, { plan:next(), plan:next(), plan:next(), plan:next() })
		plan:done(2)
		assert.are.equal(4, plan:next())
	end)

	it("starts nothing after a stop, and still takes the ends of what runs", function()
		local plan = core.batch(3, 1)
		assert.are.equal(1, plan:next())
		plan:stop()
		plan:done(1)
		assert.is_nil(plan:next())
		assert.are.same({ 0, 2 }, { plan:running(), plan:pending() })
	end)

	it("counts a call's own names once: reading and writing one file doesn't make it wait for itself", function()
		local plan = core.batch(1, 1)
		plan:reads(1, { "a", "a" })
		plan:writes(1, { "a", "a" })
		plan:reads(1, "*")
		assert.are.equal(1, plan:next())
	end)

	it("says what is wrong with a misuse", function()
		local plan = core.batch(2, 1)
		assert.has_error(function() core.batch(1, 0) end,
			"bad argument #2 to 'batch' (expected a positive integer)")
		assert.error_matches(function() core.batch(-1, 1) end, "expected 0 to 1048576 calls")
		assert.error_matches(function() plan:reads(3, {}) end, "there is no such call")
		assert.error_matches(function() plan:reads(1, "a") end, 'expected a list of strings or "%*"')
		assert.error_matches(function() plan:reads(1, { "a", 7 }) end, "bad resource #2: expected a string, got number")
		assert.error_matches(function() plan:done(1) end, "isn't running")
		plan:next()
		plan:done(1)
		assert.error_matches(function() plan:done(1) end, "isn't running")
		assert.error_matches(function() plan:writes(2, {}) end, "before the first next")
	end)

	it("handles 1,000 calls that alternate between reading everything and writing one name", function()
		local plan = core.batch(1000, 1000)
		for i = 1, 500 do
			plan:reads(i, "*")
			plan:writes(500 + i, { "f" .. i })
		end
		for i = 1, 500 do assert.are.equal(i, plan:next()) end
		for i = 1, 500 do
			assert.is_nil(plan:next())
			plan:done(i)
		end
		for i = 501, 1000 do assert.are.equal(i, plan:next()) end
		assert.is_nil(plan:next())
	end)
end)
