-- A conversation of N prompts: lua5.4 turns.lua BASE_URL N
local lattice = require "lattice"
local agent = lattice.create_bare_agent { api_key = "bench", base_url = arg[1], model = "bench-model" }
for _ = 1, tonumber(arg[2]) do
	local result = agent:prompt "Read the file line by line."
	assert(result.subtype == "success", result.error and tostring(result.error.message))
end
