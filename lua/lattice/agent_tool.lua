--- Agents as tools of other agents.

local delegation = require "lattice.delegation"
local options = require "lattice.options"
local schema = require "lattice.schema"
local tool = require "lattice.tool"
local workspace = require "lattice.workspace"

local agent_tool = {}

local s = schema

local OPTIONS = {
	description = options.text,
	metadata = options.table,
	is_concurrency_safe = options.callable,
	resources = options.callable,
	timeout_ms = options.milliseconds,
	max_depth = options.positive_integer,
	max_result_bytes = options.positive_integer,
}

local GRANTS = s.array(s.object {
	root = s.string({ min_length = 1 }):describe "A folder that you may use yourself",
	access = s.array(s.enum { "read", "write" }, { min_items = 1 }),
	reason = s.optional(s.string()),
})

local AGENT_SCHEMA = s.object {
	mode = s.default(s.enum({ "ask", "handoff", "observe" }), "ask"):describe(
		"ask waits for the answer; handoff queues the task and reports the outcome later; observe only tells the agent"
	),
	task = s.string({ min_length = 1 }):describe "What to do, with everything that the agent must know",
	workspace_grants = s.optional(GRANTS:describe "Folders that the agent may use for this task, besides its own"),
}

local DELEGATE_SCHEMA = s.object {
	task = s.string({ min_length = 1 }):describe "What to do, with everything that the agent must know",
}

local function failure(text)
	return { content = text, is_error = true }
end

-- ---- grants: narrowed to what the caller may use itself ----

