-- A scripted run of five turns, stopped at each of its events in turn: whatever the place, the service accepts the
-- history that is left.

local agents = require "spec.support.agents"
local lattice = require "lattice"
local server = require "spec.support.server"

local text, message, tool_use, thinking = server.text, server.message, server.tool_use, server.thinking

local function model(request)
	local messages, turn = request.body.messages, 1
	for _, one in ipairs(messages) do
		turn = turn + (one.role == "assistant" and 1 or 0)
	end
	local last = messages[#messages].content
	if last[#last].text == "again" then
		return text "fine"
	elseif turn == 1 then
		return message { "Looking.", tool_use("wait", { turns = 1 }), tool_use("wait", { turns = 0 }) }
	elseif turn == 2 then
		return message { thinking "Hm.", tool_use("fail", {}) }
	elseif turn == 3 then
		return message { tool_use("wait", { turns = 2 }), tool_use("missing", {}), tool_use("wait", {}), "and on" }
	elseif turn == 4 then
		return message { tool_use("wait", { turns = "no number" }) }
	end
	return text "done"
end

local wait = lattice.tool("wait", "", { turns = "integer?" }, function(input)
	for _ = 1, input.turns or 0 do
		lattice.sleep(0)
	end
	return "waited"
end, { is_concurrency_safe = function()
	return true
end })
local fail = lattice.tool("fail", "", {}, function()
	error "as it should"
end)

-- Runs the script and stops it at the given event. Returns whether that event came.
local function run(own, stop_at, how)
	local count, stopped = 0, false
	local controller = lattice.abort_controller()
	local agent
	local function step()
		count = count + 1
		if count == stop_at then
			stopped = true
			if how == "abort" then
				controller:abort "at this place"
			elseif how == "interrupt" then
				agent:interrupt()
			end
		end
	end
	agent = agents.on(own, {
		tools = { wait, fail },
		tracer = { emit = step },
		hooks = { on_tool_result = step, on_model_request = step },
		permission = function()
			step()
			return { behavior = "allow" }
		end,
		tool_batch_policy = { validate = function()
			step()
			return { allowed = true }
		end },
	})
	local subtype
	for one in agent:query("go", { stream = true, signal = controller.signal }) do
		if one.type == "result" then
			subtype = one.subtype
		else
			step()
			if stopped and how == "leave" then
				break
			end
		end
	end
	stop_at = nil
	local again = agent:prompt "again"
	assert.equal("fine", again.result, again.error and again.error.message)
	return stopped, subtype
end

describe("a run of five turns", function()
	for how, expected in pairs { abort = "error_abort", interrupt = "interrupted", leave = false } do
		it("can be stopped at each event by " .. how .. ", and the history stays valid", function()
			local own <close> = server.start(model)
			local places = 0
			repeat
				places = places + 1
				local stopped, subtype = run(own, places, how)
				if stopped and expected and subtype ~= "success" then
					assert.equal(expected, subtype)
				elseif not stopped then
					assert.equal("success", subtype)
				end
			until not stopped
			assert.is_true(places > 60, "only " .. places .. " places")
		end)
	end
end)
