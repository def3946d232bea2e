--- Lattice: a Lua-scriptable agent engine. `local lattice = require "lattice"`

local agent = require "lattice.agent"
local agent_tool = require "lattice.agent_tool"
local builtin = require "lattice.builtin"
local clock = require "lattice.clock"
local core = require "lattice.core"
local gather = require "lattice.gather"
local hooks = require "lattice.hooks"
local http = require "lattice.http"
local interrupt_on_sigint = require "lattice.interrupt"
local json = require "lattice.json"
local mailbox = require "lattice.mailbox"
local process = require "lattice.process"
local schema = require "lattice.schema"
local signal = require "lattice.signal"
local team = require "lattice.team"
local tool = require "lattice.tool"
local trace = require "lattice.trace"

local lattice = {
	schema = schema,
	json = json,
	null = json.null,
	array = json.array,
	tool = tool.new,
	create_agent = agent.create,
	create_bare_agent = agent.create_bare,
	define_agent = agent.define,
	load_agent = agent.load,
	agent_tool = agent_tool.new,
	delegate_tool = agent_tool.delegate,
	create_team = team.create,
	team_member = team.member,
	create_team_runner = team.runner,
	create_builtin_tools = builtin.create_tools,
	create_agent_workspace_tools = builtin.create_workspace_tools,
	create_composite_agent_hooks = hooks.create_composite,
	create_jsonl_context_tracer = trace.create_jsonl,
	create_composite_context_tracer = trace.create_composite,
	features = core.features,
	gather = gather,
	sleep = clock.sleep,
	create_memory_mailbox = mailbox.create_memory,
	create_sqlite_mailbox = mailbox.create_sqlite,
	create_postgres_mailbox = mailbox.create_postgres,
	http = http,
	process = process,
	interrupt_on_sigint = interrupt_on_sigint,
	abort_controller = signal.abort_controller,
	abort_timeout = signal.abort_timeout,
}

return lattice
