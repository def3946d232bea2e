-- Cold start to one reply: lua5.4 cold.lua BASE_URL
local lattice = require "lattice"
local agent = lattice.create_bare_agent { api_key = "bench", base_url = arg[1], model = "bench-model" }
local result = agent:prompt "Read the file line by line."
assert(result.subtype == "success", result.error and tostring(result.error.message))
