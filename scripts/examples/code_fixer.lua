-- An agent that mends a project whose specs fail, in a copy of it:
--     lua5.4 scripts/examples/code_fixer.lua [PROJECT]            with a real model (ANTHROPIC_API_KEY)
--     scripts/with_model_server.sh --script scripts/examples/code_fixer_model.lua -- \
--         lua5.4 scripts/examples/code_fixer.lua                  without one
-- It prints each tool call and ends with what has changed; its exit status says whether the specs pass now.

local lattice = require "lattice"

local project = arg[1] or "scripts/examples/broken_project"

local function run(argv, cwd)
	local result, failure = lattice.process.run { argv = argv, cwd = cwd }
	assert(result, failure and failure.message)
	return result
end

local copy = run({ "mktemp", "-d" }).stdout:match "[^\n]+"
assert(run({ "cp", "-R", project .. "/.", copy }).status == 0)

local agent <close> = lattice.create_agent {
	model = os.getenv "ANTHROPIC_MODEL" or "claude-sonnet-4-5",
	system_prompt = "You mend Lua projects. Run the specs with `busted --lua=lua5.4` first, find the cause, change as "
		.. "little as you can, never the specs, and run them again. End with one sentence on the cause.",
	workspace = { path = copy },
	max_turns = 20,
	bash_network = false, -- nothing in this needs it
	hooks = {
		on_tool_result = function(event)
			local input = event.input
			print(("%-5s %s"):format(event.tool_name, input.command or input.file_path or input.pattern or input.path or ""))
		end,
	},
}

local result = agent:prompt "The specs of this project fail. Mend the code."
print(result.result or result.error and result.error.message)

io.write(run({ "diff", "-ru", project, copy }).stdout)
local passes = run({ "busted", "--lua=lua5.4" }, copy).status == 0
run { "rm", "-rf", copy }
os.exit(passes, true)
