-- The demo's model: small, deterministic, and honest about what it is. It reads the last question, asks the offered
-- tools that fit (all in one reply, as a model would that knows them independent), and sums up from their results.
-- It knows no tool by name: it goes by names, descriptions and schemas, so that the same agent runs with a real model.

local json = require "scripts.model_server.json"
local reply = require "scripts.model_server.reply"

local demo_model = {}

local MAX_CALLS = 4
local EVENT_PAUSE_MS = 12 -- between events, so that one sees the stream
local ENOUGH_SCORE = 2 -- of `score`, for a tool to be asked

-- ---- reading the conversation ----

local function text_of(content)
	if type(content) == "string" then
		return content
	end
	local parts = {}
	for _, block in ipairs(content or {}) do
		parts[#parts + 1] = block.type == "text" and block.text or nil
	end
	return table.concat(parts, "\n")
end

-- The last text that the user wrote, and the results that came after it: `{name, text, is_error}` in call order.
local function last_question(messages)
	local names, results, question = {}, {}, ""
	for _, message in ipairs(messages) do
		local text = message.role == "user" and text_of(message.content) or ""
		if text ~= "" then
			question, results = text, {}
		end
		for _, block in ipairs(type(message.content) == "table" and message.content or {}) do
			if block.type == "tool_use" then
				names[block.id] = block
			elseif block.type == "tool_result" then
				local call = names[block.tool_use_id]
				results[#results + 1] = { name = call.name, input = call.input, text = text_of(block.content),
					is_error = block.is_error == true }
			end
		end
	end
	return question, results
end

-- ---- understanding the question ----

local WORDS_FOR_OPERATORS = {
	{ "multiplied by", "*" }, { "divided by", "/" }, { "times", "*" }, { "plus", "+" }, { "minus", "-" },
	{ "×", "*" }, { "÷", "/" }, { "−", "-" },
}

-- The first arithmetic expression of a text, as `17 * (3 + 4)`.
local function expression_in(text)
	text = text:gsub("(%d),(%d%d%d)", "%1%2")
	for _, pair in ipairs(WORDS_FOR_OPERATORS) do
		text = text:gsub(pair[1], pair[2])
	end
	for found in text:gmatch("[%d%(%-][%d%s%.%+%-%*/%%%^%(%)]*") do
		local trimmed = found:match("^(.-)[%s%.%+%-%*/%(]*$")
		local is_date = trimmed:find("^%d%d%d%d%-%d%d%-%d%d$")
		if not is_date and trimmed:find("%d%s*%)*%s*[%+%-%*/%%%^]%s*[%(%-]*%s*%d") then
			return trimmed
		end
	end
end

-- The places of a text: capitalised names after in, at or for ("in Oslo and New York").
local function places_in(text)
	local places = {}
	for _, preposition in ipairs { "in", "at", "for" } do
		local at = text:match("%f[%a]" .. preposition .. "%s+()%u")
		while at do
			local name, next_at = text:match("^(%u[%a\128-\255]*)()", at)
			if not name then
				break
			end
			local more, more_at = text:match("^ (%u[%a\128-\255]*)()", next_at)
			if more then
				name, next_at = name .. " " .. more, more_at
			end
			places[#places + 1] = name
			at = text:match("^,? and ()%u", next_at) or text:match("^, ()%u", next_at)
		end
	end
	return places
end

local function words_of(text)
	local set = {}
	for word in text:lower():gmatch("%a+") do
		if #word >= 4 then
			set[word:gsub("s$", "")] = true
		end
	end
	return set
end

-- How well a tool fits: words of its name count double.
local function score(tool, asked)
	local points = 0
	for word in pairs(words_of(tool.name:gsub("_", " "))) do
		points = points + (asked[word] and 2 or 0)
	end
	for word in pairs(words_of(tool.description or "")) do
		points = points + (asked[word] and 1 or 0)
	end
	return points
end

-- ---- choosing calls ----

local function properties_of(tool)
	local schema = tool.input_schema or {}
	local properties = json.is_object(schema.properties) and schema.properties or {}
	local names = {}
	for name in pairs(properties) do
		names[#names + 1] = name
	end
	table.sort(names)
	return names, properties
end

local function property_like(tool, ...)
	local names = properties_of(tool)
	for _, pattern in ipairs { ... } do
		for _, name in ipairs(names) do
			if name:lower():find(pattern) then
				return name
			end
		end
	end
end

local function value_for(property, question)
	if json.is_array(property.enum) then
		for _, choice in ipairs(property.enum) do
			if question:lower():find(tostring(choice):lower(), 1, true) then
				return choice
			end
		end
		return property.enum[1]
	end
	local kind, number = property.type, question:match("%-?%d+%.?%d*")
	if kind == "integer" then
		return math.tointeger(tonumber(number)) or 1
	elseif kind == "number" then
		return tonumber(number) or 1
	elseif kind == "boolean" then
		return false
	elseif kind == "array" then
		return json.array()
	elseif kind == "object" then
		return {}
	end
	return question:match('"(.-)"') or question
end

-- Input for a tool that is nothing special: what it requires, from the question.
local function filled_input(tool, question)
	local input, _, properties = {}, properties_of(tool)
	for _, name in ipairs(tool.input_schema.required or {}) do
		input[name] = value_for(properties[name] or {}, question)
	end
	return input
end

local function add_place_calls(calls, tool, property, question)
	for _, place in ipairs(places_in(question)) do
		local input = filled_input(tool, question)
		input[property] = place
		calls[#calls + 1] = { tool = tool, input = input }
	end
end

local function calls_for(question, tools)
	local calls, expression = {}, expression_in(question)
	local asked = words_of((question:gsub("times%s+[%d%(]", ""))) -- "3 times 4" asks for no clock
	for _, tool in ipairs(tools) do
		local expression_property = expression and property_like(tool, "^expr", "formula", "calculation", "^math")
		local place_property = property_like(tool, "city", "location", "place", "town", "zone")
		if expression_property then
			calls[#calls + 1] = { tool = tool, input = { [expression_property] = expression } }
			expression = nil
		elseif score(tool, asked) >= ENOUGH_SCORE then
			local before = #calls
			if place_property then
				add_place_calls(calls, tool, place_property, question)
			end
			if #calls == before then
				calls[#calls + 1] = { tool = tool, input = filled_input(tool, question) }
			end
		end
	end
	return table.move(calls, 1, MAX_CALLS, 1, {})
end

-- ---- answering ----

local function described(result)
	local inputs = {}
	for _, value in pairs(result.input) do
		if type(value) == "string" or type(value) == "number" then
			inputs[#inputs + 1] = tostring(value)
		end
	end
	table.sort(inputs)
	return #inputs > 0 and ("%s(%s)"):format(result.name, table.concat(inputs, ", ")) or result.name
end

local function summary(results)
	local lines = { #results == 1 and "Here is what came back:" or "Here is what came back, in the order I asked:" }
	for _, result in ipairs(results) do
		local line = result.is_error and "- %s failed: %s" or "- %s: %s"
		lines[#lines + 1] = line:format(described(result), result.text)
	end
	return table.concat(lines, "\n")
end

local function without_tools(tools)
	local names = {}
	for i, tool in ipairs(tools) do
		names[i] = tool.name
	end
	if #names == 0 then
		return "I am the demo's scripted model. No tools came with this request, so this is all I can say."
	end
	return "I am the demo's scripted model. I can use these tools: " .. table.concat(names, ", ")
		.. ". Ask me for something that they do, such as \"What is 17 * 23?\"."
end

local function usage(request, characters)
	return { input_tokens = #request.raw // 4, output_tokens = characters // 4 + 1 }
end

--- Answers a request, as a script's function does.
---@param request table
---@return table reply
function demo_model.answer(request)
	local body = request.body
	local question, results = last_question(body.messages)
	local tools = body.tools or {}
	local calls = #results == 0 and calls_for(question, tools) or {}
	local said = #results > 0 and summary(results) or without_tools(tools)
	if #calls > 0 then
		said = #calls == 1 and "Let me look that up." or "These don't depend on each other, so I ask for them together."
	end
	local blocks = { reply.text(said) }
	for i, call in ipairs(calls) do
		blocks[i + 1] = reply.tool_use(call.tool.name, call.input)
	end
	blocks.delta_size, blocks.split, blocks.split_ms = 8, "events", EVENT_PAUSE_MS
	blocks.usage = usage(request, #said)
	return reply.message(blocks)
end

return demo_model
