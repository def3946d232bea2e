--- Teams: a lead and members around one mailbox.
---
--- The lead is a session whose tools are the members. Its handoffs are queued in the mailbox; after the batch the lead
--- pauses, the members work, and the lead gets all reports as its next input.

local agent = require "lattice.agent"
local agent_tool = require "lattice.agent_tool"
local core = require "lattice.core"
local delegation = require "lattice.delegation"
local mailboxes = require "lattice.mailbox"
local options = require "lattice.options"
local signal = require "lattice.signal"
local task = require "lattice.task"
local team_tools = require "lattice.team_tools"
local team_work = require "lattice.team_work"
local tool = require "lattice.tool"

local team = {}

local LEAD = "lead" -- the lead's name in the mailbox
local DRAIN_ROUNDS, DRAIN_MESSAGES = 100, 1000

---@class lattice.team
---@field name? string
---@field mailbox lattice.mailbox
---@field lead lattice.agent
local team_class = { __name = "lattice.team", LEAD = LEAD }
team_class.__index = team_class

function team_class:__tostring()
	return ("lattice.team(%s)"):format(self.name or self.lead.session_id)
end

delegation.register(team_class, function(self)
	return self.lead
end)

-- ---- members and runners ----

local MEMBER = {
	name = tool.name_kind,
	agent = delegation.target_kind,
	description = options.text,
	metadata = options.table,
	mailbox_tools = options.boolean,
	is_concurrency_safe = options.callable,
	max_depth = options.positive_integer,
	max_result_bytes = options.positive_integer,
}

local RUNNER = {
	max_concurrent_work_items = options.positive_integer,
	lease_ms = options.positive_integer,
	remote = options.boolean,
}

local member_class = { __name = "lattice.team_member" }
member_class.__index = member_class
local runner_class = { __name = "lattice.team_runner" }
runner_class.__index = runner_class

local function copy(given, class)
	local twin = {}
	for key, value in pairs(given) do
		twin[key] = value
	end
	return setmetatable(twin, class)
end

--- A member of a team. Its tool, which the lead calls, bears its name.
---@param member_options table name, agent (an agent, a template or a team), description, metadata, mailbox_tools
---  (true), is_concurrency_safe, max_depth (8), max_result_bytes (50000)
---@return table member for create_team
function team.member(member_options)
	local given = options.check("team_member", MEMBER, member_options)
	for _, key in ipairs { "name", "agent" } do
		options.argument("team_member: " .. key, MEMBER[key], given[key])
	end
	if given.name == LEAD or given.name == "host" then
		error(('team_member: name: expected another name than "%s"'):format(given.name), 2)
	end
	return copy(given, member_class)
end

