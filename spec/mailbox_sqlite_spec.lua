local lattice = require "lattice"
local mailboxes = require "spec.support.mailboxes"

describe("a mailbox on SQLite", function()
	local path, remove
	before_each(function()
		path, remove = mailboxes.sqlite_path()
	end)
	after_each(function()
		remove()
	end)

	it("is there again when it is opened again", function()
		local first = assert(lattice.create_sqlite_mailbox { path = path })
		local receipt = first:enqueue("ann", { n = 1 })
		first:close()
		local second <close> = assert(lattice.create_sqlite_mailbox { path = path })
		assert.are.equal("queued", second:work_item(receipt.work_item_id).status)
	end)

	it("says why a file can't be opened", function()
		for _, bad in ipairs { "/nonexistent/folder/file.db", "/dev/null/x" } do
			local none, why = lattice.create_sqlite_mailbox { path = bad }
			assert.is_nil(none)
			assert.are.equal("database", why.kind)
			assert.is_truthy(why.message:find("can't open", 1, true))
		end
		local file = assert(io.open(path, "w"))
		file:write(("this is no database. "):rep(100))
		file:close()
		local none, why = lattice.create_sqlite_mailbox { path = path }
		assert.is_nil(none)
		assert.are.equal("database", why.kind)
	end)

	it("lets go of a file that many begin to use at once", function()
		local functions = {}
		for i = 1, 6 do
			functions[i] = function()
				local one <close> = assert(lattice.create_sqlite_mailbox { path = path })
				return one:enqueue("ann", i).status
			end
		end
		for _, result in ipairs(lattice.gather(functions)) do
			assert(result.ok, tostring(result.error))
			assert.are.equal("accepted", result.value)
		end
	end)

	it("answers those who call while others call, from one state", function()
		local mailbox <close> = assert(lattice.create_sqlite_mailbox { path = path, synchronous = "normal" })
		local functions = {}
		for i = 1, 40 do
			functions[i] = function()
				assert(mailbox:enqueue("ann", i))
				local item = assert(mailbox:claim_next "ann")
				return assert(mailbox:complete(item, i)).status
			end
		end
		for _, result in ipairs(lattice.gather(functions)) do
			assert.are.equal("completed", result.value)
		end
		assert.are.equal(40, mailbox:status("ann").completed)
	end)

	it("ends what waits when the state is collected in any order", function()
		for _ = 1, 20 do
			local mailbox = assert(lattice.create_sqlite_mailbox { path = path, synchronous = "normal" })
			local controller = lattice.abort_controller()
			lattice.gather({ function()
				return mailbox:wait "ann"
			end, function()
				controller:abort "enough"
			end }, { signal = controller.signal })
		end
		collectgarbage()
		collectgarbage()
	end)
end)
