--- Agents: sessions with a history, and the templates that make them.

local core = require "lattice.core"
local errors = require "lattice.errors"
local mailbox = require "lattice.mailbox"
local options = require "lattice.options"
local query = require "lattice.query"
local request = require "lattice.request"
local saved_session = require "lattice.saved_session"
local schema = require "lattice.schema"
local session_log = require "lattice.session_log"
local shell = require "lattice.shell"
local signal = require "lattice.signal"
local task = require "lattice.task"
local tool = require "lattice.tool"
local tool_result = require "lattice.tool_result"
local toolset = require "lattice.toolset"
local trace = require "lattice.trace"
local workspace = require "lattice.workspace"

local agent = {}

local DEFAULTS = {
	base_url = "https://api.anthropic.com",
	model = "claude-sonnet-4-6",
	max_tokens = 8192,
	request_timeout_ms = 600000,
	idle_timeout_ms = 120000,
	max_retries = 2,
	max_reply_bytes = 64 << 20,
	max_request_bytes = 32 << 20, -- the API's own bound
	max_concurrency = 10,
}

local OUTPUT_FORMAT = options.nested {
	type = options.one_of { "json_schema" },
	schema = options.kind("a schema", function(value)
		return type(value) == "table" or type(value) == "string"
	end),
}

local HEADERS = options.kind("a table of header names and values, without line breaks", function(value)
	if type(value) ~= "table" then
		return false
	end
	for name, text in pairs(value) do
		if type(name) ~= "string" or not name:find "^[%w!#$%%&'*+.^_`|~-]+$" then
			return false
		elseif type(text) ~= "string" or text:find "[%z\1-\8\10-\31\127]" then
			return false
		end
	end
	return true
end)

local HOOKS = options.nested {
	on_tool_result = options.callable,
	on_model_request = options.callable,
}

local MODEL_CLIENT = options.kind("a table with a function create(request)", function(value)
	return type(value) == "table" and options.is_callable(value.create)
end)

local ENCODABLE = options.kind("a table that JSON can say", function(value)
	return type(value) == "table" and (pcall(core.json_encode, value))
end)

local EFFORT = options.one_of { "low", "medium", "high", "xhigh", "max" }

local AGENT_OPTIONS = {
	name = options.text,
	api_key = options.secret,
	auth_token = options.secret,
	base_url = options.kind("an http:// or https:// URL without query and fragment", function(value)
		return type(value) == "string" and value:find "^https?://[^%s?#]+$" ~= nil
	end),
	model = options.utf8_text,
	max_tokens = options.positive_integer,
	system_prompt = options.utf8_string,
	tools = options.list(tool.kind, "a list of tools (lattice.tool)"),
	tool_concurrency = options.nested {
		mode = options.one_of { "safe", "all", "sequential", "resources" },
		max_concurrency = options.positive_integer,
	},
	tool_batch_policy = options.kind("a table with a function validate(batch)", function(value)
		return type(value) == "table" and options.is_callable(value.validate)
	end),
	permission = options.callable,
	hooks = HOOKS,
	tracer = trace.kind,
	thinking_config = ENCODABLE,
	reasoning_effort = EFFORT,
	output_format = OUTPUT_FORMAT,
	max_turns = options.positive_integer,
	request_timeout_ms = options.milliseconds,
	idle_timeout_ms = options.milliseconds,
	max_retries = options.natural,
	max_reply_bytes = options.positive_integer,
	max_request_bytes = options.positive_integer,
	headers = HEADERS,
	model_client = MODEL_CLIENT,
	prompt_cache = options.boolean,
	session_store = mailbox.kind,
	session_id = options.kind("a name of 1 to 100 letters, digits and . _ : -", function(value)
		return type(value) == "string" and #value <= 100 and value:find "^[%w._:-]+$" ~= nil
	end),
	workspace = workspace.kind,
	allowed_directories = workspace.directories_kind,
}
for name, kind in pairs(shell.OPTIONS) do
	AGENT_OPTIONS[name] = kind
end

local QUERY_OPTIONS = {
	signal = signal.kind,
	stream = options.boolean,
	context = options.any,
	output_format = OUTPUT_FORMAT,
	thinking_config = ENCODABLE,
	reasoning_effort = EFFORT,
	request_timeout_ms = options.milliseconds,
	max_turns = options.positive_integer,
	tracer = trace.kind,
	permissions = options.nested {
		workspace_grants = options.list(options.table, 'a list of {root =, access = {"write"}, reason =}'),
	},
}

