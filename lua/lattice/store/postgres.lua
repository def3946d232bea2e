--- A PostgreSQL database as the library's own stores use it: lists of statements, each list one transaction.
---
--- There is one connection, made again with growing pauses when it is lost. Statements whose end was not seen are sent
--- again then, so they must be such that a second time does no harm (lua/lattice/mailbox/sql.lua are). What was sent is
--- carried through, also when the caller is being stopped; only a pause before the next try ends with the caller.

local changes = require "lattice.mailbox.changes"
local core = require "lattice.core"
local task = require "lattice.task"

local postgres = {}

local FIRST_PAUSE_MS, LAST_PAUSE_MS = 20, 2000

---@class lattice.store.postgres
---@field on_notice? fun() something was sent, or notices may have been missed
local class = {}
class.__index = class

-- One channel for each schema.
local CHANNEL = "'lattice_' || substr(md5(current_schema()), 1, 16)"

--- What differs from SQLite in the text of statements.
postgres.dialect = {
	name = "postgres",
	now = "CAST(extract(epoch FROM statement_timestamp()) * 1000 AS bigint)",
	serial = "bigserial PRIMARY KEY",
	skip_locked = "FOR UPDATE SKIP LOCKED",
	each = function(parameter)
		return ("LATERAL (SELECT json_array_elements_text(CAST(%s AS json)) AS value)"):format(parameter)
	end,
	--- $1 names
	notify = ("SELECT pg_notify(%s, r.value) FROM {each $1} r"):format(CHANNEL),
	--- $1 name: until the end of the transaction
	lock_name = "SELECT pg_advisory_xact_lock(hashtextextended('lattice ' || $1, 0))",
}

local function on_close(fn)
	return setmetatable({}, { __close = fn })
end

-- Waits until an op is ready or the time is over; obeys no signal.
local function wait_ready(op, ms)
	local waitable = { done = false }
	local function fire()
		task.fire(waitable)
	end
	local timer = task.after(ms, fire)
	task.on_ready(op, fire)
	local _ <close> = on_close(function()
		task.cancel_after(timer)
		task.forget(op)
	end)
	task.wait(waitable)
	return op:ready()
end

local function run_on(connection, statements)
	local op <close> = connection:run(statements)
	task.wait_op(op)
	return op:result()
end

local function listen(connection)
	local results, why = run_on(connection, { { "SELECT " .. CHANNEL } })
	if results then
		results, why = run_on(connection, { { "LISTEN " .. results[1][1][1] } })
	end
	return results ~= nil, why
end

-- A connection that is up and listens.
local function connect(self)
	local connection, message = core.postgres_connect(self.dsn)
	if not connection then
		return nil, { kind = "invalid", message = message }
	end
	local made
	local _ <close> = on_close(function()
		if not made then
			connection:close()
		end
	end)
	if not wait_ready(connection, self.connect_timeout_ms) then
		local text = "PostgreSQL: no connection within %d ms"
		return nil, { kind = "lost", message = text:format(self.connect_timeout_ms) }
	end
	local state
	state, message = connection:state()
	if state ~= "ready" then
		return nil, { kind = "lost", message = message }
	end
	local why
	made, why = listen(connection)
	return made and connection, why
end

-- Lets go of the connection.
local function drop(self)
	self:ignore()
	if self.connection then
		self.connection:close()
		self.connection = nil
	end
end

local CLOSED = { kind = "closed", message = "the database is closed" }

-- The connection; the first one who finds none makes it, the others wait for that.
local function get_connection(self)
	while self.connecting do
		self.connected:wait(self.connected:version(), math.huge)
	end
	if self.closed then
		return nil, CLOSED
	elseif self.connection and self.connection:state() == "ready" then
		return self.connection
	end
	drop(self)
	self.connecting = true
	local _ <close> = on_close(function()
		self.connecting = false
		self.connected:fire()
	end)
	local made, why = connect(self)
	if made and self.closed then
		made:close()
		return nil, CLOSED
	end
	self.connection = made
	return made, why
end

local function pause(ms)
	local timer <close> = core.timer(ms * (0.5 + core.random()))
	task.await(timer)
end

--- Connects, once.
---@param dsn string
---@param settings table connect_timeout_ms, retry_ms
---@return lattice.store.postgres? database
---@return string? message without any password
function postgres.open(dsn, settings)
	local self = setmetatable({
		dsn = dsn,
		connected = changes.new(),
		dialect = postgres.dialect,
		connect_timeout_ms = settings.connect_timeout_ms,
		retry_ms = settings.retry_ms,
	}, class)
	local connection, why = get_connection(self)
	if not connection then
		return nil, why.message
	end
	return self
end

--- Runs statements as one transaction.
---@param statements table[] {sql, parameter…}; core.null for NULL
---@return table[][]? results for each statement its rows, each a list of columns; NULL is core.null
---@return table? failure {kind, message}
function class:run(statements)
	local ends = core.now_ms() + self.retry_ms
	local pause_ms = FIRST_PAUSE_MS
	while true do
		local results, why
		local connection
		connection, why = get_connection(self)
		if connection then
			results, why = run_on(connection, statements)
		end
		if results then
			return results
		elseif (why.kind ~= "lost" and why.kind ~= "timeout") or core.now_ms() + pause_ms > ends then
			return nil, why
		end
		pause(pause_ms)
		pause_ms = math.min(pause_ms * 2, LAST_PAUSE_MS)
	end
end

local function tell(self)
	if self.on_notice then
		self.on_notice()
	end
end

--- Looks whether something was sent since the last time, and says so by `on_notice`.
function class:look_for_notices()
	if self.connection and not self.closed and self.connection:noticed() then
		tell(self)
	end
end

--- While somebody waits: calls `on_notice` when something was sent, or the connection was lost.
function class:attend()
	local connection = self.connection
	if not connection or self.closed then
		return
	end
	if connection:noticed() or connection:state() ~= "ready" then
		return tell(self)
	end
	task.on_ready(connection, function()
		if not self.closed then
			connection:noticed()
			tell(self)
		end
	end)
	self.attended = connection
end

--- Takes back `attend`.
function class:ignore()
	if self.attended then
		task.forget(self.attended)
		self.attended = nil
	end
end

--- Closes it; what was sent may have happened or not.
function class:close()
	self.closed = true
	drop(self)
end

return postgres
