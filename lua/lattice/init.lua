--- Lattice: a Lua-scriptable agent engine. `local lattice = require "lattice"`
---
--- What a script doesn't use isn't loaded: a name's module comes in when the name is first looked up.

-- Name → its module, and the field there; without a field the module itself.
local PUBLIC = {
	schema = { "lattice.schema" },
	json = { "lattice.json" },
	null = { "lattice.json", "null" },
	array = { "lattice.json", "array" },
	tool = { "lattice.tool", "new" },
	create_agent = { "lattice.agent", "create" },
	create_bare_agent = { "lattice.agent", "create_bare" },
	define_agent = { "lattice.agent", "define" },
	load_agent = { "lattice.agent", "load" },
	agent_tool = { "lattice.agent_tool", "new" },
	delegate_tool = { "lattice.agent_tool", "delegate" },
	create_team = { "lattice.team", "create" },
	team_member = { "lattice.team", "member" },
	create_team_runner = { "lattice.team", "runner" },
	create_builtin_tools = { "lattice.builtin", "create_tools" },
	create_agent_workspace_tools = { "lattice.builtin", "create_workspace_tools" },
	create_composite_agent_hooks = { "lattice.hooks", "create_composite" },
	create_jsonl_context_tracer = { "lattice.trace", "create_jsonl" },
	create_composite_context_tracer = { "lattice.trace", "create_composite" },
	create_memory_mailbox = { "lattice.mailbox", "create_memory" },
	create_sqlite_mailbox = { "lattice.mailbox", "create_sqlite" },
	create_postgres_mailbox = { "lattice.mailbox", "create_postgres" },
	features = { "lattice.core", "features" },
	gather = { "lattice.gather" },
	sleep = { "lattice.clock", "sleep" },
	http = { "lattice.http" },
	process = { "lattice.process" },
	interrupt_on_sigint = { "lattice.interrupt" },
	abort_controller = { "lattice.signal", "abort_controller" },
	abort_timeout = { "lattice.signal", "abort_timeout" },
}

local lattice = {}

local function load_name(name)
	local place = PUBLIC[name]
	if not place then
		return nil
	end
	local value = require(place[1])
	if place[2] then
		value = value[place[2]]
	end
	rawset(lattice, name, value)
	return value
end

return setmetatable(lattice, {
	__index = function(_, name)
		return load_name(name)
	end,
	__pairs = function()
		for name in pairs(PUBLIC) do
			load_name(name)
		end
		return next, lattice, nil
	end,
})
