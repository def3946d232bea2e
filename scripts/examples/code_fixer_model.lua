-- A model's part in code_fixer.lua, for the model server: it goes by what its tools have told it so far, and it gives
-- up where that isn't what it knows.

local function last_result(messages)
	local content = messages[#messages].content
	local block = type(content) == "table" and content[#content] or {}
	local inner = block.content
	return type(inner) == "table" and inner[1].text or inner or ""
end

local RUN_SPECS = { command = "busted --lua=lua5.4", description = "Run the specs" }

local steps = {
	function()
		return tool_use("Bash", RUN_SPECS)
	end,
	function(seen)
		local spec, line = seen:match "(spec/[%w_]+%.lua):(%d+)"
		return message {
			tool_use("Grep", { pattern = "capacity", output_mode = "content", glob = "*.lua" }),
			tool_use("Read", { file_path = spec, offset = math.max(1, tonumber(line) - 5), limit = 10 }),
		}
	end,
	function()
		return tool_use("Read", { file_path = "queue.lua" })
	end,
	function(seen)
		local wrong = seen:match "if self%.count > self%.capacity then"
		local right = "if self.count >= self.capacity then"
		return tool_use("Edit", { file_path = "queue.lua", old_string = wrong, new_string = right })
	end,
	function()
		return tool_use("Bash", RUN_SPECS)
	end,
	function(seen)
		return seen:find "0 failures" and "A full queue took one item more: push compared with > where it needs >=."
			or "The specs still fail."
	end,
}

return function(request)
	local turn = (#request.body.messages + 1) // 2
	local ok, answer = pcall(steps[turn], last_result(request.body.messages))
	return ok and answer or "I can't make sense of what I see."
end
