-- The model server refuses what the real service refuses; each rule once broken, and its neighbours that are right.

local http = require "spec.support.raw_http"
local server = require "spec.support.server"

local json = server.json
local array, absent = json.array, http.absent

local CALL = { type = "tool_use", id = "t1", name = "add", input = {} }
local RESULT = { type = "tool_result", tool_use_id = "t1", content = "3" }
local SCHEMA = { type = "object", properties = {} }

local function user(...)
	local content = select("#", ...) == 1 and ... or nil
	return { role = "user", content = type(content) == "string" and content or array { ... } }
end

local function assistant(...)
	local content = select("#", ...) == 1 and ... or nil
	return { role = "assistant", content = type(content) == "string" and content or array { ... } }
end

local function messages(...)
	return { messages = array { ... } }
end

local function with(block, changes)
	local copy = {}
	for key, value in pairs(block) do
		copy[key] = value
	end
	for key, value in pairs(changes) do
		copy[key] = value ~= absent and value or nil
	end
	return copy
end

local function text_block(text)
	return { type = "text", text = text }
end

local function tool(changes)
	return with({ name = "add", description = "adds", input_schema = SCHEMA }, changes or {})
end

-- {what is wrong, request fields, part of the message}
local REFUSED = {
	{ "no model", { model = absent }, "model: Field required" },
	{ "an empty model", { model = "" }, "model: String should have at least 1 character" },
	{ "no max_tokens", { max_tokens = absent }, "max_tokens: Field required" },
	{ "max_tokens of zero", { max_tokens = 0 }, "max_tokens: Input should be greater than or equal to 1" },
	{ "max_tokens as a float", { max_tokens = 1.5 }, "max_tokens: Input should be a valid integer" },
	{ "no messages", { messages = absent }, "messages: Field required" },
	{ "messages as an object", { messages = {} }, "messages: Input should be a valid list" },
	{ "an empty list of messages", messages(), "messages: at least one message is required" },
	{ "stream as a string", { stream = "yes" }, "stream: Input should be a valid boolean" },
	{ "an unknown option", { max_token = 3 }, "max_token: Extra inputs are not permitted" },
	{ "a first message that isn't the user's", messages(assistant "hi"), 'first message must use the "user" role' },
	{ "a role that doesn't exist", messages({ role = "system", content = "x" }), 'Unexpected role "system"' },
	{ "two user messages in a row", messages(user "a", user "b"), 'multiple "user" roles in a row' },
	{ "two assistant messages in a row", messages(user "a", assistant "b", assistant "c"),
		'multiple "assistant" roles in a row' },
	{ "a key beside role and content", messages({ role = "user", content = "x", id = 1 }),
		"messages.0.id: Extra inputs are not permitted" },
	{ "an empty string as content", messages(user ""), "user messages must have non-empty content" },
	{ "only whitespace as content", messages(user " \n"), "must contain non-whitespace text" },
	{ "an empty list as content", messages({ role = "user", content = array() }), "must have non-empty content" },
	{ "an object as content", messages({ role = "user", content = {} }), "Input should be a valid string or list" },
	{ "an empty text block", messages(user(text_block "")), "text content blocks must be non-empty" },
	{ "an empty text block of the assistant", messages(user "a", assistant(text_block "", CALL), user(RESULT)),
		"text content blocks must be non-empty" },
	{ "a text block of whitespace", messages(user(text_block "  ")), "must contain non-whitespace text" },
	{ "a key that a block doesn't have", messages(user(with(text_block "a", { complete = true }))),
		"messages.0.content.0.complete: Extra inputs are not permitted" },
	{ "a block type that doesn't exist", messages(user { type = "novel" }), "Input tag 'novel' found using 'type'" },
	{ "a tool_use in a user message", messages(user(CALL)), "`tool_use` blocks can not be in user content" },
	{ "a tool_use without a result, at the end", messages(user "a", assistant(CALL)),
		"messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1" },
	{ "a tool_use without a result, in the middle", messages(user "a", assistant(CALL), user "b"),
		"without `tool_result` blocks immediately after: t1" },
	{ "one result missing of two", messages(user "a", assistant(CALL, with(CALL, { id = "t2" })), user(RESULT)),
		"immediately after: t2" },
	{ "a result that nobody asked for", messages(user "a", assistant "b", user(RESULT)),
		"unexpected `tool_use_id` found in `tool_result` blocks: t1" },
	{ "a result in the first message", messages(user(RESULT)), "unexpected `tool_use_id`" },
	{ "a result given twice", messages(user "a", assistant(CALL), user(RESULT, RESULT)),
		"each tool_use must have a single result" },
	{ "a result behind text", messages(user "a", assistant(CALL), user(text_block "b", RESULT)), "must come first" },
	{ "two calls with one id", messages(user "a", assistant(CALL, CALL), user(RESULT)), "`tool_use` ids must be unique" },
	{ "an id used again later", messages(user "a", assistant(CALL), user(RESULT), assistant(CALL), user(RESULT)),
		"`tool_use` ids must be unique" },
	{ "a call whose input is a list", messages(user "a", assistant(with(CALL, { input = array() })), user(RESULT)),
		"input: Input should be a valid dictionary" },
	{ "a call with a bad name", messages(user "a", assistant(with(CALL, { name = "a b" })), user(RESULT)),
		"name: String should match pattern" },
	{ "an error result without content", messages(user "a", assistant(CALL),
		user(with(RESULT, { content = absent, is_error = true }))), "content cannot be empty if `is_error` is true" },
	{ "is_error as a string", messages(user "a", assistant(CALL), user(with(RESULT, { is_error = "no" }))),
		"is_error: Input should be a valid boolean" },
	{ "an empty text block in a result", messages(user "a", assistant(CALL),
		user(with(RESULT, { content = array { text_block "" } }))), "text content blocks must be non-empty" },
	{ "an image without base64", messages(user { type = "image", source = { type = "base64", media_type = "image/png",
		data = "?" } }), "invalid base64 data" },
	{ "white space at the end of a last assistant message", messages(user "a", assistant "b "),
		"cannot end with trailing whitespace" },
	{ "an empty text block in the system prompt", { system = array { text_block "" } },
		"system: text content blocks must be non-empty" },
	{ "two tools of one name", { tools = array { tool(), tool() } }, "Tool names must be unique" },
	{ "a tool name with a space", { tools = array { tool { name = "a b" } } }, "tools.0.custom.name: String should" },
	{ "a tool name of 65 characters", { tools = array { tool { name = ("a"):rep(65) } } }, "name: String should match" },
	{ "a tool without a schema", { tools = array { tool { input_schema = absent } } },
		"tools.0.custom.input_schema: Field required" },
	{ "a schema that is a list", { tools = array { tool { input_schema = array() } } },
		"input_schema: Input should be a valid dictionary" },
	{ "a schema without a type", { tools = array { tool { input_schema = {} } } },
		"tools.0.custom.input_schema.type: Field required" },
	{ "a schema that isn't an object's", { tools = array { tool { input_schema = { type = "string" } } } },
		"input_schema.type: Input should be 'object'" },
	{ "a key that a tool doesn't have", { tools = array { tool { metadata = {} } } },
		"tools.0.custom.metadata: Extra inputs are not permitted" },
	{ "a tool choice without tools", { tool_choice = { type = "any" } }, "may only be specified while providing `tools`" },
	{ "a small thinking budget", { thinking = { type = "enabled", budget_tokens = 5 } },
		"budget_tokens: Input should be greater than or equal to 1024" },
	{ "max_tokens below the thinking budget", { thinking = { type = "enabled", budget_tokens = 2000 } },
		"`max_tokens` must be greater than `thinking.budget_tokens`" },
	{ "five cache points", messages(user(table.unpack((function()
		local blocks = {}
		for i = 1, 5 do
			blocks[i] = with(text_block "a", { cache_control = { type = "ephemeral" } })
		end
		return blocks
	end)()))), "A maximum of 4 blocks with cache_control may be provided. Found 5." },
}

