-- Runs members of a team on this machine: lua scripts/team_worker.lua FILE
--
-- FILE is Lua. It returns a team (lattice.create_team), or a table:
--     return {
--       mailbox = assert(lattice.create_postgres_mailbox { dsn = os.getenv "DSN" }),
--       members = { ann = function(task, item, signal) … return outcome end },
--     }
-- and in it, where wanted: lease_ms (the mailbox's), max_concurrent_work_items (1, for each member), stop_after_idle_ms
-- (never), on_end(item, done, failure), called when an item's end was recorded or refused.
--
-- Any number of workers, on any number of machines, may run the same members. A handler that raises has its item tried
-- again until its attempts are used up. Ending a worker, by any signal, loses nothing: what it had claimed is claimed
-- again when the lease is over.

local lattice = require "lattice"

local HEARTBEATS = 3 -- in the time of one lease
local PAUSE_MS = 1000 -- after a failure of the mailbox
local DRAIN_AGAIN_MS = 1000 -- a team's item may be held back by another worker of its member

local function complain(...)
	io.stderr:write("team_worker: ", table.concat({ ... }), "\n")
end

-- Calls fn while the lease is renewed; its signal is aborted when the item is another worker's by now.
local function with_lease(mailbox, item, fn)
	local work, heart = lattice.abort_controller(), lattice.abort_controller()
	local function beat()
		while true do
			lattice.sleep(item.lease_ms / HEARTBEATS)
			local renewed, why = mailbox:heartbeat(item)
			if not renewed and why.kind == "stale" then
				work:abort "the work item was given to another worker"
				return
			end
		end
	end
	local results = lattice.gather { function()
		local ended = lattice.gather({ function()
			return fn(work.signal)
		end }, { signal = work.signal })[1]
		heart:abort "done"
		return ended
	end, function()
		lattice.gather({ beat }, { signal = heart.signal })
	end }
	return results[1].value
end

local function run_item(own, item)
	local ended = with_lease(own.mailbox, item, function(signal)
		return own.members[item.member_id](item.task, item, signal)
	end)
	local done, why
	if ended.ok then
		done, why = own.mailbox:complete(item, ended.value)
	else
		done, why = own.mailbox:fail(item, tostring(ended.error), { retry = true })
	end
	if not done then
		complain(item.work_item_id, ": ", tostring(why))
	end
	if own.on_end then
		own.on_end(item, done, why)
	end
end

-- Works on one member's items, one after the other, until nothing came for the idle time.
local function serve(own, member_id)
	while true do
		local item, why = own.mailbox:claim_next(member_id, { lease_ms = own.lease_ms })
		if item then
			run_item(own, item)
		elseif not why then
			local something
			something, why = own.mailbox:wait(member_id, { timeout_ms = own.stop_after_idle_ms })
			if not something and not why then
				return
			end
		end
		if why and why.kind == "closed" then
			return
		elseif why then
			complain(tostring(why))
			lattice.sleep(PAUSE_MS)
		end
	end
end

local function serve_members(own)
	local loops = {}
	for member_id in pairs(own.members) do
		for _ = 1, own.max_concurrent_work_items or 1 do
			loops[#loops + 1] = function()
				serve(own, member_id)
			end
		end
	end
	for _, result in ipairs(lattice.gather(loops)) do
		assert(result.ok, result.traceback and tostring(result.error) .. result.traceback or result.error)
	end
end

local function serve_team(team)
	while true do
		local something, why = team.mailbox:wait(team.names)
		local counts
		if something then
			counts, why = team:drain()
		end
		if why then
			complain(tostring(why))
		end
		if why or counts.work_items + counts.messages == 0 then
			lattice.sleep(why and PAUSE_MS or DRAIN_AGAIN_MS)
		end
	end
end

local path = arg[1]
if not path or path:sub(1, 1) == "-" then
	io.stderr:write "usage: lua scripts/team_worker.lua FILE (a Lua file that returns a team, or mailbox and members)\n"
	os.exit(2)
end
local own = assert(loadfile(path))()
if type(own) == "table" and type(own.members) == "table" and type(next(own.members)) == "string" then
	serve_members(own)
elseif type(own) == "table" and own.drain then
	serve_team(own)
else
	error(path .. ": expected a team, or a table with mailbox and members = { name = function }, got " .. type(own))
end
