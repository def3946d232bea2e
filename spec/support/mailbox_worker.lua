-- A worker's definition for scripts/team_worker.lua: MAILBOX_KIND and MAILBOX_PLACE say where the mailbox is,
-- WORKER_LOG gets a line for each end: "<work item> <recorded | repeated | failure's kind> <outcome's mark>".

local lattice = require "lattice"

local LEASE_MS = tonumber(os.getenv "WORKER_LEASE_MS")
local place = os.getenv "MAILBOX_PLACE"
local mailbox
if os.getenv "MAILBOX_KIND" == "sqlite" then
	mailbox = assert(lattice.create_sqlite_mailbox { path = place, synchronous = "normal" })
else
	repeat -- the server may be down at this moment
		mailbox = lattice.create_postgres_mailbox { dsn = place }
		lattice.sleep(mailbox and 0 or 50)
	until mailbox
end
local log = assert(io.open(os.getenv "WORKER_LOG", "a"))
log:setvbuf "line"
local marks = {}

local function handle(task, item)
	if task.stops then
		os.execute "kill -STOP $PPID" -- this process, while no transaction of its own is under way
	end
	lattice.sleep(task.ms)
	local mark = ("%s:%d"):format(tostring(marks):gsub("table: ", ""), item.fencing_token)
	marks[item.work_item_id] = mark
	return { n = task.n, mark = mark }
end

return {
	mailbox = mailbox,
	members = { ann = handle, bob = handle },
	lease_ms = math.tointeger(LEASE_MS),
	on_end = function(item, done, why)
		local how = done and (done.repeated and "repeated" or "recorded") or why.kind
		log:write(item.work_item_id, " ", how, " ", marks[item.work_item_id], "\n")
	end,
}
