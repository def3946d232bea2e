-- Worker processes on one mailbox that are killed, stopped and left without their server.

local core = require "lattice.core"
local lattice = require "lattice"
local mailboxes = require "spec.support.mailboxes"
local postgres = require "spec.support.postgres"

local SCALE = tonumber(os.getenv "LATTICE_SPEC_SCALE") or 1
local ITEMS = math.max(math.floor(2000 * SCALE), 60)
local WORKERS, KILL_EACH_MS, LEASE_MS, WORK_MS = 4, 1000, 1500, 30
local LUA = os.getenv "LUA" or "lua5.4"

local function signal_process(op, name)
	os.execute(("kill -%s %d"):format(name, op:pid()))
end

local function wait_until_stopped(op)
	repeat
		lattice.sleep(2)
		local file <close> = assert(io.open(("/proc/%d/stat"):format(op:pid())))
	until file:read("a"):match "%) (%a)" == "T"
end

-- Starts a worker process; the test owns it.
local function start_worker(place, lease_ms)
	return core.process_start {
		argv = { LUA, "scripts/team_worker.lua", "spec/support/mailbox_worker.lua" },
		env = {
			MAILBOX_KIND = place.kind, MAILBOX_PLACE = place.place, WORKER_LOG = place.log,
			WORKER_LEASE_MS = tostring(lease_ms or LEASE_MS),
		},
	}
end

local function read_log(place)
	local recorded, stale = {}, 0
	for line in io.lines(place.log) do
		local id, how, mark = line:match "^(%S+) (%S+) (%S+)$"
		if how == "recorded" then
			assert.is_nil(recorded[id], "recorded twice: " .. line)
			recorded[id] = mark
		elseif how == "stale" then
			stale = stale + 1
		end
	end
	return recorded, stale
end

local function enqueue_all(mailbox)
	local receipts = {}
	for n = 1, ITEMS do
		local who = n % 2 == 0 and "ann" or "bob"
		receipts[n] = assert(mailbox:enqueue(who, { n = n, ms = WORK_MS }, { max_attempts = 100 }))
	end
	return receipts
end

-- Every item has one outcome, and where a worker saw it recorded, it is that worker's.
local function check_outcomes(place, receipts)
	local recorded = read_log(place)
	for n, receipt in ipairs(receipts) do
		local item = assert(place.mailbox:work_item(receipt.work_item_id))
		assert.are.equal("completed", item.status)
		assert.are.equal(n, item.outcome.n)
		local mark = recorded[receipt.work_item_id]
		assert.is_true(mark == nil or mark == item.outcome.mark, "another worker's outcome")
	end
end

-- Kills one worker after the other, and starts another in its place, until everything is done.
local function run_workers(place, disturb)
	local receipts = enqueue_all(place.mailbox)
	local workers, killed, ids = {}, 0, {}
	for n, receipt in ipairs(receipts) do
		ids[n] = receipt.work_item_id
	end
	for i = 1, WORKERS do
		workers[i] = start_worker(place)
	end
	local function finished()
		local done, why = place.mailbox:wait_finished(ids, { timeout_ms = KILL_EACH_MS })
		assert.is_nil(why)
		return done
	end
	while not finished() do
		local victim = killed % WORKERS + 1
		signal_process(workers[victim], "KILL")
		killed = killed + 1
		workers[victim] = start_worker(place)
		if disturb then
			disturb(killed, workers)
		end
	end
	for _, worker in ipairs(workers) do
		worker:cancel()
	end
	check_outcomes(place, receipts)
	return killed
end

-- Stops one worker for longer than a lease, and lets it go on.
local function stop_for_a_while(workers, number)
	local worker = workers[number]
	signal_process(worker, "STOP")
	lattice.sleep(LEASE_MS + 300)
	signal_process(worker, "CONT")
end

local function conforms(kind)
	local place
	before_each(function()
		place = kind.make()
		place.log = os.tmpname()
	end)
	after_each(function()
		place.remove()
		os.remove(place.log)
	end)

	it("gives every item one outcome while a worker is killed each second", function()
		local killed = run_workers(place, kind.disturb)
		assert.is_true(SCALE < 1 or killed > 3, "done before everything had happened: " .. killed .. " killed")
	end)

	it("refuses the end of a worker that was stopped beyond its lease", function()
		local receipt = place.mailbox:enqueue("ann", { n = 1, ms = 0, stops = true })
		local worker <close> = start_worker(place, 100)
		wait_until_stopped(worker)
		local item
		repeat
			assert.are.equal("ann", place.mailbox:wait "ann")
			item = place.mailbox:claim_next("ann", { lease_ms = 600000 })
		until item
		assert.are.equal(2, item.attempt)
		assert.is_truthy(place.mailbox:complete(item, "mine"))
		signal_process(worker, "CONT")
		local later = place.mailbox:enqueue("ann", { n = 2, ms = 0 })
		assert.is_true(place.mailbox:wait_finished(later.work_item_id))
		assert.are.equal("mine", place.mailbox:work_item(receipt.work_item_id).outcome)
		local recorded, stale = read_log(place)
		assert.is_nil(recorded[receipt.work_item_id])
		assert.are.equal(1, stale)
	end)
end

local KINDS = {
	{
		name = "a file",
		make = function()
			local path, remove = mailboxes.sqlite_path()
			local mailbox = assert(lattice.create_sqlite_mailbox { path = path, synchronous = "normal" })
			return {
				kind = "sqlite", place = path, mailbox = mailbox,
				remove = function()
					mailbox:close()
					remove()
				end,
			}
		end,
		disturb = function(killed, workers)
			if killed == 2 then
				stop_for_a_while(workers, 4)
			end
		end,
	},
	{
		name = "a server that is restarted twice",
		unavailable = postgres.unavailable(),
		make = function()
			local dsn, schema = postgres.new_schema(true)
			local mailbox = assert(lattice.create_postgres_mailbox { dsn = dsn })
			return {
				kind = "postgres", place = dsn, mailbox = mailbox,
				remove = function()
					mailbox:close()
					postgres.drop_schema(schema)
				end,
			}
		end,
		disturb = function(killed, workers)
			if killed == 1 or killed == 3 then
				postgres.restart()
			elseif killed == 2 then
				stop_for_a_while(workers, 4)
			end
		end,
	},
}

for _, kind in ipairs(KINDS) do
	describe("worker processes on " .. kind.name, function()
		if kind.unavailable then
			pending("can't be had here: " .. kind.unavailable)
		else
			conforms(kind)
		end
	end)
end
