--- The statements of a mailbox on a database, for SQLite and PostgreSQL alike.
---
--- Parameters are "$1", "$2"…; `{now}` is milliseconds since 1970 by the database's clock, `{each $1}` the items of a
--- JSON list (as `value`), `{skip_locked}` leaves rows alone that another transaction has. Every list of statements
--- may be run a second time when nobody knows whether it was carried out: ids and tokens are the caller's.

local sql = {}

-- A work item is open while it is queued or claimed. From available_at on it can be claimed: for a claimed one that is
-- the end of its lease.
local OPEN = "status IN ('queued', 'claimed')"

--- The steps of the tables' versions.
sql.SCHEMA = {
	{
		[[CREATE TABLE lattice_threads (
			thread_id text NOT NULL PRIMARY KEY,
			messages bigint NOT NULL,
			last_message_id text NOT NULL,
			created_at bigint NOT NULL)]],
		[[CREATE TABLE lattice_messages (
			seq {serial},
			message_id text NOT NULL UNIQUE,
			thread_id text NOT NULL,
			position bigint NOT NULL,
			kind text NOT NULL,
			sender text NOT NULL,
			recipients text NOT NULL,
			body text NOT NULL,
			in_reply_to text,
			created_at bigint NOT NULL,
			UNIQUE (thread_id, position))]],
		[[CREATE TABLE lattice_deliveries (
			reader text NOT NULL,
			seq bigint NOT NULL,
			message_id text NOT NULL,
			thread_id text NOT NULL,
			read_at bigint,
			read_token text,
			PRIMARY KEY (reader, seq))]],
		"CREATE INDEX lattice_deliveries_unread ON lattice_deliveries (reader, seq) WHERE read_at IS NULL",
		"CREATE INDEX lattice_deliveries_message ON lattice_deliveries (message_id)",
		"CREATE INDEX lattice_deliveries_token ON lattice_deliveries (read_token) WHERE read_token IS NOT NULL",
		[[CREATE TABLE lattice_work_items (
			work_item_id text NOT NULL PRIMARY KEY,
			seq bigint NOT NULL,
			message_id text NOT NULL UNIQUE,
			thread_id text NOT NULL,
			member_id text NOT NULL,
			sender text NOT NULL,
			status text NOT NULL,
			attempt bigint NOT NULL,
			max_attempts bigint NOT NULL,
			fencing_token bigint NOT NULL,
			claim_token text,
			available_at bigint NOT NULL,
			lease_ms bigint,
			outcome text,
			error text,
			created_at bigint NOT NULL,
			first_claimed_at bigint,
			claimed_at bigint,
			finished_at bigint)]],
		"CREATE INDEX lattice_work_items_open ON lattice_work_items (member_id, seq) WHERE " .. OPEN,
		"CREATE INDEX lattice_work_items_claimed ON lattice_work_items (member_id, available_at) "
			.. "WHERE status = 'claimed'",
		"CREATE INDEX lattice_work_items_thread ON lattice_work_items (thread_id)",
	},
}

-- ---- messages ----

local TOUCH_THREAD = [[
INSERT INTO lattice_threads AS t (thread_id, messages, last_message_id, created_at)
SELECT $1, 1, $2, {now}
WHERE NOT EXISTS (SELECT 1 FROM lattice_messages WHERE message_id = $2) AND NOT EXISTS (%s)
ON CONFLICT (thread_id) DO UPDATE SET messages = t.messages + 1, last_message_id = excluded.last_message_id]]

--- $1 thread, $2 message, $3 readers, $4 max_queue: takes the next place in the thread, unless a reader's queue is
--- full. The row of the thread stays locked, so the order of places is the order of commits.
sql.touch_thread_for_readers = TOUCH_THREAD:format [[
SELECT 1 FROM {each $3} r WHERE CAST($4 AS bigint) <=
	(SELECT count(*) FROM lattice_deliveries d WHERE d.reader = r.value AND d.read_at IS NULL)]]

