--- Work items of a team: claiming them, letting members run, recording what came out, reporting.
---
--- A claimed item is recorded as finished whatever happens to its run, an abort included: what is written then runs
--- outside the scope that was aborted.

local core = require "lattice.core"
local delegation = require "lattice.delegation"
local errors = require "lattice.errors"
local signal = require "lattice.signal"
local task = require "lattice.task"
local team_tools = require "lattice.team_tools"

local team_work = {}

local HEARTBEATS = 3 -- in the time of one lease
local OTHERS_MS = 1000 -- how often to look again at items that other workers have claimed

-- Runs a function outside the scope of the running code, and waits for it. It returns one value.
local function shielded(fn)
	local ended, outcome = { done = false }, nil
	task.spawn(fn, nil, function(ok, value)
		outcome = { ok, value }
		task.fire(ended)
	end)
	task.wait(ended)
	return table.unpack(outcome, 1, 2)
end

-- ---- one item ----

-- Renews the lease while a member works; when the item is another worker's by now, the run stops.
local function keep_lease(team, item, controller)
	local beat = { stopped = false }
	local lease_ms = item.lease_ms or team.mailbox.lease_ms
	local function wait_and_renew()
		beat.timer = task.after(lease_ms / HEARTBEATS, function()
			local stale
			task.spawn(function()
				local renewed, why = team.mailbox:heartbeat(item)
				stale = not renewed and why and why.kind == "stale"
			end, nil, function()
				if stale then
					controller:abort "the work item was given to another worker"
				elseif not beat.stopped then
					wait_and_renew()
				end
			end)
		end)
	end
	wait_and_renew()
	return function()
		beat.stopped = true
		task.cancel_after(beat.timer)
	end
end

local function task_text(work)
	return type(work) == "table" and type(work.task) == "string" and work.task or team_tools.text_of(work)
end

local UNREAD = "Unread messages of your team for you: %d. team_inbox lists them, team_read reads them."

local function prompt_of(team, member, text)
	local blocks = { { type = "text", text = text } }
	local status = member.has_tools and team.mailbox:status(member.name)
	if status and status.unread > 0 then
		blocks[2] = { type = "text", text = UNREAD:format(status.unread) }
	end
	return blocks
end

local function run_member(team, member, text, grants, context)
	local result, problem = delegation.run(member.name, member.target, prompt_of(team, member, text), {
		max_depth = member.max_depth,
		prepare = member.prepare,
		query = {
			context = context,
			permissions = grants and #grants > 0 and { workspace_grants = grants } or nil,
		},
	})
	if not result then
		return { error = { message = problem } }
	end
	local whole, failed = delegation.text_of(member.name, result)
	if failed then
		return { error = { message = whole, subtype = result.subtype } }
	end
	local limit = member.max_result_bytes or delegation.MAX_RESULT_BYTES
	return {
		outcome = {
			text = #whole > limit and delegation.cut(whole, limit, member.keep(whole)) or whole,
			session_id = result.session_id,
			num_turns = result.num_turns,
		},
	}
end

local function record(team, item, done)
	if done.outcome then
		return team.mailbox:complete(item, done.outcome)
	end
	return team.mailbox:fail(item, done.error)
end

-- Starts the run of something claimed; `ended(done)` is called once, when it is recorded.
local function start(team, job, scope, ended)
	local controller = signal.abort_controller()
	local unfollow = controller:follow(scope)
	if scope then
		controller.signal.chain, controller.signal.span = scope.chain, scope.span
	end
	local release = job.item and keep_lease(team, job.item, controller)
	task.spawn(function()
		return run_member(team, job.member, job.text, job.grants, job.context)
	end, controller.signal, function(ok, value)
		unfollow()
		local done = ok and value or { error = { message = errors.text(value) } }
		task.spawn(function()
			return job.item and record(team, job.item, done)
		end, nil, function()
			if release then
				release()
			end
			ended(done)
		end)
	end)
end

-- Runs what `claim` gives, as many at once as the runner allows, until it gives nothing and nothing runs.
local function dispatch(team, claim, scope, on_end)
	local limit = team.runner.max_concurrent_work_items or 1
	local running, ran, problem = 0, 0, nil
	local changed = { done = false }
	while true do
		while running < limit and not problem and not (scope and scope.aborted) do
			local ok, job, why = pcall(claim)
			if not ok or not job then
				problem = not ok and job or why
				break
			end
			running, ran = running + 1, ran + 1
			start(team, job, scope, function(done)
				running = running - 1
				if on_end then
					on_end(job, done)
				end
				task.fire(changed)
			end)
		end
		if running == 0 then
			return ran, problem
		end
		task.wait(changed)
		changed = { done = false }
	end
end

local function claim_item(team, member, context)
	local item, why = team.mailbox:claim_next(member.name, { serial = true, lease_ms = team.runner.lease_ms })
	if not item then
		return nil, why
	end
	local work = item.task
	return {
		item = item,
		member = member,
		text = task_text(work),
		grants = type(work) == "table" and work.workspace_grants or nil,
		context = context,
	}
end

-- ---- the handoffs of a batch ----

-- Claims for the members of the pending handoffs, in their order.
local function claim_for(team, pending, started, context)
	return function()
		local tried = {}
		for _, handoff in ipairs(pending) do
			local name = handoff.member.name
			if not started[handoff.id] and not tried[name] then
				tried[name] = true
				local job, why = claim_item(team, handoff.member, context)
				if job then
					started[job.item.work_item_id] = true
					return job
				elseif why then
					return nil, why
				end
			end
		end
	end
end

local FINISHED = { completed = true, failed = true, cancelled = true, set_aside = true }

