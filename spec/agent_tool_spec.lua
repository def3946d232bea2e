local lattice = require "lattice"
local scripted = require "spec.support.scripted"

local call = scripted.call

-- A model that answers every request by a function of it; remembers the prompts.
local function model(answer)
	local client = { prompts = {}, requests = {} }
	function client.create(request)
		client.requests[#client.requests + 1] = request
		local last = request.messages[#request.messages].content
		client.prompts[#client.prompts + 1] = last[#last].text
		local reply = answer(request, #client.requests)
		return type(reply) == "table" and reply or { content = { { type = "text", text = reply } } }
	end
	return client
end

local function template(answer, options)
	local all = { model_client = type(answer) == "table" and answer or model(answer) }
	for key, value in pairs(options or {}) do
		all[key] = value
	end
	return lattice.define_agent(all)
end

local function saying(text)
	return function()
		return text
	end
end

describe("an agent tool", function()
	it("asks a template in a fresh session each time", function()
		local client = model(function(request)
			return #request.messages .. " messages"
		end)
		local tool = lattice.agent_tool("helper", template(client))
		local results = scripted.run({ call("helper", { task = "one" }), call("helper", { task = "two" }) }, { tools = { tool } })
		assert.same({ "1 messages", "1 messages" }, { results[1].content, results[2].content })
		assert.same({ "one", "two" }, client.prompts)
	end)

	it("asks a session that keeps its history", function()
		local session = template(function(request)
			return #request.messages .. " messages"
		end):spawn()
		local tool = lattice.agent_tool("helper", session)
		local results = scripted.run({ call("helper", { task = "one" }), call("helper", { task = "two" }) }, { tools = { tool } })
		assert.same({ "1 messages", "3 messages" }, { results[1].content, results[2].content })
	end)

	it("lets a session answer one call at a time, in the order of the calls", function()
		local running, most = 0, 0
		local client = model(function()
			running = running + 1
			most = math.max(most, running)
			lattice.sleep(1)
			running = running - 1
			return "ok"
		end)
		local tool = lattice.agent_tool("helper", template(client):spawn())
		local calls = {}
		for i = 1, 5 do
			calls[i] = call("helper", { task = "task " .. i })
		end
		local results = scripted.run(calls, { tools = { tool }, tool_concurrency = { mode = "all" } })
		assert.equal(1, most)
		assert.same({ "task 1", "task 2", "task 3", "task 4", "task 5" }, client.prompts)
		for i = 1, 5 do
			assert.equal("ok", results[i].content)
		end
	end)

	it("waits while the host itself uses the session", function()
		local order = {}
		local session = template(function(_, n)
			lattice.sleep(2)
			order[#order + 1] = n
			return "answer " .. n
		end):spawn()
		local tool = lattice.agent_tool("helper", session)
		local out = lattice.gather {
			function()
				return session:prompt("from the host").result
			end,
			function()
				return scripted.run({ call("helper", { task = "from the tool" }) }, { tools = { tool } })[1].content
			end,
		}
		assert.same({ "answer 1", "answer 2" }, { out[1].value, out[2].value })
	end)

	it("folds the usage of the agent in under its own heading", function()
		local function counting()
			return { content = { { type = "text", text = "ok" } }, usage = { input_tokens = 5, output_tokens = 2 } }
		end
		local inner = lattice.agent_tool("inner", template(counting))
		local middle = template(scripted.client {
			{ call("inner", { task = "x" }) }, "ok", { call("inner", { task = "x" }) }, "ok",
		}, { tools = { inner } })
		local calls = { call("middle", { task = "a" }), call("middle", { task = "b" }) }
		local _, result = scripted.run(calls, { tools = { lattice.agent_tool("middle", middle) } })
		assert.equal(0, result.usage.input_tokens)
		assert.equal(2, result.usage.agents.middle.runs)
		assert.equal(0, result.usage.agents.middle.input_tokens)
		assert.equal(10, result.usage.agents.middle.agents.inner.input_tokens)
		assert.equal(4, result.usage.agents.middle.agents.inner.output_tokens)
		assert.equal(2, result.usage.agents.middle.agents.inner.runs)
	end)

	it("has no heading for agents where none ran", function()
		local result = template(saying "ok"):spawn():prompt "go"
		assert.is_nil(result.usage.agents)
	end)

	it("tells the model how the agent failed", function()
		local broken = template(function()
			error "the line is dead"
		end)
		local results = scripted.run({ call("helper", { task = "x" }) }, { tools = { lattice.agent_tool("helper", broken) } })
		assert.is_true(results[1].is_error)
		assert.matches('agent "helper" ended with error_api: .*the line is dead', results[1].content)
	end)

	it("stops the agent when the call is aborted, and leaves both histories valid", function()
		local controller = lattice.abort_controller()
		local session = template(function()
			controller:abort "enough"
			lattice.sleep(60000)
		end):spawn()
		local _, result, lead = scripted.run(
			{ call("helper", { task = "x" }) },
			{ tools = { lattice.agent_tool("helper", session) } },
			{ signal = controller.signal }
		)
		assert.equal("error_abort", result.subtype)
		assert.matches("was stopped before it ended", lead.messages[3].content[1].content)
		assert.equal("user", session.messages[#session.messages].role)
	end)

	it("gives its place up when it is aborted while it waits its turn", function()
		local controller = lattice.abort_controller()
		local session = template(function(_, n)
			if n == 1 then
				lattice.sleep(1) -- the tool's call waits by now
				controller:abort "enough"
				lattice.sleep(1)
			end
			return "answer " .. n
		end):spawn()
		local tool = lattice.agent_tool("helper", session)
		local out = lattice.gather {
			function()
				return session:prompt("host").result
			end,
			function()
				local lead = lattice.create_bare_agent {
					model_client = scripted.client { { call("helper", { task = "x" }) } },
					tools = { tool },
				}
				return lead:prompt("go", { signal = controller.signal }).subtype
			end,
		}
		assert.same({ "answer 1", "error_abort" }, { out[1].value, out[2].value })
		assert.equal("answer 2", session:prompt("host").result)
	end)

	it("refuses a call that goes round in a circle", function()
		local lead
		local function back(_, ctx)
			return lattice.agent_tool("lead", lead).handler({ mode = "ask", task = "and you?" }, ctx)
		end
		local helper = template(scripted.client { { call("back", {}) }, "I could not" }, {
			tools = { lattice.tool("back", "Asks the lead", {}, back) },
		}):spawn()
		lead = lattice.create_bare_agent {
			model_client = scripted.client { { call("helper", { task = "x" }) }, "done" },
			tools = { lattice.agent_tool("helper", helper) },
		}
		assert.equal("done", lead:prompt("go").result)
		local refused = helper.messages[3].content[1]
		assert.is_true(refused.is_error)
		assert.matches('agent "lead" did not start: it is waiting for this very answer', refused.content)
	end)

	it("refuses a call that would make two agents wait for each other", function()
		local one, two
		local function asks(name, target)
			return lattice.tool(name, "Asks", {}, function(_, ctx)
				lattice.sleep(1) -- now both run
				return lattice.agent_tool(name, target()).handler({ mode = "ask", task = "and you?" }, ctx)
			end)
		end
		one = template(scripted.client { { call("two") }, "one is done" }, {
			tools = { asks("two", function() return two end) },
		}):spawn()
		two = template(scripted.client { { call("one") }, "two is done", "two is done" }, {
			tools = { asks("one", function() return one end) },
		}):spawn()
		local out = lattice.gather {
			function() return one:prompt("go").result end,
			function() return two:prompt("go").result end,
		}
		assert.same({ "one is done", "two is done" }, { out[1].value, out[2].value })
	end)

	it("stops at the depth limit with an error that says so", function()
		local depth, deepest, refusal = 0, 0, nil
		local spec
		local ask = lattice.tool("deeper", "Asks once more", {}, function(_, ctx)
			depth = depth + 1
			deepest = math.max(deepest, depth)
			local out = lattice.agent_tool("same", spec).handler({ mode = "ask", task = "deeper" }, ctx)
			refusal = refusal or (out.is_error and out.content)
			return out
		end)
		spec = template({ create = function(request)
			if #request.messages == 1 then
				return { content = { call("deeper") }, stop_reason = "tool_use" }
			end
			return { content = { { type = "text", text = "back" } } }
		end }, { tools = { ask } })
		assert.equal("back", spec:spawn():prompt("go").result)
		assert.equal(8, deepest)
		assert.matches("8 deep here already", refusal)
	end)

	it("cuts a result that is too long, head and tail kept, between characters", function()
		local long = "begin" .. ("é"):rep(4000) .. "end"
		local tool = lattice.agent_tool("helper", template(saying(long)), { max_result_bytes = 1000 })
		local text = scripted.run({ call("helper", { task = "x" }) }, { tools = { tool } })[1].content
		assert.is_true(#text < 1200)
		assert.is_truthy(utf8.len(text))
		assert.matches("^begin.*%d+ of 8008 bytes left out here.*end$", text)
	end)

	it("says that handoff and observe need a mailbox", function()
		for _, mode in ipairs { "handoff", "observe" } do
			local ran = false
			local spec = template(function()
				ran = true
			end)
			local input = { mode = mode, task = "x" }
			local results = scripted.run({ call("helper", input) }, { tools = { lattice.agent_tool("helper", spec) } })
			assert.is_true(results[1].is_error)
			assert.matches("there is no mailbox", results[1].content)
			assert.is_false(ran)
		end
	end)

	it("hands the host's context on, and shows the mode to the policy", function()
		local seen, kinds
		local look = lattice.tool("look", "Looks", {}, function(_, ctx)
			seen = ctx.context
			return "seen"
		end)
		local helper = template(scripted.client { { call "look" }, "ok" }, { tools = { look } })
		scripted.run({ call("helper", { task = "x" }), call("plain", { task = "y" }) }, {
			tools = { lattice.agent_tool("helper", helper), lattice.delegate_tool("plain", template(saying "ok")) },
			tool_batch_policy = { validate = function(batch)
				kinds = {}
				for i, one in ipairs(batch.tool_calls) do
					kinds[i] = { one.kind, one.input.mode }
				end
				return { allowed = true }
			end },
		}, { context = { user = 7 } })
		assert.same({ user = 7 }, seen)
		assert.same({ { "agent_tool", "ask" }, { "delegate_tool" } }, kinds)
	end)

	it("hands metadata through and has no such key without", function()
		local metadata = { contract = 3 }
		local spec = template(saying "ok")
		assert.equal(metadata, lattice.agent_tool("helper", spec, { metadata = metadata }).metadata)
		for key in pairs(lattice.delegate_tool("helper", spec)) do
			assert.not_equal("metadata", key)
		end
	end)

	it("refuses unknown options and wrong targets when it is made", function()
		local spec = template(saying "ok")
		local ok, problem = pcall(function()
			local definition = lattice.agent_tool("helper", spec, { metadat = {} })
			return definition
		end)
		assert.is_false(ok)
		assert.matches("^%S*spec/agent_tool_spec.lua:" .. debug.getinfo(1, "l").currentline - 4 .. ": ", problem)
		assert.matches('agent_tool("helper"): unknown option "metadat". Check for a typo, or upgrade lattice if this '
			.. 'option was added in a newer version. Did you mean "metadata"?', problem, 1, true)
		assert.error_matches(function()
			lattice.delegate_tool("helper", spec, { bogus = 1 })
		end, 'delegate_tool%("helper"%): unknown option "bogus"')
		assert.error_matches(function()
			lattice.agent_tool("helper", {})
		end, 'agent_tool%("helper"%): agent: expected an agent, a template %(lattice.define_agent%) or a team, got a table')
		assert.error_matches(function()
			lattice.agent_tool("no blanks", spec)
		end, "agent_tool: name: expected a name of 1 to 64")
	end)
end)

describe("a delegate tool", function()
	it("asks, and takes a task only", function()
		local tool = lattice.delegate_tool("helper", template(saying "done it"))
		local results = scripted.run({ call("helper", { task = "x" }), call("helper", { task = "x", mode = "handoff" }) },
			{ tools = { tool } })
		assert.equal("done it", results[1].content)
		assert.is_true(results[2].is_error)
		assert.matches("mode", results[2].content)
	end)
end)

describe("workspace grants of an agent tool", function()
	local function helper(seen)
		local look = lattice.tool("look", "Looks", {}, function(_, ctx)
			seen.workspace = ctx.workspace
			return "seen"
		end)
		return template({ create = function(request)
			if #request.messages == 1 then
				return { content = { call("Read", { file_path = seen.path }), call "look" }, stop_reason = "tool_use" }
			end
			seen.read = request.messages[3].content[1]
			return { content = { { type = "text", text = "ok" } } }
		end }, { tools = { look }, workspace = {} })
	end

	it("give the agent a folder that the caller may use", function()
		local seen = {}
		local where = lattice.tool("where", "Says where", {}, function(_, ctx)
			return ctx.workspace.path
		end)
		local lead <close> = lattice.create_agent {
			model_client = { create = function(request)
				if #request.messages == 1 then
					local write = call("Write", { file_path = "a.txt", content = "granted text" })
					return { content = { write, call "where" }, stop_reason = "tool_use" }
				elseif #request.messages == 3 then
					local folder = request.messages[3].content[2].content
					seen.path = folder .. "/a.txt"
					local input = { task = "x", workspace_grants = { { root = folder, access = { "read" } } } }
					return { content = { call("helper", input) }, stop_reason = "tool_use" }
				end
				return { content = { { type = "text", text = "done" } } }
			end },
			tools = { where, lattice.agent_tool("helper", helper(seen)) },
		}
		assert.equal("done", lead:prompt("go").result)
		assert.is_nil(seen.read.is_error)
		assert.matches("granted text", lattice.json.encode(seen.read.content))
	end)

	it("are refused where the caller may not go itself", function()
		local seen = { path = "/etc/hostname" }
		local lead <close> = lattice.create_agent {
			model_client = scripted.client {
				{ call("helper", { task = "x", workspace_grants = { { root = "/etc", access = { "read" } } } }) }, "done",
			},
			tools = { lattice.agent_tool("helper", helper(seen)) },
		}
		assert.equal("done", lead:prompt("go").result)
		local refused = lead.messages[3].content[1]
		assert.is_true(refused.is_error)
		assert.matches("you can't grant read access to /etc", refused.content)
		assert.is_nil(seen.read)
	end)

	it("are refused for a caller without a workspace", function()
		local seen = {}
		local results = scripted.run({ call("helper", { task = "x", workspace_grants = { { root = "/", access = { "read" } } } }) },
			{ tools = { lattice.agent_tool("helper", helper(seen)) } })
		assert.matches("you have no workspace", results[1].content)
	end)
end)
