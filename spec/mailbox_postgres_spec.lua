local lattice = require "lattice"
local postgres = require "spec.support.postgres"

local unavailable = postgres.unavailable()

describe("a mailbox on PostgreSQL", function()
	if unavailable then
		pending("can't be had here: " .. unavailable)
		return
	end
	local dsn, schema, mailbox
	before_each(function()
		dsn, schema = postgres.new_schema()
		mailbox = assert(lattice.create_postgres_mailbox { dsn = dsn })
	end)
	after_each(function()
		mailbox:close()
		postgres.drop_schema(schema)
	end)

	it("goes on with a new connection when its own is ended, and loses and doubles nothing", function()
		local counts = {}
		local results = lattice.gather { function()
			for n = 1, 60 do
				assert(mailbox:send { from = "a", to = "b", body = n, thread_id = "t" })
				counts.sent = n
			end
		end, function()
			local seen = 0
			while seen < 60 do
				assert(mailbox:wait "b")
				for _, message in ipairs(assert(mailbox:read "b")) do
					seen = seen + 1
					assert.are.equal(seen, message.body)
				end
			end
		end, function()
			for at = 10, 40, 15 do
				while (counts.sent or 0) < at do
					lattice.sleep(1)
				end
				postgres.end_connections()
			end
		end }
		for _, result in ipairs(results) do
			assert(result.ok, tostring(result.error))
		end
		assert.are.equal(60, #mailbox:thread "t")
	end)

	it("wakes those who wait also when the connection was lost meanwhile", function()
		local results = lattice.gather { function()
			return mailbox:wait "ann"
		end, function()
			lattice.sleep(5)
			postgres.end_connections()
			local other <close> = assert(lattice.create_postgres_mailbox { dsn = dsn })
			assert(other:enqueue("ann", 1))
		end }
		assert.are.equal("ann", results[1].value)
	end)

	it("gives up after retry_ms while the server can't be reached", function()
		local short <close> = assert(lattice.create_postgres_mailbox { dsn = dsn, retry_ms = 100 })
		postgres.stop()
		local status, why = short:status()
		postgres.start_again()
		assert.is_nil(status)
		assert.are.equal("database", why.kind)
		assert.is_truthy(short:status())
	end)

	it("never shows a password", function()
		local secret = "s3cr3t-w0rd"
		local refused = dsn .. " password=" .. secret .. " dbname=" .. secret
		for _, bad in ipairs { refused, "postgresql://u:" .. secret .. "@[", "password=" .. secret .. " nonsense" } do
			local none, why = lattice.create_postgres_mailbox { dsn = bad, connect_timeout_ms = 5000 }
			assert.is_nil(none)
			assert.are.equal("database", why.kind)
			assert.is_nil(tostring(why):find(secret, 1, true), tostring(why))
		end
		local ok, why = pcall(lattice.create_postgres_mailbox, { dsn = 5 })
		assert.is_false(ok)
		assert.is_truthy(why:find("dsn: expected a non-empty string", 1, true))
	end)

	it("shares its tables with any number of processes that begin at once", function()
		local fresh, own_schema = postgres.new_schema()
		local functions = {}
		for i = 1, 6 do
			functions[i] = function()
				local one <close> = assert(lattice.create_postgres_mailbox { dsn = fresh })
				return one:enqueue("ann", i).status
			end
		end
		for _, result in ipairs(lattice.gather(functions)) do
			assert(result.ok, tostring(result.error))
			assert.are.equal("accepted", result.value)
		end
		postgres.drop_schema(own_schema)
	end)

	it("refuses tables that a newer version made", function()
		postgres.psql(("INSERT INTO %s.lattice_schema (component, version) VALUES ('mailbox', 99)"):format(schema))
		local none, why = lattice.create_postgres_mailbox { dsn = dsn }
		assert.is_nil(none)
		assert.is_truthy(why.message:find("newer version of lattice", 1, true))
	end)
end)
