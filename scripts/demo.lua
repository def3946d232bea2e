-- The demo of `make demo`: an agent with two tools looks around in this repository.
-- ANTHROPIC_MODEL picks another model.

local lattice = require "lattice"
local s = lattice.schema

local function lines_of(command)
	local lines = {}
	local pipe <close> = assert(io.popen(command))
	for line in pipe:lines() do
		lines[#lines + 1] = line
	end
	return lines
end

local list_files = lattice.tool(
	"list_files",
	"Lists the files of a folder of this repository, one path a line",
	s.object {
		folder = s.string({ pattern = "^[a-z_]+(/[a-z_]+)*$" }):describe "such as engine/json",
	},
	function(input)
		local files = lines_of("find " .. input.folder .. " -maxdepth 1 -type f 2>/dev/null | LC_ALL=C sort")
		return #files > 0 and table.concat(files, "\n") or { content = "no such folder", is_error = true }
	end
)

local count_lines = lattice.tool(
	"count_lines",
	"Counts the lines of one file of this repository",
	s.object { path = s.string { min_length = 1 } },
	function(input)
		if input.path:find("..", 1, true) or input.path:sub(1, 1) == "/" then
			error("only paths inside this repository", 0)
		end
		local count = 0
		for _ in io.lines(input.path) do
			count = count + 1
		end
		return tostring(count)
	end
)

local agent = lattice.create_bare_agent {
	model = os.getenv "ANTHROPIC_MODEL" or "claude-sonnet-4-5",
	max_tokens = 1024,
	system_prompt = "You answer questions about a source tree with your tools. Call tools together where you can.",
	tools = { list_files, count_lines },
}

local function show(message)
	if message.type == "stream_event" then
		local event = message.event
		if event.type == "content_block_delta" and event.delta.type == "text_delta" then
			io.write(event.delta.text):flush()
		elseif event.type == "content_block_stop" then
			io.write "\n"
		end
	elseif message.type == "assistant" then
		for _, block in ipairs(message.message.content) do
			if block.type == "tool_use" then
				print(("  → %s %s"):format(block.name, lattice.json.encode(block.input)))
			end
		end
	elseif message.type == "user" then
		for _, block in ipairs(message.message.content) do
			local content = block.content
			local text = type(content) == "table" and content[1] and content[1].text or tostring(content)
			print("  ← " .. text:gsub("\n", " "))
		end
	elseif message.type == "result" then
		local usage = message.usage
		print(("\n%s after %d model requests, %d tokens in, %d out, %.0f ms"):format(
			message.subtype,
			message.num_turns,
			usage.input_tokens,
			usage.output_tokens,
			message.duration_ms
		))
		if message.is_error then
			print(message.error and message.error.message or message.result)
			os.exit(1, true)
		end
	end
end

local question = "Which C file in engine/json is the longest, and how many lines has it?"
print("> " .. question .. "\n")
for message in agent:query(question, { stream = true }) do
	show(message)
end
