-- Random histories of a mailbox, beside a simple model of what must come out. SEED=… replays one.

local lattice = require "lattice"
local mailboxes = require "spec.support.mailboxes"

local SCALE = tonumber(os.getenv "LATTICE_SPEC_SCALE") or 1
local STEPS = math.max(math.floor(400 * SCALE), 40)
local seed = tonumber(os.getenv "SEED") or os.time()
local NAMES = { "ann", "bob", "cid" }
local THREADS = { "t1", "t2", "t3" }

-- What each reader has still to read, as lists of {thread, body}; queues of items, as lists.
local function new_model()
	local model = { unread = {}, queues = {}, held = {}, outcomes = {} }
	for _, name in ipairs(NAMES) do
		model.unread[name], model.queues[name] = {}, {}
	end
	return model
end

local function pick(list)
	return list[math.random(#list)]
end

local function some_names()
	local list = {}
	for _, name in ipairs(NAMES) do
		if math.random(2) == 1 then
			list[#list + 1] = name
		end
	end
	return #list > 0 and list or { pick(NAMES) }
end

local steps = {}

function steps.send(mailbox, model, number)
	local to, thread = some_names(), pick(THREADS)
	assert(mailbox:send { from = pick(NAMES), to = to, body = number, thread_id = thread })
	for _, name in ipairs(to) do
		table.insert(model.unread[name], { thread = thread, body = number })
	end
end

function steps.read(mailbox, model)
	local name, most = pick(NAMES), math.random(4)
	local thread = math.random(2) == 1 and pick(THREADS) or nil
	local expected, kept = {}, {}
	for _, one in ipairs(model.unread[name]) do
		if #expected < most and (not thread or one.thread == thread) then
			expected[#expected + 1] = one.body
		else
			kept[#kept + 1] = one
		end
	end
	local got = {}
	for i, message in ipairs(assert(mailbox:read(name, { thread_id = thread, max_messages = most }))) do
		got[i] = message.body
	end
	assert.are.same(expected, got)
	model.unread[name] = kept
end

function steps.enqueue(mailbox, model, number)
	local name = pick(NAMES)
	local receipt = assert(mailbox:enqueue(name, number))
	table.insert(model.queues[name], { n = number, id = receipt.work_item_id, attempt = 0, order = number })
end

function steps.claim(mailbox, model)
	local name = pick(NAMES)
	local expected = table.remove(model.queues[name], 1)
	local item, why = mailbox:claim_next(name)
	assert.is_nil(why)
	assert.are.equal(expected and expected.n, item and item.task)
	if item then
		expected.attempt = expected.attempt + 1
		assert.are.equal(expected.attempt, item.attempt)
		table.insert(model.held, { item = item, entry = expected, name = name })
	end
end

local function take_held(model)
	return #model.held > 0 and table.remove(model.held, math.random(#model.held)) or nil
end

function steps.complete(mailbox, model, number)
	local held = take_held(model)
	if held then
		assert.is_false(assert(mailbox:complete(held.item, number)).repeated)
		assert.is_true(assert(mailbox:complete(held.item, -number)).repeated)
		model.outcomes[held.entry.id] = number
	end
end

function steps.give_back(mailbox, model)
	local held = take_held(model)
	if not held then
		return
	end
	local entry, queue = held.entry, model.queues[held.name]
	if math.random(2) == 1 then
		entry.attempt = entry.attempt - 1
		assert(mailbox:release(held.item))
	elseif assert(mailbox:fail(held.item, "no", { retry = true })).status == "set_aside" then
		assert.are.equal(3, entry.attempt)
		return
	end
	local place = 1
	while queue[place] and queue[place].order < entry.order do
		place = place + 1
	end
	table.insert(queue, place, entry)
	assert.are.equal("stale", select(2, mailbox:complete(held.item, 0)).kind)
end

local KINDS = { "send", "send", "read", "enqueue", "claim", "claim", "complete", "give_back" }

-- The rest comes out in order, and nothing twice.
local function check_end(mailbox, model)
	for _, name in ipairs(NAMES) do
		local rest = assert(mailbox:read(name))
		assert.are.equal(#model.unread[name], #rest)
		for i, message in ipairs(rest) do
			assert.are.equal(model.unread[name][i].body, message.body)
		end
	end
	for _, thread in ipairs(THREADS) do
		local before = 0
		for position, message in ipairs(assert(mailbox:thread(thread))) do
			assert.are.equal(position, message.position)
			assert.is_true(message.body > before)
			before = message.body
		end
	end
	for id, outcome in pairs(model.outcomes) do
		assert.are.equal(outcome, mailbox:work_item(id).outcome)
	end
end

-- Many senders and readers at once, each message of which each reader must get once, in the order of its sender.
local function storm(place)
	local each = math.max(math.floor(40 * SCALE), 10)
	local open, got = #NAMES, {}
	local functions = {}
	for _, name in ipairs(NAMES) do
		functions[#functions + 1] = function()
			local mailbox = place.another()
			for n = 1, each do
				assert(mailbox:send { from = name, to = { "r1", "r2" }, body = { name, n }, thread_id = name })
			end
			open = open - 1
		end
	end
	for _, reader in ipairs { "r1", "r1", "r2" } do
		functions[#functions + 1] = function()
			local mailbox = place.another()
			local list = {}
			got[#got + 1] = { reader = reader, list = list }
			repeat
				local last = open == 0
				local messages = assert(mailbox:read(reader, { max_messages = 5 }))
				table.move(messages, 1, #messages, #list + 1, list)
				lattice.sleep(0)
			until last and #messages == 0
		end
	end
	for _, result in ipairs(lattice.gather(functions)) do
		assert(result.ok, tostring(result.error))
	end
	local seen = { r1 = {}, r2 = {} }
	for _, one in ipairs(got) do
		local last = {}
		for _, message in ipairs(one.list) do
			local name, n = message.body[1], message.body[2]
			assert.is_nil(seen[one.reader][name .. n], "read twice")
			seen[one.reader][name .. n] = true
			assert.is_true(n > (last[name] or 0), "out of order")
			last[name] = n
		end
	end
	for _, list in pairs(seen) do
		for _, name in ipairs(NAMES) do
			for n = 1, each do
				assert.is_true(list[name .. n], "lost")
			end
		end
	end
end

for _, kind in ipairs(mailboxes.all) do
	describe("a random history " .. kind.name, function()
		if kind.unavailable then
			pending("can't be had here: " .. kind.unavailable)
			return
		end
		local place
		before_each(function()
			place = kind.make()
		end)
		after_each(function()
			place.remove()
		end)

		it("comes out as a simple model says", function()
			print(("SEED=%d (%d steps)"):format(seed, STEPS))
			math.randomseed(seed)
			local model, handles = new_model(), { place.mailbox, place.another() }
			for number = 1, STEPS do
				steps[pick(KINDS)](pick(handles), model, number)
			end
			check_end(place.mailbox, model)
		end)

		it("of many at once gives each message to each reader once, in order", function()
			storm(place)
		end)
	end)
end
