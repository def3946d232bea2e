-- Many agents at once, each with three tool turns, streamed: lua5.4 agents.lua BASE_URL COUNT

local lattice = require "lattice"

local COUNT = tonumber(arg[2])

local calls = 0
local tool = lattice.tool("read_line", "Reads one line of a file", { path = "string", line = "integer" }, function()
	calls = calls + 1
	return "int main(void)"
end)
local spec = lattice.define_agent {
	api_key = "bench-key",
	base_url = arg[1],
	model = "bench-model",
	tools = { tool },
}
local jobs = {}
for i = 1, COUNT do
	jobs[i] = function()
		local result
		for message in spec:spawn():query("Read the file line by line.", { stream = true }) do
			result = message
		end
		assert(result.subtype == "success", result.error and result.error.message)
	end
end
for _, result in ipairs(lattice.gather(jobs)) do
	assert(result.ok, result.error)
end
assert(calls == 3 * COUNT, calls)