describe("the strict model server", function()
	local s
	setup(function()
		s = server.start(function()
			return "fine"
		end)
	end)
	teardown(function()
		s:stop()
	end)

	for _, case in ipairs(REFUSED) do
		it("refuses " .. case[1], function()
			local reply = http.post(s, case[2])
			assert.equal(400, reply.status)
			assert.equal("invalid_request_error", reply.json.error.type)
			assert.is_truthy(reply.json.error.message:find(case[3], 1, true), reply.json.error.message)
			assert.matches("^req_", reply.json.request_id)
		end)
	end

	it("takes a conversation with parallel calls, images, system blocks and tools", function()
		local fields = messages(
			user(text_block "a", { type = "image", source = { type = "url", url = "https://elsewhere.test/a.png" } }),
			assistant(text_block "b", CALL, with(CALL, { id = "t2" })),
			user(RESULT, with(RESULT, { tool_use_id = "t2", is_error = true, content = array { text_block "no" } }),
				text_block "and now?"),
			assistant "fine ", user "go on")
		fields.system = array { with(text_block "be good", { cache_control = { type = "ephemeral" } }) }
		fields.tools = array { tool(), tool { name = "sub-2_X" } }
		fields.tool_choice = { type = "auto" }
		fields.max_tokens = 4000
		fields.thinking = { type = "enabled", budget_tokens = 1024 }
		local reply = http.post(s, fields)
		assert.equal(200, reply.status, reply.body)
	end)

	it("takes an empty result, and a result without content", function()
		assert.equal(200, http.post(s, messages(user "a", assistant(CALL), user(with(RESULT, { content = "" })))).status)
		assert.equal(200, http.post(s, messages(user "a", assistant(CALL), user(with(RESULT, { content = absent })))).status)
	end)

	it("refuses a request without a key, and takes a bearer token as one", function()
		local rest = "connection: close\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n"
		local reply = http.post(s, nil, rest)
		assert.equal(401, reply.status)
		assert.equal("authentication_error", reply.json.error.type)
		assert.equal(401, http.post(s, nil, rest .. "x-api-key: \r\n").status)
		assert.equal(200, http.post(s, nil, rest .. "authorization: Bearer token\r\n").status)
	end)

	it("refuses another key than the script's", function()
		local with_key <close> = server.start { replies = { "fine" }, api_key = "right" }
		assert.equal("invalid x-api-key", http.post(with_key).json.error.message)
		assert.equal(200, http.post(with_key, nil, (http.closing:gsub("test", "right"))).status)
	end)

	it("refuses a request without a version or with another content type", function()
		assert.equal(400, http.post(s, nil, (http.closing:gsub("anthropic%-version[^\n]*\n", ""))).status)
		assert.equal(400, http.post(s, nil, (http.closing:gsub("application/json", "text/plain"))).status)
	end)

	it("refuses what is no JSON, and says where", function()
		for _, body in ipairs { "", "{", "{}x", '{"a":01}', '{"a":"\xFF"}', '{"a":"\\ud800"}', '{"a":NaN}', '{"a":"\n"}' } do
			local reply = http.post(s, body)
			assert.equal(400, reply.status, body)
			assert.matches("not valid JSON: ", reply.json.error.message)
		end
	end)

	it("takes everything when the script says so", function()
		local lenient <close> = server.start { replies = { "fine" }, strict = false }
		assert.equal(200, http.post(lenient, '{"messages":"nonsense"}', "connection: close\r\n").status)
	end)
end)

