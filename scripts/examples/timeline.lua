-- A run whose trace shows the four ways a batch can go: lua5.4 scripts/examples/timeline.lua TRACE.jsonl
-- docs/timeline.svg is drawn from it: lua5.4 scripts/timeline.lua TRACE.jsonl docs/timeline.svg

local lattice = require "lattice"

local path = assert(arg[1], "usage: lua5.4 scripts/examples/timeline.lua TRACE.jsonl")

local function always()
	return true
end

local search = lattice.tool("search", "Searches", { ms = "integer" }, function(input)
	lattice.sleep(input.ms)
	return "found"
end, { is_concurrency_safe = always })

local write = lattice.tool("write", "Writes", { ms = "integer" }, function(input)
	lattice.sleep(input.ms)
	return "written"
end)

local compute = lattice.tool("compute", "Computes on a thread", { rounds = "integer" }, function(input)
	local sum = 0
	for i = 1, input.rounds do
		sum = sum + i % 7
	end
	return tostring(sum)
end, { worker = true, is_concurrency_safe = always })

local function call(name, input)
	return { type = "tool_use", name = name, input = input }
end

local replies = {
	{ content = { call("search", { ms = 30 }), call("search", { ms = 20 }), call("compute", { rounds = 1500000 }) } },
	{ content = { call("search", { ms = 15 }), call("write", { ms = 20 }), call("search", { ms = 15 }) } },
	{ content = "done" },
}

local tracer <close> = lattice.create_jsonl_context_tracer { path = path }
local agent = lattice.create_bare_agent {
	name = "timeline",
	tools = { search, write, compute },
	tracer = tracer,
	model_client = {
		create = function()
			lattice.sleep(10) -- a model takes its time
			return table.remove(replies, 1)
		end,
	},
}
assert(agent:prompt("go").subtype == "success")
