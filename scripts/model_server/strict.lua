-- The checks of the real service (Messages API, anthropic-version 2023-06-01): what it refuses is refused here, with
-- messages in its style. Paths are zero-based, as its own are.

local json = require "scripts.model_server.json"
local signature = require "scripts.model_server.signature"

local strict = {}

local is_array, is_object = json.is_array, json.is_object

local MAX_CACHE_POINTS = 4
local MIN_THINKING_BUDGET = 1024
local NAME_PATTERN = "^[a-zA-Z0-9_-]{1,64}$"

local REQUEST_KEYS = {}
for key in ([[model messages max_tokens system tools tool_choice stream stop_sequences temperature top_p top_k metadata
	thinking service_tier container mcp_servers context_management output_config output_format cache_control
	inference_geo speed]]):gmatch("%S+") do
	REQUEST_KEYS[key] = true
end

local TOOL_KEYS = {
	name = true, description = true, input_schema = true, cache_control = true, type = true, strict = true,
	eager_input_streaming = true, input_examples = true, defer_loading = true, allowed_callers = true,
}

local BLOCK_KEYS = {
	text = "type text cache_control citations",
	image = "type source cache_control",
	document = "type source cache_control title context citations",
	tool_use = "type id name input cache_control caller",
	tool_result = "type tool_use_id content is_error cache_control",
	thinking = "type thinking signature",
	redacted_thinking = "type data",
	search_result = "type source title content cache_control citations",
}
for kind, text in pairs(BLOCK_KEYS) do
	local set = {}
	for key in text:gmatch("%S+") do
		set[key] = true
	end
	BLOCK_KEYS[kind] = set
end

local ROLE_BLOCKS = {
	user = { text = true, image = true, document = true, tool_result = true, search_result = true },
	assistant = { text = true, tool_use = true, thinking = true, redacted_thinking = true },
	tool_result = { text = true, image = true, document = true, search_result = true },
	system = { text = true },
}

local function refuse(message, ...)
	error({ refused = select("#", ...) > 0 and message:format(...) or message }, 0)
end

local function need(value, path, kind)
	if value == nil then
		refuse("%s: Field required", path)
	elseif kind == "string" and type(value) ~= "string" then
		refuse("%s: Input should be a valid string", path)
	elseif kind == "array" and not is_array(value) then
		refuse("%s: Input should be a valid list", path)
	elseif kind == "object" and not is_object(value) then
		refuse("%s: Input should be a valid dictionary", path)
	elseif kind == "integer" and math.type(value) ~= "integer" then
		refuse("%s: Input should be a valid integer", path)
	elseif kind == "boolean" and type(value) ~= "boolean" then
		refuse("%s: Input should be a valid boolean", path)
	end
	return value
end

local function no_extra(t, known, path)
	for key in pairs(t) do
		if not known[key] then
			refuse("%s: Extra inputs are not permitted", path == "" and key or path .. "." .. key)
		end
	end
end

local function is_name(name)
	return #name <= 64 and name:find("^[%w_-]+$") ~= nil
end

-- ---- content blocks ----

local check_block

local function check_text(block, path)
	local text = need(block.text, path .. ".text", "string")
	if text == "" then
		refuse("messages: text content blocks must be non-empty (%s)", path)
	elseif not text:find("%S") then
		refuse("messages: text content blocks must contain non-whitespace text (%s)", path)
	end
end

local function check_source(block, path)
	local source = need(block.source, path .. ".source", "object")
	local kind = need(source.type, path .. ".source.type", "string")
	if kind == "base64" then
		need(source.media_type, path .. ".source.base64.media_type", "string")
		local data = need(source.data, path .. ".source.base64.data", "string")
		if data == "" or data:find("[^%w+/=]") then
			refuse("%s.source.base64.data: invalid base64 data", path)
		end
	elseif kind == "url" then
		need(source.url, path .. ".source.url.url", "string")
	end
end

