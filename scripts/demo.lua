-- The demo of `make demo`: an agent with two tools. ANTHROPIC_MODEL picks another model.

local lattice = require "lattice"
local timeline = require "scripts.timeline"
local s = lattice.schema

local QUESTION = 'How many lines of code has the folder "engine/json", and what is 365 * 24 * (7 + 3)?'

-- Both tools only read: the engine may run calls of one reply at once.
local function reads_only()
	return true
end

local calculate = lattice.tool(
	"calculate",
	"Calculates an arithmetic expression",
	s.object {
		expression = s.string({ max_length = 200, pattern = "^[-+*/%^(). 0-9]+$" }):describe "such as 2 * (3 + 4)",
	},
	function(input)
		local formula = assert(load("return " .. input.expression, "=expression", "t", {}))
		return tostring(formula())
	end,
	{ is_concurrency_safe = reads_only }
)

local count_lines = lattice.tool(
	"count_lines",
	"Counts the lines of code of all files in a folder of this repository",
	s.object {
		folder = s.string({ pattern = "^[a-z_]+(/[a-z_]+)*$" }):describe "such as engine/base",
	},
	function(input)
		local command = ("find %s -type f -exec cat {} + | wc -l; find %s -type f | wc -l"):format(input.folder, input.folder)
		local found = assert(lattice.process.run { command = command })
		local lines, count = found.stdout:match "(%d+)%s+(%d+)"
		if count == "0" then
			error("there is no file in " .. input.folder, 0)
		end
		return ("%d lines in %d files"):format(lines, count)
	end,
	{ is_concurrency_safe = reads_only }
)

local trace_path = os.tmpname()
local tracer = lattice.create_jsonl_context_tracer { path = trace_path }

local agent = lattice.create_bare_agent {
	model = os.getenv "ANTHROPIC_MODEL" or "claude-sonnet-4-5",
	max_tokens = 1024,
	system_prompt = "You answer questions with your tools. Call independent tools together.",
	tools = { calculate, count_lines },
	tracer = tracer,
}

local function text_of(content)
	return type(content) == "string" and content or content[1] and content[1].text or ""
end

local show = {}

function show.stream_event(message)
	local event = message.event
	if event.type == "content_block_delta" and event.delta.type == "text_delta" then
		io.write(event.delta.text):flush()
	elseif event.type == "message_stop" then
		io.write "\n"
	end
end

function show.assistant(message)
	for _, block in ipairs(message.message.content) do
		if block.type == "tool_use" then
			print(("  → %s %s"):format(block.name, lattice.json.encode(block.input)))
		end
	end
end

function show.user(message)
	for _, block in ipairs(message.message.content) do
		print("  ← " .. text_of(block.content))
	end
	print()
end

function show.result(result)
	local usage = result.usage
	print(("\n%s: %d model requests, %d tokens in, %d out, %.0f ms"):format(
		result.subtype,
		result.num_turns,
		usage.input_tokens,
		usage.output_tokens,
		result.duration_ms
	))
	if result.is_error then
		print(result.error and result.error.message or result.result)
		os.exit(1, true)
	end
end

print("> " .. QUESTION .. "\n")
for message in agent:query(QUESTION, { stream = true }) do
	if show[message.type] then
		show[message.type](message)
	end
end

tracer:close()
print("\n" .. timeline.text(timeline.read(trace_path)))
os.remove(trace_path)
