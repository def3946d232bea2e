local lattice = require "lattice"
local scripted = require "spec.support.scripted"

local call = scripted.call

local function echo()
	return lattice.tool("echo", "", { text = "string" }, function(input)
		if input.text == "raise" then
			error("broken", 0)
		end
		return input.text
	end)
end

describe("on_tool_result", function()
	it("sees every result on its way to the model: good ones, failures and calls that never ran", function()
		local seen = {}
		scripted.run({ call("echo", { text = "a" }, "1"), call("echo", { text = "raise" }, "2"), call("echo", {}, "3"),
			call("missing", {}, "4") }, {
			tools = { echo() },
			hooks = {
				on_tool_result = function(event)
					seen[#seen + 1] = event
				end,
			},
		})
		assert.equal(4, #seen)
		assert.equal("echo", seen[1].tool_name)
		assert.equal("1", seen[1].tool_call_id)
		assert.same({ text = "a" }, seen[1].input)
		assert.equal("a", seen[1].result.content)
		assert.is_nil(seen[1].error)
		assert.equal("broken", seen[2].error)
		assert.is_true(seen[3].result.is_error)
		assert.equal("missing", seen[4].tool_name)
	end)

	it("sees results of a refused batch and of an aborted one", function()
		local seen = 0
		local hooks = {
			on_tool_result = function()
				seen = seen + 1
			end,
		}
		scripted.run({ call("echo", { text = "a" }), call("echo", { text = "b" }) }, {
			tools = { echo() },
			hooks = hooks,
			tool_batch_policy = {
				validate = function()
					return { allowed = false, code = "no", message = "no" }
				end,
			},
		})
		assert.equal(2, seen)
		local controller = lattice.abort_controller()
		local stop = lattice.tool("stop", "", {}, function()
			controller:abort "enough"
			return ""
		end)
		scripted.run({ call "stop", call "stop" }, { tools = { stop }, hooks = hooks }, { signal = controller.signal })
		assert.equal(4, seen)
	end)

	it("may replace a result", function()
		local results = scripted.run({ call("echo", { text = "secret" }) }, {
			tools = { echo() },
			hooks = {
				on_tool_result = function(event)
					return { content = event.result.content:gsub("secret", "[hidden]"), is_error = true }
				end,
			},
		})
		assert.equal("[hidden]", results[1].content)
		assert.is_true(results[1].is_error)
	end)

	it("that raises, raises out of the query, and the history stays valid", function()
		local client = scripted.client { { call("echo", { text = "a" }), call("echo", { text = "b" }) }, "fine" }
		local broken = true
		local agent = lattice.create_bare_agent {
			model_client = client,
			tools = { echo() },
			hooks = {
				on_tool_result = function()
					if broken then
						error("the hook is broken", 0)
					end
				end,
			},
		}
		local ok, problem = pcall(agent.prompt, agent, "go")
		assert.is_false(ok)
		assert.equal("the hook is broken", problem)
		broken = false
		assert.equal("fine", agent:prompt("again").result)
		local results = client.requests[2].messages[3].content
		assert.equal("tool_result", results[1].type)
		assert.equal("tool_result", results[2].type)
		assert.is_nil(lattice.json.encode(results):find('"content":"a"', 1, true)) -- what the hook didn't pass stays out
	end)
end)

describe("on_model_request", function()
	it("shapes one request and never the stored history", function()
		local client = scripted.client { "one", "two" }
		local agent = lattice.create_bare_agent {
			model_client = client,
			system_prompt = "Plain.",
			hooks = {
				on_model_request = function(request)
					assert.equal("Plain.", request.system)
					request.messages[1].content[1].text = "shaped"
					return { messages = request.messages, system = request.system .. " Turn " .. request.turn }
				end,
			},
		}
		agent:prompt "go"
		assert.equal("shaped", client.requests[1].messages[1].content[1].text)
		assert.equal("Plain. Turn 1", client.requests[1].system)
		assert.equal("go", agent.messages[1].content[1].text)
	end)

	it("changes nothing when it returns nil", function()
		local client = scripted.client { "one" }
		local agent = lattice.create_bare_agent {
			model_client = client,
			hooks = {
				on_model_request = function(request)
					request.messages[1].content[1].text = "scribble"
				end,
			},
		}
		agent:prompt "go"
		assert.equal("go", client.requests[1].messages[1].content[1].text)
	end)

	it("that raises, raises out of the query, and the agent can go on", function()
		local client = scripted.client { "fine" }
		local broken = true
		local agent = lattice.create_bare_agent {
			model_client = client,
			hooks = {
				on_model_request = function()
					if broken then
						error({ code = 3 })
					end
				end,
			},
		}
		local ok, problem = pcall(agent.prompt, agent, "go")
		assert.is_false(ok)
		assert.equal(3, problem.code)
		broken = false
		assert.equal("fine", agent:prompt("again").result)
	end)
end)

describe("create_composite_agent_hooks", function()
	it("chains hooks in order, each on what the one before made", function()
		local function adding(text)
			return {
				on_tool_result = function(event)
					return { content = event.result.content .. text }
				end,
				on_model_request = function(event)
					return { system = (event.system or "") .. text }
				end,
			}
		end
		local client = scripted.client { { call("echo", { text = "x" }) }, "done" }
		local agent = lattice.create_bare_agent {
			model_client = client,
			tools = { echo() },
			hooks = lattice.create_composite_agent_hooks { adding "1", {}, adding "2" },
		}
		agent:prompt "go"
		assert.equal("x12", client.requests[2].messages[3].content[1].content)
		assert.equal("12", client.requests[1].system)
	end)

	it("refuses what is no hook", function()
		assert.error_matches(function()
			lattice.create_composite_agent_hooks { { on_tool_reslt = print } }
		end, "on_tool_result", 1, true)
	end)
end)
