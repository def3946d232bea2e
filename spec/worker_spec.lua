local core = require "lattice.core"

local SCALE = tonumber(os.getenv "LATTICE_SPEC_SCALE") or 1

local function finish(op)
	local ids = {}
	while not op:ready() do core.turn(nil, ids) end
	return op:result()
end

local function worker(source, pool_size)
	return core.worker { source = source, pool_size = pool_size }
end

local function run(source, input, ctx, timeout_ms)
	return finish(worker(source):call(input, ctx, timeout_ms))
end

local function echo(...) return ... end

describe("a worker", function()
	it("runs a function in a state of its own and returns all its values", function()
		local sum = function(input) return input.a + input.b, nil, "x" end
		assert.are.same({ true, 3, nil, "x" }, { run(sum, { a = 1, b = 2 }) })
		assert.are.same({ true }, { run(function() end) })
		a_global_of_the_script = true -- luacheck: ignore
		assert.are.same({ true, "nil" }, { run(function() return type(a_global_of_the_script) end) }) -- luacheck: ignore
		a_global_of_the_script = nil -- luacheck: ignore
	end)

	it("sees its upvalues as they were when it was defined", function()
		local factor, names, missing = 7, { "a", "b" }, nil
		local w = worker(function(x) return factor * x, names[2], missing end)
		factor = 8
		assert.are.same({ true, 42, "b" }, { finish(w:call(6)) })
		assert.are.equal(8, factor)
	end)

	it("keeps tables that several upvalues share", function()
		local one = { 1 }
		local other = { one = one }
		assert.is_true(select(2, run(function() return one == other.one end)))
	end)

	it("can call itself, and sees its own globals", function()
		local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
		assert.are.same({ true, 55 }, { run(fib, 10) })
		local g = _G
		assert.are.same({ true, true }, { run(function() return g == _G and g.string == string end) })
	end)

	it("names the upvalue that can't cross, and the cure", function()
		local helper = function() end
		local deep = { list = { { callback = print } } }
		local object = setmetatable({}, { __index = {} })
		local cure = '; pass it in the input, or use worker = "module.name"'
		assert.has_error(function() worker(function() return helper() end) end,
			"worker: upvalue helper: a function can't cross to another thread" .. cure)
		assert.has_error(function() worker(function() return deep end) end,
			"worker: upvalue deep.list[1].callback: a function can't cross to another thread" .. cure)
		assert.has_error(function() worker(function() return object end) end,
			"worker: upvalue object: a table with a metatable can't cross to another thread" .. cure)
		assert.error_matches(function() worker(print) end, "a C function can't cross", 1, true)
	end)

	it("can be a module, loaded once in each state", function()
		local w = worker("spec.support.worker_modules", 1)
		assert.are.same({ true, { echo = "a", calls = 1 } }, { finish(w:call "a") })
		assert.are.same({ true, { echo = "b", calls = 2 } }, { finish(w:call "b") })
	end)

	it("that can't be loaded says why, at the call", function()
		local ok, message, _, kind = run "no.such.module"
		assert.are.same({ false, "error" }, { ok, kind })
		assert.matches("module 'no.such.module' not found", message)
		ok, message = run "string.format"
		assert.is_false(ok)
		assert.matches("not found", message)
		ok, message = run "string"
		assert.is_false(ok)
		assert.matches('worker module "string": expected it to return a function, or a table with a function "handler"',
			message, 1, true)
	end)

	it("gives what was raised, as data or text, with a traceback", function()
		local ok, message, traceback, kind = run(function() error "oh no" end)
		assert.are.same({ false, "error" }, { ok, kind })
		assert.matches("worker_spec.lua:%d+: oh no", message)
		assert.matches("stack traceback:.*worker_spec.lua", traceback)
		assert.are.same({ code = 7 }, select(2, run(function() error { code = 7 } end)))
		assert.is_nil((select(2, run(function() error(nil) end))))
		assert.are.equal("as text", (select(2, run(function()
			error(setmetatable({}, { __tostring = function() return "as text" end }))
		end))))
		assert.matches("^table: ", (select(2, run(function() error { f = print } end))))
	end)

	it("refuses arguments and results that can't cross, by their path", function()
		local w = worker(echo)
		assert.error_matches(function() w:call { a = { print } } end,
			"input.a[1]: a function can't cross to another thread", 1, true)
		assert.error_matches(function() w:call({}, { ["odd key"] = io.stdout }) end,
			'ctx["odd key"]: a userdata can\'t cross to another thread', 1, true)
		assert.error_matches(function() w:call { [{}] = print } end, "input[a table]: a function can't cross", 1, true)
		local ok, message = run(function() return { x = { y = coroutine.create(print) } } end)
		assert.is_false(ok)
		assert.matches("the worker's result.x.y: a thread can't cross to another thread", message, 1, true)
	end)

	it("ends a call that uses os.exit, not the script", function()
		local ok, message = run(function() os.exit(3) end)
		assert.is_false(ok)
		assert.matches("os.exit can't be called in a worker", message, 1, true)
	end)

	it("survives a state that ran out of memory: the next call gets a new one", function()
		if os.getenv "ASAN_OPTIONS" or os.getenv "TSAN_OPTIONS" then
			pending "a sanitizer ends the process where malloc would return NULL"
			return
		end
		local w = worker(function(n)
			seen = (seen or 0) + 1 -- luacheck: ignore
			io.open("/dev/null"):read(n)
			return n, seen -- luacheck: ignore
		end, 1)
		assert.are.same({ true, 5, 1 }, { finish(w:call(5)) })
		assert.are.same({ true, 5, 2 }, { finish(w:call(5)) })
		local ok, message, _, kind = finish(w:call(1 << 46))
		assert.are.same({ false, "not enough memory", "memory" }, { ok, message, kind })
		assert.are.same({ true, 5, 1 }, { finish(w:call(5)) })
	end)

	it("can use the engine, on a loop of its own", function()
		local ok, out = run(function()
			local c = require "lattice.core"
			local op = c.process_start { command = "echo from a worker", env = { LD_PRELOAD = false } }
			while not op:ready() do c.turn(nil, {}) end
			return op:result().stdout
		end)
		assert.are.same({ true, "from a worker\n" }, { ok, out })
	end)

	it("says what is wrong with a misuse", function()
		assert.error_matches(function() core.worker { source = 7 } end,
			"source: expected a function or the name of a module, got number")
		assert.error_matches(function() core.worker { source = "" } end, "source: expected the name of a module")
		assert.error_matches(function() worker(echo, 0) end, "pool_size: expected an integer from 1 to 256")
		assert.error_matches(function() worker(echo):call(1, nil, -1) end, "expected milliseconds >= 0")
		local op <close> = worker(function() while true do end end):call()
		assert.error_matches(function() op:result() end, "still running")
	end)
end)

