-- Ctrl-C, on real processes: a script under the plain launcher gets SIGINT while it waits.

local lattice = require "lattice"
local server = require "spec.support.server"

local PRELUDE = [[
local lattice = require "lattice"
local agent = lattice.create_bare_agent { api_key = "k-1234567", base_url = arg[1], model = "m", max_retries = 0 }
io.stdout:setvbuf "line"
]]

-- Runs a script, sends SIGINT when the server has seen its request, and returns what became of it.
local function interrupted(own, body)
	local path = os.tmpname()
	local file = assert(io.open(path, "w"))
	file:write(PRELUDE .. body)
	file:close()
	local results = lattice.gather {
		function()
			return lattice.process.run {
				command = ("%s %s %s & child=$!; echo $child > %s.pid; wait $child; echo status $?"):format(
					os.getenv "LUA" or "lua5.4",
					path,
					own.url,
					path
				),
				timeout_ms = 20000,
			}
		end,
		function()
			assert(own:wait { requests = 1 })
			return lattice.process.run { command = "kill -INT $(cat " .. path .. ".pid)" }
		end,
	}
	os.remove(path)
	os.remove(path .. ".pid")
	assert(results[1].ok and results[2].ok, tostring(results[1].error or results[2].error))
	return results[1].value.stdout, results[1].value.stderr
end

local function silent_server()
	return server.start { server.text("never whole", { stall_at = 50 }), "fine" }
end

describe("Ctrl-C", function()
	it("interrupts the query when the script asked for it, and the agent can go on", function()
		local own <close> = silent_server()
		local out, err = interrupted(own, [[
			local undo = lattice.interrupt_on_sigint(agent)
			print(agent:prompt "go".subtype)
			undo()
			print(agent:prompt "again".result)
		]])
		assert.equal("interrupted\nfine\nstatus 0\n", out, err)
	end)

	it("ends the program when it did not ask", function()
		local own <close> = silent_server()
		local out = interrupted(own, [[
			print(agent:prompt "go".subtype)
			print "not reached"
		]])
		assert.is_nil(out:find("not reached", 1, true))
		assert.is_nil(out:find("status 0", 1, true))
	end)

	it("can be asked for by one agent at a time, and given back", function()
		local agent = lattice.create_bare_agent { api_key = "k-1234567" }
		local undo = lattice.interrupt_on_sigint(agent)
		assert.error_matches(function()
			lattice.interrupt_on_sigint(agent)
		end, "already", 1, true)
		undo()
		undo = lattice.interrupt_on_sigint(agent)
		undo()
		assert.error_matches(function()
			lattice.interrupt_on_sigint {}
		end, "expected an agent", 1, true)
	end)
end)
