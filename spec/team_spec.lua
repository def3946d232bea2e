local lattice = require "lattice"
local mailboxes = require "spec.support.mailboxes"
local scripted = require "spec.support.scripted"

local call = scripted.call

local function last_text(request)
	local content = request.messages[#request.messages].content
	return content[#content].text
end

-- A template whose model answers by a function of the last text (and its request).
local function template(answer, options)
	local all = { model_client = { create = function(request)
		local reply = answer(last_text(request), request)
		return type(reply) == "table" and reply or { content = { { type = "text", text = reply } } }
	end } }
	for key, value in pairs(options or {}) do
		all[key] = value
	end
	return lattice.define_agent(all)
end

local function echo(name)
	return template(function(text)
		return name .. " did " .. text
	end)
end

local function calling(calls)
	return { content = calls, stop_reason = "tool_use" }
end

-- A lead that makes these calls in its first reply and says "done" ever after; its requests stand in the second value.
local function lead_of(calls, options)
	local requests = {}
	local all = { model_client = { create = function(request)
		requests[#requests + 1] = request
		return #requests == 1 and calling(calls) or { content = { { type = "text", text = "done" } } }
	end } }
	for key, value in pairs(options or {}) do
		all[key] = value
	end
	return all, requests
end

local function member(name, agent, options)
	local all = { name = name, agent = agent }
	for key, value in pairs(options or {}) do
		all[key] = value
	end
	return lattice.team_member(all)
end

local function handoff(name, text)
	return call(name, { mode = "handoff", task = text })
end

-- What the lead saw as its second input: results and texts.
local function second_input(requests)
	local results, texts = {}, {}
	for _, block in ipairs(requests[2].messages[3].content) do
		if block.type == "text" then
			texts[#texts + 1] = block.text
		else
			results[#results + 1] = block
		end
	end
	return results, texts
end

describe("a handoff", function()
	it("gives a receipt, and the reports of all come as the lead's next input, in the order of the handoffs", function()
		local options, requests = lead_of { handoff("ann", "one"), handoff("bob", "two"), handoff("ann", "three") }
		local team = lattice.create_team { lead = options, members = { member("ann", echo "ann"), member("bob", echo "bob") } }
		local result = team:prompt "go"
		assert.equal("success", result.subtype)
		assert.equal(2, #requests)
		local results, texts = second_input(requests)
		for index, text in ipairs { "ann did one", "bob did two", "ann did three" } do
			local receipt = lattice.json.decode(results[index].content)
			assert.equal("accepted", receipt.status)
			assert.equal("queued", receipt.phase)
			assert.is_true(receipt.completion_pending)
			assert.is_string(receipt.message_id)
			assert.is_string(receipt.thread_id)
			local item = team.mailbox:work_item(receipt.work_item_id)
			assert.equal("completed", item.status)
			assert.equal(text, item.outcome.text)
			assert.matches(receipt.work_item_id, texts[index], 1, true)
			assert.matches("completed\n" .. text, texts[index], 1, true)
		end
		assert.equal(3, #texts)
	end)

	it("queues all of the batch before any member runs, and runs members one after the other", function()
		local team, log, running, most = nil, {}, 0, 0
		local function works(name)
			return template(function(text)
				running = running + 1
				most = math.max(most, running)
				local status = team:status()
				log[#log + 1] = name .. " " .. text .. " of " .. status.ann.queued + status.bob.queued + 1
				lattice.sleep(1)
				running = running - 1
				return "ok"
			end)
		end
		local options = lead_of({ handoff("ann", "1"), handoff("bob", "2"), handoff("ann", "3") }, {
			tool_concurrency = { mode = "all" },
		})
		team = lattice.create_team { lead = options, members = { member("ann", works "ann"), member("bob", works "bob") } }
		team:prompt "go"
		assert.same({ "ann 1 of 3", "bob 2 of 2", "ann 3 of 1" }, log)
		assert.equal(1, most)
	end)

	it("runs several members at once where the runner says so, but one mailbox stays serial", function()
		local running, most, of, most_of = 0, 0, {}, 0
		local function works(name)
			return template(function()
				running, of[name] = running + 1, (of[name] or 0) + 1
				most, most_of = math.max(most, running), math.max(most_of, of[name])
				lattice.sleep(1)
				running, of[name] = running - 1, of[name] - 1
				return "ok"
			end)
		end
		local calls, members = {}, {}
		for i = 1, 12 do
			calls[i] = handoff("m" .. i % 4, "task " .. i)
		end
		for i = 0, 3 do
			members[#members + 1] = member("m" .. i, works("m" .. i))
		end
		local options, requests = lead_of(calls)
		local team = lattice.create_team {
			lead = options,
			members = members,
			runner = lattice.create_team_runner { max_concurrent_work_items = 3 },
		}
		team:prompt "go"
		assert.equal(3, most)
		assert.equal(1, most_of)
		local results, texts = second_input(requests)
		for i = 1, 12 do
			assert.matches(lattice.json.decode(results[i].content).work_item_id, texts[i], 1, true)
		end
	end)

	it("reports the failure of one member and loses nothing of the others", function()
		local broken = template(function()
			error "out of paper"
		end)
		local options, requests = lead_of { handoff("ann", "1"), handoff("bob", "2"), handoff("ann", "3") }
		local team = lattice.create_team { lead = options, members = { member("ann", echo "ann"), member("bob", broken) } }
		assert.equal("done", team:prompt("go").result)
		local _, texts = second_input(requests)
		assert.matches("completed\nann did 1", texts[1])
		assert.matches("Report of bob .*: failed\n.*out of paper", texts[2])
		assert.matches("completed\nann did 3", texts[3])
		assert.equal(1, team:status().bob.failed)
	end)

	it("reports what a hook of a member raised", function()
		local hooked = template(function()
			return "never"
		end, { hooks = { on_model_request = function()
			error("the hook is broken", 0)
		end } })
		local options, requests = lead_of { handoff("ann", "1") }
		local team = lattice.create_team { lead = options, members = { member("ann", hooked) } }
		team:prompt "go"
		local _, texts = second_input(requests)
		assert.matches("failed\nthe hook is broken", texts[1])
	end)

	it("is reported as failed, each, where the member's session raises, and the next one gets its turn", function()
		local closed = echo("ann"):spawn()
		closed:close()
		local options, requests = lead_of { handoff("ann", "1"), handoff("ann", "2") }
		lattice.create_team { lead = options, members = { member("ann", closed) } }:prompt "go"
		local _, texts = second_input(requests)
		assert.matches("failed\n.*this agent is closed", texts[1])
		assert.matches("failed\n.*this agent is closed", texts[2])
	end)

	it("is cancelled by an abort where it has not started, and told to stop where it has", function()
		local controller = lattice.abort_controller()
		local stuck = template(function()
			controller:abort "enough"
			lattice.sleep(60000)
		end)
		local options, requests = lead_of { handoff("ann", "1"), handoff("bob", "2"), handoff("ann", "3") }
		local team = lattice.create_team { lead = options, members = { member("ann", stuck), member("bob", echo "bob") } }
		assert.equal("error_abort", team:prompt("go", { signal = controller.signal }).subtype)
		assert.equal(1, #requests)
		local status = team:status()
		assert.same({ 1, 1, 0, 0 }, { status.ann.failed, status.ann.cancelled, status.ann.queued, status.ann.claimed })
		assert.equal(1, status.bob.cancelled)
		assert.equal("done", team:prompt("again").result)
	end)

	it("is worked on before a run ends by end_turn", function()
		local finish = lattice.tool("finish", "Ends", {}, function()
			return { content = "the end", end_turn = true }
		end)
		local options, requests = lead_of({ handoff("ann", "1"), call "finish" }, { tools = { finish } })
		local team = lattice.create_team { lead = options, members = { member("ann", echo "ann") } }
		assert.equal("the end", team:prompt("go").result)
		assert.equal(1, #requests)
		assert.equal(1, team:status().ann.completed)
		local last = team.lead.messages[3].content
		assert.matches("ann did 1", last[#last].text)
	end)

	it("says so when the mailbox is full", function()
		local options, requests = lead_of { handoff("ann", "1"), handoff("ann", "2") }
		local team = lattice.create_team {
			lead = options,
			members = { member("ann", echo "ann") },
			mailbox = lattice.create_memory_mailbox { max_queue = 1 },
		}
		team:prompt "go"
		local results, texts = second_input(requests)
		assert.is_nil(results[1].is_error)
		assert.is_true(results[2].is_error)
		assert.matches("was not accepted: ann.* 1 open work items", results[2].content)
		assert.equal(1, #texts)
	end)

	it("shows the reports to the consumer of query as a user message", function()
		local options = lead_of { handoff("ann", "1") }
		local team = lattice.create_team { lead = options, members = { member("ann", echo "ann") } }
		local kinds = {}
		for message in team:query "go" do
			kinds[#kinds + 1] = message.type
		end
		assert.equal("system assistant user user assistant result", table.concat(kinds, " "))
	end)
end)

describe("a batch policy of a team's lead", function()
	local function team_with(calls)
		local ran = {}
		local increment = lattice.tool("increment_revision", "Makes a new revision", {}, function()
			ran[#ran + 1] = "increment_revision"
			return "revision 2"
		end)
		local ann = template(function()
			ran[#ran + 1] = "ann"
			return "ok"
		end)
		local options, requests = lead_of(calls, {
			tools = { increment },
			tool_batch_policy = {
				validate = function(batch)
					local update, to_member
					for _, one in ipairs(batch.tool_calls) do
						update = update or one.name == "increment_revision" and one
						to_member = to_member or one.kind == "agent_tool" and one.input.mode == "handoff" and one
					end
					if update and to_member then
						return {
							allowed = false,
							code = "invalid_tool_batch",
							message = "Update the revision first, then plan the work that needs it.",
							conflicting_tool_call_ids = { update.id, to_member.id },
							suggested_next_step = "Run the update; hand off with the new revision.",
						}
					end
					return { allowed = true }
				end,
			},
		})
		local team = lattice.create_team { lead = options, members = { member("ann", ann) } }
		return team, requests, ran
	end

	it("refuses a handoff beside an update: nothing runs, and the mailbox is untouched", function()
		local update, to_ann = call "increment_revision", handoff("ann", "use revision 2")
		local team, requests, ran = team_with { update, to_ann }
		assert.equal("done", team:prompt("go").result)
		assert.same({}, ran)
		assert.same({}, team.mailbox:work_items {})
		assert.same({ unread = 0, queued = 0, claimed = 0, completed = 0, failed = 0, cancelled = 0, set_aside = 0 },
			team.mailbox:status())
		local results, texts = second_input(requests)
		assert.equal(0, #texts)
		for index = 1, 2 do
			assert.is_true(results[index].is_error)
			local refusal = lattice.json.decode(results[index].content)
			assert.equal("invalid_tool_batch", refusal.code)
			assert.same({ update.id, to_ann.id }, { table.unpack(refusal.conflicting_tool_call_ids) })
		end
	end)

	it("lets either of them pass alone", function()
		local team, _, ran = team_with { handoff("ann", "use revision 1") }
		team:prompt "go"
		assert.same({ "ann" }, ran)
		local other, _, ran_there = team_with { call "increment_revision" }
		other:prompt "go"
		assert.same({ "increment_revision" }, ran_there)
	end)
end)

describe("the other modes of a member's tool", function()
	it("ask waits for the answer and leaves the mailbox alone", function()
		local options, requests = lead_of { call("ann", { task = "one" }) }
		local team = lattice.create_team { lead = options, members = { member("ann", echo "ann") } }
		local result = team:prompt "go"
		assert.equal("ann did one", second_input(requests)[1].content)
		assert.same({}, team.mailbox:work_items {})
		assert.equal(1, result.usage.agents.ann.runs)
	end)

	it("observe puts a message into the member's inbox, which it is told of with its next task", function()
		local seen = {}
		local ann = template(function(_, request)
			if #request.messages == 1 then
				seen.prompt = request.messages[1].content
				return calling { call "team_read" }
			end
			seen.read = lattice.json.decode(request.messages[3].content[1].content)
			return "ok"
		end)
		local options, requests = lead_of { call("ann", { mode = "observe", task = "The budget is 5." }), handoff("ann", "plan") }
		local team = lattice.create_team { lead = options, members = { member("ann", ann) } }
		team:prompt "go"
		assert.equal("sent", lattice.json.decode(second_input(requests)[1].content).status)
		assert.equal("plan", seen.prompt[1].text)
		assert.matches("Unread messages of your team for you: 1", seen.prompt[2].text)
		assert.equal("The budget is 5.", seen.read.messages[1].text)
		assert.equal("lead", seen.read.messages[1].from)
		assert.equal(0, team:status().ann.unread)
	end)

	it("keep a result that is too long in the mailbox, with a pointer", function()
		local long = ("0123456789"):rep(300)
		local ann = template(function()
			return long
		end)
		for _, mode in ipairs { "ask", "handoff" } do
			local first = true
			local read
			local team = lattice.create_team {
				lead = { model_client = { create = function(request)
					local content = request.messages[#request.messages].content
					if first then
						first = false
						return calling { call("ann", { mode = mode, task = "x" }) }
					elseif not read then
						local text = content[2] and content[2].text or content[1].content
						assert(#text < 1300)
						read = {}
						return calling { call("team_read", { message_id = text:match "is message (msg_%x+)", offset = 1500 }) }
					end
					read = lattice.json.decode(content[1].content)
					return { content = { { type = "text", text = "done" } } }
				end } },
				members = { member("ann", ann, { max_result_bytes = 1000 }) },
				expose_lead_mailbox_tools = true,
			}
			assert.equal("done", team:prompt("go").result)
			assert.equal(long:sub(1501), read.text)
		end
	end)
end)

describe("a team", function()
	it("is an agent: a target of agent_tool, and a member of another team", function()
		local function inner()
			local replies = { calling { handoff("bob", "dig") }, nil }
			return lattice.create_team {
				lead = { model_client = { create = function(request)
					local text = last_text(request)
					local reply = table.remove(replies, 1)
					return reply or { content = { { type = "text", text = "inner: " .. text:match "\n(.*)" } } }
				end } },
				members = { member("bob", echo "bob") },
			}
		end
		local results = scripted.run({ call("crew", { task = "x" }) }, { tools = { lattice.agent_tool("crew", inner()) } })
		assert.equal("inner: bob did dig", results[1].content)

		local options, requests = lead_of { handoff("crew", "x") }
		local outer = lattice.create_team { lead = options, members = { member("crew", inner()) } }
		local result = outer:prompt "go"
		local _, texts = second_input(requests)
		assert.matches("completed\ninner: bob did dig", texts[1])
		assert.equal(1, result.usage.agents.crew.agents.bob.runs)
	end)

	it("lets members that are sessions keep their history, and templates begin afresh", function()
		local function counts()
			return template(function(_, request)
				return #request.messages .. " messages"
			end)
		end
		local options, requests = lead_of { handoff("ann", "1"), handoff("ann", "2"), handoff("bob", "1"), handoff("bob", "2") }
		local team = lattice.create_team {
			lead = options,
			members = { member("ann", counts():spawn()), member("bob", counts()) },
		}
		team:prompt "go"
		local _, texts = second_input(requests)
		assert.matches("1 messages", texts[1])
		assert.matches("3 messages", texts[2])
		assert.matches("1 messages", texts[3])
		assert.matches("1 messages", texts[4])
	end)

	it("gives mailbox tools to members, and to the lead only where it is told to", function()
		local names
		local ann = template(function(_, request)
			names = {}
			for i, one in ipairs(request.tools) do
				names[i] = one.name
			end
			return "ok"
		end)
		local all = { "team_send", "team_inbox", "team_read", "team_reply", "team_followup", "team_status" }
		for _, exposed in ipairs { false, true } do
			local options, requests = lead_of { handoff("ann", "1") }
			lattice.create_team { lead = options, members = { member("ann", ann) }, expose_lead_mailbox_tools = exposed }
				:prompt "go"
			assert.same(all, names)
			assert.equal(exposed and 7 or 1, #requests[1].tools)
			assert.equal("ann", requests[1].tools[1].name)
		end
	end)

	it("drains messages and work items, and stops at its bounds", function()
		local function player(name, other)
			return template(function(text, request)
				if #request.messages == 1 and text:find "message msg_" then
					return calling { call("team_reply", { message_id = text:match "message (msg_%x+)", text = "back from " .. name }) }
				end
				return "ok from " .. name .. other
			end)
		end
		local team = lattice.create_team {
			lead = { model_client = { create = function() end } },
			members = { member("ann", player("ann", "bob")), member("bob", player("bob", "ann")) },
		}
		team:send { from = "bob", to = "ann", body = "ping" } -- they answer each other for ever
		local counts = team:drain { max_rounds = 3 }
		assert.equal(3, counts.rounds)
		assert.equal(0, counts.work_items)
		assert.is_true(counts.messages >= 3)
		assert.equal(2, team:drain({ max_messages = 2 }).messages)

		local quiet = lattice.create_team {
			lead = { model_client = { create = function() end } },
			members = { member("ann", echo "ann"), member("bob", echo "bob", { mailbox_tools = false }) },
		}
		local receipt = quiet.mailbox:enqueue("bob", { task = "from the host" })
		quiet:send { to = { "ann", "bob" }, body = "hello" }
		assert.same({ rounds = 2, work_items = 1, messages = 2, completed = 3, failed = 0 }, quiet:drain())
		assert.equal("bob did from the host", quiet.mailbox:work_item(receipt.work_item_id).outcome.text)
		assert.same({ rounds = 0, work_items = 0, messages = 0, completed = 0, failed = 0 }, quiet:drain())
	end)

	it("lets the host claim and finish work itself", function()
		local team = lattice.create_team {
			lead = { model_client = { create = function() end } },
			members = { member("ann", echo "ann") },
		}
		team.mailbox:enqueue("ann", "by hand")
		local item = team.mailbox:claim_next "ann"
		assert.equal("by hand", item.task)
		assert.equal("completed", team.mailbox:complete(item, "mine").status)
	end)

	it("refuses what can't be right when it is made", function()
		local spec = echo "ann"
		local lead = { model_client = { create = function() end } }
		local function fails(options, pattern)
			assert.error_matches(function()
				lattice.create_team(options)
			end, pattern)
		end
		fails({ lead = lead }, "create_team: members: expected a list of members %(lattice.team_member%), got nil")
		fails({ members = {} }, "create_team: lead: expected an agent, a template .* got nil")
		fails({ lead = lead, members = {}, mailbx = 1 }, 'create_team: unknown option "mailbx".*Did you mean "mailbox"')
		fails({ lead = lead, members = { member("a", spec), member("a", spec) } }, 'members%[2%]: there is already a member named "a"')
		assert.error_matches(function()
			lattice.team_member { name = "lead", agent = spec }
		end, 'team_member: name: expected another name than "lead"')
		assert.error_matches(function()
			lattice.team_member { name = "ann" }
		end, "team_member: agent: expected an agent, a template .* or a team, got nil")
		assert.error_matches(function()
			lattice.create_team_runner { max_concurrent_work_items = 0 }
		end, "create_team_runner: max_concurrent_work_items: expected a positive integer, got 0")
		local team = lattice.create_team { lead = lead, members = {} }
		assert.error_matches(function()
			team:send { to = "nobody", body = "x" }
		end, 'team:send: to: expected one of lead, got "nobody"')
	end)
end)

describe("a team on a SQLite mailbox", function()
	it("hands off, reports in order, and cancels at an abort, as in memory", function()
		local path, remove = mailboxes.sqlite_path()
		local _ <close> = setmetatable({}, { __close = remove })
		local controller = lattice.abort_controller()
		local mailbox <close> = lattice.create_sqlite_mailbox { path = path }
		local stuck = template(function(text)
			if text == "stop" then
				controller:abort "enough"
				lattice.sleep(60000)
			end
			return "ann did " .. text
		end)
		local members = { member("ann", stuck, { mailbox_tools = false }), member("bob", echo "bob") }
		local options, requests = lead_of({ handoff("ann", "1"), handoff("bob", "2"), handoff("ann", "3") }, {
			tool_concurrency = { mode = "all" },
		})
		local team = lattice.create_team { lead = options, members = members, mailbox = mailbox }
		assert.equal("done", team:prompt("go").result)
		local _, texts = second_input(requests)
		for index, text in ipairs { "ann did 1", "bob did 2", "ann did 3" } do
			assert.matches("completed\n" .. text, texts[index], 1, true)
		end
		local again = lattice.create_team {
			lead = lead_of { handoff("ann", "stop"), handoff("bob", "never") },
			members = members,
			mailbox = mailbox,
		}
		assert.equal("error_abort", again:prompt("go", { signal = controller.signal }).subtype)
		local status = again:status()
		assert.same({ 1, 0, 1 }, { status.ann.failed, status.ann.claimed, status.bob.cancelled })
	end)

	it("lets another process do the work, and gets its reports", function()
		local path, remove = mailboxes.sqlite_path()
		local _ <close> = setmetatable({}, { __close = remove })
		local mailbox <close> = lattice.create_sqlite_mailbox { path = path }
		local ran_here = false
		local never = template(function()
			ran_here = true
			return "here"
		end)
		local options, requests = lead_of { handoff("ann", "1"), handoff("bob", "2"), handoff("ann", "3") }
		local team = lattice.create_team {
			lead = options,
			members = { member("ann", never), member("bob", never) },
			mailbox = mailbox,
			runner = lattice.create_team_runner { remote = true },
		}
		local lua = os.getenv "LUA" or "lua5.4"
		local worker = assert(io.popen(("%s spec/support/team_process.lua %s 3"):format(lua, path)))
		assert.equal("done", team:prompt("go").result)
		local said = worker:read "a"
		worker:close()
		assert.equal("3 completed\n", said)
		assert.is_false(ran_here)
		local _, texts = second_input(requests)
		for index, text in ipairs { "ann did 1", "bob did 2", "ann did 3" } do
			assert.matches("completed\nelsewhere " .. text, texts[index], 1, true)
		end
	end)
end)
