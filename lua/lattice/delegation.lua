--- Giving a task to another agent: its turn, how deep, in no circle, and whose usage it is.
---
--- Who runs for whom is a *chain*: the signal of each query, and of each of its calls, bears a node
--- {agent, usage, parent, depth}. A node's parent is the query whose call it serves.

local agent = require "lattice.agent"
local core = require "lattice.core"
local errors = require "lattice.errors"
local options = require "lattice.options"
local task = require "lattice.task"

local delegation = {}

delegation.MAX_DEPTH = 8
delegation.MAX_RESULT_BYTES = 50000

--- Other classes that a task can be given to: metatable → function that gives the session that answers.
local sessions_behind = {}

--- Makes a class (teams) take tasks like a session.
---@param class table metatable
---@param session_of fun(value: any): lattice.agent
function delegation.register(class, session_of)
	sessions_behind[class] = session_of
end

delegation.target_kind = options.kind("an agent, a template (lattice.define_agent) or a team", function(value)
	return agent.is_session(value) or agent.is_spec(value) or sessions_behind[getmetatable(value)] ~= nil
end)

--- The session that answers for a target, and whether it is a fresh one.
---@param target any
---@return lattice.agent session
---@return boolean fresh
function delegation.session_of(target)
	if agent.is_spec(target) then
		return target:spawn(), true
	elseif agent.is_session(target) then
		return target, false
	end
	return sessions_behind[getmetatable(target)](target), false
end

-- ---- turns: a session answers one query at a time ----

local queues = setmetatable({}, { __mode = "k" }) -- session → turns, in the order they came
local waits = setmetatable({}, { __mode = "k" }) -- session that runs → { session it waits for = how often }

---@class lattice.turn
local turn_class = {}
turn_class.__index = turn_class

local function each_ancestor(chain, fn)
	while chain do
		fn(chain.agent)
		chain = chain.parent
	end
end

local function mark(turn, step)
	each_ancestor(turn.chain, function(waiter)
		local of = waits[waiter] or setmetatable({}, { __mode = "k" })
		waits[waiter] = of
		local count = (of[turn.session] or 0) + step
		of[turn.session] = count > 0 and count or nil
	end)
end