describe("thinking that comes back", function()
	local CALLING = { server.thinking "hm", server.redacted_thinking(), server.tool_use("add", {}, "t1") }

	-- A server that has sent thinking before a call, and what a client would send next.
	local function continued(blocks, change)
		local s = server.start { server.message(blocks), "fine" }
		local content = http.post(s).json.content
		change(content)
		local reply = http.post(s, messages(user "hi", { role = "assistant", content = content }, user(RESULT)))
		s:stop()
		return reply
	end

	it("is taken when it is what was sent", function()
		assert.equal(200, continued(CALLING, function() end).status)
	end)

	it("is refused with another text or another signature", function()
		for _, key in ipairs { "thinking", "signature" } do
			local reply = continued(CALLING, function(content)
				content[1][key] = content[1][key] .. "x"
			end)
			assert.matches("Invalid `signature` in `thinking` block", reply.json.error.message)
		end
	end)

	it("is refused with other redacted data", function()
		local reply = continued(CALLING, function(content)
			content[2].data = "red/x/0=="
		end)
		assert.matches("Invalid `data` in `redacted_thinking` block", reply.json.error.message)
	end)

	it("is missed when it was dropped before a call", function()
		local reply = continued(CALLING, function(content)
			table.remove(content, 1)
		end)
		assert.matches("cannot be modified", reply.json.error.message)
	end)

	it("may carry a signature of the script", function()
		local own = { server.thinking("hm", { signature = "mine" }), server.tool_use("add", {}, "t1") }
		assert.equal(200, continued(own, function() end).status)
		assert.equal(400, continued(own, function(content)
			content[1].signature = "other"
		end).status)
	end)

	it("is known by a server that didn't send it, when a server signed it", function()
		local first <close> = server.start { server.thinking "hm" }
		local second <close> = server.start { "fine" }
		local content = http.post(first).json.content
		assert.equal(200, http.post(second, messages(user "hi", { role = "assistant", content = content }, user "b")).status)
	end)

	it("goes for blocks that nobody knows too: taken where they were sent", function()
		local novel = { server.block { type = "novel", x = 1 }, server.tool_use("add", {}, "t1") }
		assert.equal(200, continued(novel, function() end).status)
		assert.equal(400, continued(novel, function(content)
			content[1].type = "other"
		end).status)
	end)
end)
