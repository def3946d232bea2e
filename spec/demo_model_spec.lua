-- The scripted models that come with the server: the demo's, and those of the benchmarks.

local http = require "spec.support.raw_http"
local server = require "spec.support.server"

local json = server.json
local array = json.array

local function tool(name, description, properties, required)
	return { name = name, description = description,
		input_schema = { type = "object", properties = properties, required = array(required or {}) } }
end

local CALCULATOR = tool("calculate", "Evaluates an arithmetic expression", { expression = { type = "string" } })
local WEATHER = tool("get_weather", "Tells the weather of a city",
	{ city = { type = "string" }, unit = { enum = array { "celsius", "fahrenheit" } } }, { "city", "unit" })
local CLOCK = tool("current_time", "Tells what time it is", {})

local function ask(s, question, tools)
	return http.post(s, { tools = array(tools), messages = array { { role = "user", content = question } } }).json.content
end

local function calls_of(content)
	local calls = {}
	for _, block in ipairs(content) do
		calls[#calls + 1] = block.type == "tool_use" and { block.name, block.input } or nil
	end
	return calls
end

describe("the demo's model", function()
	local s
	setup(function()
		s = server.start { builtin = "demo" }
	end)
	teardown(function()
		s:stop()
	end)

	it("asks for the tools that fit a question, all in one reply", function()
		local content = ask(s, "What is 17 times (3 + 4), and how is the weather in Oslo and New York, in fahrenheit?",
			{ CALCULATOR, WEATHER, CLOCK })
		assert.same({
			{ "calculate", { expression = "17 * (3 + 4)" } },
			{ "get_weather", { city = "Oslo", unit = "fahrenheit" } },
			{ "get_weather", { city = "New York", unit = "fahrenheit" } },
		}, calls_of(content))
	end)

	it("asks the clock when asked for the time", function()
		assert.same({ { "current_time", {} } }, calls_of(ask(s, "What time is it?", { CALCULATOR, CLOCK })))
	end)

	it("says what it can do when no tool fits", function()
		local content = ask(s, "Hello!", { CALCULATOR, CLOCK })
		assert.same({}, calls_of(content))
		assert.matches("calculate, current_time", content[1].text)
	end)

	it("sums up from the results, failures too", function()
		local first = ask(s, "What is 6 * 7, and what time is it?", { CALCULATOR, CLOCK })
		local calls = { first[2], first[3] }
		local reply = http.post(s, { tools = array { CALCULATOR, CLOCK }, messages = array {
			{ role = "user", content = "What is 6 * 7, and what time is it?" },
			{ role = "assistant", content = first },
			{ role = "user", content = array {
				{ type = "tool_result", tool_use_id = calls[1].id, content = "42" },
				{ type = "tool_result", tool_use_id = calls[2].id, content = "no clock here", is_error = true },
			} },
		} }).json
		assert.equal("end_turn", reply.stop_reason)
		assert.matches("calculate%(6 %* 7%): 42\n%- current_time failed: no clock here", reply.content[1].text)
	end)
end)

describe("the benchmarks' models", function()
	it("loop asks for the first tool until the history holds enough results", function()
		local s <close> = server.start { builtin = "loop:2", lenient = true }
		local first = ask(s, "go", { CLOCK })
		assert.same({ { "current_time", { step = 1 } } }, calls_of(first))
		local reply = http.post(s, { tools = array { CLOCK }, messages = array { { role = "user", content = "go" },
			{ role = "assistant", content = first }, { role = "user", content = array {
				{ type = "tool_result", tool_use_id = first[2].id, content = 'a "type":"tool_result" in text' } } } } })
		assert.equal("Step 2.", reply.json.content[1].text) -- the one in the text was no result
	end)

	it("turns answers by the number of earlier answers", function()
		local s <close> = server.start { builtin = "turns" }
		assert.equal("Answer 1.", ask(s, "go")[1].text)
	end)
end)
