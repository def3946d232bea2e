local lattice = require "lattice"
local mailboxes = require "spec.support.mailboxes"

local function bodies(messages)
	local list = {}
	for i, message in ipairs(messages) do
		list[i] = message.body
	end
	return list
end

local function run_all(...)
	local values = {}
	for i, result in ipairs(lattice.gather { ... }) do
		assert(result.ok, tostring(result.error))
		values[i] = result.value
	end
	return table.unpack(values)
end

local function conforms(kind)
	local place, mailbox
	local function fresh(options)
		if place then
			place.remove()
		end
		place = kind.make(options)
		mailbox = place.mailbox
	end
	before_each(function()
		fresh()
	end)
	after_each(function()
		place.remove()
		place = nil
	end)

	describe("messages", function()
		it("give each send to each reader once, in the order of the sends", function()
			local sent = mailbox:send { from = "lead", to = { "ann", "bob", "ann" }, body = 1 }
			mailbox:send { from = "lead", to = "ann", body = 2, thread_id = sent.thread_id }
			mailbox:send { from = "bob", to = "ann", body = 3 }
			assert.are.same({ 1, 2, 3 }, bodies(mailbox:read "ann"))
			assert.are.same({ 1 }, bodies(mailbox:read "bob"))
			assert.are.same({}, mailbox:read "ann")
			assert.are.same({}, mailbox:read "zoe")
		end)

		it("carry any JSON-able value, and hand out copies", function()
			local body = { text = "ä\0\n€", list = lattice.array {}, none = lattice.null, n = 1 << 62, f = 0.5, deep = { { {} } } }
			mailbox:send { from = "a", to = { "b", "c" }, body = body }
			local before = lattice.json.encode(body)
			body.text = "changed"
			local first = mailbox:read("b")[1]
			assert.are.equal(before, lattice.json.encode(first.body))
			first.body.text, first.to[1] = "changed", "changed"
			local second = mailbox:read("c")[1]
			assert.are.equal(before, lattice.json.encode(second.body))
			assert.are.same({ "b", "c" }, second.to)
		end)

		it("have an id, a thread, a place in it, a sender and a time", function()
			local sent = mailbox:send { from = "a", to = "b", body = "x" }
			local message = mailbox:read("b")[1]
			assert.are.equal("integer", math.type(message.created_at))
			message.created_at = nil
			assert.are.same({
				message_id = sent.message_id, thread_id = sent.thread_id, position = 1, kind = "message", from = "a",
				to = { "b" }, body = "x",
			}, message)
			assert.are.equal("sent", sent.status)
		end)

		it("are answered in their thread, to their sender", function()
			local sent = mailbox:send { from = "lead", to = { "ann", "bob" }, body = "who?" }
			local reply = mailbox:reply(sent.message_id, { from = "ann", body = "I" })
			assert.are.equal(sent.thread_id, reply.thread_id)
			assert.are.equal(2, reply.position)
			local message = mailbox:read("lead")[1]
			assert.are.equal("reply", message.kind)
			assert.are.equal(sent.message_id, message.in_reply_to)
			assert.are.same({ "who?" }, bodies(mailbox:read "ann"))
		end)

		it("follow up to everybody else in the thread", function()
			local sent = mailbox:send { from = "lead", to = { "ann", "bob" }, body = 1 }
			mailbox:followup(sent.thread_id, { from = "ann", body = 2 })
			assert.are.same({ 1, 2 }, bodies(mailbox:read "bob"))
			assert.are.same({ 2 }, bodies(mailbox:read "lead"))
			assert.are.same({ 1 }, bodies(mailbox:read "ann"))
			assert.are.same({ "ann", "bob", "lead" }, mailbox:participants(sent.thread_id))
			mailbox:followup(sent.thread_id, { from = "ann", body = 3, to = "zoe" })
			assert.are.same({ 3 }, bodies(mailbox:read "zoe"))
		end)

		it("of one thread, or a number of them, can be read alone", function()
			local one = mailbox:send { from = "a", to = "b", body = 1 }
			mailbox:send { from = "a", to = "b", body = 2 }
			mailbox:send { from = "a", to = "b", body = 3, thread_id = one.thread_id }
			assert.are.same({ 1, 3 }, bodies(mailbox:inbox("b", { thread_id = one.thread_id })))
			assert.are.same({ 1 }, bodies(mailbox:read("b", { thread_id = one.thread_id, max_messages = 1 })))
			assert.are.same({ 2, 3 }, bodies(mailbox:read "b"))
		end)

		it("stay unread in the inbox until they are marked", function()
			local sent = mailbox:send { from = "a", to = { "b", "c" }, body = 1 }
			assert.are.same({ 1 }, bodies(mailbox:inbox "b"))
			assert.are.same({ 1 }, bodies(mailbox:inbox "b"))
			assert.are.equal(1, mailbox:mark_read("b", { sent.message_id, "unknown" }))
			assert.are.equal(0, mailbox:mark_read("b", { sent.message_id }))
			assert.are.same({}, mailbox:inbox "b")
			assert.are.same({ 1 }, bodies(mailbox:read "c"))
		end)

		it("have receipts that say who read them", function()
			local sent = mailbox:send { from = "a", to = { "c", "b" }, body = 1 }
			mailbox:read "b"
			local receipts = mailbox:receipts(sent.message_id)
			assert.are.equal("b", receipts[1].reader)
			assert.are.equal("integer", math.type(receipts[1].read_at))
			assert.are.same({ reader = "c" }, receipts[2])
		end)

		it("of a thread are listed in order, and marked by nothing", function()
			local sent = mailbox:send { from = "a", to = "b", body = 1 }
			for i = 2, 5 do
				mailbox:send { from = "a", to = "b", body = i, thread_id = sent.thread_id }
			end
			assert.are.same({ 1, 2, 3, 4, 5 }, bodies(mailbox:thread(sent.thread_id)))
			assert.are.same({ 3, 4 }, bodies(mailbox:thread(sent.thread_id, { after = 2, max_messages = 2 })))
			assert.are.equal(1, mailbox:message(sent.message_id).body)
			assert.are.equal(5, mailbox:status("b").unread)
			assert.are.same({}, mailbox:thread "unknown")
		end)

		it("are refused for all readers when the queue of one is full", function()
			fresh { max_queue = 2 }
			mailbox:send { from = "a", to = "b", body = 1 }
			mailbox:send { from = "a", to = "b", body = 2 }
			local sent, why = mailbox:send { from = "a", to = { "c", "b" }, body = 3 }
			assert.is_nil(sent)
			assert.are.equal("mailbox_full", why.kind)
			assert.is_truthy(tostring(why):find("max_queue", 1, true))
			assert.are.same({}, mailbox:read "c")
			mailbox:read "b"
			assert.is_truthy(mailbox:send { from = "a", to = { "c", "b" }, body = 3 })
		end)

		it("that nobody knows are not found", function()
			for _, name in ipairs { "message", "receipts" } do
				local found, why = mailbox[name](mailbox, "unknown")
				assert.is_nil(found)
				assert.are.equal("not_found", why.kind)
			end
			assert.are.equal("not_found", select(2, mailbox:reply("100% unknown", { from = "a", body = 1 })).kind)
			assert.are.equal("not_found", select(2, mailbox:followup("unknown", { from = "a", body = 1 })).kind)
		end)
	end)

	describe("work items", function()
		it("are claimed in the order of their queuing, each by one", function()
			local receipts = {}
			for i = 1, 3 do
				receipts[i] = mailbox:enqueue("ann", { n = i }, { from = "lead" })
			end
			mailbox:enqueue("bob", { n = 9 })
			assert.are.equal("accepted", receipts[1].status)
			assert.are.equal("queued", receipts[1].phase)
			for i = 1, 3 do
				local item = mailbox:claim_next "ann"
				assert.are.equal(i, item.task.n)
				assert.are.equal(receipts[i].work_item_id, item.work_item_id)
				assert.are.equal(receipts[i].thread_id, item.thread_id)
				assert.are.equal("lead", item.from)
				assert.are.equal("claimed", item.status)
				assert.are.equal(1, item.attempt)
			end
			assert.is_nil(mailbox:claim_next "ann")
			assert.are.equal("host", mailbox:claim_next("bob").from)
		end)

		it("are completed once, with the first outcome", function()
			local receipt = mailbox:enqueue("ann", "t")
			local item = mailbox:claim_next "ann"
			assert.are.same({ status = "completed", repeated = false }, mailbox:complete(item, { ok = true }))
			assert.are.same({ status = "completed", repeated = true }, mailbox:complete(item, { ok = false }))
			local after = mailbox:work_item(receipt.work_item_id)
			assert.are.same({ ok = true }, after.outcome)
			assert.are.equal("completed", after.status)
			assert.are.equal("integer", math.type(after.finished_at))
			assert.is_nil(mailbox:claim_next "ann")
		end)

		it("come back when their lease is over, and a late worker is told so", function()
			local receipt = mailbox:enqueue("ann", "t")
			local late = mailbox:claim_next("ann", { lease_ms = 1 })
			assert.are.equal("ann", mailbox:wait "ann")
			local item = mailbox:claim_next "ann"
			assert.are.equal(2, item.attempt)
			assert.is_true(item.fencing_token > late.fencing_token)
			for _, call in ipairs { "complete", "fail", "heartbeat", "release" } do
				local done, why = mailbox[call](mailbox, late)
				assert.is_nil(done)
				assert.are.equal("stale", why.kind)
			end
			mailbox:complete(item, "second")
			assert.are.equal("stale", select(2, mailbox:complete(late, "first")).kind)
			assert.are.equal("second", mailbox:work_item(receipt.work_item_id).outcome)
		end)

		it("are finished by a worker whose lease is over, where nobody else has claimed them", function()
			mailbox:enqueue("ann", "t")
			local item = mailbox:claim_next("ann", { lease_ms = 1 })
			mailbox:wait "ann"
			assert.is_false(mailbox:complete(item, 1).repeated)
		end)

		it("are kept by heartbeats", function()
			mailbox:enqueue("ann", "t")
			local item = mailbox:claim_next("ann", { lease_ms = 1 })
			assert.is_true(mailbox:heartbeat(item, { lease_ms = 60000 }))
			lattice.sleep(3)
			assert.is_nil(mailbox:claim_next "ann")
			assert.is_nil((mailbox:wait("ann", { timeout_ms = 1 })))
		end)

		it("are set aside when their attempts are used up", function()
			local receipt = mailbox:enqueue("ann", "t", { max_attempts = 2 })
			for attempt = 1, 2 do
				assert.are.equal("ann", mailbox:wait "ann")
				assert.are.equal(attempt, mailbox:claim_next("ann", { lease_ms = 1 }).attempt)
			end
			assert.is_true(mailbox:wait_finished(receipt.work_item_id))
			assert.is_nil(mailbox:claim_next "ann")
			local item = mailbox:work_item(receipt.work_item_id)
			assert.are.equal("set_aside", item.status)
			assert.is_truthy(item.error:find("2 of 2 attempts", 1, true))
			assert.is_true(mailbox:requeue(receipt.work_item_id))
			item = mailbox:claim_next "ann"
			assert.are.equal(1, item.attempt)
			assert.are.equal(3, item.fencing_token)
		end)

		it("fail for good, or go back until their attempts are used up", function()
			mailbox:enqueue("ann", "a")
			local item = mailbox:claim_next "ann"
			assert.are.same({ status = "failed", repeated = false }, mailbox:fail(item, "broken"))
			assert.are.same({ status = "failed", repeated = true }, mailbox:fail(item, "broken again"))
			assert.are.equal("broken", mailbox:work_item(item.work_item_id).error)
			mailbox:enqueue("ann", "b", { max_attempts = 2 })
			assert.are.equal("queued", mailbox:fail(mailbox:claim_next "ann", { n = 1 }, { retry = true }).status)
			item = mailbox:claim_next "ann"
			assert.are.equal("set_aside", mailbox:fail(item, { n = 2 }, { retry = true }).status)
			assert.are.same({ n = 2 }, mailbox:work_item(item.work_item_id).error)
			assert.is_nil(mailbox:claim_next "ann")
		end)

		it("are held back for a while by a delay", function()
			mailbox:enqueue("ann", "a")
			mailbox:fail(mailbox:claim_next "ann", "not now", { retry = true, delay_ms = 60000 })
			assert.is_nil(mailbox:claim_next "ann")
			mailbox:enqueue("bob", "b")
			mailbox:release(mailbox:claim_next "bob", { delay_ms = 2 })
			assert.are.equal("bob", mailbox:wait { "ann", "bob" })
		end)

		it("can be given back without an attempt, and keep their place", function()
			mailbox:enqueue("ann", "a")
			mailbox:enqueue("ann", "b")
			local item = mailbox:claim_next "ann"
			assert.is_true(mailbox:release(item))
			assert.are.equal("stale", select(2, mailbox:release(item)).kind)
			item = mailbox:claim_next "ann"
			assert.are.equal("a", item.task)
			assert.are.equal(1, item.attempt)
		end)

		it("are cancelled only before they start", function()
			local first, second = mailbox:enqueue("ann", "a"), mailbox:enqueue("ann", "b")
			local item = mailbox:claim_next "ann"
			assert.are.same({ status = "claimed", cancelled = false }, mailbox:cancel(first.work_item_id))
			assert.are.same({ status = "cancelled", cancelled = true }, mailbox:cancel(second.work_item_id, "enough"))
			assert.are.equal("enough", mailbox:work_item(second.work_item_id).error)
			assert.is_nil(mailbox:claim_next "ann")
			mailbox:complete(item)
			assert.are.equal(lattice.null, mailbox:work_item(first.work_item_id).outcome)
			assert.are.equal("stale", select(2, mailbox:requeue(first.work_item_id)).kind)
			assert.is_true(mailbox:requeue(second.work_item_id))
			assert.are.equal("b", mailbox:claim_next("ann").task)
		end)

		it("of a member run one at a time when asked so", function()
			mailbox:enqueue("ann", "a")
			mailbox:enqueue("ann", "b")
			local other = place.another()
			local item = mailbox:claim_next("ann", { serial = true })
			assert.is_nil(other:claim_next("ann", { serial = true }))
			assert.is_truthy(mailbox:complete(item))
			assert.are.equal("b", other:claim_next("ann", { serial = true }).task)
		end)

		it("are refused when the queue of the member is full", function()
			fresh { max_queue = 2 }
			mailbox:enqueue("ann", 1)
			mailbox:enqueue("ann", 2)
			local receipt, why = mailbox:enqueue("ann", 3)
			assert.is_nil(receipt)
			assert.are.equal("mailbox_full", why.kind)
			mailbox:complete(mailbox:claim_next "ann")
			assert.is_truthy(mailbox:enqueue("ann", 3))
			assert.is_truthy(mailbox:enqueue("bob", 1))
		end)

		it("are listed and counted", function()
			local receipt = mailbox:enqueue("ann", 1)
			mailbox:enqueue("ann", 2, { thread_id = receipt.thread_id })
			mailbox:enqueue("bob", 3)
			mailbox:claim_next "ann"
			local function tasks(filter)
				local list = {}
				for i, item in ipairs(mailbox:work_items(filter)) do
					list[i] = item.task
				end
				return list
			end
			assert.are.same({ 1, 2, 3 }, tasks())
			assert.are.same({ 1, 2 }, tasks { thread_id = receipt.thread_id })
			assert.are.same({ 2, 3 }, tasks { status = "queued" })
			assert.are.same({ 1 }, tasks { member_id = "ann", limit = 1 })
			assert.are.same({
				unread = 0, queued = 2, claimed = 1, completed = 0, failed = 0, cancelled = 0, set_aside = 0,
			}, mailbox:status())
			assert.are.equal(1, mailbox:status("bob").queued)
		end)

		it("leave their task as a message, read when it is claimed", function()
			local receipt = mailbox:enqueue("ann", { goal = 1 }, { from = "lead" })
			assert.are.same({ { reader = "ann" } }, mailbox:receipts(receipt.message_id))
			local message = mailbox:message(receipt.message_id)
			assert.are.equal("task", message.kind)
			assert.are.same({ goal = 1 }, message.body)
			assert.are.same({}, mailbox:inbox "ann")
			mailbox:claim_next "ann"
			assert.is_truthy(mailbox:receipts(receipt.message_id)[1].read_at)
			mailbox:reply(receipt.message_id, { from = "ann", body = "done" })
			assert.are.same({ "done" }, bodies(mailbox:read "lead"))
		end)

		it("that nobody knows are not found", function()
			for _, name in ipairs { "work_item", "cancel", "requeue", "wait_finished" } do
				assert.are.equal("not_found", select(2, mailbox[name](mailbox, "unknown")).kind)
			end
			local item = { work_item_id = "unknown", fencing_token = 1 }
			for _, name in ipairs { "complete", "fail", "heartbeat", "release" } do
				assert.are.equal("not_found", select(2, mailbox[name](mailbox, item)).kind)
			end
		end)
	end)

	describe("waiting", function()
		it("ends when a message or a work item comes, from another handle too, while others go on", function()
			local other = place.another()
			local went_on = 0
			local first, second = run_all(function()
				return mailbox:wait { "zoe", "ann" }
			end, function()
				return mailbox:wait "bob"
			end, function()
				for _ = 1, 5 do
					lattice.sleep(1)
					went_on = went_on + 1
				end
				other:send { from = "x", to = "ann", body = 1 }
				other:enqueue("bob", 1)
			end)
			assert.are.equal("ann", first)
			assert.are.equal("bob", second)
			assert.are.equal(5, went_on)
		end)

		it("ends at once when something is there, and with its time", function()
			assert.is_nil((mailbox:wait("ann", { timeout_ms = 5 })))
			assert.is_nil((mailbox:wait("ann", { timeout_ms = 0 })))
			mailbox:enqueue("ann", 1)
			assert.are.equal("ann", mailbox:wait("ann", { timeout_ms = 0 }))
		end)

		it("for work items ends when all are finished", function()
			local a, b = mailbox:enqueue("ann", 1).work_item_id, mailbox:enqueue("ann", 2).work_item_id
			local other = place.another()
			local finished = run_all(function()
				return mailbox:wait_finished { a, b }
			end, function()
				other:complete(other:claim_next "ann", 1)
				lattice.sleep(5)
				other:fail(other:claim_next "ann", 1)
			end)
			assert.is_true(finished)
			mailbox:enqueue("ann", 3)
			assert.is_nil((mailbox:wait_finished(mailbox:work_items({ status = "queued" })[1].work_item_id,
				{ timeout_ms = 5 })))
		end)

		it("ends with an abort, of the signal or of the running call", function()
			local controller = lattice.abort_controller()
			local results = lattice.gather({ function()
				return mailbox:wait "ann"
			end, function()
				lattice.sleep(2)
				controller:abort "enough"
			end }, { signal = controller.signal })
			assert.are.equal("error_abort", results[1].error.name)
			local ok, why = pcall(mailbox.wait, mailbox, "ann", { signal = lattice.abort_timeout(2) })
			assert.is_false(ok)
			assert.are.equal("error_abort", why.name)
		end)

		it("ends when the mailbox is closed, and so does everything later", function()
			local answer = run_all(function()
				local _, why = mailbox:wait "ann"
				return why.kind
			end, function()
				lattice.sleep(2)
				mailbox:close()
			end)
			assert.are.equal("closed", answer)
			assert.are.equal("closed", select(2, mailbox:send { from = "a", to = "b", body = 1 }).kind)
			assert.are.equal("closed", select(2, mailbox:claim_next "b").kind)
			mailbox:close()
		end)
	end)

	it("takes work in a call that is being stopped: what it does is carried through", function()
		local controller = lattice.abort_controller()
		local receipt = mailbox:enqueue("ann", 1)
		lattice.gather({ function()
			pcall(lattice.sleep, 60000)
			mailbox:cancel(receipt.work_item_id, "stopped")
		end, function()
			lattice.sleep(1)
			controller:abort "enough"
		end }, { signal = controller.signal })
		assert.are.equal("cancelled", mailbox:work_item(receipt.work_item_id).status)
	end)

	it("says what is wrong with arguments", function()
		assert.has_error(function()
			mailbox:send { from = "a", to = {}, body = 1 }
		end, "mailbox:send: to: expected a name, or a list of names, got a table")
		assert.has_error(function()
			mailbox:send { from = "a", body = 1 }
		end, "mailbox:send: to: expected a value, got nil")
		assert.has_error(function()
			mailbox:claim_next("ann", { lease = 1 })
		end, 'mailbox:claim_next: unknown option "lease". Check for a typo, or upgrade lattice if this option was added '
			.. 'in a newer version. Did you mean "lease_ms"?')
		assert.has_error(function()
			mailbox:enqueue("", 1)
		end, 'mailbox:enqueue: member_id: expected a name of 1 to 200 bytes of UTF-8 without control characters, got ""')
		local ok, why = pcall(mailbox.send, mailbox, { from = "a", to = "b", body = print })
		assert.is_false(ok)
		assert.is_truthy(why:find("mailbox:send: body", 1, true))
	end)
end

for _, kind in ipairs(mailboxes.all) do
	describe("a mailbox " .. kind.name, function()
		if kind.unavailable then
			pending("can't be had here: " .. kind.unavailable)
		else
			conforms(kind)
		end
	end)
end
