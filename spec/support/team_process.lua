-- Works as ann and bob on a SQLite mailbox until a number of work items is done: lua5.4 team_process.lua PATH COUNT

local lattice = require "lattice"

local function worker(name)
	return lattice.define_agent { model_client = { create = function(request)
		local text = request.messages[1].content[1].text
		return { content = { { type = "text", text = ("elsewhere %s did %s"):format(name, text) } } }
	end } }
end

local team = lattice.create_team {
	mailbox = assert(lattice.create_sqlite_mailbox { path = arg[1] }),
	lead = { model_client = { create = function() end } },
	members = {
		lattice.team_member { name = "ann", agent = worker "ann" },
		lattice.team_member { name = "bob", agent = worker "bob" },
	},
}
local completed = 0
while completed < tonumber(arg[2]) do
	assert(team.mailbox:wait { "ann", "bob" })
	completed = completed + team:drain().completed
end
print(completed .. " completed")
