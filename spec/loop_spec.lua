-- The loop from Lua: core.turn, core.timer, core.now_ms.

local core = require "lattice.core"

local ids = {}

-- Turns until nothing is left that was ready already.
local function drain()
	while core.turn(0, ids) > 0 do -- luacheck: ignore 542
	end
end

describe("a turn of the loop", function()
	before_each(drain)

	it("hands out the ids of what became ready, once", function()
		local soon, later = core.timer(0), core.timer(60000)
		assert.equal(1, core.turn(nil, ids))
		assert.equal(soon:id(), ids[1])
		assert.is_true(soon:ready())
		assert.is_false(later:ready())
		assert.equal(0, core.turn(0, ids))
		later:cancel()
	end)

	it("comes back with nothing when its time is over", function()
		assert.equal(0, core.turn(0, ids))
		local before = core.now_ms()
		assert.equal(0, core.turn(1.5, ids))
		assert.is_true(core.now_ms() - before >= 1.5)
	end)

	it("fires timers in order of their time, and never early", function()
		local before = core.now_ms()
		local timers = { core.timer(6), core.timer(2), core.timer(4.5) }
		local order = {}
		while #order < 3 do
			for i = 1, core.turn(nil, ids) do
				order[#order + 1] = ids[i]
			end
		end
		assert.is_true(core.now_ms() - before >= 6)
		assert.same({ timers[2]:id(), timers[3]:id(), timers[1]:id() }, order)
	end)

	it("hands out any number of ready ops, over several turns if need be", function()
		local waiting, n = {}, 0
		for _ = 1, 1000 do
			local timer = core.timer(0)
			waiting[timer:id()] = timer
		end
		while n < 1000 do
			for i = 1, core.turn(nil, ids) do
				assert.is_true(waiting[ids[i]]:ready())
				waiting[ids[i]] = nil
				n = n + 1
			end
		end
		assert.is_nil(next(waiting))
	end)

	it("never hands out what was cancelled, closed or collected", function()
		local cancelled = core.timer(0)
		cancelled:cancel()
		cancelled:cancel()
		assert.is_true(cancelled:ready())
		do
			local _ <close> = core.timer(0)
		end
		core.timer(0)
		collectgarbage()
		collectgarbage()
		assert.equal(0, core.turn(5, ids))
	end)

	it("loses no id when the caller's table raises", function()
		local timer = core.timer(0)
		assert.has_error(function()
			core.turn(nil, nil)
		end)
		assert.equal(1, core.turn(nil, ids))
		assert.equal(timer:id(), ids[1])
	end)

	it("raises on what is no time", function()
		for _, value in ipairs { -1, 0 / 0, "soon", {} } do
			assert.has_error(function()
				core.turn(value, ids)
			end)
			assert.has_error(function()
				core.timer(value)
			end)
		end
		core.timer(math.huge):cancel()
	end)
end)

describe("a Lua state that ends with ops alive", function()
	it("closes in any order of collection, and lets no finalizer make more", function()
		local chunk = [[
			local core = require "lattice.core"
			KEPT = { core.timer(60000) }
			core.timer(0)
			KEPT[2] = core.http_start { url = "http://127.0.0.1:1" }
			KEPT[3] = core.http_start { url = "http://127.0.0.1:1" }
			setmetatable({}, { __gc = function()
				print(pcall(core.timer, 1))
				print(pcall(core.http_start, { url = "http://127.0.0.1:1" }))
				print(pcall(core.exchange, { url = "http://127.0.0.1:1" }))
				pcall(core.turn, 0, {})
			end })
			KEPT[4] = core.timer(0)
			print "closing"
		]]
		local file = os.tmpname()
		local script = assert(io.open(file, "w"))
		script:write(chunk)
		script:close()
		local pipe = assert(io.popen("lua5.4 " .. file .. " 2>&1"))
		local out = pipe:read("a")
		local ok = pipe:close()
		os.remove(file)
		local refusal = "false\tnothing that waits can be started in a finalizer (__gc)\n"
		assert.equal("closing\n" .. refusal:rep(3), out)
		assert.is_true(ok)
	end)
end)