---@class lattice.agent
---@field name? string
---@field session_id string
---@field messages table[] a copy of the history, as the API takes it
local agent_class = { __name = "lattice.agent" }
local methods = {}
local state_of = setmetatable({}, { __mode = "k" })

function agent_class:__index(key)
	if key == "messages" then
		return state_of[self].history:messages()
	elseif key == "name" or key == "session_id" then
		return state_of[self][key]
	end
	return methods[key]
end

function agent_class.__newindex(_, key)
	error(string.format('lattice.agent: can\'t set "%s": options are given when the agent is made', tostring(key)), 2)
end

function agent_class:__tostring()
	local state = state_of[self]
	return string.format("lattice.agent(%s)", state.name or state.session_id)
end

--- Whether a value is a live agent (a session).
---@param value any
---@return boolean
function agent.is_session(value)
	return getmetatable(value) == agent_class
end

local function environment(name)
	local value = os.getenv(name)
	return value ~= "" and value or nil
end

-- Where and with which key requests go. Keys stay in here: nothing prints this table.
local function endpoint(given, level)
	local key = given.api_key
	local token = given.auth_token
	if not key and not token then
		key, token = environment "ANTHROPIC_API_KEY", environment "ANTHROPIC_AUTH_TOKEN"
	end
	if not key and not token then
		local text = "AgentOptions: no key: give api_key or auth_token, or set ANTHROPIC_API_KEY (or give a model_client)"
		error(text, level + 1)
	elseif (key or token):find "[%c\127]" then
		error("AgentOptions: api_key: expected a key without control characters", level + 1)
	end
	local headers = {
		{ "content-type", "application/json" },
		{ "accept", "text/event-stream, application/json" },
		{ "anthropic-version", "2023-06-01" },
	}
	if token and not given.api_key then
		headers[#headers + 1] = { "authorization", "Bearer " .. token }
	else
		headers[#headers + 1] = { "x-api-key", key }
	end
	for name, value in pairs(given.headers or {}) do
		headers[#headers + 1] = { name, value }
	end
	local base = given.base_url or environment "ANTHROPIC_BASE_URL" or DEFAULTS.base_url
	return { url = request.url(base), headers = headers, secrets = { key or token, token } }
end

local function directories_hint(directories)
	if directories and #directories > 0 then
		return "Besides your working folder you may use these folders:\n" .. table.concat(directories, "\n")
	end
end

local function system_prompt(given, tools, concurrency)
	local parts = {}
	local function add(part)
		parts[#parts + 1] = part ~= "" and part or nil
	end
	add(given.system_prompt)
	add(directories_hint(given.allowed_directories))
	add(toolset.hint(tools, concurrency))
	return #parts > 0 and table.concat(parts, "\n\n") or given.system_prompt
end

local function compile_output(prefix, output_format, level)
	if not output_format then
		return nil
	elseif output_format.schema == nil then
		error(prefix .. ": output_format.schema: expected a schema, got nil", level + 1)
	end
	local ok, compiled = pcall(schema.compile, output_format.schema)
	if not ok then
		error(string.format("%s: output_format.schema: %s", prefix, compiled), level + 1)
	end
	return compiled
end

local function model_settings(given, tools, concurrency, level)
	local settings = {
		system = system_prompt(given, tools, concurrency),
		tools_json = tools.json,
		output_schema = compile_output("AgentOptions", given.output_format, level + 1),
	}
	for _, key in ipairs {
		"model",
		"max_tokens",
		"thinking_config",
		"reasoning_effort",
		"prompt_cache",
		"request_timeout_ms",
		"idle_timeout_ms",
		"max_retries",
		"max_reply_bytes",
		"max_request_bytes",
	} do
		settings[key] = given[key] == nil and DEFAULTS[key] or given[key]
	end
	settings.prefix = request.prefix(settings)
	return settings
end

local SESSION_ID_BYTES = 16

local function tool_list(given, builtins)
	local list = builtins and require("lattice.builtin").create_workspace_tools() or {}
	return table.move(given.tools or {}, 1, #(given.tools or {}), #list + 1, list)
end

-- A checked copy of the options: what the caller changes later does not reach the agent.
local function assemble(given, builtins, level)
	given = options.check("AgentOptions", AGENT_OPTIONS, given, level + 1)
	local copy = {}
	for key, value in pairs(given) do
		copy[key] = value
	end
	if builtins == nil then
		builtins = given.workspace ~= nil
	elseif builtins then
		copy.workspace = given.workspace or {}
	end
	if given.allowed_directories and not copy.workspace then
		error("AgentOptions: allowed_directories: expected an agent with a workspace (give the option workspace)", level + 1)
	end
	local for_shell = not copy.workspace and shell.given(given)
	if for_shell then
		error("AgentOptions: " .. for_shell .. ": expected an agent with a workspace (give the option workspace)", level + 1)
	end
	local list = tool_list(given, builtins)
	local wanted = given.tool_concurrency or {}
	local concurrency = {
		mode = wanted.mode or "safe",
		max_concurrency = wanted.max_concurrency or DEFAULTS.max_concurrency,
	}
	local tools = toolset.new("AgentOptions", list, level + 1)
	return {
		given = copy,
		tools = tools,
		concurrency = concurrency,
		settings = model_settings(copy, tools, concurrency, level + 1),
	}
end

local function open_log(given, session_id, level)
	local log, problem = session_log.open(given.session_store, session_id)
	return log or error("AgentOptions: session_store: " .. problem, level + 1)
end

-- Never called as a tail call: errors count the frames up to the script.
local function new_session(assembled, level, saved)
	local given = assembled.given
	saved = saved or {}
	local session_id = given.session_id or saved.session_id or core.random_hex(SESSION_ID_BYTES)
	local log = given.session_store and open_log(given, session_id, level + 1)
	local self = setmetatable({}, agent_class)
	state_of[self] = {
		name = given.name or saved.name,
		session_id = session_id,
		log = log,
		tools = assembled.tools,
		concurrency = assembled.concurrency,
		settings = assembled.settings,
		api = not given.model_client and endpoint(given, level + 1) or nil,
		model_client = given.model_client,
		policy = given.tool_batch_policy,
		permission = given.permission,
		hooks = given.hooks,
		tracer = given.tracer,
		max_turns = given.max_turns,
		given = given,
		history = log and log.history or saved.history or core.history(),
		workspace = given.workspace
			and workspace.open("AgentOptions", given.workspace, given.allowed_directories, level + 1),
	}
	local opened = state_of[self].workspace
	if opened then
		shell.configure("AgentOptions", opened, given, level + 1)
	end
	return self
end

--- A live session with only what the host gives it.
---@param agent_options table AgentOptions
---@return lattice.agent
function agent.create_bare(agent_options)
	local session = new_session(assemble(agent_options, false, 2), 2)
	return session
end

--- A live session with a folder of its own and the built-in tools (Read, Write, Edit, LS, Glob, Grep, Bash).
---
--- `local agent <close> = lattice.create_agent{…}` removes the folder at the end of the block; else it goes when the
--- agent is collected or the process exits.
---@param agent_options table AgentOptions
---@return lattice.agent
function agent.create(agent_options)
	local session = new_session(assemble(agent_options, true, 2), 2)
	return session
end

local SAVED = options.kind("what agent:save gave, or the path of its file", function(value)
	return type(value) == "table" or type(value) == "string" and value ~= ""
end)

--- A session that goes on where a saved one was. Calls that had no result when it was saved have one that says so.
--- With the option `workspace` it has a folder and the built-in tools, like a session of create_agent.
---@param saved table|string what agent:save gave, or the path of its file
---@param agent_options? table AgentOptions: they are not saved
---@return lattice.agent? agent
---@return string? problem the file can't be read, or isn't a saved session
function agent.load(saved, agent_options)
	options.argument("load_agent: saved", SAVED, saved)
	local assembled = assemble(agent_options, nil, 2)
	if assembled.given.session_store then
		error("load_agent: session_store: expected none: a session is either saved or in a store", 2)
	end
	local session, problem = saved_session.unpack(saved)
	if not session then
		return nil, problem
	end
	local loaded = new_session(assembled, 2, session)
	return loaded
end

---@class lattice.agent_spec
local spec_class = { __name = "lattice.agent_spec" }
spec_class.__index = spec_class
local assembled_of = setmetatable({}, { __mode = "k" })

function spec_class:__tostring()
	return string.format("lattice.agent_spec(%s)", assembled_of[self].given.name or "unnamed")
end

--- Makes a fresh session of the template.
---@return lattice.agent
function spec_class:spawn()
	local session = new_session(assembled_of[self], 2)
	return session
end

--- A stateless template: its options are checked now, each `spec:spawn()` is a fresh session. With the option
--- `workspace`, each has a folder of its own and the built-in tools, like a session of create_agent.
---@param agent_options table AgentOptions
---@return lattice.agent_spec
function agent.define(agent_options)
	if type(agent_options) == "table" and agent_options.session_id ~= nil then
		error("AgentOptions: session_id: expected none: each session of a template has its own", 2)
	end
	local spec = setmetatable({}, spec_class)
	assembled_of[spec] = assemble(agent_options, nil, 2)
	return spec
end

--- Whether a value is a template made by define_agent.
---@param value any
---@return boolean
function agent.is_spec(value)
	return getmetatable(value) == spec_class
end

--- Gives a session further tools, and something to do between a batch and the next request. For teams.
---@param session lattice.agent
---@param tools lattice.tool_definition[]
---@param after_batch? fun(query: lattice.query): string[] gives texts for the model
---@param level integer whose line an error names
function agent.extend(session, tools, after_batch, level)
	local state = state_of[session]
	local list = table.move(state.tools.list, 1, #state.tools.list, 1, {})
	table.move(tools, 1, #tools, #list + 1, list)
	state.tools = toolset.new("AgentOptions", list, level + 1)
	state.settings = model_settings(state.given, state.tools, state.concurrency, level + 1)
	state.after_batch = after_batch or state.after_batch
end

-- What the history would refuse (a blank text) is refused here, where the caller's line is known.
local function check_history_takes(json, level)
	local ok = pcall(function()
		core.history():add_user(json)
	end)
	if not ok then
		error("prompt: expected a text or a content block that isn't blank, got only white space", level + 1)
	end
	return json
end

local function blocks_json(prompt, level)
	if type(prompt) == "string" then
		if prompt == "" then
			error("prompt: expected a non-empty string or content blocks, got an empty string", level + 1)
		end
		local json = '{"type":"text","text":' .. core.json_encode(tool_result.clean(prompt)) .. "}"
		return prompt:find "%g" and json or check_history_takes(json, level + 1)
	elseif type(prompt) ~= "table" or #prompt == 0 then
		error("prompt: expected a non-empty string or content blocks, got " .. options.got(prompt), level + 1)
	end
	local parts = {}
	for index, block in ipairs(prompt) do
		local ok, json = pcall(core.json_encode, block)
		if type(block) ~= "table" or type(block.type) ~= "string" or not ok then
			local text = "prompt: block %d: expected a content block with a type, got %s"
			error(string.format(text, index, options.got(block)), level + 1)
		elseif block.type == "text" and (type(block.text) ~= "string" or block.text == "") then
			error(string.format("prompt: block %d: expected text = a non-empty string", index), level + 1)
		end
		parts[index] = json
	end
	return check_history_takes(table.concat(parts, ","), level + 1)
end

-- The settings of one query: the agent's own, unless the query changes some.
local function query_settings(state, given, level)
	if not (given.output_format or given.thinking_config or given.reasoning_effort or given.request_timeout_ms) then
		return state.settings
	end
	local settings = {}
	for key, value in pairs(state.settings) do
		settings[key] = value
	end
	settings.output_schema = compile_output("QueryOptions", given.output_format, level + 1) or settings.output_schema
	settings.thinking_config = given.thinking_config or settings.thinking_config
	settings.reasoning_effort = given.reasoning_effort or settings.reasoning_effort
	settings.request_timeout_ms = given.request_timeout_ms or settings.request_timeout_ms
	settings.prefix = request.prefix(settings)
	return settings
end

local function tool_names(tools)
	local names = {}
	for index, definition in ipairs(tools.list) do
		names[index] = definition.name
	end
	return names
end

-- An iterator that was dropped in the middle counts as running until it is collected.
local function is_running(state)
	if state.running then
		collectgarbage()
	end
	return state.running ~= nil
end

--- What to wait for until a session has no query running.
---@param session lattice.agent
---@return table? waitable for one waiter; nil when the session is free
function agent.until_free(session)
	local state = state_of[session]
	if not is_running(state) then
		return nil
	elseif not state.freed or state.freed.done then
		state.freed = { done = false }
	end
	return state.freed
end

local function refuse_second_query(state)
	if is_running(state) then
		local text = "this agent is running a query already: wait for its result, interrupt it, or use another session"
		error(errors.new("ConcurrentQueryError", text), 0)
	end
end

local function span_of(self, state, tracer)
	if not tracer then
		return nil
	end
	local scope = task.scope()
	local about = { session_id = state.session_id, agent = self.name }
	return trace.span(tracer, about, state.api and state.api.secrets or {}, scope and scope.span)
end

local function start(self, prompt, query_options, level)
	local state = state_of[self]
	if not state then
		error("expected an agent as self: call it as agent:query(…)", level + 1)
	end
	local given = options.check("QueryOptions", QUERY_OPTIONS, query_options, level + 1)
	if state.closed then
		error("this agent is closed", level + 1)
	end
	local prompt_json = blocks_json(prompt, level + 1)
	local granted = given.permissions and given.permissions.workspace_grants
	local grants = workspace.grants("QueryOptions", granted, level + 1)
	local settings = query_settings(state, given, level + 1)
	refuse_second_query(state)
	local running = query.new({
		agent = self,
		session_id = state.session_id,
		history = state.history,
		tools = state.tools,
		concurrency = state.concurrency,
		settings = settings,
		api = state.api,
		model_client = state.model_client,
		policy = state.policy,
		permission = state.permission,
		hooks = state.hooks,
		after_batch = state.after_batch,
		log = state.log,
		max_turns = given.max_turns or state.max_turns,
		context = given.context,
		workspace = workspace.view(state.workspace, grants),
		span = span_of(self, state, given.tracer or state.tracer),
		stream = given.stream or false,
		prompt_json = prompt_json,
		agent_info = {
			type = "system",
			subtype = "init",
			session_id = state.session_id,
			agent = state.name,
			model = settings.model,
			tools = tool_names(state.tools),
		},
		on_release = function()
			state.running = nil
			if state.freed then
				task.fire(state.freed)
			end
		end,
	}, given.signal)
	state.running = setmetatable({ query = running }, { __mode = "v" })
	return running
end

--- Runs a query and hands over its messages as they come: `for message in agent:query "…" do`.
---
--- Leaving the loop early ends the query as interrupted and leaves a valid history.
---@param prompt string|table[] text, or content blocks
---@param query_options? table QueryOptions
---@return lattice.query iterator
---@return nil
---@return nil
---@return lattice.query closer for the generic for
function methods:query(prompt, query_options)
	local running = start(self, prompt, query_options, 2)
	return running, nil, nil, running
end

--- Runs a query to its end. Run-time failures are results (`is_error`, `subtype`, `error`), not raises.
---@param prompt string|table[] text, or content blocks
---@param query_options? table QueryOptions
---@return table result the result message
function methods:prompt(prompt, query_options)
	local running <close> = start(self, prompt, query_options, 2)
	running.discard = true
	local result
	for message in running do
		result = message
	end
	return result
end

--- Ends the running query, if there is one, as `interrupted`. The history stays usable.
function methods:interrupt()
	local state = state_of[self]
	if not state then
		error("expected an agent as self: call it as agent:interrupt()", 2)
	end
	local running = state.running
	local own = running and running.query
	if own then
		own:interrupt()
	end
end

--- Saves the session: its id, name and history; options (tools, keys, …) are not saved.
---@param path? string a file, written whole or not at all; without one the result is a table with a JSON form
---@return table|boolean|nil saved the table, or true when the file is written; nil when it can't be
---@return string? problem
function methods:save(path)
	if path == nil then
		return saved_session.pack(state_of[self])
	end
	options.argument("agent:save: path", options.text, path)
	return saved_session.write(state_of[self], path)
end

--- Ends the session: interrupts what runs, and removes its folder unless it is kept. A to-be-closed variable does the
--- same at the end of its block. Twice is fine.
function methods:close()
	local state = state_of[self]
	self:interrupt()
	state.closed = true
	if state.workspace then
		workspace.close(state.workspace)
	end
end

agent_class.__close = methods.close

return agent
