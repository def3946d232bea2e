-- What teams cost beside the model's time: lua5.4 teams.lua [TEAMS] [MEMBERS] [HANDOFFS]. Models are Lua functions.
-- Prints CPU microseconds for a handoff (queued, claimed, a member's fresh session, recorded, reported), the cost of
-- 400 handoffs by that of 200, and the memory after each of five rounds.

local lattice = require "lattice"

local TEAMS, MEMBERS, HANDOFFS = tonumber(arg[1]) or 10, tonumber(arg[2]) or 20, tonumber(arg[3]) or 5
local ROUNDS = 5

local function text(what)
	return { content = { { type = "text", text = what } }, stop_reason = "end_turn" }
end

local worker = lattice.define_agent { model_client = { create = function()
	return text "It is done."
end } }

-- A lead that hands one task to each member in each of its replies.
local function lead_of(members, replies)
	local made = 0
	return { model_client = { create = function()
		if made == replies then
			made = 0
			return text "All is done."
		end
		made = made + 1
		local calls = {}
		for i = 1, members do
			calls[i] = {
				type = "tool_use",
				id = ("toolu_%d_%d"):format(made, i),
				name = "member_" .. i,
				input = { mode = "handoff", task = "Write part " .. i },
			}
		end
		return { content = calls, stop_reason = "tool_use" }
	end } }
end

local function team_of(members, replies)
	local list = {}
	for i = 1, members do
		list[i] = lattice.team_member { name = "member_" .. i, agent = worker }
	end
	return lattice.create_team { lead = lead_of(members, replies), members = list }
end

local function cpu_of(fn)
	collectgarbage()
	local began = os.clock()
	fn()
	return os.clock() - began
end

local function round()
	local jobs = {}
	for i = 1, TEAMS do
		jobs[i] = function()
			local team = team_of(MEMBERS, HANDOFFS)
			local result = team:prompt "Begin."
			assert(result.subtype == "success", result.error and result.error.message)
			assert(team.mailbox:status().completed == MEMBERS * HANDOFFS)
		end
	end
	for _, result in ipairs(lattice.gather(jobs)) do
		assert(result.ok, result.error)
	end
end

local memory, cpu = {}, 0
for i = 1, ROUNDS do
	cpu = cpu + cpu_of(round)
	collectgarbage()
	collectgarbage()
	memory[i] = ("%.1f"):format(collectgarbage "count" / 1024)
end

local function handoffs_at_once(count)
	local best = math.huge
	for _ = 1, ROUNDS do
		local team = team_of(MEMBERS, count // MEMBERS)
		best = math.min(best, cpu_of(function()
			team:prompt "Begin."
		end))
	end
	return best
end

print(("%d teams x %d members x %d handoffs: %.0f us of CPU for each handoff"):format(TEAMS, MEMBERS, HANDOFFS,
	cpu / ROUNDS / (TEAMS * MEMBERS * HANDOFFS) * 1e6))
print(("400 handoffs cost %.2f times as much as 200"):format(handoffs_at_once(400) / handoffs_at_once(200)))
print("MiB of Lua memory after each round: " .. table.concat(memory, " "))