local function check_tool_use(block, path, state)
	local id = need(block.id, path .. ".id", "string")
	if not id:find("^[%w_-]+$") then
		refuse("%s.id: String should match pattern '^[a-zA-Z0-9_-]+$'", path)
	elseif state.ids[id] then
		refuse("%s: `tool_use` ids must be unique", path)
	end
	state.ids[id] = true
	if not is_name(need(block.name, path .. ".name", "string")) then
		refuse("%s.name: String should match pattern '%s'", path, NAME_PATTERN)
	end
	need(block.input, path .. ".input", "object")
end

local function check_tool_result(block, path, state)
	need(block.tool_use_id, path .. ".tool_use_id", "string")
	if block.is_error ~= nil then
		need(block.is_error, path .. ".is_error", "boolean")
	end
	local content = block.content
	if is_array(content) then
		for i, inner in ipairs(content) do
			check_block(inner, ("%s.content.%d"):format(path, i - 1), "tool_result", state)
		end
	elseif content ~= nil and type(content) ~= "string" then
		refuse("%s.content: Input should be a valid string or list of content blocks", path)
	end
	if block.is_error and (content == nil or content == "" or is_array(content) and #content == 0) then
		refuse("%s: content cannot be empty if `is_error` is true", path)
	end
end

local function check_thinking(block, path, state)
	local thinking = need(block.thinking, path .. ".thinking", "string")
	local sig = need(block.signature, path .. ".signature", "string")
	if signature.of_thinking(thinking) ~= sig and state.memory.signatures[sig] ~= thinking then
		refuse("%s: Invalid `signature` in `thinking` block", path)
	end
end

local function check_redacted(block, path, state)
	local data = need(block.data, path .. ".data", "string")
	if not signature.is_redacted(data) and not state.memory.redacted[data] then
		refuse("%s: Invalid `data` in `redacted_thinking` block", path)
	end
end

local CHECKS = {
	text = check_text, image = check_source, document = check_source, tool_use = check_tool_use,
	tool_result = check_tool_result, thinking = check_thinking, redacted_thinking = check_redacted,
}

function check_block(block, path, role, state)
	need(block, path, "object")
	local kind = need(block.type, path .. ".type", "string")
	if block.cache_control ~= nil and block.cache_control ~= json.null then
		need(block.cache_control, path .. ".cache_control", "object")
		state.cache_points = state.cache_points + 1
	end
	if not ROLE_BLOCKS[role][kind] then
		if role == "assistant" and state.memory.block_types[kind] then
			return -- unknown to the API as it is here, but this server sent it
		elseif BLOCK_KEYS[kind] then
			refuse("%s: `%s` blocks can not be in %s content", path, kind, role)
		end
		refuse("%s: Input tag '%s' found using 'type' does not match any of the expected tags", path, kind)
	end
	no_extra(block, BLOCK_KEYS[kind], path)
	local check_kind = CHECKS[kind]
	if check_kind then
		check_kind(block, path .. (role == "tool_result" and "" or "." .. kind), state)
	end
end

-- ---- messages ----

local function check_content(message, path, state, is_last)
	local content = message.content
	if content == nil then
		refuse("%s.content: Field required", path)
	elseif type(content) == "string" then
		if content == "" and not (is_last and message.role == "assistant") then
			refuse("%s: %s messages must have non-empty content", path, message.role)
		elseif content ~= "" and not content:find("%S") then
			refuse("messages: text content blocks must contain non-whitespace text (%s)", path)
		end
		return
	elseif not is_array(content) then
		refuse("%s.content: Input should be a valid string or list", path)
	elseif #content == 0 then
		refuse("%s: all messages must have non-empty content except for the optional final assistant message", path)
	end
	for i, block in ipairs(content) do
		check_block(block, ("%s.content.%d"):format(path, i - 1), message.role, state)
	end
end

local function blocks_of(message)
	return is_array(message.content) and message.content or {}
end

local function tool_use_ids(message)
	local ids, set = {}, {}
	for _, block in ipairs(blocks_of(message)) do
		if block.type == "tool_use" then
			ids[#ids + 1] = block.id
			set[block.id] = true
		end
	end
	return ids, set
end

local function check_results_of(messages, i)
	local _, asked = tool_use_ids(messages[i - 1] or {})
	local seen, other = {}, false
	for k, block in ipairs(blocks_of(messages[i])) do
		local path = ("messages.%d.content.%d"):format(i - 1, k - 1)
		if block.type ~= "tool_result" then
			other = true
		else
			local id = block.tool_use_id
			if not asked[id] then
				refuse("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a "
					.. "corresponding `tool_use` block in the previous message.", path, id)
			elseif seen[id] then
				refuse("%s: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", path, id)
			elseif other then
				refuse("%s: `tool_result` blocks must come first in the content of a message", path)
			end
			seen[id] = true
		end
	end
	return seen
end

local function check_calls_answered(messages, i)
	local ids = tool_use_ids(messages[i])
	if #ids == 0 then
		return
	end
	local answered = messages[i + 1] and check_results_of(messages, i + 1) or {}
	local missing = {}
	for _, id in ipairs(ids) do
		if not answered[id] then
			missing[#missing + 1] = id
		end
	end
	if #missing > 0 then
		refuse("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` "
			.. "block must have a corresponding `tool_result` block in the next message.", i - 1, table.concat(missing, ", "))
	end
end

-- The thinking that this server sent before a tool call of the latest assistant message must still be there.
local function check_thinking_kept(messages, state)
	local i = #messages
	while i > 0 and messages[i].role ~= "assistant" do
		i = i - 1
	end
	local present = {}
	for _, block in ipairs(i > 0 and blocks_of(messages[i]) or {}) do
		present[block.signature or block.data or ""] = true
		for _, wanted in ipairs(block.type == "tool_use" and state.memory.thinking_before[block.id] or {}) do
			if not present[wanted] then
				refuse("messages.%d: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
					.. "modified. These blocks must remain as they were in the original response.", i - 1)
			end
		end
	end
end

local function check_last(messages)
	local last = messages[#messages]
	if last.role ~= "assistant" then
		return
	end
	local text = last.content
	if is_array(text) then
		local block = text[#text]
		text = block.type == "text" and block.text or ""
	end
	if text:find("%s$") then
		refuse("messages: final assistant content cannot end with trailing whitespace")
	end
end

local function check_messages(messages, state)
	need(messages, "messages", "array")
	if #messages == 0 then
		refuse("messages: at least one message is required")
	end
	for i, message in ipairs(messages) do
		local path = ("messages.%d"):format(i - 1)
		need(message, path, "object")
		local role = need(message.role, path .. ".role", "string")
		if role ~= "user" and role ~= "assistant" then
			refuse("messages: Unexpected role \"%s\". Allowed roles are \"user\" or \"assistant\"", role)
		elseif i == 1 and role ~= "user" then
			refuse("messages: first message must use the \"user\" role")
		elseif i > 1 and messages[i - 1].role == role then
			refuse("messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"%s\" roles in a row "
				.. "(%s)", role, path)
		end
		no_extra(message, { role = true, content = true }, path)
		check_content(message, path, state, i == #messages)
	end
	for i, message in ipairs(messages) do
		if message.role == "assistant" then
			check_calls_answered(messages, i)
		else
			check_results_of(messages, i)
		end
	end
	check_thinking_kept(messages, state)
	check_last(messages)
end

-- ---- the rest of the request ----

local function check_system(system, state)
	if system == nil or type(system) == "string" then
		return
	end
	need(system, "system", "array")
	for i, block in ipairs(system) do
		local path = ("system.%d"):format(i - 1)
		need(block, path, "object")
		if block.type == "text" and block.text == "" then
			refuse("system: text content blocks must be non-empty")
		end
		check_block(block, path, "system", state)
	end
end

local function check_tool(tool, path, state)
	need(tool, path, "object")
	local server_tool = tool.type ~= nil and tool.type ~= json.null and tool.type ~= "custom"
	path = server_tool and path or path .. ".custom"
	local name = need(tool.name, path .. ".name", "string")
	if not is_name(name) then
		refuse("%s.name: String should match pattern '%s'", path, NAME_PATTERN)
	end
	if tool.cache_control ~= nil and tool.cache_control ~= json.null then
		state.cache_points = state.cache_points + 1
	end
	if server_tool then
		return name
	end
	if tool.description ~= nil then
		need(tool.description, path .. ".description", "string")
	end
	local schema = need(tool.input_schema, path .. ".input_schema", "object")
	if need(schema.type, path .. ".input_schema.type") ~= "object" then
		refuse("%s.input_schema.type: Input should be 'object'", path)
	elseif schema.properties ~= nil then
		need(schema.properties, path .. ".input_schema.properties", "object")
	end
	if schema.required ~= nil then
		need(schema.required, path .. ".input_schema.required", "array")
	end
	no_extra(tool, TOOL_KEYS, path)
	return name
end

local function check_tools(tools, state)
	if tools == nil then
		return
	end
	need(tools, "tools", "array")
	local names = {}
	for i, tool in ipairs(tools) do
		local name = check_tool(tool, ("tools.%d"):format(i - 1), state)
		if names[name] then
			refuse("tools: Tool names must be unique.")
		end
		names[name] = true
	end
end

local function check_thinking_option(body)
	local thinking = body.thinking
	if thinking == nil then
		return
	end
	need(thinking, "thinking", "object")
	local kind = need(thinking.type, "thinking.type", "string")
	if kind ~= "enabled" and kind ~= "disabled" and kind ~= "adaptive" then
		refuse("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', "
			.. "'enabled'", kind)
	elseif kind == "enabled" then
		local budget = need(thinking.budget_tokens, "thinking.enabled.budget_tokens", "integer")
		if budget < MIN_THINKING_BUDGET then
			refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to %d", MIN_THINKING_BUDGET)
		elseif budget >= body.max_tokens then
			refuse("`max_tokens` must be greater than `thinking.budget_tokens`")
		end
	end
end

local function check_tool_choice(body)
	local choice = body.tool_choice
	if choice == nil then
		return
	end
	need(choice, "tool_choice", "object")
	need(choice.type, "tool_choice.type", "string")
	if not body.tools or #body.tools == 0 then
		refuse("tool_choice: may only be specified while providing `tools`")
	end
end

local function check_body(body, state)
	need(body, "request", "object")
	if need(body.model, "model", "string") == "" then
		refuse("model: String should have at least 1 character")
	end
	if need(body.max_tokens, "max_tokens", "integer") < 1 then
		refuse("max_tokens: Input should be greater than or equal to 1")
	end
	if body.stream ~= nil then
		need(body.stream, "stream", "boolean")
	end
	if body.temperature ~= nil and type(body.temperature) ~= "number" then
		refuse("temperature: Input should be a valid number")
	end
	no_extra(body, REQUEST_KEYS, "")
	check_system(body.system, state)
	check_tools(body.tools, state)
	check_tool_choice(body)
	check_thinking_option(body)
	check_messages(body.messages, state)
	if state.cache_points > MAX_CACHE_POINTS then
		refuse("A maximum of %d blocks with cache_control may be provided. Found %d.", MAX_CACHE_POINTS, state.cache_points)
	end
end

local function refused(status, type_name, message)
	return { status = status, type = type_name, message = message }
end

--- Checks credentials and the headers that every request carries.
---@param request table
---@param api_key? string # the only key that is right; nil: any
---@return table? refusal # `{status, type, message}`
function strict.check_headers(request, api_key)
	local headers = request.by_name
	local bearer = (headers.authorization or ""):match("^Bearer (%S+)$")
	local key = headers["x-api-key"] or bearer
	if not key or key == "" then
		return refused(401, "authentication_error", "x-api-key header is required")
	elseif api_key and key ~= api_key then
		return refused(401, "authentication_error", bearer and "invalid bearer token" or "invalid x-api-key")
	elseif not headers["anthropic-version"] then
		return refused(400, "invalid_request_error", "anthropic-version: header is required")
	elseif not (headers["content-type"] or ""):lower():find("^application/json") then
		return refused(400, "invalid_request_error", "content-type: expected application/json")
	end
end

--- Checks a body as the service does.
---@param body any # decoded
---@param memory table # from memory.new
---@return table? refusal # `{status, type, message}`
function strict.check_body(body, memory)
	local ok, problem = pcall(check_body, body, { memory = memory, ids = {}, cache_points = 0 })
	if ok then
		return nil
	elseif type(problem) ~= "table" then
		error(problem, 0)
	end
	return refused(400, "invalid_request_error", problem.refused)
end

return strict
