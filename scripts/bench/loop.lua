-- 200 steps of a streamed tool loop: lua5.4 loop.lua BASE_URL
local lattice = require "lattice"
local calls = 0
local read_line = lattice.tool(
	"read_line",
	"Reads one line of a file",
	{ path = "string", line = "integer" },
	function(input)
		assert(input.path == "src/engine/file.c" and input.line == 17)
		calls = calls + 1
		return "int main(void)"
	end
)
local agent = lattice.create_bare_agent {
	api_key = "bench",
	base_url = arg[1],
	model = "bench-model",
	tools = { read_line },
	max_turns = 1000,
}
local result = agent:prompt("Read the file line by line.", { stream = true })
assert(result.subtype == "success", result.error and tostring(result.error.message))
assert(calls == 200)
