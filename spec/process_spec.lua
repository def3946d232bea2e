local core = require "lattice.core"

local SELF = assert(io.open "/proc/self/stat"):read "n"

local function finish(op)
	local ids = {}
	while not op:ready() do
		core.turn(nil, ids)
	end
	return op:result()
end

-- Without the libraries of a sanitizer that this process may run under: they don't suit every program.
local function start(options)
	if type(options) == "string" then options = { command = options } end
	options.env = options.env or {}
	if type(options.env) == "table" then options.env.LD_PRELOAD = options.env.LD_PRELOAD or false end
	return core.process_start(options)
end

local function run(options)
	return finish(start(options))
end

local function descriptors()
	local _, n = run("ls /proc/" .. SELF .. "/fd").stdout:gsub("\n", "")
	return n
end

-- How many children this process has, zombies too.
local function children()
	local list <close> = assert(io.open("/proc/" .. SELF .. "/task/" .. SELF .. "/children"))
	local _, n = list:read("a"):gsub("%d+", "")
	return n
end

local function is_alive(pid)
	local stat = io.open("/proc/" .. pid .. "/stat")
	if not stat then return false end
	local state = stat:read("a"):match "%) (%a)"
	stat:close()
	return state ~= nil and state ~= "Z"
end

local function group_is_alive(group)
	for pid in run("pgrep -g " .. group).stdout:gmatch "%d+" do
		if is_alive(pid) then return true end
	end
	return false
end

-- Turns the loop until `condition` holds: for what another process does in its own time.
local function turn_until(condition)
	local ids, last = {}, core.now_ms() + 20000
	while not condition() do
		assert(core.now_ms() < last, "it doesn't happen")
		local tick <close> = core.timer(1)
		while not tick:ready() do core.turn(nil, ids) end
	end
end

