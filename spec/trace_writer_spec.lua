local core = require "lattice.core"

local folder

local function read(name)
	local file = io.open(folder .. "/" .. name)
	if not file then return nil end
	local text = file:read "a"
	file:close()
	return text
end

local function new_writer(options)
	options.path = options.path or folder .. "/trace"
	return core.trace_writer(options)
end

-- Without the libraries of a sanitizer that this process may run under.
local function run(...)
	local op = core.process_start { argv = { ... }, env = { LD_PRELOAD = false } }
	while not op:ready() do core.turn(nil, {}) end
	return assert(op:result()).stdout
end

-- Runs a script in a process of its own; its arguments are strings.
local function run_script(script, ...)
	local op = core.process_start { argv = { "lua5.4", "-e", script, ... } }
	while not op:ready() do core.turn(nil, {}) end
	return assert(op:result())
end

describe("a trace writer", function()
	before_each(function()
		folder = os.tmpname()
		os.remove(folder)
		run("mkdir", folder)
	end)

	after_each(function()
		run("rm", "-r", folder)
	end)

	it("appends whole lines in order, and counts them", function()
		local w = new_writer {}
		local expected = {}
		for i = 1, 5000 do
			expected[i] = ('{"n":%d}\n'):format(i)
			assert.is_true(w:write(expected[i]:sub(1, -2)))
		end
		w:close()
		assert.are.equal(table.concat(expected), read "trace")
		assert.are.same({ written = 5000, dropped = 0 }, w:status())
	end)

	it("appends to what is there, after ending a line that was cut", function()
		local file = assert(io.open(folder .. "/trace", "w"))
		file:write "whole\ncut in the mid"
		file:close()
		local w = new_writer {}
		w:write "next"
		w:close()
		assert.are.equal("whole\ncut in the mid\nnext\n", read "trace")
	end)

	it("has written everything when flush returns true", function()
		local w <close> = new_writer {}
		for i = 1, 100 do w:write("line " .. i) end
		assert.is_true(w:flush(60000))
		assert.are.equal(100, w:status().written)
		assert.matches("line 100\n$", read "trace")
		assert.is_true(w:flush(0))
	end)

	it("rotates by size at line ends, and keeps as many files as it is told", function()
		local w = new_writer { max_bytes = 100, keep = 2 }
		for i = 1, 30 do
			w:write(("line %02d%s"):format(i, ("."):rep(13))) -- 21 bytes with the newline: four a file
			w:flush(60000)
		end
		w:close()
		assert.are.equal(42, #read "trace")
		assert.are.equal(84, #read "trace.1")
		assert.are.equal(84, #read "trace.2")
		assert.is_nil(read "trace.3")
		local all = read "trace.2" .. read "trace.1" .. read "trace"
		local n = 20
		for number in all:gmatch "line (%d+)" do
			n = n + 1
			assert.are.equal(n, tonumber(number))
		end
		assert.are.equal(30, n)
	end)

	it("rotates within a batch too, and gives a line longer than a file one of its own", function()
		local w = new_writer { max_bytes = 50, keep = 100 }
		w:write "short"
		w:write(("x"):rep(200))
		w:write "after"
		w:close()
		assert.are.same({ "short\n", ("x"):rep(200) .. "\n", "after\n" }, { read "trace.2", read "trace.1", read "trace" })
	end)

	it("with keep = 0 lets go of what is rotated", function()
		local w = new_writer { max_bytes = 10, keep = 0 }
		for i = 1, 9 do w:write("line " .. i) end
		w:close()
		assert.are.equal("line 9\n", read "trace")
		assert.is_nil(read "trace.1")
	end)

	it("drops lines when its queue is full, counts them, and never waits", function()
		-- nobody reads this pipe yet, so that the writer thread is stuck in opening it
		local pipe = folder .. "/pipe"
		run("mkfifo", pipe)
		local w = new_writer { path = pipe, max_queue_bytes = 1000 }
		local accepted, refused = 0, 0
		for _ = 1, 1000 do
			if w:write(("x"):rep(99)) then accepted = accepted + 1 else refused = refused + 1 end
		end
		assert.is_true(accepted >= 10 and accepted <= 20)
		assert.are.equal(1000, accepted + refused)
		assert.are.equal(refused, w:status().dropped)
		assert.is_false(w:flush(1))
		local reader = core.process_start { argv = { "cat", pipe }, env = { LD_PRELOAD = false } }
		w:close()
		while not reader:ready() do core.turn(nil, {}) end
		assert.are.equal(accepted * 100, #reader:result().stdout)
		assert.are.same({ written = accepted, dropped = refused }, w:status())
	end)

	it("survives a full disk: the error is remembered once, the lines are counted as dropped", function()
		local w = new_writer { path = "/dev/full" }
		for i = 1, 10 do
			assert.is_true(w:write("line " .. i))
			w:flush(60000)
		end
		assert.are.same({ written = 0, dropped = 10, error = "can't write /dev/full: No space left on device" }, w:status())
		w:close()
	end)

	it("survives a path that can't be opened, and tries again", function()
		local w = new_writer { path = folder .. "/later/trace" }
		assert.is_true(w:write "lost")
		w:flush(60000)
		assert.are.equal(1, w:status().dropped)
		run("mkdir", folder .. "/later")
		w:write "found"
		w:close()
		assert.are.equal("found\n", read "later/trace")
		local status = w:status()
		assert.are.same({ 1, 1 }, { status.written, status.dropped })
		assert.matches("No such file or directory", status.error)
	end)

	it("drops what comes after close", function()
		local w = new_writer {}
		w:close()
		w:close()
		assert.is_false(w:write "late")
		assert.are.same({ written = 0, dropped = 1 }, w:status())
		assert.is_nil(read "trace")
	end)

	it("writes everything that is queued before the process ends, however it ends", function()
		local endings = { "", "os.exit(0)", "os.exit(1, true)", "error 'oh no'", "w = nil collectgarbage()" }
		for i, ending in ipairs(endings) do
			run_script(([[
				local core = require "lattice.core"
				w = core.trace_writer { path = %q }
				for i = 1, 20000 do w:write("line " .. i) end
				%s]]):format(folder .. "/ended" .. i, ending))
			local _, lines = read("ended" .. i):gsub("\n", "")
			assert.are.equal(20000, lines, ending)
		end
	end)

	it("makes a file that others can't read", function()
		local w = new_writer {}
		w:write "private"
		w:close()
		assert.are.equal("600\n", run("stat", "-c", "%a", folder .. "/trace"))
	end)

	it("says what is wrong with a misuse", function()
		assert.error_matches(function() core.trace_writer {} end, "path: expected the name of a file")
		assert.error_matches(function() core.trace_writer { path = "a\0b" } end, "path: expected the name of a file")
		assert.error_matches(function() new_writer { keep = -1 } end, "keep: expected an integer from 0 to 1000")
		assert.error_matches(function() new_writer { max_bytes = 0 } end, "max_bytes")
		assert.error_matches(function() new_writer({}):write {} end, "string expected")
	end)
end)
