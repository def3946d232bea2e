local lattice = require "lattice"

describe("lattice.gather", function()
	it("closes the to-be-closed variables of a function that raises", function()
		local closed = 0
		lattice.gather { function()
			local _ <close> = setmetatable({}, { __close = function()
				closed = closed + 1
			end })
			lattice.sleep(1)
			error "boom"
		end }
		assert.equal(1, closed)
	end)

	it("runs functions at once and keeps the order of results", function()
		local running, most = 0, 0
		local functions = {}
		for i = 1, 20 do
			functions[i] = function()
				running = running + 1
				most = math.max(most, running)
				for _ = 1, 21 - i do
					lattice.sleep(0)
				end
				running = running - 1
				return i
			end
		end
		local results = lattice.gather(functions)
		assert.equal(20, most)
		for i = 1, 20 do
			assert.same({ ok = true, value = i }, results[i])
		end
	end)

	it("never passes max_concurrency", function()
		local running, most = 0, 0
		local functions = {}
		for i = 1, 20 do
			functions[i] = function()
				running = running + 1
				most = math.max(most, running)
				lattice.sleep(0)
				running = running - 1
			end
		end
		lattice.gather(functions, { max_concurrency = 4 })
		assert.equal(4, most)
	end)

	it("loses nothing when some raise", function()
		local results = lattice.gather {
			function()
				error("one", 0)
			end,
			function()
				lattice.sleep(1)
				return "two"
			end,
			function()
				error(nil)
			end,
		}
		assert.equal("one", results[1].error)
		assert.is_true(results[2].ok)
		assert.equal("two", results[2].value)
		assert.is_false(results[3].ok)
		assert.is_not_nil(results[3].error)
	end)

	it("stops what runs and starts nothing more when its signal is aborted", function()
		local controller = lattice.abort_controller()
		local started = 0
		local functions = {}
		for i = 1, 5 do
			functions[i] = function()
				started = started + 1
				if i == 2 then
					controller:abort "enough"
				end
				lattice.sleep(3600000)
			end
		end
		local results = lattice.gather(functions, { signal = controller.signal, max_concurrency = 2 })
		assert.equal(2, started)
		for i = 1, 5 do
			assert.is_false(results[i].ok)
			assert.equal("error_abort", results[i].error.name)
		end
	end)

	it("gives an empty list for an empty list, and refuses what is none", function()
		assert.same({}, lattice.gather {})
		assert.error_matches(function()
			lattice.gather { 1 }
		end, "expected a list of functions", 1, true)
	end)

	it("nests", function()
		local results = lattice.gather {
			function()
				return lattice.gather {
					function()
						lattice.sleep(0)
						return "deep"
					end,
				}[1].value
			end,
		}
		assert.equal("deep", results[1].value)
	end)

	it("carries thousands", function()
		local functions, sum = {}, 0
		for i = 1, 5000 do
			functions[i] = function()
				lattice.sleep(0)
				return i
			end
		end
		for _, result in ipairs(lattice.gather(functions)) do
			sum = sum + result.value
		end
		assert.equal(5000 * 5001 // 2, sum)
	end)
end)

describe("lattice.sleep", function()
	it("refuses what is no duration", function()
		for _, wrong in ipairs { -1, "x", 0 / 0, math.huge } do
			assert.error_matches(function()
				lattice.sleep(wrong)
			end, "lattice.sleep: ms: expected a number of milliseconds from 0", 1, true)
		end
	end)
end)
