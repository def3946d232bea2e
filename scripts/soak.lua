-- Soak: many agents against a faulty server, for some time; memory, descriptors and threads must stay flat.
--
--   lua5.4 scripts/soak.lua SECONDS [AGENTS]
--
-- The server refuses, cuts, stalls, corrupts and answers; each agent runs tools, is aborted now and then, and goes on
-- with its history. After a warm-up of a quarter of the time the process is measured once a second; the script fails
-- when the last quarter's medians are above the second quarter's by more than the tolerances below.

local lattice = require "lattice"
local server = require "spec.support.server"

local SECONDS, AGENTS = tonumber(arg[1]) or 60, tonumber(arg[2]) or 100
local RSS_TOLERANCE = 1.10
local COUNT_TOLERANCE = AGENTS // 2 -- connections come and go; a leak would pass this within seconds

local faulty = server.start([[
local n = 0
local function random(limit)
	n = n + 1
	return (n * 7919 + n // 3) % limit
end
return function(request)
	local dice = random(20)
	local last = request.body.messages[#request.body.messages].content
	local options = { headers = { ["retry-after-ms"] = "1" } }
	if dice == 0 then
		return status(529, { ["retry-after-ms"] = "1" })
	elseif dice == 1 then
		return status(429, { ["retry-after-ms"] = "2" })
	elseif dice == 2 then
		return error_event("overloaded_error", "busy", 3, options)
	elseif dice == 3 then
		return text("never whole", { cut_at = 200 })
	elseif dice == 4 then
		return text("never ends", { stall_at = 150 })
	elseif dice == 5 then
		return raw { status = 200, body = "<html>", content_type = "text/html" }
	elseif dice == 6 then
		return text("garbled", { corrupt = { 30, 0 } })
	elseif dice < 14 then
		return message { "Working.", tool_use("wait", { ms = random(5) }), tool_use("wait", { ms = random(5) }),
			tool_use("fail", {}) }
	end
	return text(("answer "):rep(20), { delta_size = 7 })
end
]])

local wait = lattice.tool("wait", "Waits", { ms = "integer" }, function(input)
	lattice.sleep(input.ms)
	return ("x"):rep(200)
end, { is_concurrency_safe = function() return true end })
local fail = lattice.tool("fail", "Fails", {}, function()
	error "as it should"
end)

local function read_status(name)
	for line in io.lines "/proc/self/status" do
		local value = line:match("^" .. name .. ":%s+(%d+)")
		if value then
			return tonumber(value)
		end
	end
end

local function count_descriptors()
	local count = 0
	local list <close> = assert(io.popen "ls /proc/$PPID/fd")
	for _ in list:lines() do
		count = count + 1
	end
	return count
end

local function measure()
	collectgarbage()
	return { rss = read_status "VmRSS", descriptors = count_descriptors(), threads = read_status "Threads" }
end

local deadline = os.time() + SECONDS
local queries, subtypes = 0, {}

local function new_agent()
	return lattice.create_bare_agent {
		api_key = "soak-key-12345",
		base_url = faulty.url,
		model = "m",
		max_turns = 6,
		max_retries = 1,
		idle_timeout_ms = 300,
		tools = { wait, fail },
	}
end

local function work(index)
	return function()
		local agent, used = new_agent(), index % 20 -- out of step, so that histories don't all grow together
		while os.time() < deadline do
			local options = index % 5 == 0 and { signal = lattice.abort_timeout(5 + queries % 50) } or nil
			local result = agent:prompt("go", options)
			queries, used = queries + 1, used + 1
			subtypes[result.subtype] = (subtypes[result.subtype] or 0) + 1
			if used == 20 then -- a conversation ends some time
				agent, used = new_agent(), 0
			end
		end
	end
end

local samples = {}
local jobs = {
	function()
		while os.time() < deadline do
			lattice.sleep(1000)
			samples[#samples + 1] = measure()
		end
	end,
}
for index = 1, AGENTS do
	jobs[#jobs + 1] = work(index)
end
local results = lattice.gather(jobs)
faulty:stop()

local function median(from, to, key)
	local values = {}
	for index = math.max(1, math.floor(#samples * from)), math.floor(#samples * to) do
		values[#values + 1] = samples[index][key]
	end
	table.sort(values)
	return values[#values // 2 + 1]
end

local failed = false
local function flat(key, allowed)
	local early, late = median(0.25, 0.5, key), median(0.75, 1, key)
	local ok = late <= allowed(early)
	failed = failed or not ok
	print(("%-12s second quarter %8d   last quarter %8d   %s"):format(key, early, late, ok and "flat" or "GROWS"))
end

for index, result in ipairs(results) do
	if not result.ok then
		failed = true
		print("job " .. index .. " raised: " .. tostring(result.error))
	end
end
print(("%d agents, %d queries in %d s"):format(AGENTS, queries, SECONDS))
for subtype, count in pairs(subtypes) do
	print(("  %-24s %d"):format(subtype, count))
end
flat("rss", function(kib) return kib * RSS_TOLERANCE end)
flat("descriptors", function(count) return count + COUNT_TOLERANCE end)
flat("threads", function(count) return count + COUNT_TOLERANCE end)
os.exit(failed and 1 or 0, true)