--- $3 member, $4 max_queue: the same, unless the member's queue is full.
sql.touch_thread_for_member = TOUCH_THREAD:format([[
SELECT 1 WHERE CAST($4 AS bigint) <=
	(SELECT count(*) FROM lattice_work_items WHERE member_id = $3 AND ]] .. OPEN .. ")")

--- $1 message, $2 thread, $3 kind, $4 sender, $5 recipients, $6 body, $7 in_reply_to: when it has got its place.
sql.insert_message = [[
INSERT INTO lattice_messages
	(message_id, thread_id, position, kind, sender, recipients, body, in_reply_to, created_at)
SELECT $1, t.thread_id, t.messages, $3, $4, $5, $6, $7, {now} FROM lattice_threads t
WHERE t.thread_id = $2 AND t.last_message_id = $1
ON CONFLICT (message_id) DO NOTHING]]

--- $1 message, $2 readers
sql.insert_deliveries = [[
INSERT INTO lattice_deliveries (reader, seq, message_id, thread_id)
SELECT r.value, m.seq, m.message_id, m.thread_id FROM lattice_messages m, {each $2} r WHERE m.message_id = $1
ON CONFLICT (reader, seq) DO NOTHING]]

--- $1 message
sql.position = "SELECT position FROM lattice_messages WHERE message_id = $1"

local MESSAGE = "m.message_id, m.thread_id, m.position, m.kind, m.sender, m.recipients, m.body, m.in_reply_to, "
	.. "m.created_at"
sql.MESSAGE_FIELDS = {
	"message_id", "thread_id", "position", "kind", "from", "to", "body", "in_reply_to", "created_at",
}

--- $1 reader, $2 thread or NULL, $3 limit, $4 token: marks unread messages with the token.
sql.take_unread = [[
WITH picked AS MATERIALIZED (
	SELECT seq FROM lattice_deliveries
	WHERE reader = $1 AND read_at IS NULL AND ($2 IS NULL OR thread_id = $2)
	ORDER BY seq LIMIT CAST($3 AS bigint) {skip_locked})
UPDATE lattice_deliveries SET read_at = {now}, read_token = $4
WHERE reader = $1 AND read_at IS NULL AND seq IN (SELECT seq FROM picked)]]

--- $1 token
sql.taken = "SELECT " .. MESSAGE .. [[
 FROM lattice_deliveries d JOIN lattice_messages m ON m.message_id = d.message_id
WHERE d.read_token = $1 ORDER BY d.seq]]

--- $1 reader, $2 thread or NULL, $3 limit
sql.unread = "SELECT " .. MESSAGE .. [[
 FROM lattice_deliveries d JOIN lattice_messages m ON m.message_id = d.message_id
WHERE d.reader = $1 AND d.read_at IS NULL AND ($2 IS NULL OR d.thread_id = $2)
ORDER BY d.seq LIMIT CAST($3 AS bigint)]]

--- $1 reader, $2 messages
sql.mark_read = [[
UPDATE lattice_deliveries SET read_at = {now}
WHERE reader = $1 AND read_at IS NULL AND message_id IN (SELECT value FROM {each $2} r)
RETURNING message_id]]

--- $1 message
sql.message = "SELECT " .. MESSAGE .. " FROM lattice_messages m WHERE m.message_id = $1"

--- $1 thread, $2 position, $3 limit
sql.thread = "SELECT " .. MESSAGE .. [[
 FROM lattice_messages m WHERE m.thread_id = $1 AND m.position > CAST($2 AS bigint)
ORDER BY m.position LIMIT CAST($3 AS bigint)]]

--- $1 thread
sql.participants = [[
SELECT sender FROM lattice_messages WHERE thread_id = $1
UNION SELECT r.value FROM lattice_messages m, {each m.recipients} r WHERE m.thread_id = $1]]

--- $1 message
sql.receipts = [[
SELECT reader, read_at FROM lattice_deliveries WHERE message_id = $1
UNION ALL SELECT member_id, first_claimed_at FROM lattice_work_items WHERE message_id = $1]]

--- $1 reader or NULL
sql.count_unread = "SELECT count(*) FROM lattice_deliveries WHERE read_at IS NULL AND ($1 IS NULL OR reader = $1)"

--- $1 member or NULL
sql.count_items = [[
SELECT status, count(*) FROM lattice_work_items WHERE ($1 IS NULL OR member_id = $1) GROUP BY status]]

-- ---- work items ----

--- $1 work item, $2 message, $3 member, $4 max_attempts
sql.insert_item = [[
INSERT INTO lattice_work_items (work_item_id, seq, message_id, thread_id, member_id, sender, status, attempt,
	max_attempts, fencing_token, available_at, created_at)
SELECT $1, m.seq, m.message_id, m.thread_id, $3, m.sender, 'queued', 0,
	CAST($4 AS bigint), 0, m.created_at, m.created_at
FROM lattice_messages m WHERE m.message_id = $2
ON CONFLICT (work_item_id) DO NOTHING]]

local SET_ASIDE = [[
UPDATE lattice_work_items SET status = 'set_aside', finished_at = {now},
	error = '"' || attempt || ' of ' || max_attempts
		|| ' attempts ended without an outcome: the worker died, or let its lease run out"'
WHERE status = 'claimed' AND available_at <= {now} AND attempt >= max_attempts AND %s]]

--- $1 member / members / work items: those that died in their last attempt.
sql.set_aside_of_member = SET_ASIDE:format "member_id = $1"
sql.set_aside_of_members = SET_ASIDE:format "member_id IN (SELECT value FROM {each $1} r)"
sql.set_aside_items = SET_ASIDE:format "work_item_id IN (SELECT value FROM {each $1} r)"

local ITEM = "w.work_item_id, w.message_id, w.thread_id, w.member_id, w.sender, m.body, w.status, w.attempt, "
	.. "w.max_attempts, w.fencing_token, w.lease_ms, w.outcome, w.error, w.created_at, w.claimed_at, w.finished_at"
sql.ITEM_FIELDS = {
	"work_item_id", "message_id", "thread_id", "member_id", "from", "task", "status", "attempt", "max_attempts",
	"fencing_token", "lease_ms", "outcome", "error", "created_at", "claimed_at", "finished_at",
}

local CLAIM = [[
UPDATE lattice_work_items SET status = 'claimed', attempt = attempt + 1, fencing_token = fencing_token + 1,
	claim_token = $2, lease_ms = CAST($3 AS bigint), available_at = {now} + CAST($3 AS bigint),
	claimed_at = {now}, first_claimed_at = coalesce(first_claimed_at, {now})
WHERE work_item_id = (
	SELECT work_item_id FROM lattice_work_items
	WHERE member_id = $1 AND ]] .. OPEN .. [[ AND available_at <= {now} AND attempt < max_attempts
		AND NOT EXISTS (SELECT 1 FROM lattice_work_items c WHERE c.member_id = $1 AND c.status = 'claimed' AND %s)
	ORDER BY seq LIMIT 1 {skip_locked})]]

--- $1 member, $2 token of this claim, $3 lease: the oldest that can be claimed, unless this claim has one already.
sql.claim = CLAIM:format "c.claim_token = $2"
--- The same, unless the member has one claimed.
sql.claim_serial = CLAIM:format "(c.claim_token = $2 OR c.available_at > {now})"

--- $1 member, $2 token
sql.claimed = "SELECT " .. ITEM .. [[
 FROM lattice_work_items w JOIN lattice_messages m ON m.message_id = w.message_id
WHERE w.member_id = $1 AND w.status = 'claimed' AND w.claim_token = $2]]

local HELD = " WHERE work_item_id = $1 AND fencing_token = CAST($2 AS bigint) AND status = 'claimed' RETURNING status"

--- $1 work item, $2 fencing token, $3 lease
sql.heartbeat = "UPDATE lattice_work_items SET available_at = {now} + CAST($3 AS bigint), "
	.. "lease_ms = CAST($3 AS bigint)" .. HELD

--- $3 status, $4 outcome or NULL, $5 error or NULL
sql.finish = "UPDATE lattice_work_items SET status = $3, finished_at = {now}, outcome = $4, "
	.. "error = coalesce($5, error)" .. HELD

--- $3 error, $4 delay
sql.retry = [[
UPDATE lattice_work_items SET error = $3, available_at = {now} + CAST($4 AS bigint),
	status = CASE WHEN attempt >= max_attempts THEN 'set_aside' ELSE 'queued' END,
	finished_at = CASE WHEN attempt >= max_attempts THEN {now} END]] .. HELD

--- $3 delay
sql.release = "UPDATE lattice_work_items SET status = 'queued', attempt = attempt - 1, "
	.. "available_at = {now} + CAST($3 AS bigint)" .. HELD

--- $1 work item, $2 error
sql.cancel = [[
UPDATE lattice_work_items SET status = 'cancelled', finished_at = {now}, error = $2
WHERE work_item_id = $1 AND status = 'queued' RETURNING status]]

--- $1 work item
sql.requeue = [[
UPDATE lattice_work_items SET status = 'queued', attempt = 0, available_at = {now}, error = NULL, finished_at = NULL
WHERE work_item_id = $1 AND status IN ('failed', 'cancelled', 'set_aside') RETURNING member_id]]

--- $1 work item
sql.state = "SELECT status, attempt, fencing_token FROM lattice_work_items WHERE work_item_id = $1"

--- $1 work item
sql.item = "SELECT " .. ITEM .. [[
 FROM lattice_work_items w JOIN lattice_messages m ON m.message_id = w.message_id WHERE w.work_item_id = $1]]

--- $1 member or NULL, $2 thread or NULL, $3 status or NULL, $4 limit
sql.items = "SELECT " .. ITEM .. [[
 FROM lattice_work_items w JOIN lattice_messages m ON m.message_id = w.message_id
WHERE ($1 IS NULL OR w.member_id = $1) AND ($2 IS NULL OR w.thread_id = $2) AND ($3 IS NULL OR w.status = $3)
ORDER BY w.seq LIMIT CAST($4 AS bigint)]]

-- ---- for those who wait ----

--- $1 readers and members: which have something, after how many milliseconds they may have, which have items to set
--- aside.
sql.look = [[
SELECT r.value,
	CASE WHEN EXISTS (SELECT 1 FROM lattice_deliveries d WHERE d.reader = r.value AND d.read_at IS NULL)
		OR EXISTS (SELECT 1 FROM lattice_work_items w WHERE w.member_id = r.value AND w.]] .. OPEN .. [[

			AND w.available_at <= {now} AND w.attempt < w.max_attempts) THEN 1 ELSE 0 END,
	(SELECT min(w.available_at) - {now} FROM lattice_work_items w WHERE w.member_id = r.value AND w.]] .. OPEN .. [[

		AND w.available_at > {now}),
	CASE WHEN EXISTS (SELECT 1 FROM lattice_work_items w WHERE w.member_id = r.value AND w.status = 'claimed'
			AND w.available_at <= {now} AND w.attempt >= w.max_attempts) THEN 1 ELSE 0 END
FROM {each $1} r]]

--- $1 work items: how many are there, are open, are to be set aside.
sql.look_items = [[
SELECT count(*), coalesce(sum(CASE WHEN ]] .. OPEN .. [[ THEN 1 ELSE 0 END), 0),
	coalesce(sum(CASE WHEN status = 'claimed' AND available_at <= {now} AND attempt >= max_attempts THEN 1 ELSE 0 END), 0)
FROM lattice_work_items WHERE work_item_id IN (SELECT value FROM {each $1} r)]]

--- A statement in a dialect.
---@param text string
---@param dialect table now, serial, skip_locked, each
---@return string
function sql.translate(text, dialect)
	return (text:gsub("{([%w_]+) ?([^}]*)}", function(word, argument)
		local meaning = dialect[word]
		return type(meaning) == "function" and meaning(argument) or meaning
	end))
end

return sql
