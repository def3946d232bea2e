-- The rows of the benchmark that are about many things at once; run.lua calls this with its own tools.

local OVERLAP_MS, OVERLAP_SLACK_MS = 20, 2
local SWITCHES = 1000000

---@param bench table row, measure, median, read_command, base_url, lua, bin, rounds
return function(bench)
	local row, lua = bench.row, bench.lua

	local function overlap(way)
		io.stderr:write("… 8 calls of 20 ms at once: ", way, "\n")
		return tonumber(bench.read_command(lua .. " scripts/bench/overlap.lua " .. way))
	end
	for _, way in ipairs { "sleep", "http", "process" } do
		row("8 × 20 ms at once, " .. way, "ms", nil, overlap(way), "%.2f", "<=", OVERLAP_MS + OVERLAP_SLACK_MS)
	end
	local sequential, parallel = overlap "worker_seq", overlap "worker"
	row("4 computing workers, 2 cores", "/ sequential", nil, parallel / sequential, "%.2f", "<=", 0.6)

	local function agents(count, cpu_limit, rss_limit)
		io.stderr:write(("… %d agents, three tool turns each\n"):format(count))
		local cpu, rss = {}, {}
		for round = 1, bench.rounds do
			local run = bench.measure(("%s scripts/bench/agents.lua %s/agents %d"):format(lua, bench.base_url, count))
			cpu[round], rss[round] = run.cpu_s, run.rss_mb
		end
		local name = count .. " agents × 3 turns, streamed"
		row(name, "CPU s", nil, bench.median(cpu), "%.3f", "<=", cpu_limit)
		row(name, "peak RSS MiB", nil, bench.median(rss), "%.1f", "<=", rss_limit)
	end
	agents(200, 0.30, 40)
	agents(1000, 0.90, 100)

	io.stderr:write "… switches and round trips\n"
	local text = bench.read_command(("%s scripts/bench/switches.lua %d"):format(lua, SWITCHES))
	local bare, switched, trip = text:match "(%S+) (%S+) (%S+)"
	local queue = tonumber(bench.read_command(bench.bin .. "handoff"))
	row("switch between two handlers", "µs", tonumber(bare), tonumber(switched), "%.3f")
	row("round trip to a worker", "µs", queue, tonumber(trip), "%.2f")
end
