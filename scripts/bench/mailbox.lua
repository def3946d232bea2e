-- How many work items a second go through a mailbox: queued, claimed and completed, one after the other.
--   lua5.4 mailbox.lua sqlite|postgres PLACE N                 prints items a second
--   lua5.4 mailbox.lua sqlite|postgres PLACE statements FILE   makes the tables, writes the statements of one item

local lattice = require "lattice"

local kind, place, what, path = arg[1], arg[2], arg[3], arg[4]
local TASK = { goal = "write the parser", files = { "read.c", "write.c" }, limit = 250 }
local OUTCOME = { text = "The parser is written and its tests pass.", lines = 312 }

local function open()
	if kind == "sqlite" then
		return assert(lattice.create_sqlite_mailbox { path = place, synchronous = "normal" })
	end
	return assert(lattice.create_postgres_mailbox { dsn = place })
end

local function measure(items)
	local core = require "lattice.core"
	local mailbox <close> = open()
	local begun = core.now_ms()
	for _ = 1, items do
		assert(mailbox:enqueue("ann", TASK))
		local item = assert(mailbox:claim_next "ann")
		assert(mailbox:complete(item, OUTCOME))
	end
	print(("%.0f"):format(items / (core.now_ms() - begun) * 1000))
end

-- Runs one item and keeps what its store sends, with "#" for what changes from item to item.
local function write_statements()
	local mailbox <close> = open()
	local db = mailbox.store.db
	local out <close> = assert(io.open(path, "w"))
	local run, names = db.run, {}
	local function text(value)
		if value == lattice.null then
			return "-1\n"
		end
		local shown = tostring(value)
		shown = names[shown] or shown
		return ("%d\n%s\n"):format(#shown, shown)
	end
	function db.run(self, statements, writes)
		for i, statement in ipairs(statements) do
			for k = 2, #statement do
				local id = tostring(statement[k])
				if id:match "^%a+_%x+$" then
					names[id] = id:match "^%a+_" .. "#"
				elseif #id == 24 and id:match "^%x+$" then
					names[id] = "token#"
				end
			end
			out:write(i == 1 and 1 or 0, " ", #statement - 1, "\n", ("%d\n%s\n"):format(#statement[1], statement[1]))
			for k = 2, #statement do
				out:write(text(statement[k]))
			end
		end
		return run(self, statements, writes)
	end
	assert(mailbox:enqueue("ann", TASK))
	assert(mailbox:complete(assert(mailbox:claim_next "ann"), OUTCOME))
end

if what == "statements" then
	write_statements()
else
	measure(tonumber(what))
end