local function unfinished(team, handoffs)
	local left, ids = {}, {}
	for _, handoff in ipairs(handoffs) do
		if not handoff.work_item then
			local item, why = team.mailbox:work_item(handoff.id)
			if not item then
				return nil, nil, why
			elseif FINISHED[item.status] then
				handoff.work_item = item
			else
				left[#left + 1], ids[#ids + 1] = handoff, handoff.id
			end
		end
	end
	return left, ids
end

local function work_until_finished(team, handoffs, scope, context)
	while not scope.aborted do
		local left, ids, why = unfinished(team, handoffs)
		if not left or #left == 0 then
			return why
		end
		local ran = 0
		if not team.runner.remote then
			ran, why = dispatch(team, claim_for(team, left, {}, context), scope)
		end
		if why then
			return why
		elseif ran == 0 then
			team.mailbox:wait_finished(ids, { timeout_ms = OTHERS_MS })
		end
	end
end

local function cancel(team, handoffs, reason)
	shielded(function()
		for _, handoff in ipairs(handoffs) do
			team.mailbox:cancel(handoff.id, reason)
		end
	end)
end

local function report(handoff, problem)
	local item = handoff.work_item
	local head = ("Report of %s (work item %s): "):format(handoff.member.name, handoff.id)
	if not item then
		return head .. "not finished: " .. errors.text(problem or "the run was stopped")
	elseif item.status == "completed" then
		return head .. "completed\n" .. team_tools.text_of(item.outcome)
	end
	local why = type(item.error) == "table" and item.error.message or item.error
	return head .. item.status .. "\n" .. errors.text(why)
end

--- What follows a batch of the lead's: its handoffs are worked on until all are finished; then it gets the reports, in
--- the order of the handoffs. When the run was aborted, what has not started is cancelled.
---@param team lattice.team
---@param query lattice.query
---@return string[] reports
function team_work.after_batch(team, query)
	local chain = query.signal.chain
	local handoffs = {}
	for _, slot in ipairs(chain.handoffs or {}) do
		handoffs[#handoffs + 1] = slot.id and slot or nil
	end
	chain.handoffs = nil
	if #handoffs == 0 then
		return {}
	end
	local ok, problem = pcall(work_until_finished, team, handoffs, query.signal, query.context)
	if query.signal.aborted then
		cancel(team, handoffs, "aborted: " .. errors.text(query.signal.reason))
		return {}
	elseif ok and not problem then
		unfinished(team, handoffs)
	end
	local reports = {}
	for index, handoff in ipairs(handoffs) do
		reports[index] = report(handoff, problem)
	end
	return reports
end

-- ---- draining ----

local function messages_text(messages)
	local parts = { "Messages of your team for you:" }
	for _, message in ipairs(messages) do
		parts[#parts + 1] = ("From %s (message %s, thread %s):\n%s"):format(
			message.from, message.message_id, message.thread_id, team_tools.text_of(message.body))
	end
	return table.concat(parts, "\n\n")
end

-- A work item of the member's, or else its unread messages, as one job.
local function claim_anything(team, member, budget)
	local job, why = claim_item(team, member, nil)
	if job or why then
		budget.left = job and budget.left - 1 or budget.left
		return job, why
	end
	local messages
	messages, why = team.mailbox:read(member.name, { max_messages = budget.left })
	if not messages or #messages == 0 then
		return nil, why
	end
	budget.left = budget.left - #messages
	budget.messages = budget.messages + #messages
	return { member = member, text = messages_text(messages) }
end

local function round_of(team, budget)
	local index = 0
	return function()
		while index < #team.members and budget.left > 0 do
			index = index + 1
			local job, why = claim_anything(team, team.members[index], budget)
			if job or why then
				return job, why
			end
		end
	end
end

--- Lets the members work on what waits for them, in rounds: in each, every member takes one work item, or else its
--- unread messages.
---@param team lattice.team
---@param max_rounds integer
---@param max_messages integer work items and messages together
---@param scope? lattice.signal
---@return table? counts {rounds, work_items, messages, completed, failed}
---@return any problem a failure of the mailbox
function team_work.drain(team, max_rounds, max_messages, scope)
	local counts = { rounds = 0, work_items = 0, messages = 0, completed = 0, failed = 0 }
	local budget = { left = max_messages, messages = 0 }
	while counts.rounds < max_rounds and budget.left > 0 and not (scope and scope.aborted) do
		local ran, problem = dispatch(team, round_of(team, budget), scope, function(job, done)
			local key = done.outcome and "completed" or "failed"
			counts[key] = counts[key] + 1
			counts.work_items = counts.work_items + (job.item and 1 or 0)
		end)
		if problem then
			return nil, problem
		elseif ran == 0 then
			break
		end
		counts.rounds = counts.rounds + 1
	end
	counts.messages = budget.messages
	return counts
end

-- ---- what the members' tools do besides asking ----

--- Queues a task for a member, from a call of the lead's.
---@param team lattice.team
---@param member table
---@param input table task
---@param grants table[]
---@return table result for the model
function team_work.handoff(team, member, input, grants)
	local scope = task.scope()
	local chain = scope and scope.chain
	local slot = { member = member } -- takes its place in the order of the calls before anything waits
	if chain then
		chain.handoffs = chain.handoffs or {}
		table.insert(chain.handoffs, slot)
	end
	local work = { task = input.task, workspace_grants = #grants > 0 and grants or nil }
	local receipt, why = team.mailbox:enqueue(member.name, work, { from = team.LEAD })
	if not receipt then
		return { content = "The handoff was not accepted: " .. why.message, is_error = true }
	end
	slot.id = receipt.work_item_id
	receipt.completion_pending = true
	return { content = core.json_encode(receipt) }
end

return team_work
