-- Runs from any folder with an installed rock: lua my_agent.lua TREE
-- A model client stands in for the service, so that nothing but the installed files is needed.

local tree = assert(arg[1], "give the tree that the rock was installed into")
local lattice = require "lattice"

for _, module in ipairs { "lattice", "lattice.core" } do
	local path = package.searchpath(module, package.path) or package.searchpath(module, package.cpath)
	assert(path and path:sub(1, #tree) == tree, module .. " was loaded from " .. tostring(path))
end

local replies = {
	{ { type = "tool_use", id = "call_1", name = "add", input = { a = 2, b = 40 } } },
	{ { type = "text", text = "The sum is 42." } },
}
local turn = 0
local model_client = {
	create = function()
		turn = turn + 1
		return {
			role = "assistant",
			content = replies[turn],
			stop_reason = turn == 1 and "tool_use" or "end_turn",
		}
	end,
}

local sum
local add = lattice.tool("add", "Adds two integers", { a = "integer", b = "integer" }, function(input)
	sum = input.a + input.b
	return tostring(sum)
end)

local agent = lattice.create_bare_agent { model = "none", model_client = model_client, tools = { add } }
local result = agent:prompt "What is 2 + 40?"
assert(result.subtype == "success", result.error and tostring(result.error.message))
assert(sum == 42 and result.result == "The sum is 42.")
print "an agent ran from the installed rock"
