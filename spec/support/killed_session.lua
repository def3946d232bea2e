-- A session in a SQLite store that kills its own process at a given step:
-- lua5.4 killed_session.lua URL DATABASE EFFECTS STEP. Steps are before and after each record of the store, and before
-- and after the effect of each tool. With step 0 it runs to its end. Prints the result and how many steps there were.

local lattice = require "lattice"

local url, database, effects, last_step = arg[1], arg[2], arg[3], tonumber(arg[4])

local steps = 0
local function step()
	steps = steps + 1
	if steps == last_step then
		os.execute "kill -9 $PPID"
	end
end

local store = lattice.create_sqlite_mailbox { path = database }
local class = getmetatable(store)
local send = class.send
function class.send(...)
	step()
	local sent, why = send(...)
	step()
	return sent, why
end

local function effect(name, idempotent)
	return lattice.tool(name, "Has an effect", { n = "integer" }, function(input)
		step()
		local file <close> = assert(io.open(effects, "a"))
		file:write(name, input.n, "\n")
		file:flush()
		step()
		return "effect of " .. input.n
	end, { idempotent = idempotent })
end

local agent = lattice.create_bare_agent {
	base_url = url,
	api_key = "test-key-123456",
	max_retries = 0,
	session_store = store,
	session_id = "killed",
	tools = { effect("once"), effect("again", true) },
	tool_concurrency = { mode = "all" },
}
local result = agent:prompt "go on"
print(result.subtype, result.result or result.error.message)
print(steps)
print(lattice.json.encode(agent.messages))