local function beneath(path, root)
	return path == root or root == "/" or path:sub(1, #root + 1) == root .. "/"
end

local function allows(roots, path, kind)
	for _, root in ipairs(roots) do
		if beneath(path, root.path) and table.concat(root.access, " "):find(kind, 1, true) then
			return true
		end
	end
	return false
end

local NOT_YOURS = "workspace_grants[%d]: you can't grant %s access to %s: only what you may use yourself can be granted"

--- The grants that a caller may pass on, with canonical roots; never more than it has.
---@param view? lattice.workspace the caller's
---@param asked? table[]
---@return table[]? grants
---@return string? problem
function agent_tool.narrow(view, asked)
	if not asked or #asked == 0 then
		return {}
	end
	local opened, own_grants = workspace.behind(view)
	if not opened then
		return nil, "workspace_grants: you have no workspace of which you could grant a part"
	end
	local roots = opened.handle:roots()
	table.move(own_grants and own_grants:list() or {}, 1, own_grants and #own_grants:list() or 0, #roots + 1, roots)
	local grants = {}
	for index, grant in ipairs(asked) do
		local path, denied = opened.handle:canonical(grant.root, own_grants)
		for _, kind in ipairs(grant.access) do
			if not path or denied or not allows(roots, path, kind) then
				return nil, NOT_YOURS:format(index, kind, grant.root)
			end
		end
		grants[index] = { root = path, access = grant.access, reason = grant.reason }
	end
	return grants
end

--- The options of a query that an agent runs for a call.
---@param ctx table context and workspace of the call
---@param grants table[]
---@return table
function agent_tool.query_options(ctx, grants)
	return {
		context = ctx.context,
		permissions = #grants > 0 and { workspace_grants = grants } or nil,
	}
end

-- ---- handlers ----

--- What a finished run is as the result of a tool.
---@param name string
---@param result table
---@param given table max_result_bytes
---@param keep? fun(text: string): string? keeps a text that is too long, and says where
---@return table
function agent_tool.outcome(name, result, given, keep)
	local text, failed = delegation.text_of(name, result)
	local max_bytes = given.max_result_bytes or delegation.MAX_RESULT_BYTES
	if #text > max_bytes then
		text = delegation.cut(text, max_bytes, keep and keep(text))
	end
	return {
		content = text,
		is_error = failed or nil,
		metadata = {
			agent = name,
			session_id = result.session_id,
			subtype = result.subtype,
			num_turns = result.num_turns,
			usage = result.usage,
		},
	}
end

local NO_MAILBOX = 'agent "%s" can\'t take mode "%s" here: there is no mailbox to put the task into. Use mode "ask". '
	.. "(The modes handoff and observe work for the members of a team, lattice.create_team.)"

local function handler_of(name, target, given, runtime)
	return function(input, ctx)
		local grants, problem = agent_tool.narrow(ctx.workspace, input.workspace_grants)
		if not grants then
			return failure(problem)
		elseif input.mode == "handoff" or input.mode == "observe" then
			if not runtime then
				return failure(NO_MAILBOX:format(name, input.mode))
			end
			return runtime[input.mode](name, input, grants)
		end
		local result
		result, problem = delegation.run(name, target, input.task, {
			max_depth = given.max_depth,
			query = agent_tool.query_options(ctx, grants),
			prepare = runtime and runtime.prepare,
		})
		return result and agent_tool.outcome(name, result, given, runtime and runtime.keep) or failure(problem)
	end
end

local DESCRIPTIONS = {
	agent_tool = 'Gives a task to the agent "%s".',
	delegate_tool = 'Lets the agent "%s" do a task and returns its answer.',
}

local compiled = {}

local function compiled_schema(kind)
	if not compiled[kind] then
		compiled[kind] = schema.compile(kind == "agent_tool" and AGENT_SCHEMA or DELEGATE_SCHEMA)
	end
	return compiled[kind]
end

--- Makes the definition of either kind, from checked options.
---@param kind "agent_tool"|"delegate_tool"
---@param name string
---@param target any
---@param given table
---@param runtime? table of a team: handoff, observe, keep, prepare
---@return lattice.tool_definition
function agent_tool.define(kind, name, target, given, runtime)
	return tool.define {
		name = name,
		description = given.description or DESCRIPTIONS[kind]:format(name),
		kind = kind,
		schema = compiled_schema(kind),
		handler = handler_of(name, target, given, runtime),
		is_concurrency_safe = given.is_concurrency_safe,
		resources = given.resources,
		timeout_ms = given.timeout_ms,
		metadata = given.metadata,
	}
end

local function new(kind, name, target, given)
	options.argument(kind .. ": name", tool.name_kind, name, 3)
	local prefix = ('%s("%s")'):format(kind, name)
	options.argument(prefix .. ": agent", delegation.target_kind, target, 3)
	given = options.check(prefix, OPTIONS, given, 3)
	local definition = agent_tool.define(kind, name, target, given)
	return definition
end

--- Another agent as a tool: input `{mode = "ask"|"handoff"|"observe", task, workspace_grants?}`.
---
--- A session keeps its history and answers one call at a time, in the order in which they came; a template answers
--- each call in a fresh session. The agent obeys the call's signal; its usage stands in `result.usage.agents[name]`.
---@param name string of the tool: 1 to 64 of letters, digits, _ and -
---@param agent_or_spec any an agent, a template (define_agent) or a team
---@param tool_options? table description, metadata, is_concurrency_safe, resources, timeout_ms (ms), max_depth (8),
---  max_result_bytes (50000)
---@return lattice.tool_definition
function agent_tool.new(name, agent_or_spec, tool_options)
	local definition = new("agent_tool", name, agent_or_spec, tool_options)
	return definition
end

--- The plain form of it, for a model that shall only ask: input `{task}`, and the answer is the result.
---@param name string of the tool: 1 to 64 of letters, digits, _ and -
---@param agent_or_spec any an agent, a template (define_agent) or a team
---@param tool_options? table as for agent_tool
---@return lattice.tool_definition
function agent_tool.delegate(name, agent_or_spec, tool_options)
	local definition = new("delegate_tool", name, agent_or_spec, tool_options)
	return definition
end

return agent_tool
