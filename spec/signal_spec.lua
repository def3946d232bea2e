local lattice = require "lattice"
local scripted = require "spec.support.scripted"

local call = scripted.call

describe("an abort controller", function()
	it("aborts its signal once, with a reason", function()
		local controller = lattice.abort_controller()
		assert.is_false(controller.signal.aborted)
		controller:abort "first"
		controller:abort "second"
		assert.is_true(controller.signal.aborted)
		assert.equal("first", controller.signal.reason)
	end)

	it("calls listeners in order, and not those that were taken off", function()
		local controller = lattice.abort_controller()
		local heard = {}
		local removers = {}
		for i = 1, 4 do
			removers[i] = controller.signal:on_abort(function()
				heard[#heard + 1] = i
			end)
		end
		removers[2]()
		removers[2]()
		controller:abort()
		assert.same({ 1, 3, 4 }, heard)
		controller.signal:on_abort(function()
			heard[#heard + 1] = "late"
		end)
		assert.equal("late", heard[4])
	end)

	it("can be set off by time", function()
		local own = lattice.abort_timeout(1)
		local ok, problem = pcall(lattice.gather, {
			function()
				lattice.sleep(3600000)
			end,
		}, { signal = own })
		assert.is_true(ok)
		assert.matches("timed out after 1 ms", tostring(problem[1].error))
	end)
end)

describe("an aborted query", function()
	it("ends as error_abort with the reason, whatever it waits for", function()
		local function waiting(options, query_options)
			local agent = lattice.create_bare_agent(options)
			return agent:prompt("go", query_options)
		end
		local own = lattice.abort_timeout(1)
		local result = waiting({
			model_client = {
				create = function()
					lattice.sleep(3600000)
				end,
			},
		}, { signal = own })
		assert.equal("error_abort", result.subtype)
		assert.matches("timed out after 1 ms", result.error.message)
	end)

	it("starts nothing when the signal was aborted before", function()
		local controller = lattice.abort_controller()
		controller:abort "no"
		local client = scripted.client { "never" }
		local agent = lattice.create_bare_agent { model_client = client }
		assert.equal("error_abort", agent:prompt("go", { signal = controller.signal }).subtype)
		assert.equal(0, #client.requests)
	end)

	it("tells running handlers, starts no queued ones, waits for the started, and gives each call a result", function()
		local controller = lattice.abort_controller()
		local log = {}
		local slow = lattice.tool("slow", "", { n = "integer" }, function(input, ctx)
			log[#log + 1] = "start" .. input.n
			if input.n == 2 then
				controller:abort "enough"
			end
			local ok, problem = pcall(lattice.sleep, 3600000)
			log[#log + 1] = string.format("end%d %s %s %s", input.n, ok, problem.name, ctx.signal.aborted)
			error(problem, 0)
		end)
		local calls = {}
		for i = 1, 4 do
			calls[i] = call("slow", { n = i }, "id" .. i)
		end
		local results, result, agent = scripted.run(calls, {
			tools = { slow },
			tool_concurrency = { mode = "all", max_concurrency = 2 },
		}, { signal = controller.signal })
		assert.equal("error_abort", result.subtype)
		assert.equal("start1 start2 end2 false error_abort true end1 false error_abort true", table.concat(log, " "))
		for i = 1, 4 do
			assert.equal("id" .. i, results[i].tool_use_id)
			assert.is_true(results[i].is_error)
		end
		assert.equal("done", agent:prompt("again").result)
	end)

	it("reaches agents that run inside its handlers", function()
		local controller = lattice.abort_controller()
		local inner_result
		local outer = lattice.tool("outer", "", {}, function()
			local inner = lattice.create_bare_agent {
				model_client = {
					create = function()
						controller:abort "from below"
						lattice.sleep(3600000)
					end,
				},
			}
			inner_result = inner:prompt "go"
			return inner_result.subtype
		end)
		local _, result = scripted.run({ call "outer" }, { tools = { outer } }, { signal = controller.signal })
		assert.equal("error_abort", inner_result.subtype)
		assert.equal("error_abort", result.subtype)
	end)

	it("stops waits of the script's own coroutines inside a handler", function()
		local controller = lattice.abort_controller()
		local seen
		local odd = lattice.tool("odd", "", {}, function()
			local own = coroutine.wrap(function()
				controller:abort "x"
				local ok, problem = pcall(lattice.sleep, 3600000)
				seen = not ok and problem.name
			end)
			own()
			return "fine"
		end)
		scripted.run({ call "odd" }, { tools = { odd } }, { signal = controller.signal })
		assert.equal("error_abort", seen)
	end)
end)

describe("agent:interrupt", function()
	local function interrupted(where)
		local agent
		local function stop()
			agent:interrupt()
		end
		local client = scripted.client { { call("probe", {}, "a"), call("probe", {}, "b") }, "fine", "fine" }
		local create = client.create
		local options = {
			model_client = client,
			tools = { lattice.tool("probe", "", {}, function()
				if where == "handler" then
					stop()
				end
				return ""
			end) },
			hooks = {
				on_tool_result = function()
					if where == "hook" then
						stop()
					end
				end,
				on_model_request = function()
					if where == "request hook" then
						stop()
					end
				end,
			},
			permission = function()
				if where == "permission" then
					stop()
				end
				return { behavior = "allow" }
			end,
			tool_batch_policy = {
				validate = function()
					if where == "policy" then
						stop()
					end
					return { allowed = true }
				end,
			},
		}
		if where == "model" then
			client.create = function(request)
				stop()
				return create(request)
			end
		end
		agent = lattice.create_bare_agent(options)
		local result
		if where == "another coroutine" then
			lattice.gather {
				function()
					result = agent:prompt "go"
				end,
				stop,
			}
			where = nil
		else
			result = agent:prompt "go"
		end
		where = nil
		return result, agent
	end

	for _, where in ipairs { "handler", "hook", "request hook", "permission", "policy" } do
		it("from a " .. where .. " ends the query as interrupted and leaves a valid history", function()
			local result, agent = interrupted(where)
			assert.equal("interrupted", result.subtype)
			for index, message in ipairs(agent.messages) do
				for _, block in ipairs(message.content) do
					if block.type == "tool_use" then
						local found = false
						for _, answer in ipairs(agent.messages[index + 1].content) do
							found = found or answer.tool_use_id == block.id
						end
						assert.is_true(found)
					end
				end
			end
			assert.equal("success", agent:prompt("again").subtype)
		end)
	end

	it("does nothing when no query runs", function()
		local agent = lattice.create_bare_agent { model_client = scripted.client { "fine" } }
		agent:interrupt()
		assert.equal("fine", agent:prompt("go").result)
	end)
end)
