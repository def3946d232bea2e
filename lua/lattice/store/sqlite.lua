--- An SQLite database as the library's own stores use it: lists of statements, each list one transaction.
---
--- A database has one thread, which runs the lists one after the other; the caller's coroutine waits meanwhile and
--- others go on. What was begun is carried through, also when the caller is being stopped: there is no doubt
--- afterwards whether it happened.

local core = require "lattice.core"
local task = require "lattice.task"

local sqlite = {}

---@class lattice.store.sqlite
local class = {}
class.__index = class

--- What differs from PostgreSQL in the text of statements.
sqlite.dialect = {
	name = "sqlite",
	now = "CAST((julianday('now') - 2440587.5) * 86400000 AS integer)",
	serial = "INTEGER PRIMARY KEY AUTOINCREMENT",
	skip_locked = "",
	each = function(parameter)
		return ("json_each(%s)"):format(parameter)
	end,
}

--- Opens a database; its file is made with the first statements.
---@param path string
---@param settings table busy_timeout_ms, synchronous
---@return lattice.store.sqlite? database
---@return string? message
function sqlite.open(path, settings)
	local handle, message = core.sqlite_open(path, settings)
	if not handle then
		return nil, message
	end
	return setmetatable({ handle = handle, dialect = sqlite.dialect }, class)
end

--- Runs statements as one transaction.
---@param statements table[] {sql, parameter…}; core.null for NULL
---@param writes boolean
---@return table[][]? results for each statement its rows, each a list of columns; NULL is core.null
---@return table? failure {kind, message}
function class:run(statements, writes)
	if not self.handle then
		return nil, { kind = "closed", message = "the database is closed" }
	end
	local op <close> = self.handle:run(statements, writes)
	task.wait_op(op)
	return op:result()
end

--- Closes it; statements that run are waited for.
function class:close()
	local handle = self.handle
	self.handle = nil
	if handle then
		handle:close()
	end
end

return sqlite