describe("a value that crosses to a worker and back", function()
	local through = worker(echo)
	local function cross(value)
		local results = table.pack(finish(through:call(value)))
		assert.is_true(results[1], results[2])
		return results[2]
	end

	it("keeps integers and floats apart, to the last bit", function()
		local numbers = { 0, -1, math.maxinteger, math.mininteger, 2 ^ 53, 0.1, -0.0, 1.0, math.huge, -math.huge, 5e-324 }
		for _, n in ipairs(numbers) do
			local back = cross(n)
			assert.are.equal(math.type(n), math.type(back))
			assert.are.equal(string.pack("n", n), string.pack("n", back))
		end
		local nan = cross(0 / 0)
		assert.is_true(nan ~= nan)
	end)

	it("keeps every byte of a string", function()
		for _, s in ipairs { "", "\0", "a\0b", "\xff\xfe", ("x"):rep(100000) } do
			assert.are.equal(s, cross(s))
		end
	end)

	it("keeps null, booleans and the array mark", function()
		local back = cross { core.null, true, false, setmetatable({}, core.array_mt) }
		assert.are.equal(core.null, back[1])
		assert.is_true(back[2])
		assert.is_false(back[3])
		assert.are.equal(core.array_mt, getmetatable(back[4]))
		assert.is_nil(getmetatable(back))
	end)

	it("keeps shared tables shared and cycles closed", function()
		local shared = { 1 }
		local t = { a = shared, b = shared, [shared] = "as a key" }
		t.self = t
		local back = cross(t)
		assert.are.equal(back.a, back.b)
		assert.are.equal(back, back.self)
		assert.are.equal("as a key", back[back.a])
		assert.are_not.equal(t, back)
	end)

	it("may be nested 1,000 levels deep, and not without end", function()
		local function nest(levels)
			local t = {}
			for _ = 1, levels do t = { t } end
			return t
		end
		local back, depth = cross(nest(1000)), 0
		while back[1] do back, depth = back[1], depth + 1 end
		assert.are.equal(1000, depth)
		assert.error_matches(function() cross(nest(3000)) end, "tables can't be nested deeper than 2000 levels", 1, true)
	end)

	it("comes back the same whatever it is", function()
		local seed = tonumber(os.getenv "SEED") or os.time()
		print("SEED=" .. seed)
		math.randomseed(seed)
		local random = math.random
		local function any(depth)
			local kind = random(depth > 0 and 8 or 6)
			if kind == 1 then return random(0) end
			if kind == 2 then return random() end
			if kind == 3 then return random(2) == 1 end
			if kind == 4 then return core.null end
			if kind <= 6 then
				local bytes = {}
				for i = 1, random(0, 12) do bytes[i] = string.char(random(0, 255)) end
				return table.concat(bytes)
			end
			local t = {}
			for i = 1, random(0, 6) do t[random(2) == 1 and i or any(0)] = any(depth - 1) end
			return t
		end
		for _ = 1, math.max(10, 500 * SCALE) do
			local value = { any(4) }
			assert.are.same(value, cross(value))
		end
	end)
end)

