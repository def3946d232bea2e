local lattice = require "lattice"
local scripted = require "spec.support.scripted"

local call = scripted.call

-- A tool that logs its start and end, and waits in between until as many calls run as `together` says, so that
-- overlap is shown by meeting, not by time.
local function new_log()
	local log = { events = {}, running = 0, most = 0 }
	function log.text()
		return table.concat(log.events, " ")
	end
	return log
end

local function logged(log, name, options, turns)
	return lattice.tool(name, "", { n = "integer?" }, function(input)
		local label = name .. (input.n or "")
		log.events[#log.events + 1] = "+" .. label
		log.running = log.running + 1
		log.most = math.max(log.most, log.running)
		for _ = 1, turns or 2 do
			lattice.sleep(0)
		end
		log.running = log.running - 1
		log.events[#log.events + 1] = "-" .. label
		return label
	end, options)
end

local function always()
	return true
end

local function contents(results)
	local list = {}
	for i, block in ipairs(results) do
		list[i] = block.content
	end
	return table.concat(list, " ")
end

describe("a batch in safe mode", function()
	it("runs neighbouring safe calls together and keeps the order of results", function()
		local log = new_log()
		local read = logged(log, "r", { is_concurrency_safe = always })
		local results = scripted.run({ call("r", { n = 1 }), call("r", { n = 2 }), call("r", { n = 3 }) }, { tools = { read } })
		assert.equal(3, log.most)
		assert.equal("r1 r2 r3", contents(results))
	end)

	it("runs an unsafe call alone, in its place", function()
		local log = new_log()
		local read = logged(log, "r", { is_concurrency_safe = always })
		local write = logged(log, "w")
		scripted.run({ call("r", { n = 1 }), call("r", { n = 2 }), call("w", { n = 3 }), call("r", { n = 4 }) },
			{ tools = { read, write } })
		assert.equal("+r1 +r2 -r1 -r2 +w3 -w3 +r4 -r4", log.text())
	end)

	it("asks the rule once for each call, with validated input", function()
		local asked = {}
		local log = new_log()
		local read = lattice.tool("r", "", { n = lattice.schema.default(lattice.schema.integer, 5) }, function()
			return ""
		end, {
			is_concurrency_safe = function(input)
				asked[#asked + 1] = input.n
				return true
			end,
		})
		scripted.run({ call("r", { n = 1 }), call "r", call("r", { n = "bad" }) }, { tools = { read } })
		assert.same({ 1, 5 }, asked)
		assert.is_table(log)
	end)

	for name, rule in pairs {
		["raises"] = function()
			error "no"
		end,
		["returns false"] = function()
			return false
		end,
		["returns nothing"] = function() end,
		["returns something that isn't true"] = function()
			return "yes"
		end,
	} do
		it("runs a call alone whose rule " .. name, function()
			local log = new_log()
			local odd = logged(log, "o", { is_concurrency_safe = rule })
			scripted.run({ call("o", { n = 1 }), call("o", { n = 2 }) }, { tools = { odd } })
			assert.equal("+o1 -o1 +o2 -o2", log.text())
		end)
	end

	it("never passes max_concurrency, which is 10 when not given", function()
		for limit, expected in pairs { [0] = 10, [1] = 1, [3] = 3 } do
			local log = new_log()
			local calls = {}
			for i = 1, 25 do
				calls[i] = call("r", { n = i })
			end
			local concurrency = limit > 0 and { max_concurrency = limit } or nil
			local results = scripted.run(calls, {
				tools = { logged(log, "r", { is_concurrency_safe = always }) },
				tool_concurrency = concurrency,
			})
			assert.equal(expected, log.most)
			assert.equal(25, #results)
		end
	end)

	it("lets a rule wait inside the engine", function()
		local log = new_log()
		local read = logged(log, "r", {
			is_concurrency_safe = function()
				lattice.sleep(1)
				return true
			end,
		})
		scripted.run({ call("r", { n = 1 }), call("r", { n = 2 }) }, { tools = { read } })
		assert.equal(2, log.most)
	end)
end)

describe("a batch in mode all", function()
	it("runs everything together", function()
		local log = new_log()
		scripted.run({ call("w", { n = 1 }), call("w", { n = 2 }), call("w", { n = 3 }) },
			{ tools = { logged(log, "w") }, tool_concurrency = { mode = "all" } })
		assert.equal(3, log.most)
	end)
end)

describe("a batch in mode sequential", function()
	it("runs one call at a time, in order, whatever the rules say", function()
		local log = new_log()
		scripted.run({ call("r", { n = 1 }), call("r", { n = 2 }) }, {
			tools = { logged(log, "r", { is_concurrency_safe = always }) },
			tool_concurrency = { mode = "sequential" },
		})
		assert.equal("+r1 -r1 +r2 -r2", log.text())
	end)
end)

describe("a batch in mode resources", function()
	local function file_tools(log)
		local edit = lattice.tool("edit", "", { path = "string" }, function(input)
			log.events[#log.events + 1] = "+edit:" .. input.path
			lattice.sleep(1)
			log.events[#log.events + 1] = "-edit:" .. input.path
			return "edited"
		end, {
			resources = function(input)
				return { write = { input.path } }
			end,
		})
		local read = lattice.tool("read", "", { path = "string" }, function(input)
			log.events[#log.events + 1] = "+read:" .. input.path
			return "read"
		end, {
			resources = function(input)
				return { read = { input.path } }
			end,
		})
		return { edit, read }
	end

	it("overlaps edits of different files", function()
		local log = new_log()
		scripted.run({ call("edit", { path = "a" }), call("edit", { path = "b" }) },
			{ tools = file_tools(log), tool_concurrency = { mode = "resources" } })
		assert.equal("+edit:a +edit:b -edit:a -edit:b", log.text())
	end)

	it("lets a read after a write of the same file wait for it", function()
		local log = new_log()
		scripted.run({ call("edit", { path = "a" }), call("read", { path = "a" }), call("read", { path = "b" }) },
			{ tools = file_tools(log), tool_concurrency = { mode = "resources" } })
		assert.equal("+edit:a +read:b -edit:a +read:a", log.text())
	end)

	it("falls back to the safety rule where a tool declares nothing, raises or talks nonsense", function()
		for _, declared in ipairs { false, function() error "x" end, function() return 7 end,
			function() return { write = "a" } end, function() return { read = { 1 } } end } do
			local log = new_log()
			local odd = logged(log, "o", { resources = declared or nil })
			scripted.run({ call("o", { n = 1 }), call("o", { n = 2 }) },
				{ tools = { odd }, tool_concurrency = { mode = "resources" } })
			assert.equal("+o1 -o1 +o2 -o2", log.text())
		end
	end)
end)

describe("the hint in the system prompt", function()
	local function system_of(options)
		options.model_client = scripted.client { "done" }
		lattice.create_bare_agent(options):prompt "go"
		return options.model_client.requests[1].system
	end
	local safe = lattice.tool("r", "", {}, function() return "" end, { is_concurrency_safe = always })
	local unsafe = lattice.tool("w", "", {}, function() return "" end)

	it("is there when something can overlap", function()
		assert.matches("in one reply", system_of { tools = { safe } })
		assert.matches("^Be kind.\n\n.*in one reply", system_of { tools = { safe }, system_prompt = "Be kind." })
		assert.matches("in one reply", system_of { tools = { unsafe }, tool_concurrency = { mode = "all" } })
	end)

	it("isn't there when nothing can", function()
		assert.is_nil(system_of { tools = { unsafe } })
		assert.is_nil(system_of { tools = {} , tool_concurrency = { mode = "all" } })
		assert.equal("Be kind.", system_of { tools = { unsafe }, system_prompt = "Be kind." })
		assert.is_nil(system_of { tools = { safe }, tool_concurrency = { mode = "sequential" } })
		assert.is_nil(system_of { tools = { safe }, tool_concurrency = { max_concurrency = 1 } })
	end)
end)

describe("failures in a batch", function()
	it("lose nothing of the others", function()
		local ok = lattice.tool("ok", "", { n = "integer" }, function(input)
			lattice.sleep(0)
			return "ok" .. input.n
		end)
		local bad = lattice.tool("bad", "", {}, function()
			error("broken", 0)
		end)
		local results, result = scripted.run({ call("ok", { n = 1 }), call "bad", call("ok", { n = 2 }) },
			{ tools = { ok, bad }, tool_concurrency = { mode = "all" } })
		assert.equal("ok1", results[1].content)
		assert.is_true(results[2].is_error)
		assert.equal("ok2", results[3].content)
		assert.equal("done", result.result)
	end)
end)

describe("handlers that overlap", function()
	it("may wait under pcall, in metamethods, in iterators and in sort", function()
		local function wait()
			lattice.sleep(0)
			return true
		end
		local meta = setmetatable({}, { __index = wait, __add = wait, __close = wait, __call = wait })
		local ways = {
			function()
				assert(pcall(wait))
			end,
			function()
				return meta.x
			end,
			function()
				return meta + 1
			end,
			function()
				return meta()
			end,
			function()
				local _ <close> = meta
			end,
			function()
				local n = 0
				for _ in function()
					n = n + 1
					wait()
					return n < 3 or nil
				end do end -- luacheck: ignore
			end,
			function()
				table.sort({ 3, 1, 2 }, function(a, b)
					wait()
					return a < b
				end)
			end,
			function()
				return (("x"):gsub("x", function()
					wait()
					return "y"
				end))
			end,
			function()
				local own = coroutine.wrap(function()
					wait()
					coroutine.yield(1)
					wait()
				end)
				own()
				own()
			end,
		}
		local way = lattice.tool("way", "", { n = "integer" }, function(input)
			ways[input.n]()
			return "fine"
		end)
		local calls = {}
		for i = 1, #ways do
			calls[i] = call("way", { n = i })
		end
		local results = scripted.run(calls, { tools = { way }, tool_concurrency = { mode = "all" } })
		for i, block in ipairs(results) do
			assert.equal("fine", block.content, "way " .. i)
		end
	end)

	it("may run agents of their own", function()
		local inner = lattice.tool("inner", "", { n = "integer" }, function(input)
			local _, result = scripted.run({ call "leaf" }, {
				tools = { lattice.tool("leaf", "", {}, function()
					lattice.sleep(0)
					return "leaf"
				end) },
			})
			return result.result .. input.n
		end)
		local results = scripted.run({ call("inner", { n = 1 }), call("inner", { n = 2 }) },
			{ tools = { inner }, tool_concurrency = { mode = "all" } })
		assert.equal("done1 done2", contents(results))
	end)

	it("work when the script itself is a coroutine", function()
		local log = new_log()
		local co = coroutine.wrap(function()
			local results = scripted.run({ call("r", { n = 1 }), call("r", { n = 2 }) },
				{ tools = { logged(log, "r", { is_concurrency_safe = always }) } })
			coroutine.yield(contents(results))
			return "end"
		end)
		assert.equal("r1 r2", co())
		assert.equal("end", co())
		assert.equal(2, log.most)
	end)
end)
