-- One batch of COUNT calls that each wait MS: how long the batch takes. lua5.4 overlap.lua WAY
--
-- WAY is sleep, http (a server answers after MS), process (`sleep`) or worker_seq, worker (computing; the first runs
-- the calls one by one). Prints the median over ROUNDS batches, in ms, from the first call's start to the last's end.

local lattice = require "lattice"

local WAY = arg[1]
local MS, COUNT, ROUNDS = 20, 8, tonumber(os.getenv "OVERLAP_ROUNDS") or 15
local SPIN = 12000000

local server = WAY == "http"
	and require("spec.support.server").start {
		routes = { ["GET /slow"] = require("spec.support.server").raw { body = "late", delay_ms = MS } },
		replies = {},
	}

local ways = {
	sleep = function()
		lattice.sleep(MS)
		return ""
	end,
	http = function()
		local reply = assert(lattice.http.request { url = server.url .. "/slow" })
		assert(reply.status == 200)
		return ""
	end,
	process = function()
		local result = assert(lattice.process.run { argv = { "sleep", tostring(MS / 1000) } })
		assert(result.status == 0)
		return ""
	end,
}

local function spin()
	local sum = 0
	for i = 1, SPIN do
		sum = sum + i % 7
	end
	return tostring(sum)
end

local is_worker = WAY:find "^worker" ~= nil
local count = is_worker and 4 or COUNT
local tool = lattice.tool("wait", "Waits", {}, is_worker and spin or ways[WAY], { worker = is_worker or nil })

local from, to
local tracer = {}
function tracer.emit(_, event)
	if event.event == "tool_start" then
		from = from or event.monotonic_ms
	elseif event.event == "tool_end" then
		to = math.max(to or 0, event.ended_ms)
	end
end

local function batch()
	local calls = {}
	for i = 1, count do
		calls[i] = { type = "tool_use", id = "call_" .. i, name = "wait", input = {} }
	end
	local replies = { { content = calls }, { content = "done" } }
	local agent = lattice.create_bare_agent {
		tools = { tool },
		tracer = tracer,
		tool_concurrency = { mode = WAY == "worker_seq" and "sequential" or "all" },
		model_client = {
			create = function()
				return table.remove(replies, 1)
			end,
		},
	}
	from, to = nil, nil
	assert(agent:prompt("go").subtype == "success")
	return to - from
end

batch() -- the first one starts threads and opens connections
local times = {}
for round = 1, ROUNDS do
	times[round] = batch()
end
table.sort(times)
print(("%.3f"):format(times[ROUNDS // 2 + 1]))
if server then
	server:stop()
end