describe("stopping a worker", function()
	local forever = function() while true do end end
	local started = function(input, ctx) -- tells that it has begun, then runs on
		io.open(input.sign, "w"):close()
		while not ctx.signal.aborted do end
		return "saw " .. ctx.signal.reason
	end

	local function exists(path)
		local file = io.open(path)
		if file then file:close() end
		return file ~= nil
	end

	local function await(path)
		while not exists(path) do
			local tick <close> = core.timer(1)
			while not tick:ready() do core.turn(nil, {}) end
		end
		os.remove(path)
	end

	it("happens when its time is over", function()
		local ok, message, traceback, kind = run(forever, nil, nil, 20)
		assert.are.same({ false, "timed out after 20 ms", "timeout" }, { ok, message, kind })
		assert.matches("worker_spec.lua", traceback)
		assert.are.equal("timed out after 0.5 ms", (select(2, run(forever, nil, nil, 0.5))))
	end)

	it("can't be outlived by pcall, coroutines, metamethods or tail calls", function()
		local ways = {
			function() while true do pcall(function() while true do end end) end end,
			function() while true do pcall(pcall, error) end end,
			function() while true do coroutine.wrap(function() pcall(function() while true do end end) end)() end end,
			function()
				while true do coroutine.resume(coroutine.create(function() while true do end end)) end
			end,
			function() return pcall(function() while true do end end) end,
			function() return xpcall(function() while true do end end, function() while true do end end) end,
			function()
				local t <close> = setmetatable({}, { __close = function() while true do end end }) -- luacheck: ignore
				while true do end
			end,
			function() return setmetatable({}, { __index = function(_, k) while k do end end }).x end,
			function() table.sort({ 1, 2, 3 }, function() while true do end end) end,
			function() return string.gsub("x", "x", function() while true do end end) end,
		}
		for i, way in ipairs(ways) do
			local ok, message, _, kind = run(way, nil, nil, 10)
			assert.are.same({ i, false, "timed out after 10 ms", "timeout" }, { i, ok, message, kind })
		end
	end)

	it("throws its state away: what it left half done is gone", function()
		local w = worker(function(loops)
			n = (n or 0) + 1 -- luacheck: ignore
			while loops do end
			return n -- luacheck: ignore
		end, 1)
		assert.are.same({ true, 1 }, { finish(w:call()) })
		assert.are.same({ true, 2 }, { finish(w:call()) })
		finish(w:call(true, nil, 5))
		assert.are.same({ true, 1 }, { finish(w:call()) })
	end)

	it("is seen inside as ctx.signal, with a reason", function()
		local sign = os.tmpname()
		os.remove(sign)
		local flag = core.flag()
		local op = worker(started):call({ sign = sign }, { signal = flag })
		await(sign)
		assert.is_false(flag:is_set())
		assert.is_true(flag:set "enough")
		assert.is_false(flag:set "again")
		assert.are.same({ true, "saw enough" }, { finish(op) })
		assert.are.same({ true, "enough" }, { flag.aborted, flag.reason })
	end)

	it("happens after a grace to one that doesn't look at the signal", function()
		local sign = os.tmpname()
		os.remove(sign)
		local flag = core.flag()
		local op = worker(function(input)
			io.open(input.sign, "w"):close()
			while true do end
		end):call({ sign = sign }, { signal = flag })
		await(sign)
		flag:set()
		local ok, message, _, kind = finish(op)
		assert.are.same({ false, "aborted", "abort" }, { ok, message, kind })
	end)

	it("keeps one that hasn't begun from beginning", function()
		local flag = core.flag()
		flag:set "before"
		local ok, message, _, kind = run(function() error "it has begun" end, nil, { signal = flag })
		assert.are.same({ false, "aborted", "abort" }, { ok, message, kind })
	end)

	it("by stop() ends a running call and one that waits for a thread, and both say so", function()
		local w = worker(forever, 1)
		local running, waiting = w:call(), w:call()
		waiting:stop()
		assert.is_true(waiting:ready())
		assert.are.same({ false, "aborted", nil, "abort" }, { waiting:result() })
		running:stop()
		local ok, message, _, kind = finish(running)
		assert.are.same({ false, "aborted", "abort" }, { ok, message, kind })
	end)

	it("by cancel() is at once", function()
		local w = worker(forever, 1)
		local op = w:call()
		op:cancel()
		assert.is_true(op:ready())
		assert.are.same({ false, "aborted", nil, "abort" }, { op:result() })
		assert.are.same({ true, 1 }, { finish(core.worker({ source = function() return 1 end, pool_size = 1 }):call()) })
	end)

	it("by collecting everything in the middle leaves nothing behind", function()
		for _ = 1, 20 do
			local w = worker(forever, 2)
			for _ = 1, 4 do w:call({ ("x"):rep(1000) }, { signal = core.flag() }, 60000) end
		end
		collectgarbage()
		collectgarbage()
	end)
end)

describe("many workers", function()
	it("run at once, each result to its own call", function()
		local w = worker(function(i)
			local sum = 0
			for k = 1, i do sum = sum + k end
			return i, sum
		end, 4)
		local ops = {}
		for i = 1, 500 do ops[i] = w:call(i) end
		for i = 1, 500 do assert.are.same({ true, i, i * (i + 1) // 2 }, { finish(ops[i]) }) end
	end)

	it("can be defined and dropped by the thousand: their threads forget them", function()
		for i = 1, math.max(20, 2000 * SCALE) do
			local w = worker(load("local i = " .. i .. " return function() return i end")())
			if i % 10 == 0 then assert.are.same({ true, i }, { finish(w:call()) }) end
		end
	end)
end)
