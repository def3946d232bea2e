--- What a handler returned, brought into the one shape that a `tool_result` block has.

local core = require "lattice.core"
local errors = require "lattice.errors"
local options = require "lattice.options"

local tool_result = {}

---@class lattice.tool_outcome
---@field content string|table[] a string, or content blocks
---@field is_error? boolean
---@field end_turn? boolean
---@field structured_result? any
---@field error? any what was raised, or why nothing ran
---@field traceback? string for the trace, never for the model

local REPLACEMENT = utf8.char(0xFFFD)

--- Text that JSON can carry: bytes that aren't UTF-8 become U+FFFD.
---@param text string
---@return string
function tool_result.clean(text)
	if utf8.len(text) then
		return text
	end
	local parts, at = {}, 1
	while at <= #text do
		local ok, bad = utf8.len(text, at)
		if ok then
			parts[#parts + 1] = text:sub(at)
			break
		end
		parts[#parts + 1] = text:sub(at, bad - 1)
		parts[#parts + 1] = REPLACEMENT
		at = bad + 1
	end
	return table.concat(parts)
end

local clean = tool_result.clean

--- A failed outcome.
---@param text string for the model
---@param raised? any what the hook and the trace see
---@param traceback? string
---@return lattice.tool_outcome
function tool_result.failure(text, raised, traceback)
	return { content = clean(text), is_error = true, error = raised == nil and text or raised, traceback = traceback }
end

--- A schema's complaints, one a line.
---@param problems table[] as a schema's validate gives them
---@param root string how to call the value as a whole
---@return string
function tool_result.list_problems(problems, root)
	local lines = {}
	for index, one in ipairs(problems) do
		lines[index] = string.format("- %s: %s", one.path == "" and root or one.path, one.message)
	end
	return table.concat(lines, "\n")
end

--- Why an input is refused, in words for the model: each bad path, what was expected and what came.
---@param name string
---@param problems table[] as a schema's validate gives them
---@return lattice.tool_outcome
function tool_result.invalid_input(name, problems)
	local text = string.format('Invalid input for tool "%s". It did not run.\n', name)
	return tool_result.failure(text .. tool_result.list_problems(problems, "(input)"))
end

local block_checks = {
	text = function(block)
		return type(block.text) == "string", "text = string"
	end,
	image = function(block)
		return type(block.source) == "table", "source = table"
	end,
	document = function(block)
		return type(block.source) == "table", "source = table"
	end,
}

-- Returns a cleaned copy of the blocks, or nil and what is wrong.
local function check_blocks(blocks)
	local cleaned = {}
	for i, block in ipairs(blocks) do
		local check = type(block) == "table" and block_checks[block.type]
		if not check then
			return nil, string.format("content[%d]: expected a text, image or document block", i)
		end
		local ok, expected = check(block)
		if not ok then
			return nil, string.format("content[%d]: a %s block needs %s", i, block.type, expected)
		end
		if block.type ~= "text" then
			cleaned[#cleaned + 1] = block
		elseif block.text ~= "" then -- the API refuses empty text blocks
			local copy = {}
			for key, value in pairs(block) do
				copy[key] = value
			end
			copy.text = clean(block.text)
			cleaned[#cleaned + 1] = copy
		end
	end
	for key in pairs(blocks) do
		if math.type(key) ~= "integer" or key < 1 or key > #blocks then
			return nil, "content: expected a string or an array of content blocks"
		end
	end
	local encodable, problem = pcall(core.json_encode, cleaned)
	if not encodable then
		return nil, "content: " .. errors.text(problem)
	end
	return #cleaned > 0 and cleaned or ""
end

local function wrong_shape(name, what)
	local text = 'Tool "%s" returned something that is no result: %s. '
		.. "A handler returns a string, or a table with content = a string or an array of content blocks."
	return tool_result.failure(string.format(text, name, what))
end

local function flag(value, key)
	local field = value[key]
	return field == nil or type(field) == "boolean", key .. ": expected a boolean, got " .. options.got(field)
end

local function shape(name, value)
	if type(value) == "string" then
		return { content = clean(value) }
	elseif type(value) ~= "table" then
		return wrong_shape(name, "got " .. options.got(value))
	end
	for _, key in ipairs { "is_error", "end_turn" } do
		local ok, problem = flag(value, key)
		if not ok then
			return wrong_shape(name, problem)
		end
	end
	local content, problem = value.content, nil
	if type(content) == "string" then
		content = clean(content)
	elseif type(content) == "table" then
		content, problem = check_blocks(content)
	else
		content, problem = nil, "content: expected a string or an array of content blocks, got " .. options.got(content)
	end
	if not content then
		return wrong_shape(name, problem)
	end
	return {
		content = content,
		is_error = value.is_error or nil,
		end_turn = value.end_turn or nil,
		structured_result = value.structured_result,
		metadata = type(value.metadata) == "table" and value.metadata or nil,
	}
end

--- Brings what a handler (or a hook) returned into one shape; the wrong shape becomes a failed outcome, and so does
--- a value whose own metamethods raise.
---@param name string the tool's name, for the error
---@param value any
---@return lattice.tool_outcome
function tool_result.normalize(name, value)
	local ok, outcome = pcall(shape, name, value)
	return ok and outcome or wrong_shape(name, "reading it raised: " .. errors.text(outcome))
end

--- The text of an outcome: its string, or its text blocks one after the other.
---@param outcome lattice.tool_outcome
---@return string
function tool_result.text(outcome)
	if type(outcome.content) == "string" then
		return outcome.content
	end
	local parts = {}
	for _, block in ipairs(outcome.content) do
		if block.type == "text" then
			parts[#parts + 1] = block.text
		end
	end
	return table.concat(parts, "\n")
end

--- The `tool_result` block as JSON text (Anthropic Messages API).
---@param tool_use_id string
---@param outcome lattice.tool_outcome
---@return string
function tool_result.block_json(tool_use_id, outcome)
	return table.concat {
		'{"type":"tool_result","tool_use_id":',
		core.json_encode(tool_use_id),
		',"content":',
		core.json_encode(outcome.content),
		outcome.is_error and ',"is_error":true}' or "}",
	}
end

--- The same as a Lua table, for the consumer of `query`.
---@param tool_use_id string
---@param outcome lattice.tool_outcome
---@return table
function tool_result.block(tool_use_id, outcome)
	return {
		type = "tool_result",
		tool_use_id = tool_use_id,
		content = outcome.content,
		is_error = outcome.is_error,
	}
end

return tool_result
