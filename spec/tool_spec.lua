local lattice = require "lattice"

local s = lattice.schema

-- An agent whose model makes the given calls in one reply, then says "done". Returns the results and the result.
local function run_calls(tools, calls, options)
	local turn, results = 0, nil
	options = options or {}
	options.tools = tools
	options.model_client = {
		create = function(request)
			turn = turn + 1
			if turn == 1 then
				return { content = calls, stop_reason = options.stop_reason or "tool_use" }
			end
			results = request.messages[#request.messages].content
			return { content = { { type = "text", text = "done" } }, stop_reason = "end_turn" }
		end,
	}
	local stop_reason = options.stop_reason
	options.stop_reason = nil
	local agent = lattice.create_bare_agent(options)
	options.stop_reason = stop_reason
	local result = agent:prompt "go"
	return results or agent.messages[#agent.messages].content, result, agent
end

local function call(name, input, id)
	return { type = "tool_use", id = id or "t1", name = name, input = input or {} }
end

local function tool_of(handler, options, schema)
	return lattice.tool("probe", "A probe", schema or {}, handler, options)
end

local function result_of(handler)
	local results, result = run_calls({ tool_of(handler) }, { call "probe" })
	return results[1], result
end

describe("a tool definition", function()
	it("shows what it was made of and can't be changed", function()
		local metadata = { version = 3 }
		local rule = function()
			return true
		end
		local made = lattice.tool("probe", "A probe", { x = "string" }, rule, {
			metadata = metadata,
			is_concurrency_safe = rule,
			timeout_ms = 50,
		})
		assert.equal("probe", made.name)
		assert.equal("A probe", made.description)
		assert.equal("tool", made.kind)
		assert.equal(metadata, made.metadata)
		assert.equal(rule, made.is_concurrency_safe)
		assert.has_error(function()
			made.name = "other"
		end)
	end)

	it("has no metadata key when none was given", function()
		local made = tool_of(function() end)
		assert.is_nil(made.metadata)
		for key in pairs(made) do
			assert.not_equal("metadata", key)
		end
	end)

	it("never sends its metadata to the model", function()
		local seen
		local agent = lattice.create_bare_agent {
			tools = { tool_of(function() end, { metadata = { secret = "internal-note" } }) },
			model_client = {
				create = function(request)
					seen = request
					return { content = "done" }
				end,
			},
		}
		agent:prompt "go"
		assert.same({ name = "probe", description = "A probe" }, {
			name = seen.tools[1].name,
			description = seen.tools[1].description,
		})
		assert.is_nil(lattice.json.encode(seen.tools):find("internal-note", 1, true))
	end)

	it("refuses a bad name, handler, schema or option, saying what would be right", function()
		local function refused(expected, ...)
			local ok, problem = pcall(lattice.tool, ...)
			assert.is_false(ok)
			assert.is_truthy(tostring(problem):find(expected, 1, true), problem)
		end
		local handler = function() end
		refused("tool: name: expected a name of 1 to 64 letters, digits, _ and -", "bad name", "", {}, handler)
		refused("tool: name", ("x"):rep(65), "", {}, handler)
		refused("description: expected a string in UTF-8, got nil", "x", nil, {}, handler)
		refused("handler: expected a function, got nil", "x", "", {}, nil)
		refused('ToolOptions: unknown option "timeout". Check for a typo', "x", "", {}, handler, { timeout = 1 })
		refused("ToolOptions: timeout_ms: expected a positive number of milliseconds, got 0", "x", "", {}, handler,
			{ timeout_ms = 0 })
		refused('tool "x": schema', "x", "", '{"type":"array"}', handler)
		refused('tool "x"', "x", "", '{"type":', handler)
	end)
end)

describe("a handler's result", function()
	it("may be a bare string", function()
		local block, result = result_of(function()
			return "plain"
		end)
		assert.equal("plain", block.content)
		assert.is_nil(block.is_error)
		assert.equal("done", result.result)
	end)

	it("may be a table with a string or content blocks", function()
		assert.equal("x", result_of(function()
			return { content = "x" }
		end).content)
		local blocks = result_of(function()
			return { content = { { type = "text", text = "a" }, { type = "text", text = "" },
				{ type = "image", source = { type = "base64", media_type = "image/png", data = "AA==" } } } }
		end).content
		assert.equal(2, #blocks) -- the empty text block would be refused by the API
		assert.equal("image", blocks[2].type)
	end)

	it("may say that it is an error", function()
		local block = result_of(function()
			return { content = "no such file", is_error = true }
		end)
		assert.is_true(block.is_error)
		assert.equal("no such file", block.content)
	end)

	it("of the wrong shape becomes an error for the model that says what is right", function()
		local wrong = { 42, true, {}, { content = 3 }, { content = { { type = "video" } } }, { content = "x", is_error = "yes" },
			{ content = { { type = "text" } } }, { content = { a = 1 } }, { content = "x", end_turn = 1 } }
		wrong[#wrong + 1] = { content = { { type = "image", source = { f = print } } } }
		for _, value in ipairs(wrong) do
			local block, result = result_of(function()
				return value
			end)
			assert.is_true(block.is_error)
			assert.matches("A handler returns a string", block.content)
			assert.equal("done", result.result)
		end
		assert.is_true(result_of(function() end).is_error)
	end)

	it("keeps NUL bytes and replaces bytes that aren't UTF-8", function()
		assert.equal("a\0b", result_of(function()
			return "a\0b"
		end).content)
		assert.equal("a\u{FFFD}b\u{FFFD}\u{FFFD}", result_of(function()
			return "a\xFFb\xC3\x28" and "a\xFFb\xED\xA0" -- a stray byte; a cut surrogate
		end).content)
	end)
end)

describe("a handler that raises", function()
	local unprintable = setmetatable({}, { __tostring = function()
		error "no"
	end })
	local raised = {
		{ "a string", "boom", "boom" },
		{ "a table with a message", { message = "broken" }, "broken" },
		{ "another table", { code = 7 }, '{"code":7}' },
		{ "a number", 12, "12" },
		{ "false", false, "false" },
		{ "something unprintable", unprintable, "can't be printed" },
	}
	for _, case in ipairs(raised) do
		it("with " .. case[1] .. " becomes an error result and the run goes on", function()
			local block, result = result_of(function()
				error(case[2], 0)
			end)
			assert.is_true(block.is_error)
			assert.is_truthy(block.content:find(case[3], 1, true), block.content)
			assert.is_nil(block.content:find("stack traceback", 1, true))
			assert.equal("done", result.result)
		end)
	end

	it("with nil does so too", function()
		local block, result = result_of(function()
			error(nil)
		end)
		assert.is_true(block.is_error)
		assert.equal("done", result.result)
	end)

	it("by yielding to nobody is told how to wait", function()
		local block = result_of(function()
			coroutine.yield "x"
		end)
		assert.is_true(block.is_error)
		assert.matches("lattice.sleep", block.content, 1, true)
	end)

	it("by running out of stack does so too", function()
		-- Lua gives up on finalizers that it starts where the stack has run out: none may be due meanwhile.
		collectgarbage()
		collectgarbage "stop"
		local block, result = result_of(function()
			local function deep()
				return 1 + deep()
			end
			return deep()
		end)
		collectgarbage "restart"
		assert.is_true(block.is_error)
		assert.equal("done", result.result)
	end)
end)

describe("invalid input", function()
	it("never reaches the handler, and the model sees each bad path", function()
		local ran = false
		local probe = tool_of(function()
			ran = true
			return ""
		end, nil, s.object { name = s.string, count = s.integer })
		local results = run_calls({ probe }, { call("probe", { name = 1, count = "x" }) })
		assert.is_false(ran)
		assert.is_true(results[1].is_error)
		assert.matches("name", results[1].content)
		assert.matches("count", results[1].content)
	end)

	it("for an unknown tool names the known ones", function()
		local results = run_calls({ tool_of(function() end) }, { call "missing" })
		assert.is_true(results[1].is_error)
		assert.matches('Unknown tool "missing"', results[1].content)
		assert.matches("probe", results[1].content)
	end)

	it("gives defaults to the handler", function()
		local seen
		local probe = tool_of(function(input)
			seen = input
			return ""
		end, nil, s.object { limit = s.default(s.integer, 7) })
		run_calls({ probe }, { call "probe" })
		assert.equal(7, seen.limit)
	end)

	it("keeps integers exact", function()
		local seen
		local probe = tool_of(function(input)
			seen = input
			return ""
		end, nil, s.object { id = s.integer })
		run_calls({ probe }, { call("probe", { id = 1618065507111835497 }) })
		assert.equal(1618065507111835497, seen.id)
		assert.equal("integer", math.type(seen.id))
	end)
end)

describe("calls with the same name or id", function()
	it("each get a result, in order", function()
		local count = 0
		local probe = tool_of(function()
			count = count + 1
			return tostring(count)
		end)
		local results, result = run_calls({ probe }, { call("probe", {}, "same"), call("probe", {}, "same"), call("probe", {}, "b") })
		assert.equal(3, #results)
		assert.equal("1", results[1].content)
		assert.equal("2", results[2].content)
		assert.not_equal(results[1].tool_use_id, results[2].tool_use_id)
		assert.equal("done", result.result)
	end)
end)

describe("end_turn", function()
	local function finish(content, more)
		return lattice.tool(more and more.name or "finish", "", {}, function()
			local result = { content = content, end_turn = true }
			for key, value in pairs(more or {}) do
				result[key] = value
			end
			result.name = nil
			return result
		end)
	end

	it("ends the run with the tool's text and no further request", function()
		local _, result, agent = run_calls({ finish "42" }, { call "finish" })
		assert.equal("success", result.subtype)
		assert.equal("42", result.result)
		assert.equal(1, result.num_turns)
		assert.equal("tool_result", agent.messages[3].content[1].type)
	end)

	it("lets the other tools of the batch finish", function()
		local ran = {}
		local other = lattice.tool("other", "", {}, function()
			ran[#ran + 1] = true
			return "other"
		end)
		local results, result = run_calls({ finish "42", other }, { call("finish", {}, "a"), call("other", {}, "b") })
		assert.equal(1, #ran)
		assert.equal("other", results[2].content)
		assert.equal("42", result.result)
	end)

	it("of several counts the first in call order", function()
		local slow = lattice.tool("slow", "", {}, function()
			lattice.sleep(5)
			return { content = "slow", end_turn = true }
		end)
		local _, result = run_calls({ slow, finish "fast" }, { call("slow", {}, "a"), call("finish", {}, "b") },
			{ tool_concurrency = { mode = "all" } })
		assert.equal("slow", result.result)
	end)

	it("carries a structured_result, which counts for nothing without it", function()
		local value = { answer = 42 }
		local _, result = run_calls({ finish("42", { structured_result = value }) }, { call "finish" })
		assert.equal(value, result.structured_result)
		local plain = tool_of(function()
			return { content = "x", structured_result = value }
		end)
		_, result = run_calls({ plain }, { call "probe" })
		assert.is_nil(result.structured_result)
	end)
end)

describe("timeout_ms", function()
	it("ends a handler that waits, as an error result", function()
		local probe = tool_of(function()
			lattice.sleep(3600000)
			return "never"
		end, { timeout_ms = 5 })
		local results, result = run_calls({ probe }, { call "probe" })
		assert.is_true(results[1].is_error)
		assert.matches("timed out after 5 ms", results[1].content)
		assert.equal("done", result.result)
	end)

	it("ends a handler that computes without end", function()
		local probe = tool_of(function()
			while true do end -- luacheck: ignore
		end, { timeout_ms = 5 })
		local results, result = run_calls({ probe }, { call "probe" })
		assert.matches("timed out", results[1].content)
		assert.equal("done", result.result)
	end)

	it("ends a handler that swallows the abort again and again", function()
		local probe = tool_of(function()
			while true do
				pcall(lattice.sleep, 3600000)
			end
		end, { timeout_ms = 5 })
		local results, result = run_calls({ probe }, { call "probe" })
		assert.matches("timed out", results[1].content)
		assert.equal("done", result.result)
	end)

	it("lets a handler that is in time alone", function()
		local probe = tool_of(function()
			lattice.sleep(1)
			return "in time"
		end, { timeout_ms = 3600000 })
		assert.equal("in time", run_calls({ probe }, { call "probe" })[1].content)
	end)
end)
