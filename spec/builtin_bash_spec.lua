--- Bash: what a command's result says, what outlives it, and what it can't do.

local lattice = require "lattice"
local lfs = require "lfs" -- busted brings it
local session = require "spec.support.session"

local system = session.system

-- This process, its open descriptors, and its children.
local function own_pid()
	return tonumber(session.read("/proc/self/stat"):match "^%d+")
end

-- As links, so that a failure names them, without the folders of sessions, which go when those are collected. Asked
-- of this process itself: a child could see what popen still holds.
local function descriptors()
	local links = {}
	for name in lfs.dir "/proc/self/fd" do
		local link = lfs.symlinkattributes("/proc/self/fd/" .. name, "target")
		if link and not link:find "^/proc/%d+/fd" and not link:find "^/tmp/lattice%-" then
			links[#links + 1] = name .. " " .. link
		end
	end
	table.sort(links)
	return links
end

-- Children that are still there, without the shell that counts them: zombies too.
local function children()
	local found = {}
	for line in system("ps -o pid=,comm= --ppid " .. own_pid()):gmatch "[^\n]+" do
		local pid, name = line:match "(%d+)%s+(%S+)"
		if name ~= "sh" and name ~= "ps" then
			found[#found + 1] = pid .. " " .. name
		end
	end
	return found
end

local function is_alive(pid)
	local file = io.open("/proc/" .. pid .. "/stat")
	if not file then
		return false
	end
	local state = file:read("a"):match "^%d+ %b() (%S)"
	file:close()
	return state ~= "Z"
end

-- Until a condition holds, bounded by what the engine's own clock says.
local function eventually(condition)
	for _ = 1, 500 do
		if condition() then
			return true
		end
		lattice.sleep(10)
	end
	return false
end

local has_landlock = lattice.features().landlock

describe("Bash", function()
	local folder, own, before

	before_each(function()
		collectgarbage()
		folder = session.folder()
		own = session.open(folder)
		own:bash "true" -- the loop and the folder for temporary files are there now
		before = descriptors()
	end)

	after_each(function()
		eventually(function() -- an aborted call's shell is reaped as soon as the loop turns again
			return #descriptors() == #before and #children() == 0
		end)
		assert.are.same(before, descriptors())
		assert.are.same({}, children(), "children")
		own:close()
		session.remove(folder)
	end)

	describe("tells the model", function()
		it("output and errors in the order they came", function()
			local text, is_error = own:bash "echo one; echo two >&2; echo three"
			assert.are.equal("one\ntwo\nthree", text)
			assert.is_false(is_error)
		end)

		it("an exit status that isn't 0", function()
			local text, is_error, result = own:bash "echo so; exit 3"
			assert.are.equal("so\n[exit status 3]", text)
			assert.is_true(is_error)
			assert.are.equal(3, result.metadata.exit_status)
		end)

		it("the signal that ended the shell", function()
			local text, is_error = own:bash "kill -KILL $$"
			assert.are.equal("[ended by signal 9, SIGKILL]", text)
			assert.is_true(is_error)
		end)

		it("that there was no output", function()
			assert.are.equal("(no output)", (own:bash "true"))
		end)

		it("what is wrong with a command that isn't one", function()
			local text, is_error = own:bash "echo ((("
			assert.is_truthy(text:find "syntax error" or text:find "unexpected")
			assert.is_true(is_error)
			assert.is_truthy(own:bash("echo a\0b"):find "NUL byte")
		end)

		it("bytes that are no UTF-8, as something that is", function()
			local text = own:bash [[printf 'a\377b']]
			assert.are.equal("a\u{FFFD}b", text)
		end)
	end)

	it("gives commands that read an end of file", function()
		assert.are.equal("[exit status 1]", (own:bash "read line"))
		assert.are.equal("(no output)", (own:bash "cat"))
	end)

	it("keeps head and tail of a flood, in bounded memory", function()
		local function resident()
			return tonumber(session.read("/proc/self/status"):match "VmHWM:%s+(%d+)")
		end
		local high = resident()
		local text, _, result = own:bash "echo first; yes | head -c 200000000; echo last"
		assert.is_truthy(text:find "^first\n")
		assert.is_truthy(text:find "last$")
		assert.is_true(result.metadata.truncated)
		assert.is_true(#text < 40 * 1024)
		assert.is_true(resident() - high < 30 * 1024, "kB more at the peak: " .. resident() - high)
	end)

	describe("keeps the working folder", function()
		it("from call to call", function()
			system("mkdir -p '" .. folder .. "/a b/c'")
			assert.are.equal("[the working folder is now " .. folder .. "/a b/c]", (own:bash "cd 'a b'/c"))
			assert.are.equal(folder .. "/a b/c", (own:bash "pwd"))
			own:bash "cd .. && exit 1"
			assert.are.equal(folder .. "/a b", (own:bash "pwd"))
		end)

		it("but no variable, and not the folder of a subshell", function()
			system("mkdir '" .. folder .. "/sub'")
			own:bash "x=1; (cd sub)"
			assert.are.equal("[]" .. folder, (own:bash "echo -n \"[$x]\"; pwd"))
		end)

		it("and starts in the workspace's when it is gone", function()
			own:bash "mkdir gone; cd gone"
			system("rmdir '" .. folder .. "/gone'")
			assert.are.equal(folder .. "\n[the working folder was gone; this ran in the workspace's]", (own:bash "pwd"))
		end)

		it("whatever the command writes to the shell's descriptor for it", function()
			own:bash "printf '/etc\\n' >&3"
			assert.are.equal(folder, (own:bash "pwd"))
			own:bash "exec 3>&-"
			own:bash [[trap - EXIT; printf '\0nonsense' >&3]]
			assert.are.equal(folder, (own:bash "pwd"))
		end)
	end)

	describe("doesn't wait for what a command leaves in the background", function()
		-- Each prints the number of its child, which would hold the pipe for a minute.
		local cases = {
			plain = "sleep 60 & echo $!",
			["in a session of its own"] = "setsid sleep 60 & echo $!",
			["with its output elsewhere"] = "sleep 60 >/dev/null 2>&1 & echo $!",
			["without hangups"] = "nohup sleep 60 >/dev/null 2>&1 & echo $!",
			["from a subshell"] = "(sleep 60 & echo $!)",
			["disowned"] = "sleep 60 & disown; echo $!",
			["in a pipeline"] = "sleep 60 | cat & jobs -p",
		}
		for name, command in pairs(cases) do
			it(name, function()
				local text, is_error, result = own:bash(command, 50000)
				assert.is_false(is_error)
				assert.is_false(result.metadata.timed_out)
				local pid = tonumber(text:match "%d+")
				assert.is_true(is_alive(pid), "the child lives on")
				system("kill " .. pid)
			end)
		end
	end)

	describe("when the time is over", function()
		it("ends the whole group and says so", function()
			local text, is_error, result = own:bash("sleep 60 & echo $!; sleep 60 | sleep 60", 200)
			local pid = tonumber(text:match "^%d+")
			assert.is_truthy(text:find("timed out after 200 ms", 1, true))
			assert.is_true(is_error)
			assert.is_true(result.metadata.timed_out)
			assert.is_true(eventually(function()
				return not is_alive(pid)
			end))
		end)

		it("kills what doesn't want to end", function()
			local text = own:bash("trap '' TERM; echo $$; while :; do sleep 1; done", 200)
			assert.is_false(is_alive(tonumber(text:match "^%d+")))
			assert.is_truthy(text:find("timed out", 1, true))
		end)
	end)

	it("ends the group when the query is aborted", function()
		local controller = lattice.abort_controller()
		local pid_file = folder .. "/pid"
		local result
		lattice.gather {
			function()
				pcall(own.bash, own, "sleep 60 & echo $! >pid; wait", nil, { signal = controller.signal })
				result = own.result -- there may be no result of the tool
			end,
			function()
				assert.is_true(eventually(function()
					local file = io.open(pid_file)
					local text = file and file:read "a"
					if file then
						file:close()
					end
					return text and #text > 0
				end))
				controller:abort "enough"
			end,
		}
		assert.are.equal("error_abort", result.subtype)
		local pid = tonumber(session.read(pid_file))
		assert.is_true(eventually(function()
			return not is_alive(pid)
		end))
	end)

	describe("has an environment", function()
		it("without the agent's key, and without what looks like a secret", function()
			local script = [[
				local session = require "spec.support.session"
				local folder = session.folder()
				local own = session.open(folder, { api_key = "opaque-0123456789" })
				io.write((own:bash "env"))
				own:close()
				session.remove(folder)
			]]
			local path = folder .. "/script.lua"
			session.write(path, script)
			local secrets = {
				"ANTHROPIC_API_KEY=secret-1", "MY_TOKEN=secret-2", "DB_PASSWORD=secret-3", "deploy_key=secret-4",
				"HIDDEN=opaque-0123456789", "URL=https://user:secret-5@host/", "NOTE=sk-secret-6-abcdefghijkl",
				"X=x:ghp_secret7abcdefghijklmno", "SSH_AUTH_SOCK=/secret-8", "BASH_ENV=/secret-9",
			}
			local lua = os.getenv "LUA" or "lua5.4"
			local text = system("env '" .. table.concat(secrets, "' '") .. "' PLAIN=kept " .. lua .. " " .. path)
			assert.is_truthy(text:find("PLAIN=kept", 1, true))
			assert.is_nil(text:find "secret")
			assert.is_nil(text:find("opaque-0123456789", 1, true))
		end)

		it("with a temporary folder of its own, which goes with the session", function()
			local text = own:bash "echo x >\"$TMPDIR/x\" && mktemp && echo $TMPDIR"
			local temp = text:match "[^\n]+$"
			assert.are.equal("x\n", session.read(temp .. "/x"))
			own:close()
			assert.is_nil(io.open(temp .. "/x"))
			before = descriptors()
		end)
	end)

	it("refuses at once where confinement is required and the kernel can't", function()
		local core = require "lattice.core"
		local ws = core.workspace { cwd = folder, roots = { { path = folder, access = { "read", "write" } } } }
		local bash, problem = core.bash { workspace = ws, temp = folder, confinement = "required", landlock = 0 }
		assert.is_nil(bash)
		assert.is_truthy(problem:find("no Landlock", 1, true))
		local lacking = core.bash { workspace = ws, temp = folder, landlock = 0 }
		assert.is_truthy(lacking:lacks():find("no Landlock", 1, true))
		local old = core.bash { workspace = ws, temp = folder, confine_network = true, landlock = 3 }
		assert.is_truthy(not has_landlock or old:lacks():find("TCP", 1, true))
		assert.has_error(function()
			session.open(folder, { bash_confinement = "always" })
		end, nil)
		collectgarbage()
	end)
end)

local describe_confinement = has_landlock and describe or pending

describe_confinement("A command of Bash", function()
	local folder, outside, own

	before_each(function()
		folder, outside = session.folder(), session.folder()
		session.write(outside .. "/old", "old")
		session.write(folder .. "/in", "in")
		own = session.open(folder)
	end)

	after_each(function()
		own:close()
		session.remove(folder)
		session.remove(outside)
	end)

	local function outside_is_untouched()
		assert.are.equal("old\n", system("ls -A '" .. outside .. "'"))
		assert.are.equal("old", session.read(outside .. "/old"))
	end

	it("writes in the workspace as it likes", function()
		local text, is_error = own:bash [[
			set -e
			mkdir -p a/b; echo 1 >a/b/c; mv a/b/c a/d; ln a/d a/e; ln -s d a/f; mkfifo p; rm p
			: >a/d; rm -r a/b; cp -r a g; rm -rf a g; echo ok
		]]
		assert.are.equal("ok", text)
		assert.is_false(is_error)
	end)

	-- $O is the folder outside.
	local escapes = {
		redirection = "echo new >$O/new",
		["appending"] = "echo new >>$O/old",
		cp = "cp in $O/new",
		["cp over a file"] = "cp in $O/old",
		mv = "mv in $O/new",
		["mv of what is outside"] = "mv $O/old .",
		rm = "rm -f $O/old",
		["a link"] = "ln -s $O out; echo new >out/new",
		["a link to the file"] = "ln -s $O/old out; echo new >out",
		["a hard link"] = "ln $O/old hard && echo new >hard",
		["a new hard link outside"] = "ln in $O/new",
		truncate = "truncate -s 0 $O/old",
		mkdir = "mkdir $O/new",
		mkfifo = "mkfifo $O/new",
		["a folder above"] = "cd $O && echo new >new",
		["going up"] = "echo new >../$(basename $O)/new",
		["/proc/self/root"] = "echo new >/proc/self/root$O/new",
		["/proc/self/cwd"] = "cd $O; echo new >/proc/self/cwd/new",
		["dd"] = "dd if=in of=$O/old",
		["tar"] = "tar cf - in | tar xf - -C $O",
		["install"] = "install -m 755 in $O/new",
		["another interpreter"] = "lua5.4 -e 'local f = assert(io.open(\"'$O'/new\", \"w\")) f:write \"x\"'",
		["a mount"] = "mkdir m && mount --bind $O m && { echo new >m/new; umount m; }",
		["a namespace"] = "unshare -rm sh -c 'mkdir m; mount --bind '$O' m && echo new >m/new'",
		["what a process outside has open"] = "for fd in /proc/$PPID/fd/*; do "
			.. "[ \"$(readlink $fd)\" = $O/old ] && echo new >>$fd; done",
		["git"] = "git init -q $O/new",
	}
	for name, command in pairs(escapes) do
		it("doesn't get out by " .. name, function()
			local held <close> = assert(io.open(outside .. "/old", "a"))
			held:flush()
			own:bash("O=" .. outside .. "\n" .. command)
			outside_is_untouched()
		end)
	end

	it("makes no device nodes, not even in the workspace", function()
		local text = own:bash "mknod null c 1 3; mknod zero b 1 5; ls"
		assert.is_truthy(text:find "\nin$")
	end)

	it("doesn't get out by a compiled program", function()
		session.write(folder .. "/escape.c", [[
			#define _GNU_SOURCE
			#include <fcntl.h>
			#include <stdio.h>
			#include <sys/mman.h>
			#include <unistd.h>
			int main(int argc, char **argv) {
				char path[4096];
				snprintf(path, sizeof path, "%s/new", argv[argc - 1]);
				int fd = open(path, O_CREAT | O_WRONLY, 0644);
				int dir = open(argv[1], O_RDONLY | O_DIRECTORY);
				int at = openat(dir, "old", O_WRONLY | O_TRUNC);
				int temp = open(argv[1], O_TMPFILE | O_WRONLY, 0644);
				int moved = renameat2(dir, "old", AT_FDCWD, "here", 0);
				int swapped = renameat2(dir, "old", AT_FDCWD, "in", RENAME_EXCHANGE);
				int ro = openat(dir, "old", O_RDONLY);
				void *map = mmap(NULL, 3, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0);
				int cut = truncate(argv[1], 0) == 0 || ftruncate(ro, 0) == 0;
				printf("%d %d %d %d %d %d %d\n", fd < 0, at < 0, temp < 0, moved < 0, swapped < 0, map == MAP_FAILED, !cut);
				return 0;
			}
		]])
		local text = own:bash("gcc -w -o escape escape.c && ./escape " .. outside)
		assert.are.equal("1 1 1 1 1 1 1", text)
		outside_is_untouched()
	end)

	it("doesn't get out by a child that is there when the call is over", function()
		own:bash("O=" .. outside .. "\n" .. [[
			(while [ ! -e go ]; do sleep 0.01; done; echo new >$O/new; echo tried >tried) >/dev/null 2>&1 &
			setsid sh -c 'while [ ! -e go ]; do sleep 0.01; done; echo new >'$O'/new2; echo tried >tried2' >/dev/null 2>&1 &
		]])
		session.write(folder .. "/go", "")
		assert.is_true(eventually(function()
			return io.open(folder .. "/tried") and io.open(folder .. "/tried2")
		end))
		collectgarbage()
		outside_is_untouched()
	end)

	it("can't look into the engine's process", function()
		local text = own:bash [[cat /proc/$PPID/environ /proc/$PPID/maps /proc/$PPID/mem 2>&1 | head -c 1000]]
		assert.is_nil(text:find "PATH=")
		assert.is_truthy(text:find "Permission denied" or text:find "Operation not permitted")
	end)

	it("gains no privileges and dumps no core", function()
		local text = own:bash "grep NoNewPrivs /proc/self/status; ulimit -c; grep CapEff /proc/self/status"
		assert.is_truthy(text:find "NoNewPrivs:%s+1\n0\n")
		local capabilities = tonumber(text:match "CapEff:%s+(%x+)", 16)
		local SYS_PTRACE, SYS_ADMIN, MKNOD, PERFMON = 19, 21, 27, 38
		for _, bit in ipairs { SYS_PTRACE, SYS_ADMIN, MKNOD, PERFMON } do
			assert.are.equal(0, capabilities >> bit & 1)
		end
	end)

	it("may write where the query grants it, and no longer with the next", function()
		local grants = { permissions = { workspace_grants = { { root = outside, access = { "write" } } } } }
		own:bash("echo new >" .. outside .. "/old", nil, grants)
		assert.are.equal("new\n", session.read(outside .. "/old"))
		local _, is_error = own:bash("echo newer >" .. outside .. "/old")
		assert.is_true(is_error)
		assert.are.equal("new\n", session.read(outside .. "/old"))
	end)

	it("may read, but not write, where only reading is granted", function()
		local grants = { permissions = { workspace_grants = { { root = outside, access = { "read" } } } } }
		local text = own:bash("cat " .. outside .. "/old; echo new >" .. outside .. "/old", nil, grants)
		assert.is_truthy(text:find "^old")
		outside_is_untouched()
	end)

	it("may do anything where confinement is off", function()
		local free <close> = session.open(folder, { bash_confinement = "off" })
		local _, _, result = free:bash("echo new >" .. outside .. "/old")
		assert.are.equal("new\n", session.read(outside .. "/old"))
		assert.is_false(result.metadata.confined)
	end)

	it("reads only the workspace and the system where that is asked for", function()
		local closed <close> = session.open(folder, { bash_reads = "workspace" })
		local text, is_error = closed:bash("cat in; cat " .. outside .. "/old")
		assert.is_truthy(text:find "^in")
		assert.is_truthy(text:find "Permission denied")
		assert.is_true(is_error)
	end)

	if (has_landlock or 0) >= 4 then
		it("has no TCP where that is asked for", function()
			local silent <close> = session.open(folder, { bash_network = false })
			local text = silent:bash "exec 5<>/dev/tcp/127.0.0.1/9"
			assert.is_truthy(text:find "Permission denied")
			local open_text = own:bash "exec 5<>/dev/tcp/127.0.0.1/9"
			assert.is_truthy(open_text:find "refused")
		end)
	end
end)