describe("a process", function()
	it("gives its exit status and both of its outputs", function()
		local r = run "echo out; echo err >&2; exit 3"
		assert.are.same({ status = 3, stdout = "out\n", stderr = "err\n", truncated = false, timed_out = false }, r)
	end)

	it("takes argv without a shell in between", function()
		local r = run { argv = { "printf", "%s|", "a b", "$HOME", "", "*" } }
		assert.are.equal("a b|$HOME||*|", r.stdout)
	end)

	it("says which signal ended it", function()
		local r = run "kill -9 $$"
		assert.are.equal(9, r.signal)
		assert.is_nil(r.status)
	end)

	it("can merge both outputs in the order of writing", function()
		local r = run { command = "echo 1; echo 2 >&2; echo 3", merge_stderr = true }
		assert.are.same({ "1\n2\n3\n", "" }, { r.stdout, r.stderr })
	end)

	it("reads its input while it writes, without a deadlock", function()
		local input = ("0123456789abcdef"):rep(65536)
		local r = run { argv = { "cat" }, stdin = input, max_output = #input }
		assert.is_true(r.stdout == input)
		assert.is_false(r.truncated)
	end)

	it("survives a child that doesn't read its input", function()
		local r = run { command = "exec <&-; echo fine", stdin = ("x"):rep(1 << 20) }
		assert.are.equal("fine\n", r.stdout)
	end)

	it("has an empty input unless it is given one", function()
		assert.are.same({ "", 0 }, { run("cat").stdout, run("cat").status })
	end)

	it("is binary-safe", function()
		local bytes = {}
		for i = 0, 255 do bytes[i + 1] = string.char(i) end
		local all = table.concat(bytes)
		assert.are.equal(all, run { argv = { "cat" }, stdin = all }.stdout)
	end)

	it("keeps head and tail of an output without end, in bounded memory", function()
		collectgarbage()
		local r = run { command = "echo first; yes middle | head -c 200000000; echo; echo last", max_output = 1000 }
		assert.is_true(r.truncated)
		assert.are.equal(0, r.status)
		assert.matches("^first\nmiddle\n", r.stdout)
		assert.matches("%[%.%.%. %d+ bytes left out %.%.%.%]", r.stdout)
		assert.matches("\nlast\n$", r.stdout)
		assert.is_true(#r.stdout < 1100)
		local left_out = tonumber(r.stdout:match "(%d+) bytes left out")
		assert.are.equal(200000000 + 12, left_out + 1000)
	end)

	it("doesn't cut a character in two where it leaves bytes out", function()
		for max = 20, 27 do
			local r = run { argv = { "cat" }, stdin = ("€"):rep(100), max_output = max }
			assert.is_truthy(utf8.len(r.stdout))
			assert.is_true(r.truncated)
		end
	end)

	it("isn't held by a child in the background that keeps its pipes", function()
		local before = core.now_ms()
		local r = run "sleep 60 & echo $!"
		assert.is_true(core.now_ms() - before < 30000)
		local pid = tonumber(r.stdout)
		assert.is_true(is_alive(pid))
		run("kill " .. pid)
	end)

	it("isn't held by a background child that writes without end", function()
		local r = run "yes & echo $!; kill -STOP $!; kill -CONT $!"
		assert.are.equal(0, r.status)
		assert.is_true(r.stdout:match "^%d+" ~= nil or r.stdout:match "y\n" ~= nil)
	end)

	it("kills a whole pipeline when its time is over", function()
		local op = start { command = "echo begun; sleep 61 | sleep 62 | cat", timeout_ms = 50 }
		local group = op:pid()
		local r = finish(op)
		assert.is_true(r.timed_out)
		assert.are.equal(15, r.signal)
		assert.are.equal("begun\n", r.stdout)
		turn_until(function() return not group_is_alive(group) end)
	end)

	it("kills what ignores TERM after a grace, and lets the others end by themselves", function()
		local op = start {
			command = [[trap "" TERM; (trap "echo cleaned; exit" TERM; sleep 0.01; while :; do sleep 0.01; done) & wait; wait]],
			timeout_ms = 100,
		}
		local group = op:pid()
		local r = finish(op)
		assert.is_true(r.timed_out)
		assert.are.equal("cleaned\n", r.stdout)
		turn_until(function() return not group_is_alive(group) end)
	end)

	it("is ready at once when it is cancelled, and its group is killed", function()
		local others = children() -- of other specs, when they run in one process
		local op = start { command = "sleep 63 | sleep 64" }
		local group = op:pid()
		op:cancel()
		assert.is_true(op:ready())
		local nothing, err = op:result()
		assert.is_nil(nothing)
		assert.are.equal("abort", err.kind)
		turn_until(function() return not group_is_alive(group) end)
		assert.is_true(children() <= others)
	end)

	it("starts where and with what it is told", function()
		assert.are.equal("/\n", run { command = "pwd", cwd = "/" }.stdout)
		assert.are.equal("x=1\n", run { command = "env | grep ^x=", env = { x = "1" } }.stdout)
		assert.are.equal("", run { command = "echo -n $HOME", env = { HOME = false } }.stdout)
		assert.are.equal("A=b\n", run { argv = { "env" }, clear_env = true, env = { A = "b" } }.stdout)
	end)

	it("leaves everything that is open, blocked or ignored here behind", function()
		local file <close> = assert(io.open("/dev/null"))
		assert.is_truthy(file)
		assert.are.equal("0\n1\n2\n3\n", run("ls /proc/self/fd").stdout) -- 3: the folder that ls reads
		assert.matches("SigBlk:%s*0+\n", run("cat /proc/self/status").stdout)
		local ignored = tonumber(run("cat /proc/self/status").stdout:match "SigIgn:%s*(%x+)", 16)
		assert.are.equal(0, ignored & 0x7fffffff) -- 32 and 33 are the C library's own
	end)

	it("that can't start says why", function()
		local function why(options)
			local r, err = run(options)
			assert.is_nil(r)
			assert.are.equal("io", err.kind)
			return err.message
		end
		assert.are.equal('can\'t start "no-such-program": No such file or directory', why { argv = { "no-such-program" } })
		assert.are.equal('can\'t start in "/no/such/folder": No such file or directory',
			why { command = "true", cwd = "/no/such/folder" })
		assert.are.equal('can\'t start in "/dev/null": not a folder', why { command = "true", cwd = "/dev/null" })
		assert.matches("Argument list too long", why { argv = { "true", ("x"):rep(1 << 22) } })
	end)

	it("names what is wrong with a misuse", function()
		local function misuse(options, message)
			assert.error_matches(function() core.process_start(options) end, message, 1, true)
		end
		misuse({}, 'expected either argv = {program, …} or command = "…"')
		misuse({ command = "true", argv = { "true" } }, "expected either argv")
		misuse({ argv = {} }, "argv: expected 1 to 100000 strings, got 0")
		misuse({ argv = { "a", 1 } }, "argv[2]: expected a string, got number")
		misuse({ argv = { "a\0b" } }, "argv[1]: has a NUL byte")
		misuse({ command = "true", env = { ["a=b"] = "c" } }, 'env: "a=b" can\'t be a name')
		misuse({ command = "true", env = { a = 1 } }, "env.a: expected a string, or false to leave it out, got number")
		misuse({ command = "true", stdin = 1 }, "stdin: expected a string, got number")
		misuse({ command = "true", timeout_ms = -1 }, "timeout_ms")
		misuse({ command = "true", max_output = 0 }, "max_output")
		local op <close> = start { command = "sleep 65" }
		assert.error_matches(function() op:result() end, "still running")
	end)

	it("leaves no descriptor and no zombie behind, whatever its end", function()
		local others = children()
		local function all_ends()
			run "exit 1"
			run "sleep 66 & exit"
			run { argv = { "no-such-program" } }
			run { command = "sleep 67", timeout_ms = 5 }
			run { command = "cat", stdin = "x" }
			start({ command = "sleep 68" }):cancel()
			start { command = "sleep 69" } -- collected while it runs
			start { command = "sleep 70" }
			collectgarbage()
			collectgarbage()
			turn_until(function() return children() <= others end)
			run "pkill -x -f 'sleep 66'"
		end
		all_ends()
		local before = descriptors()
		for _ = 1, 5 do all_ends() end
		turn_until(function() -- a cancelled process is let go when it has ended, in its own time
			collectgarbage()
			return descriptors() <= before
		end)
	end)

	it("doesn't outlive a script that calls os.exit", function()
		local script = [[
			local op = require("lattice.core").process_start { command = "sleep 71", env = { LD_PRELOAD = false } }
			print(op:pid())
			os.exit(0)
		]]
		local pid = run { argv = { "lua5.4", "-e", script }, env = { LD_PRELOAD = os.getenv "LD_PRELOAD" } }.stdout
		turn_until(function() return not is_alive(assert(tonumber(pid))) end)
	end)

	it("runs beside others: eight waits end together", function()
		local ops = {}
		for i = 1, 8 do ops[i] = start { command = "echo " .. i .. "; read line", stdin = nil } end
		for i = 1, 8 do
			assert.are.equal(i .. "\n", finish(ops[i]).stdout)
		end
	end)
end)

describe("the environment of a process", function()
	-- A child of its own, since this process can't change its environment.
	local script = [[
		local core = require "lattice.core"
		local env = load("return " .. arg[1])()
		env.LD_PRELOAD = false
		local op = core.process_start { argv = { "env" }, env = env }
		while not op:ready() do core.turn(nil, {}) end
		io.write(op:result().stdout)
	]]
	local names = {
		ANTHROPIC_API_KEY = true, ANTHROPIC_AUTH_TOKEN = true, openai_api_key = true, GITHUB_TOKEN = true,
		AWS_SECRET_ACCESS_KEY = true, PGPASSWORD = false, DB_PASSWORD = true, TOKEN = true, MONKEY = false,
		TOKENIZER = false, API_KEY_FILE = false, AUTH_TOKENS = false,
	}

	local function child_env(argument)
		local env = { LD_PRELOAD = os.getenv "LD_PRELOAD" }
		for name in pairs(names) do env[name] = "hidden-" .. name end
		return run { argv = { "lua5.4", "-e", "arg = {[1]=" .. ("%q"):format(argument) .. "} " .. script }, env = env }.stdout
	end

	it("has no secret that this process has", function()
		local stdout = child_env "{}"
		for name, secret in pairs(names) do
			assert.are.equal(not secret, stdout:find(name .. "=hidden", 1, true) ~= nil, name)
		end
	end)

	it("has a secret that the script passes on by name", function()
		local stdout = child_env "{ GITHUB_TOKEN = os.getenv 'GITHUB_TOKEN' }"
		assert.is_truthy(stdout:find("GITHUB_TOKEN=hidden", 1, true))
		assert.is_nil(stdout:find("ANTHROPIC_API_KEY", 1, true))
	end)
end)