--- How the members of a team are run.
---@param runner_options? table max_concurrent_work_items (1: one after the other), lease_ms (the mailbox's), remote
---  (false; true: handoffs wait for other processes that drain the mailbox)
---@return table runner for create_team
function team.runner(runner_options)
	return copy(options.check("create_team_runner", RUNNER, runner_options), runner_class)
end

-- ---- making a team ----

local TEAM = {
	name = options.text,
	lead = options.kind("an agent, a template (lattice.define_agent) or a table of AgentOptions", function(value)
		return agent.is_session(value) or agent.is_spec(value) or type(value) == "table" and getmetatable(value) == nil
	end),
	members = options.list(options.kind("", function(value)
		return getmetatable(value) == member_class
	end), "a list of members (lattice.team_member)"),
	mailbox = mailboxes.kind,
	runner = options.kind("a runner (lattice.create_team_runner)", function(value)
		return getmetatable(value) == runner_class
	end),
	expose_lead_mailbox_tools = options.boolean,
}

local function names_of(members)
	local names, seen = { LEAD }, {}
	for index, member in ipairs(members) do
		if seen[member.name] then
			error(('create_team: members[%d]: there is already a member named "%s"'):format(index, member.name), 3)
		end
		seen[member.name] = true
		names[#names + 1] = member.name
	end
	return names
end

-- A result that is too long goes into the mailbox whole, as a message that the lead may read.
local function keeper(self, name)
	return function(text)
		local sent = self.mailbox:send { from = name, to = LEAD, body = { text = text } }
		if sent then
			self.mailbox:mark_read(LEAD, { sent.message_id })
			return ("The whole of it is message %s in the team's mailbox (team_read)."):format(sent.message_id)
		end
	end
end

local function observe(self, name, input, grants)
	if #grants > 0 then
		return { content = "workspace_grants: with mode observe nothing runs that could use them", is_error = true }
	end
	local sent, why = self.mailbox:send { from = LEAD, to = name, body = { text = input.task } }
	if not sent then
		return { content = "The message was not accepted: " .. why.message, is_error = true }
	end
	return { content = core.json_encode(sent) }
end

local function runtime_of(self, member)
	return {
		prepare = member.prepare,
		keep = member.keep,
		handoff = function(_, input, grants)
			return team_work.handoff(self, member, input, grants)
		end,
		observe = function(name, input, grants)
			return observe(self, name, input, grants)
		end,
	}
end

-- Gives a member its mailbox tools: a session now, a template's sessions as they are made. The lead of a team that is a
-- member has those of its own team.
local function equip(self, given, names)
	local member = copy(given)
	member.target, member.keep = given.agent, keeper(self, given.name)
	local takes_tools = agent.is_session(given.agent) or agent.is_spec(given.agent)
	if given.mailbox_tools ~= false and takes_tools then
		local tools = team_tools.new(self.mailbox, given.name, names)
		member.has_tools = true
		if agent.is_session(given.agent) then
			agent.extend(given.agent, tools, nil, 4)
		else
			function member.prepare(session)
				agent.extend(session, tools, nil, 1)
			end
		end
	end
	return member
end

local function lead_session(lead)
	if agent.is_spec(lead) then
		return lead:spawn()
	elseif agent.is_session(lead) then
		return lead
	end
	return agent.create_bare(lead)
end

--- Makes a team. It is an agent: it takes prompts, and can be the target of agent_tool or a member of another team.
---@param team_options table lead (an agent, a template or AgentOptions), members, mailbox (a memory mailbox), runner,
---  name, expose_lead_mailbox_tools (false)
---@return lattice.team
function team.create(team_options)
	local given = options.check("create_team", TEAM, team_options)
	options.argument("create_team: lead", TEAM.lead, given.lead)
	options.argument("create_team: members", TEAM.members, given.members)
	local names = names_of(given.members)
	local self = setmetatable({
		name = given.name,
		mailbox = given.mailbox or mailboxes.create_memory(),
		runner = given.runner or team.runner {},
		lead = lead_session(given.lead),
		members = {},
		names = names,
	}, team_class)
	local tools = {}
	for index, one in ipairs(given.members) do
		local member = equip(self, one, names)
		self.members[index] = member
		tools[index] = agent_tool.define("agent_tool", member.name, member.target, member, runtime_of(self, member))
	end
	if given.expose_lead_mailbox_tools then
		local own = team_tools.new(self.mailbox, LEAD, names)
		table.move(own, 1, #own, #tools + 1, tools)
	end
	agent.extend(self.lead, tools, function(query)
		return team_work.after_batch(self, query)
	end, 2)
	return self
end

-- ---- using it ----

--- Lets the lead answer; as agent:prompt.
---@param prompt string|table[]
---@param query_options? table QueryOptions
---@return table result
function team_class:prompt(prompt, query_options)
	return self.lead:prompt(prompt, query_options)
end

--- Lets the lead answer and yields its messages; as agent:query. The reports of members come as a user message.
---@param prompt string|table[]
---@param query_options? table QueryOptions
---@return lattice.query iterator
function team_class:query(prompt, query_options)
	return self.lead:query(prompt, query_options)
end

--- Ends the lead's running query as interrupted; work that has not started is cancelled.
function team_class:interrupt()
	self.lead:interrupt()
end

local DRAIN = {
	max_rounds = options.positive_integer,
	max_messages = options.positive_integer,
	signal = signal.kind,
}

--- Lets the members work on what waits for them in the mailbox, without the lead: work items and unread messages. In
--- each round every member takes one work item, or else its unread messages.
---@param drain_options? table max_rounds (100), max_messages (1000: work items and messages together), signal
---@return table? counts {rounds, work_items, messages, completed, failed}
---@return any failure of the mailbox
function team_class:drain(drain_options)
	local given = options.check("team:drain", DRAIN, drain_options)
	local scope = task.scope()
	local controller = signal.abort_controller()
	local remove, remove_scope = controller:follow(given.signal), controller:follow(scope)
	if scope then
		controller.signal.chain, controller.signal.span = scope.chain, scope.span
	end
	local counts, problem = team_work.drain(
		self, given.max_rounds or DRAIN_ROUNDS, given.max_messages or DRAIN_MESSAGES, controller.signal)
	remove()
	remove_scope()
	return counts, problem
end

local SEND = {
	to = options.kind("the name of a member, or a list of names", function(value)
		return type(value) == "string" or options.list(options.string, "").test(value)
	end),
	from = options.text,
	body = options.any,
	thread_id = options.text,
}

--- Sends a message into the team's mailbox.
---@param message table to (names of members, or "lead"), body (text, or anything with a JSON form), from ("host"),
---  thread_id (a new one)
---@return table? receipt {status = "sent", message_id, thread_id, position}
---@return any failure of the mailbox
function team_class:send(message)
	local given = options.check("team:send", SEND, message)
	options.argument("team:send: to", SEND.to, given.to)
	local known = {}
	for _, name in ipairs(self.names) do
		known[name] = true
	end
	for _, name in ipairs(type(given.to) == "table" and given.to or { given.to }) do
		if not known[name] then
			local text = "team:send: to: expected one of %s, got %s"
			error(text:format(table.concat(self.names, ", "), options.got(name)), 2)
		end
	end
	return self.mailbox:send {
		from = given.from or "host",
		to = given.to,
		body = given.body,
		thread_id = given.thread_id,
	}
end

--- How much waits for each, and is done.
---@return table? status name → {unread, queued, claimed, completed, failed, cancelled, set_aside}
---@return any failure of the mailbox
function team_class:status()
	local all = {}
	for _, name in ipairs(self.names) do
		local status, why = self.mailbox:status(name)
		if not status then
			return nil, why
		end
		all[name] = status
	end
	return all
end

return team
