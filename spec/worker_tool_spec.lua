local lattice = require "lattice"
local scripted = require "spec.support.scripted"

local call = scripted.call

describe("a worker tool", function()
	it("runs a function with its plain upvalues in another state", function()
		local factor, names = 7, { "a", "b" }
		local probe = lattice.tool("probe", "", { n = "integer" }, function(input, ctx)
			return ("%d %s %s %s"):format(input.n * factor, names[2], ctx.tool_name, tostring(ctx.signal.aborted))
		end, { worker = true })
		local results = scripted.run({ call("probe", { n = 6 }) }, { tools = { probe } })
		assert.equal("42 b probe false", results[1].content)
	end)

	it("names at definition the upvalue that can't cross, and the cure", function()
		local print_it = print
		assert.error_matches(function()
			lattice.tool("probe", "", {}, function()
				print_it "x"
			end, { worker = true })
		end, 'tool "probe": worker: upvalue print_it: .*worker = "module.name"')
	end)

	it("may be a module", function()
		local path = os.tmpname()
		local folder, name = path:match "^(.*)/([^/]+)$"
		local file <close> = assert(io.open(path .. ".lua", "w"))
		file:write "return function(input) return 'from a module ' .. input.n end"
		file:flush()
		local before = package.path
		package.path = folder .. "/?.lua;" .. package.path
		local ok, results = pcall(function()
			local probe = lattice.tool("probe", "", { n = "integer" }, nil, { worker = name })
			return (scripted.run({ call("probe", { n = 1 }) }, { tools = { probe } }))
		end)
		package.path = before
		os.remove(path .. ".lua")
		os.remove(path)
		assert.is_true(ok, results)
		assert.equal("from a module 1", results[1].content)
	end)

	it("that raises is an error result", function()
		local probe = lattice.tool("probe", "", {}, function()
			error({ message = "broken in the worker" })
		end, { worker = true })
		local results, result = scripted.run({ call "probe" }, { tools = { probe } })
		assert.is_true(results[1].is_error)
		assert.matches("broken in the worker", results[1].content)
		assert.is_nil(results[1].content:find("traceback", 1, true))
		assert.equal("done", result.result)
	end)

	it("is stopped by its time limit, even in an endless loop under pcall", function()
		local probe = lattice.tool("probe", "", {}, function()
			while true do
				pcall(function()
					while true do end -- luacheck: ignore
				end)
			end
		end, { worker = true, timeout_ms = 20 })
		local results, result = scripted.run({ call "probe" }, { tools = { probe } })
		assert.matches("timed out after 20 ms", results[1].content)
		assert.equal("done", result.result)
	end)

	it("sees its signal and is stopped by an abort", function()
		local probe = lattice.tool("probe", "", {}, function(_, ctx)
			while not ctx.signal.aborted do end -- luacheck: ignore
			return "seen"
		end, { worker = true })
		local stubborn = lattice.tool("stubborn", "", {}, function()
			while true do end -- luacheck: ignore
		end, { worker = true })
		for _, tool in ipairs { probe, stubborn } do
			local results, result = scripted.run({ call(tool.name) }, { tools = { tool } },
				{ signal = lattice.abort_timeout(5) })
			assert.equal("error_abort", result.subtype)
			assert.is_string(results[1].content)
		end
	end)

	it("overlaps with loop handlers and other workers, within max_concurrency", function()
		local spin = lattice.tool("spin", "", { n = "integer" }, function(input)
			local sum = 0
			for i = 1, 200000 do
				sum = sum + i % 7
			end
			return "spin " .. input.n .. (sum > 0 and "" or "?")
		end, { worker = true })
		local wait = lattice.tool("wait", "", { n = "integer" }, function(input)
			lattice.sleep(1)
			return "wait " .. input.n
		end)
		local calls = {}
		for n = 1, 12 do
			calls[n] = call(n % 2 == 0 and "spin" or "wait", { n = n })
		end
		local results = scripted.run(calls, {
			tools = { spin, wait },
			tool_concurrency = { mode = "all", max_concurrency = 5 },
		})
		for n = 1, 12 do
			assert.equal((n % 2 == 0 and "spin " or "wait ") .. n, results[n].content)
		end
	end)

	it("may have a pool of its own", function()
		local probe = lattice.tool("probe", "", {}, function()
			return "fine"
		end, { worker = true, worker_threads = 1 })
		local results = scripted.run({ call "probe", call "probe", call "probe" }, {
			tools = { probe },
			tool_concurrency = { mode = "all" },
		})
		assert.equal("fine", results[3].content)
		for _, wrong in ipairs { { worker = true, worker_threads = 0 }, { worker_threads = 2 } } do
			assert.error_matches(function()
				lattice.tool("probe", "", {}, function() end, wrong)
			end, "worker_threads: expected", 1, true)
		end
	end)

	it("gets the query's context where it is plain data", function()
		local probe = lattice.tool("probe", "", {}, function(_, ctx)
			return ctx.context and ctx.context.user or "none"
		end, { worker = true })
		assert.equal("ada", scripted.run({ call "probe" }, { tools = { probe } }, { context = { user = "ada" } })[1].content)
		assert.equal("none", scripted.run({ call "probe" }, { tools = { probe } }, { context = { f = print } })[1].content)
	end)
end)
