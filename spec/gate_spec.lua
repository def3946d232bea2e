local lattice = require "lattice"
local scripted = require "spec.support.scripted"

local call = scripted.call

local function counted()
	local count = { runs = 0, rules = 0, permissions = 0 }
	count.tool = lattice.tool("increment_revision", "", { by = "integer?" }, function(input)
		count.runs = count.runs + 1
		return "by " .. tostring(input.by)
	end, {
		is_concurrency_safe = function()
			count.rules = count.rules + 1
			return true
		end,
	})
	return count
end

describe("a tool_batch_policy", function()
	it("sees every call of the reply before any handler, safety rule or permission", function()
		local count, seen = counted(), nil
		scripted.run({ call("increment_revision", { by = 1 }, "a"), call("missing", {}, "b") }, {
			tools = { count.tool },
			permission = function()
				count.permissions = count.permissions + 1
				return { behavior = "allow" }
			end,
			tool_batch_policy = {
				validate = function(batch)
					assert.same({ 0, 0, 0 }, { count.runs, count.rules, count.permissions })
					seen = batch.tool_calls
					return { allowed = true }
				end,
			},
		})
		assert.same({ id = "a", name = "increment_revision", input = { by = 1 }, kind = "tool" }, seen[1])
		assert.equal("missing", seen[2].name)
		assert.equal(1, count.runs)
	end)

	it("that refuses stops the whole batch, and every call gets its answer as JSON", function()
		local count = counted()
		local results, result = scripted.run({ call("increment_revision", {}, "a"), call("increment_revision", {}, "b") }, {
			tools = { count.tool },
			tool_batch_policy = {
				validate = function(batch)
					return {
						allowed = false,
						code = "invalid_tool_batch",
						message = "Update the revision first.",
						conflicting_tool_call_ids = { batch.tool_calls[1].id, batch.tool_calls[2].id },
						suggested_next_step = "Call one of them.",
					}
				end,
			},
		})
		assert.same({ 0, 0 }, { count.runs, count.rules })
		for _, block in ipairs(results) do
			assert.is_true(block.is_error)
			local answer = lattice.json.decode(block.content)
			assert.is_false(answer.allowed)
			assert.equal("invalid_tool_batch", answer.code)
			assert.equal("Update the revision first.", answer.message)
			assert.equal("b", answer.conflicting_tool_call_ids[2])
			assert.equal("Call one of them.", answer.suggested_next_step)
		end
		assert.equal("done", result.result)
	end)

	it("is asked for a single call too", function()
		local count = counted()
		local results = scripted.run({ call "increment_revision" }, {
			tools = { count.tool },
			tool_batch_policy = {
				validate = function()
					return { allowed = false, code = "no", message = "no" }
				end,
			},
		})
		assert.equal(0, count.runs)
		assert.is_true(results[1].is_error)
	end)

	local nonsense = {
		["raises"] = function()
			error "broken"
		end,
		["returns nothing"] = function() end,
		["returns a boolean"] = function()
			return true
		end,
		["returns no boolean in allowed"] = function()
			return { allowed = "yes" }
		end,
		["returns a code that is no string"] = function()
			return { allowed = false, code = 7 }
		end,
		["returns ids that are no list"] = function()
			return { allowed = false, conflicting_tool_call_ids = "a" }
		end,
	}
	for name, validate in pairs(nonsense) do
		it("that " .. name .. " gives tool_batch_policy_error and nothing runs", function()
			local count = counted()
			local results, result = scripted.run({ call "increment_revision", call "increment_revision" },
				{ tools = { count.tool }, tool_batch_policy = { validate = validate } })
			assert.same({ 0, 0 }, { count.runs, count.rules })
			assert.equal(2, #results)
			for _, block in ipairs(results) do
				assert.is_true(block.is_error)
				assert.equal("tool_batch_policy_error", lattice.json.decode(block.content).code)
			end
			assert.equal("done", result.result)
		end)
	end

	it("can't change what a handler gets", function()
		local seen
		local probe = lattice.tool("probe", "", { deep = { x = "integer" } }, function(input)
			seen = input.deep.x
			return ""
		end)
		scripted.run({ call("probe", { deep = { x = 1 } }) }, {
			tools = { probe },
			tool_batch_policy = {
				validate = function(batch)
					batch.tool_calls[1].input.deep.x = "changed"
					return { allowed = true }
				end,
			},
		})
		assert.equal(1, seen)
	end)
end)

describe("permission", function()
	it("is asked one at a time, in call order, before anything starts", function()
		local log, asking = {}, false
		local probe = lattice.tool("probe", "", { n = "integer" }, function(input)
			log[#log + 1] = "run" .. input.n
			return ""
		end)
		scripted.run({ call("probe", { n = 1 }), call("probe", { n = 2 }), call("probe", { n = 3 }) }, {
			tools = { probe },
			tool_concurrency = { mode = "all" },
			permission = function(request)
				assert.is_false(asking)
				asking = true
				lattice.sleep(1)
				asking = false
				log[#log + 1] = "ask" .. request.input.n
				return { behavior = "allow" }
			end,
		})
		assert.equal("ask1 ask2 ask3 run1 run2 run3", table.concat(log, " "))
	end)

	it("that denies gives the model its message, and the others run", function()
		local count = counted()
		local results = scripted.run({ call("increment_revision", { by = 1 }), call("increment_revision", { by = 2 }) }, {
			tools = { count.tool },
			permission = function(request)
				if request.input.by == 1 then
					return { behavior = "deny", message = "not today" }
				end
				return { behavior = "allow" }
			end,
		})
		assert.is_true(results[1].is_error)
		assert.matches("not today", results[1].content)
		assert.equal("by 2", results[2].content)
		assert.equal(1, count.runs)
	end)

	it("may change the input, which is validated again", function()
		local count = counted()
		local answers = { { behavior = "allow", updated_input = { by = 9 } }, { behavior = "allow", updated_input = { by = "x" } } }
		local asked = 0
		local results = scripted.run({ call "increment_revision", call "increment_revision" }, {
			tools = { count.tool },
			permission = function()
				asked = asked + 1
				return answers[asked]
			end,
		})
		assert.equal("by 9", results[1].content)
		assert.is_true(results[2].is_error)
		assert.equal(1, count.runs)
	end)

	for name, permission in pairs {
		["raises"] = function()
			error "broken"
		end,
		["answers nothing"] = function() end,
		["answers nonsense"] = function()
			return { behavior = "maybe" }
		end,
	} do
		it("that " .. name .. " denies", function()
			local count = counted()
			local results = scripted.run({ call "increment_revision" }, { tools = { count.tool }, permission = permission })
			assert.is_true(results[1].is_error)
			assert.equal(0, count.runs)
		end)
	end

	it("isn't asked about calls that can't run", function()
		local asked = 0
		scripted.run({ call "missing" }, {
			permission = function()
				asked = asked + 1
				return { behavior = "allow" }
			end,
		})
		assert.equal(0, asked)
	end)
end)
