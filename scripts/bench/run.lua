-- `make bench`: runs each scenario with the floor program and with Lattice, prints a table, writes bench.json.
--
-- Each scenario runs ROUNDS times, floor and Lattice in turn, against one server process on this machine; the
-- figures are medians. CPU is user plus system time of the client process, RSS its peak (wait4). Instructions are
-- counted by callgrind.

local ROUNDS = tonumber(os.getenv "BENCH_ROUNDS") or 11
local BUILD = os.getenv "BUILD" or "build"
local LUA = os.getenv "LUA" or "lua5.4"
local BIN = BUILD .. "/bench/"
local MIB = 1024

local JSON_TEXT = [[{"path":"src/engine/file.c","pattern":"lat_[a-z]+\\(","line":17,"limit":250,]]
	.. [["mode":"content","multiline":false}]]
local JSON_TIMES = 300000

local function read_command(command)
	local pipe <close> = assert(io.popen(command, "r"))
	local text = pipe:read "a"
	assert(pipe:close(), "failed: " .. command)
	return text
end

local function quote(text)
	return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function median(list)
	local sorted = table.move(list, 1, #list, 1, {})
	table.sort(sorted)
	local half = #sorted // 2
	return #sorted % 2 == 1 and sorted[half + 1] or (sorted[half] + sorted[half + 1]) / 2
end

local function server_url(scenario)
	return assert(os.getenv "BENCH_URL", "start it by make bench") .. "/" .. scenario
end

-- ---- CPU, wall time, memory ----

local function measure(command)
	local wall, cpu, rss = read_command(BIN .. "measure " .. command):match "(%S+) (%S+) (%S+)"
	return { wall_s = tonumber(wall), cpu_s = tonumber(cpu), rss_mb = tonumber(rss) / MIB }
end

local function medians(runs)
	local result = {}
	for _, key in ipairs { "wall_s", "cpu_s", "rss_mb" } do
		local values = {}
		for i, run in ipairs(runs) do
			values[i] = run[key]
		end
		result[key] = median(values)
	end
	return result
end

-- `lattice_arguments` are for the client in Lua only.
local function compare(scenario, arguments, lattice_arguments)
	io.stderr:write("… ", scenario, lattice_arguments and " with " .. lattice_arguments or "", "\n")
	local url = server_url(scenario == "turns" and "cold" or scenario)
	local tail = url .. " " .. (arguments or "")
	local floor, lattice = {}, {}
	for i = 1, ROUNDS do
		floor[i] = measure(BIN .. "floor " .. scenario .. " " .. tail)
		lattice[i] = measure(("%s scripts/bench/%s.lua %s %s"):format(LUA, scenario, tail, lattice_arguments or ""))
	end
	return { floor = medians(floor), lattice = medians(lattice) }
end

-- ---- instructions of one turn ----

-- All instructions of a run, and those of memcpy and memmove among them: callgrind counts one for each byte
-- that is copied (rep movsb), and the copies are what sending more bytes costs.
local function instructions(turns)
	local out = os.tmpname()
	read_command(("valgrind --tool=callgrind --callgrind-out-file=%s %s scripts/bench/turns.lua %s %d 2>&1"):format(
		out,
		LUA,
		server_url "cold",
		turns
	))
	local total, copies = nil, 0
	for line in read_command("callgrind_annotate --threshold=100 " .. out):gmatch "[^\n]+" do
		local count = not line:find("=>", 1, true) and line:match "^%s*([%d,]+)" -- "=>": a caller's view of it
		count = count and tonumber((count:gsub(",", "")))
		if count and line:find("PROGRAM TOTALS", 1, true) then
			total = count
		elseif count and line:find(":__mem", 1, true) and (line:find "__memcpy_" or line:find "__memmove_") then
			copies = copies + count
		end
	end
	os.remove(out)
	return { total = assert(total, "callgrind gave no total"), copies = copies }
end

-- A turn's cost is the mean over the WINDOW turns around it: so a step of Lua's collector, which falls into one
-- turn and not into the next, is shared out.
local WINDOW = 80
local function instructions_of_turn(turn)
	local before, after = instructions(turn - WINDOW // 2), instructions(turn + WINDOW // 2)
	return {
		total = (after.total - before.total) / WINDOW,
		copies = (after.copies - before.copies) / WINDOW,
	}
end

-- ---- JSON text to validated input ----

local function measure_json()
	io.stderr:write "… JSON text to validated input\n"
	local schema = read_command(LUA .. " scripts/bench/validate.lua"):gsub("%s+$", "")
	local tail = (" %s %d"):format(quote(JSON_TEXT), JSON_TIMES)
	local commands = {
		floor = BIN .. "floor parse" .. tail,
		c = BIN .. "validate " .. quote(schema) .. tail,
		lua = LUA .. " scripts/bench/validate.lua" .. tail,
	}
	local rates = { floor = {}, c = {}, lua = {} }
	for i = 1, ROUNDS do
		for name, command in pairs(commands) do
			rates[name][i] = tonumber(read_command(command))
		end
	end
	return { floor = median(rates.floor), c = median(rates.c), lua = median(rates.lua) }
end

-- ---- the table ----

-- ---- Grep beside ripgrep; fails where an answer differs ----

local SEARCH_ROUNDS = 3

local function search_figures()
	io.stderr:write "… Grep beside ripgrep (makes its tree the first time)\n"
	local output = read_command(("%ssearch_tree %s/bench/tree 100000 %d"):format(BIN, BUILD, SEARCH_ROUNDS))
	return require("lattice").json.decode(output:match "({[^\n]*})\n$")
end

local rows, missed = {}, 0

-- `limit` is the target: "<=" or ">=" and a number.
local function row(scenario, what, floor, value, format, comparison, limit)
	local met
	if comparison then
		met = comparison == "<=" and value <= limit or comparison == ">=" and value >= limit
		missed = missed + (met and 0 or 1)
	end
	rows[#rows + 1] = {
		scenario = scenario,
		what = what,
		floor = floor,
		lattice = value,
		format = format,
		comparison = comparison,
		target = limit,
		met = met,
	}
end

local function client_rows(name, result, cpu_limit, rss_limit, ratio_limit)
	local floor, lattice = result.floor, result.lattice
	row(name, "CPU s", floor.cpu_s, lattice.cpu_s, "%.4f", cpu_limit and "<=", cpu_limit)
	row(name, "CPU / floor", nil, lattice.cpu_s / floor.cpu_s, "%.2f", ratio_limit and "<=", ratio_limit)
	row(name, "peak RSS MiB", floor.rss_mb, lattice.rss_mb, "%.1f", rss_limit and "<=", rss_limit)
	row(name, "wall s", floor.wall_s, lattice.wall_s, "%.4f")
end

local function print_table()
	local function show(format, value)
		return value and format:format(value) or ""
	end
	print(("%-34s %-16s %12s %12s %14s"):format("scenario", "figure", "floor", "lattice", "target"))
	for _, r in ipairs(rows) do
		local target = r.target and (r.comparison .. " " .. r.format:format(r.target)) or ""
		local verdict = r.met == false and "  MISSED" or ""
		local floor, lattice = show(r.format, r.floor), show(r.format, r.lattice)
		print(("%-34s %-16s %12s %12s %14s%s"):format(r.scenario, r.what, floor, lattice, target, verdict))
	end
end

client_rows("cold start to one reply", compare "cold", 0.04, 14)
client_rows("200-step tool loop, streamed", compare "loop", 0.12, 16, 1.5)
client_rows("1 MB of text in 20-byte deltas", compare "text", nil, 16, 1.3)
client_rows("the same, each delta to the script", compare("text", nil, "events"))
client_rows("conversation of 400 turns", compare("turns", "400"))
io.stderr:write "… instructions of turns 50 and 400, under callgrind\n"
local early, late = instructions_of_turn(50), instructions_of_turn(400)
local early_own, late_own = early.total - early.copies, late.total - late.copies
row("conversation, turn 50", "instructions", nil, early.total, "%.0f")
row("conversation, turn 400", "instructions", nil, late.total, "%.0f")
row("turn 400 / turn 50", "instructions", nil, late.total / early.total, "%.3f")
row("the same, but copies of bytes", "instructions", nil, late_own / early_own, "%.3f", "<=", 1.2)
local json = measure_json()
local search = search_figures()
row("Grep, 100,000 files, 50 patterns", "wall s", search.rg_ms / 1000, search.ours_ms / 1000, "%.2f")
row("Grep, 100,000 files, 50 patterns", "wall / ripgrep", nil, search.ratio, "%.2f", "<=", 1.5)
row("Grep, its worst pattern", "wall / ripgrep", nil, search.worst_ratio, "%.2f")

row("JSON to validated input, in C", "texts/s", json.floor, json.c, "%.0f", ">=", 1.1e6)
row("JSON to validated input, in C", "rate / floor", nil, json.c / json.floor, "%.2f", ">=", 0.8)
row("JSON to validated Lua table", "texts/s", json.floor, json.lua, "%.0f", ">=", 1.1e6)
row("JSON to validated Lua table", "rate / floor", nil, json.lua / json.floor, "%.2f")

require "scripts.bench.concurrency" {
	row = row,
	measure = measure,
	median = median,
	read_command = read_command,
	base_url = os.getenv "BENCH_URL",
	lua = LUA,
	bin = BIN,
	rounds = ROUNDS,
}

require "scripts.bench.mailboxes" {
	row = row,
	median = median,
	read_command = read_command,
	lua = LUA,
	bin = BIN,
	rounds = ROUNDS,
}

print_table()

local out <close> = assert(io.open(BUILD .. "/bench.json", "w"))
for _, r in ipairs(rows) do
	r.format = nil
end
out:write(require("lattice").json.encode { rounds = ROUNDS, rows = rows }, "\n")
print(("medians of %d runs; %s/bench.json has them; %d targets missed"):format(ROUNDS, BUILD, missed))