-- Whether waiting for a session would never end: it waits, however indirectly, for one that waits for it.
local function is_circle(session, chain)
	local own = {}
	each_ancestor(chain, function(ancestor)
		own[ancestor] = true
	end)
	local seen, open = {}, { session }
	while #open > 0 do
		local one = table.remove(open)
		if own[one] then
			return true
		elseif not seen[one] then
			seen[one] = true
			for following in pairs(waits[one] or {}) do
				open[#open + 1] = following
			end
		end
	end
	return false
end

local function wake_first(queue)
	if queue[1] and queue[1].waitable then
		task.fire(queue[1].waitable)
	end
end

--- Gives the turn to the next one.
function turn_class:__close()
	local queue = queues[self.session]
	for index, turn in ipairs(queue) do
		if turn == self then
			table.remove(queue, index)
			break
		end
	end
	if self.remove then
		self.remove()
	end
	if self.marked then
		mark(self, -1)
	end
	wake_first(queue)
end

-- Waits until the session is free and this turn is the first.
local function wait_turn(turn, scope)
	local queue = queues[turn.session]
	local waitable = queue[1] ~= turn and { done = false } or agent.until_free(turn.session)
	if not waitable then
		return
	end
	mark(turn, 1)
	turn.marked = true
	turn.remove = scope and scope:on_abort(function()
		task.fire(turn.waitable)
	end)
	while waitable and not (scope and scope.aborted) do
		turn.waitable = waitable
		task.wait(waitable)
		waitable = queue[1] ~= turn and { done = false } or agent.until_free(turn.session)
	end
	mark(turn, -1)
	turn.marked, turn.waitable = false, nil
	if scope then
		scope:throw_if_aborted()
	end
end

local function queue_up(session, chain)
	local queue = queues[session] or {}
	queues[session] = queue
	local turn = setmetatable({ session = session, chain = chain }, turn_class)
	queue[#queue + 1] = turn
	return turn
end

-- ---- usage ----

local USAGE = { "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens" }

local function add_usage(total, usage)
	for _, key in ipairs(USAGE) do
		total[key] = (total[key] or 0) + (usage[key] or 0)
	end
	total.runs = (total.runs or 0) + (usage.runs or 1)
	for name, inner in pairs(usage.agents or {}) do
		total.agents = total.agents or {}
		total.agents[name] = add_usage(total.agents[name] or {}, inner)
	end
	return total
end

--- Counts a run's usage for the query that asked for it: result.usage.agents[name].
---@param chain? table
---@param name string
---@param usage table
function delegation.count(chain, name, usage)
	if chain and chain.usage then
		local agents = chain.usage.agents or {}
		chain.usage.agents = agents
		agents[name] = add_usage(agents[name] or {}, usage)
	end
end

-- ---- running ----

local TOO_DEEP = 'agent "%s" did not start: agents call each other %d deep here already (max_depth). Do the work '
	.. "yourself, or answer with what you have."
local CIRCLE = 'agent "%s" did not start: it is waiting for this very answer, so they would wait for each other for '
	.. "ever. An agent can't be called, directly or through others, from inside its own run."

local function in_session(session, name, prompt, query_options, chain)
	local result = session:prompt(prompt, query_options)
	delegation.count(chain, name, result.usage)
	local scope = task.scope()
	if result.is_error and scope then
		scope:throw_if_aborted()
	end
	return result
end

local function run(name, target, prompt, run_options)
	local given = run_options or {}
	local scope = task.scope()
	local chain = scope and scope.chain
	local max_depth = given.max_depth or delegation.MAX_DEPTH
	if chain and chain.depth >= max_depth then
		return nil, TOO_DEEP:format(name, max_depth)
	end
	local session, fresh = delegation.session_of(target)
	if fresh then
		local own <close> = session
		if given.prepare then
			given.prepare(own)
		end
		local result = in_session(own, name, prompt, given.query, chain)
		return result
	elseif is_circle(session, chain) then
		return nil, CIRCLE:format(name)
	end
	local turn <close> = queue_up(session, chain)
	wait_turn(turn, scope)
	local result = in_session(session, name, prompt, given.query, chain)
	return result
end

--- Lets an agent answer a prompt, for the code that runs now. A session answers one at a time, in the order in which
--- they came; a template answers each in a fresh session, which is closed afterwards. Raises `error_abort` when the
--- running scope is aborted, and what a hook of the agent raised.
---@param name string
---@param target any see delegation.target_kind
---@param prompt string|table[]
---@param run_options? table max_depth, query (QueryOptions), prepare = function(session) for a fresh session
---@return table? result
---@return string? problem why it did not start
function delegation.run(name, target, prompt, run_options)
	-- A coroutine that dies of an error leaves its to-be-closed variables open; a protected call closes them.
	local ok, result, problem = pcall(run, name, target, prompt, run_options)
	if not ok then
		error(result, 0)
	end
	return result, problem
end

-- ---- what came out, as text ----

--- The text of a result, and whether the run failed.
---@param name string
---@param result table
---@return string text
---@return boolean failed
function delegation.text_of(name, result)
	if result.is_error then
		local problem = result.error or {}
		local text = 'agent "%s" ended with %s: %s'
		return text:format(name, result.subtype, errors.text(problem.message)), true
	end
	local text = result.result or ""
	if text == "" and result.structured_result ~= nil then
		local ok, json = pcall(core.json_encode, result.structured_result)
		text = ok and json or text
	end
	return text ~= "" and text or "(The agent gave no text.)", false
end

-- The place of a cut at or before `at` that splits no character.
local function border(text, at)
	while at > 0 and at < #text and text:byte(at + 1) & 0xC0 == 0x80 do
		at = at - 1
	end
	return at
end

--- Head and tail of a text that is too long, with a note between them about the rest.
---@param text string
---@param max_bytes integer
---@param note? string where the whole of it is
---@return string
function delegation.cut(text, max_bytes, note)
	if #text <= max_bytes then
		return text
	end
	local head = border(text, max_bytes * 3 // 4)
	local tail = border(text, #text - (max_bytes - head))
	local left_out = ("[… %d of %d bytes left out here. %s]"):format(tail - head, #text, note or "They are not kept.")
	return table.concat({ text:sub(1, head), left_out, text:sub(tail + 1) }, "\n")
end

return delegation
