-- Messages and histories as the library sees them: what is kept, what is put right, what is refused.

local core = require "lattice.core"

local array = core.array_mt

local function message(content, head)
	local value = head or {}
	value.role = "assistant"
	value.content = type(content) == "table" and setmetatable(content, array) or content
	return assert(core.message_from_json(core.json_encode(value)))
end

local function text(words)
	return { type = "text", text = words }
end

local function call(id, input)
	return { type = "tool_use", id = id, name = "probe", input = input or { n = 1 } }
end

local function blocks(...)
	local parts = {}
	for i, block in ipairs { ... } do
		parts[i] = core.json_encode(block)
	end
	return table.concat(parts, ",")
end

local function result(id)
	return { type = "tool_result", tool_use_id = id, content = "ok" }
end

local function history(...)
	local h = core.history()
	for _, step in ipairs { ... } do
		if type(step) == "string" then
			h:add_user(step)
		else
			h:add_assistant(step)
		end
	end
	return h
end

describe("a message", function()
	it("shows its head, its content and its usage", function()
		local m = message({ text "Hi" }, {
			id = "msg_1", model = "m-1", stop_reason = "stop_sequence", stop_sequence = "END",
			usage = { input_tokens = 3, output_tokens = 1618065507111835497, service_tier = "standard" },
		})
		assert.same({
			role = "assistant", content = { text "Hi" }, model = "m-1", stop_reason = "stop_sequence", stop_sequence = "END",
			provider_response_id = "msg_1", usage = { input_tokens = 3, output_tokens = 1618065507111835497, service_tier = "standard" },
		}, m:table())
		assert.equal(array, getmetatable(m:table().content))
		assert.equal("stop_sequence", m:stop_reason())
		assert.equal("m-1", m:model())
		assert.equal(3, m:usage().input_tokens)
	end)

	it("has what wasn't given as nil, and an empty usage", function()
		local m = message "Hi"
		assert.same({ role = "assistant", content = { text "Hi" }, usage = {} }, m:table())
		assert.is_nil(m:stop_reason())
		assert.is_nil(m:model())
		assert.same({}, m:usage())
	end)

	it("keeps the bytes of its blocks", function()
		local content = '{"type":"thinking" ,"thinking":"\\u0041","signature":"a\\/b="},{"n":1.50e1,"type":"later"}'
		local m = assert(core.message_from_json('{"content":[ ' .. content:gsub("},{", "} , {") .. ' ]}'))
		assert.equal('{"role":"assistant","content":[' .. content .. "]}", m:json())
	end)

	it("lists the calls that are ours, in order", function()
		local m = message { call("a", { x = { 1 } }), { type = "server_tool_use", id = "s", name = "search", input = {} }, call "b" }
		local calls = m:calls()
		assert.equal(2, #calls)
		assert.same({ id = "a", name = "probe", input_json = '{"x":[1]}', complete = true }, calls[1])
		assert.equal("b", calls[2].id)
	end)

	it("gives calls with one id, or none, ids of their own", function()
		local m = message { call "a", call "a", call "", { type = "tool_use", name = "probe" } }
		local seen = {}
		for i, c in ipairs(m:calls()) do
			assert.is_nil(seen[c.id])
			seen[c.id] = true
			assert.equal(c.id, m:table().content[i].id)
		end
		assert.is_true(seen.a)
	end)

	it("drops blank text and keeps the order", function()
		local m = message { text "", call "a", text " \n\u{a0}", text "after" }
		assert.same({ "tool_use", "text" }, { m:table().content[1].type, m:table().content[2].type })
		assert.equal(2, #m:table().content)
	end)

	it("may be empty", function()
		local content = message({ text "" }):table().content
		assert.same({}, content)
		assert.equal(array, getmetatable(content))
	end)

	it("that isn't one is nil and a reason with its place", function()
		local function reason(json)
			local m, why = core.message_from_json(json)
			assert.is_nil(m)
			return why
		end
		assert.equal('role: expected "assistant"', reason '{"role":"user","content":"x"}')
		assert.equal("content: expected a string or an array of content blocks", reason "{}")
		assert.equal("content.1: a content block needs a type, a string", reason '{"content":[{"type":"x"},{"type":1}]}')
		assert.matches("closing quote", reason '{"content":"cut')
	end)
end)

describe("a history", function()
	it("joins what the user says in a row, so that roles alternate", function()
		local h = history(blocks(text "a"), blocks(text "b", text "c"), message "d", blocks(text "e"))
		assert.equal(3, h:count())
		assert.same({
			{ role = "user", content = { text "a", text "b", text "c" } },
			{ role = "assistant", content = { text "d" } },
			{ role = "user", content = { text "e" } },
		}, h:messages())
	end)

	it("gives its bytes and a copy of its messages", function()
		local h = history(blocks(text "a"), message "b")
		assert.same(core.json_decode("[" .. h:json() .. "]"), h:messages())
		h:messages()[1].content[1].text = "changed"
		assert.equal("a", h:messages()[1].content[1].text)
		assert.equal("", core.history():json())
		assert.same({}, core.history():messages())
	end)

	it("doesn't store a message without content", function()
		assert.equal(1, history(blocks(text "a"), message "", blocks(text "b")):count())
	end)

	it("wants the results of open calls, in order, before anything else", function()
		local h = history(blocks(text "a"), message { call "1", call "2" })
		assert.same({ { id = "1", name = "probe" }, { id = "2", name = "probe" } }, h:open_calls())
		assert.has_error(function() h:add_user(blocks(text "b")) end, "the call 1 needs its tool_result")
		assert.has_error(function() h:add_user(blocks(result "2", result "1")) end, "the next tool_result must be that of 1, not of 2")
		assert.has_error(function() h:add_assistant(message "c") end, "the calls of the last message need their results first")
		assert.equal(2, h:count())
		h:add_user(blocks(result "1", result "2", text "b"))
		assert.same({}, h:open_calls())
		assert.has_error(function() h:add_user(blocks(result "1")) end, "there is no open call for the tool_result of 1")
	end)

	it("closes open calls with an error that says why", function()
		local h = history(blocks(text "a"), message { call "1", call "2" })
		h:close_calls "stopped"
		local content = h:messages()[3].content
		assert.same({ type = "tool_result", tool_use_id = "1", content = "stopped", is_error = true }, content[1])
		assert.equal("2", content[2].tool_use_id)
		h:close_calls "again"
		assert.equal(3, h:count())
	end)

	it("goes back to an earlier message, whose calls are open again", function()
		local h = history(blocks(text "a"), message { call "1" }, blocks(result "1"), message "b")
		h:truncate(2)
		assert.equal(2, h:count())
		assert.equal("1", h:open_calls()[1].id)
		h:truncate(0)
		assert.equal("", h:json())
	end)

	it("begins with the user", function()
		assert.has_error(function() history(message "a") end, "the first message of a history must be the user's")
	end)

	it("refuses what is no content block, and stays as it was", function()
		local h = history(blocks(text "a"))
		for _, wrong in ipairs { "", "7", "{}", "],[", '{"type":"text"', blocks(text " ") } do
			assert.has_error(function() h:add_user(wrong) end)
		end
		assert.equal('{"role":"user","content":[' .. blocks(text "a") .. "]}", h:json())
	end)
end)

describe("a saved history", function()
	local function load(messages)
		return assert(core.history_from_json(core.json_encode(setmetatable(messages, array)))):messages()
	end
	local function user(...)
		return { role = "user", content = setmetatable({ ... }, array) }
	end
	local function assistant(...)
		return { role = "assistant", content = setmetatable({ ... }, array) }
	end
	local function types(content)
		local list = {}
		for i, block in ipairs(content) do
			list[i] = block.type .. ":" .. (block.tool_use_id or block.id or block.text)
		end
		return table.concat(list, " ")
	end

	it("that is good comes back as it is", function()
		local saved = { user(text "q"), assistant(text "a", call "1"), user(result "1", text "r"), assistant(text "b") }
		assert.same(core.json_decode(core.json_encode(saved)), load(saved))
	end)

	it("gets a result for each call that has none, in the next message, in order", function()
		local saved = load { user(text "q"), assistant(call "1", call "2", call "3"), user(text "go on", result "2") }
		assert.equal("tool_result:1 tool_result:2 tool_result:3 text:go on", types(saved[3].content))
		assert.is_true(saved[3].content[1].is_error)
		assert.equal("ok", saved[3].content[2].content)
	end)

	it("that ends with a call gets its result behind it", function()
		local saved = load { user(text "q"), assistant(call "1") }
		assert.equal(3, #saved)
		assert.equal("tool_result:1", types(saved[3].content))
	end)

	it("loses results without a call", function()
		local saved = load { user(result "0", text "q"), assistant(text "a"), user(result "9"), assistant(text "b") }
		assert.equal(2, #saved)
		assert.equal("text:q", types(saved[1].content))
		assert.equal("text:a text:b", types(saved[2].content))
	end)

	it("finds results and calls that were saved one by one", function()
		local saved = load {
			user(text "q"), assistant(call "1"), assistant(call "2"), user(result "2"), user(result "1"), user(text "r"),
		}
		assert.equal(3, #saved)
		assert.equal("tool_use:1 tool_use:2", types(saved[2].content))
		assert.equal("tool_result:1 tool_result:2 text:r", types(saved[3].content))
	end)

	it("with 311 calls without results is mended", function()
		local saved = { user(text "q") }
		for i = 1, 311 do
			table.insert(saved, assistant(call("toolu_" .. i)))
			table.insert(saved, user(text "again"))
		end
		local mended = load(saved)
		for i = 1, 311 do
			assert.equal("tool_result:toolu_" .. i .. " text:again", types(mended[2 * i + 1].content))
		end
	end)

	it("loses blank text, and takes content that is a string", function()
		local saved = load {
			{ role = "user", content = "q" }, assistant(text "", text "a"),
			user(text " "), { role = "assistant", content = "b" },
		}
		assert.equal(2, #saved)
		assert.equal("text:a text:b", types(saved[2].content))
	end)

	it("gives the second of two calls with one id another, and its result too", function()
		local saved = load { user(text "q"), assistant(call "1"), user(result "1"), assistant(call "1"), user(result "1") }
		assert.equal("tool_use:1", types(saved[2].content))
		local id = saved[4].content[1].id
		assert.not_equal("1", id)
		assert.equal("tool_result:" .. id, types(saved[5].content))
	end)

	it("that is none is nil and a reason with its place", function()
		local function reason(json)
			local h, why = core.history_from_json(json)
			assert.is_nil(h)
			return why
		end
		assert.equal("expected an array of messages", reason "{}")
		assert.equal('1.role: expected "user" or "assistant"', reason '[{"role":"user","content":"q"},{"role":"tool","content":"x"}]')
		assert.equal("0.content.0: a content block must be an object with a type", reason '[{"role":"user","content":[{}]}]')
	end)
end)
