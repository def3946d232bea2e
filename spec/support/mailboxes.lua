--- The mailboxes that one conformance spec runs against: each entry makes a fresh one, and further handles on it.

local lattice = require "lattice"
local postgres = require "spec.support.postgres"

local mailboxes = {}

local function merged(options, own)
	local all = {}
	for key, value in pairs(options or {}) do
		all[key] = value
	end
	for key, value in pairs(own) do
		all[key] = value
	end
	return all
end

local function remove_database(path)
	for _, ending in ipairs { "", "-wal", "-shm" } do
		os.remove(path .. ending)
	end
end

--- A file name for a new SQLite database, and what removes it.
function mailboxes.sqlite_path()
	local path = os.tmpname()
	return path, function()
		remove_database(path)
	end
end

--- Each: name, unavailable (why it can't be had), make(options) → place with `mailbox`, `another()` (a second handle on
--- the same one; the same one in memory) and `remove()`.
mailboxes.all = {
	{
		name = "in memory",
		make = function(options)
			local mailbox = lattice.create_memory_mailbox(options)
			return {
				mailbox = mailbox,
				another = function()
					return mailbox
				end,
				remove = function()
					mailbox:close()
				end,
			}
		end,
	},
	{
		name = "on SQLite",
		make = function(options)
			local path, remove = mailboxes.sqlite_path()
			local handles = {}
			local function open()
				local mailbox = assert(lattice.create_sqlite_mailbox(merged(options, { path = path, synchronous = "normal" })))
				handles[#handles + 1] = mailbox
				return mailbox
			end
			return {
				mailbox = open(),
				another = open,
				remove = function()
					for _, mailbox in ipairs(handles) do
						mailbox:close()
					end
					remove()
				end,
			}
		end,
	},
	{
		name = "on PostgreSQL",
		unavailable = postgres.unavailable(),
		make = function(options)
			local dsn, schema = postgres.new_schema()
			local handles = {}
			local function open()
				local mailbox = assert(lattice.create_postgres_mailbox(merged(options, { dsn = dsn })))
				handles[#handles + 1] = mailbox
				return mailbox
			end
			return {
				mailbox = open(),
				another = open,
				remove = function()
					for _, mailbox in ipairs(handles) do
						mailbox:close()
					end
					postgres.drop_schema(schema)
				end,
			}
		end,
	},
}

return mailboxes
