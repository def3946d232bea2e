local core = require "lattice.core"
local tools = require "spec.support.tools"

local sh, put, get = tools.sh, tools.put, tools.get

local folder, ws

local function call(name, input, options)
	return tools.call(ws, name, input, options)
end

local function succeed(name, input)
	local result = call(name, input)
	assert(not result.is_error, result.content)
	return result
end

local function refuse(name, input, text)
	local result = call(name, input)
	assert.is_true(result.is_error, "it did not fail")
	assert(result.content:find(text, 1, true), result.content)
	return result
end

local function at(name)
	return folder .. "/" .. name
end

before_each(function()
	folder = tools.folder()
	ws = tools.workspace(folder)
end)

after_each(tools.remove_folders)

describe("Read", function()
	it("numbers the lines like cat -n", function()
		put(at "f", "one\n\n  three")
		assert.are.equal("     1\tone\n     2\t\n     3\t  three", succeed("Read", { file_path = "f" }).content)
	end)

	it("shows a part by offset and limit, and says how to go on", function()
		put(at "f", "a\nb\nc\nd\n")
		local result = succeed("Read", { file_path = "f", offset = 2, limit = 2 })
		assert.are.equal("     2\tb\n     3\tc\n(the file goes on; read from offset 4 for more)", result.content)
		assert.is_true(result.metadata.truncated)
		assert.are.equal(2, result.metadata.lines)
		assert.is_false(succeed("Read", { file_path = "f", offset = 3, limit = 2 }).metadata.truncated)
	end)

	it("shows 2000 lines unless told otherwise", function()
		put(at "f", ("x\n"):rep(2001))
		local result = succeed("Read", { file_path = "f" })
		assert.are.equal(2000, result.metadata.lines)
		assert(result.content:find("offset 2001", 1, true))
		put(at "f", ("x\n"):rep(2000))
		assert.is_false(succeed("Read", { file_path = "f" }).metadata.truncated)
	end)

	it("shortens long lines by characters, and says so", function()
		put(at "f", ("é"):rep(2000) .. "\n" .. ("é"):rep(2001) .. "\nlast")
		local result = succeed("Read", { file_path = "f" })
		assert(result.content:find("\t" .. ("é"):rep(2000) .. "\n", 1, true))
		assert(result.content:find(("é"):rep(2000) .. "… (2 more bytes in this line)\n     3\tlast", 1, true))
		assert.is_true(result.metadata.truncated)
	end)

	it("ends a page that gets too large", function()
		put(at "f", (("x"):rep(1999) .. "\n"):rep(1000))
		local result = succeed("Read", { file_path = "f" })
		assert.is_true(#result.content < 300 * 1024 and result.metadata.truncated)
	end)

	it("says that a file is empty, and where the end is", function()
		put(at "f", "")
		assert.are.equal("(the file is empty)", succeed("Read", { file_path = "f" }).content)
		put(at "f", "a\nb")
		refuse("Read", { file_path = "f", offset = 3 }, "the file has 2 lines")
		put(at "f", "a\nb\n")
		refuse("Read", { file_path = "f", offset = 3 }, "the file has 2 lines")
	end)

	it("hides BOM and carriage returns", function()
		put(at "f", "\xef\xbb\xbfa\r\nb\r\n")
		assert.are.equal("     1\ta\n     2\tb", succeed("Read", { file_path = "f" }).content)
	end)

	it("finds lines across the borders of its buffer", function()
		local lines = {}
		for i = 1, 40000 do lines[i] = ("line %d %s"):format(i, ("x"):rep(i % 37)) end
		put(at "f", table.concat(lines, "\n"))
		for _, first in ipairs { 1, 9999, 17231, 39999, 40000 } do
			local result = succeed("Read", { file_path = "f", offset = first, limit = 1 })
			assert.are.equal(("%6d\t%s"):format(first, lines[first]), (result.content:match "[^\n]*"))
		end
	end)

	local PNG = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x20\8\6\0\0\0"
	local images = {
		["image/png"] = PNG,
		["image/gif"] = "GIF89a\x10\0\x20\0\0\0\0",
		["image/jpeg"] = "\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x11\8\0\x20\0\x10\3\0\0\0",
		["image/webp"] = "RIFF\x24\0\0\0WEBPVP8X\10\0\0\0\0\0\0\0\x0f\0\0\x1f\0\0",
	}
	for media_type, bytes in pairs(images) do
		it("shows " .. media_type .. " as an image block", function()
			put(at "f", bytes)
			local content = succeed("Read", { file_path = "f" }).content
			local encoded = sh("base64 -w0 '%s'", at "f")
			local source = { type = "base64", media_type = media_type, data = encoded }
			assert.are.same({ { type = "image", source = source } }, content)
		end)
	end

	it("refuses images that the API would refuse", function()
		put(at "f", PNG .. ("x"):rep(4 << 20))
		refuse("Read", { file_path = "f" }, "make it smaller")
		put(at "f", "GIF89a\x10\0\xff\xff\0\0\0")
		refuse("Read", { file_path = "f" }, "16 × 65535 pixels")
		put(at "f", "\x89PNG\r\n\x1a\n")
		refuse("Read", { file_path = "f" }, "is broken")
	end)

	it("shows PDF as a document block", function()
		put(at "f", "%PDF-1.4\n\0\1")
		local block = succeed("Read", { file_path = "f" }).content[1]
		assert.are.equal("document", block.type)
		assert.are.equal("application/pdf", block.source.media_type)
	end)

	it("refuses other binary files by saying what they are", function()
		put(at "f", "\x7fELF\2\1\1\0")
		refuse("Read", { file_path = "f" }, "an ELF program")
		put(at "f", "PK\3\4\0\0")
		refuse("Read", { file_path = "f" }, "a ZIP archive")
		put(at "f", "\xff\xfea\0b\0")
		refuse("Read", { file_path = "f" }, "UTF-16")
		put(at "f", "text\0text")
		refuse("Read", { file_path = "f" }, "binary data")
	end)

	it("says what is wrong with a path", function()
		refuse("Read", { file_path = "nope" }, "there is no such file")
		refuse("Read", { file_path = "." }, "it is a folder")
		refuse("Read", {}, "file_path: expected a path")
	end)

	it("reads the end of a huge file in little memory", function()
		if os.getenv "LD_PRELOAD" then return pending "NOT TESTED: a sanitizer takes memory of its own" end
		local size = math.floor((1 << 30) * math.min(1, tools.scale()))
		local head, tail = ("a line\n"):rep(2000), "\nlast but one\nlast\n"
		do
			local file <close> = assert(io.open(at "f", "wb"))
			file:write(head)
			file:seek("set", size)
			file:write(tail)
		end
		local script = [[
			local core = require "lattice.core"
			local tools = require "spec.support.tools"
			local function peak()
				return tonumber(tools.get "/proc/self/status":match "VmHWM:%s*(%d+)")
			end
			local before = peak()
			local result = tools.call(tools.workspace(arg[1]), "Read", { file_path = "f", offset = 2003 })
			print(peak() - before, result.content)
		]]
		put(at "script.lua", script)
		local out = tools.script(at "script.lua", folder)
		local kilobytes, content = out:match "^(%d+)\t(.*)"
		assert(kilobytes, out)
		assert.are.equal("  2003\tlast\n", content)
		assert.is_true(tonumber(kilobytes) < 20 * 1024, kilobytes .. " kB more")
	end)
end)

describe("Write", function()
	it("makes a file with its folders", function()
		local result = succeed("Write", { file_path = "a/b/c", content = "text\0\xff" })
		assert.are.equal("text\0\xff", get(at "a/b/c"))
		assert.is_true(result.metadata.created)
		assert.are.equal(6, result.metadata.bytes)
	end)

	it("replaces a file and keeps its mode", function()
		put(at "f", "old")
		sh("chmod 640 '%s'", at "f")
		assert.is_false(succeed("Write", { file_path = "f", content = "new" }).metadata.created)
		assert.are.equal("640\n", sh("stat -c %%a '%s'", at "f"))
		assert.are.equal("new", get(at "f"))
	end)

	it("gives new files the mode of the process", function()
		succeed("Write", { file_path = "f", content = "" })
		sh("touch '%s'", at "g")
		assert.are.equal(sh("stat -c %%a '%s'", at "g"), sh("stat -c %%a '%s'", at "f"))
	end)

	it("leaves no file beside it, whatever happens", function()
		succeed("Write", { file_path = "f", content = "1" })
		sh("mkdir '%s'", at "d")
		refuse("Write", { file_path = "d", content = "1" }, "it is a folder")
		refuse("Write", { file_path = "f/x", content = "1" }, "is a file, not a folder")
		assert.are.equal("d\nf\n", sh("ls -A '%s'", folder))
	end)

	it("removes what a killed process left, when a workspace is opened", function()
		sh("mkdir -p '%s'", at "a/b")
		put(at "a/b/.lattice-0123456789abcdef.tmp", "half")
		put(at "a/b/.lattice-notes.tmp", "somebody's")
		ws = tools.workspace(folder)
		assert.are.equal(".lattice-notes.tmp\n", sh("ls -A '%s'", at "a/b"))
	end)

	it("is refused when the file has changed since it was read", function()
		put(at "f", "old")
		succeed("Read", { file_path = "f" })
		put(at "f", "other")
		local result = refuse("Write", { file_path = "f", content = "new" }, "changed since it was read")
		assert.are.equal("changed_since_read", result.metadata.code)
		assert.are.equal("other", get(at "f"))
		succeed("Read", { file_path = "f" })
		succeed("Write", { file_path = "f", content = "new" })
		succeed("Write", { file_path = "f", content = "newer" })
	end)
end)

describe("Edit", function()
	local function edit(before, old, new, all)
		put(at "f", before)
		succeed("Read", { file_path = "f" })
		return call("Edit", { file_path = "f", old_string = old, new_string = new, replace_all = all })
	end

	it("replaces what is there once, and shows it", function()
		local result = edit("one\ntwo\nthree\n", "two", "2")
		assert.is_false(result.is_error)
		assert.are.equal("one\n2\nthree\n", get(at "f"))
		assert(result.content:find("     1\tone\n     2\t2\n     3\tthree", 1, true), result.content)
		assert.are.equal(1, result.metadata.replacements)
	end)

	it("says how often it is there when not once", function()
		local result = edit("ab ab ab", "ab", "x")
		assert.is_true(result.is_error)
		assert(result.content:find("3 times", 1, true), result.content)
		assert.are.equal("ab ab ab", get(at "f"))
	end)

	it("doesn't count for ever", function()
		local result = edit(("a"):rep(1 << 20), ("a"):rep(1 << 10), "x")
		assert(result.content:find("1000 times or more", 1, true), result.content)
		assert.are.equal(1 << 10, edit(("a"):rep(1 << 20), ("a"):rep(1 << 10), "x", true).metadata.replacements)
	end)

	it("replaces all of them with replace_all", function()
		assert.are.equal(3, edit("ab ab ab", "ab", "x", true).metadata.replacements)
		assert.are.equal("x x x", get(at "f"))
	end)

	it("keeps CRLF and BOM, and finds text given with other line ends", function()
		edit("\xef\xbb\xbfa\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n")
		assert.are.equal("\xef\xbb\xbfx\r\ny\r\nz\r\nc\r\n", get(at "f"))
		edit("a\nb\nc\n", "a\r\nb", "x\r\ny")
		assert.are.equal("x\ny\nc\n", get(at "f"))
		edit("a\r\nb\r\n", "b", "b1\nb2")
		assert.are.equal("a\r\nb1\r\nb2\r\n", get(at "f"))
	end)

	it("shows the nearest lines when it isn't there", function()
		local result = edit("function first()\n\treturn 1\nend\n", "function frist()\n\treturn 1", "x")
		assert(result.content:find("     1\tfunction first()\n     2\t\treturn 1", 1, true), result.content)
		result = edit("if x then\n\t\treturn 1\nend\n", "    return 1\n", "x")
		assert(result.content:find("differ from it in blanks", 1, true), result.content)
	end)

	it("is refused when the file has changed since it was read", function()
		put(at "f", "old")
		succeed("Read", { file_path = "f" })
		put(at "f", "old and new")
		refuse("Edit", { file_path = "f", old_string = "old", new_string = "x" }, "changed since it was read")
		succeed("Read", { file_path = "f" })
		succeed("Edit", { file_path = "f", old_string = "old", new_string = "x" })
		succeed("Edit", { file_path = "f", old_string = "x", new_string = "y" })
	end)

	it("refuses what makes no sense", function()
		put(at "f", "text")
		refuse("Edit", { file_path = "f", old_string = "", new_string = "x" }, "got an empty string")
		refuse("Edit", { file_path = "f", old_string = "t", new_string = "t" }, "nothing would change")
		refuse("Edit", { file_path = "nope", old_string = "t", new_string = "x" }, "there is no such file")
	end)

	-- A naive reference: line ends are made \n, and each piece of the text remembers how it was written.
	local function reference(text, old, new, all)
		local units, plain = {}, {}
		local i = 1
		while i <= #text do
			local unit = text:sub(i, i + 1) == "\r\n" and "\r\n" or text:sub(i, i)
			units[#units + 1] = unit
			plain[#plain + 1] = unit == "\r\n" and "\n" or unit
			i = i + #unit
		end
		plain = table.concat(plain)
		local plain_old = old:gsub("\r\n", "\n")
		local _, crlf = text:gsub("\r\n", "")
		local _, lf = text:gsub("\n", "")
		local mostly_crlf = crlf > lf - crlf
		local places, from = {}, 1
		while true do
			local first, last = plain:find(plain_old, from, true)
			if not first then break end
			places[#places + 1] = { first, last }
			from = all and last + 1 or first + 1
		end
		if #places == 0 or #places > 1 and not all then return nil, #places end
		local out, unit = {}, 1
		for _, place in ipairs(places) do
			out[#out + 1] = table.concat(units, "", unit, place[1] - 1)
			local style = mostly_crlf and "\r\n" or nil
			for k = place[1], place[2] do
				if units[k]:find "\n" then
					style = units[k] == "\r\n" and units[k] or nil
					break
				end
			end
			local put_in = new
			if style then
				put_in = new:gsub("\r\n", "\n"):gsub("\n", "\r\n")
			elseif old:find "\r\n" then
				put_in = new:gsub("\r\n", "\n")
			end
			out[#out + 1] = put_in
			unit = place[2] + 1
		end
		out[#out + 1] = table.concat(units, "", unit)
		return table.concat(out), #places
	end

	it("does what a naive reference does, on random texts", function()
		local seed = tonumber(os.getenv "SEED") or os.time()
		math.randomseed(seed)
		local pieces = { "a", "b", "\n", "\r\n", "a", "\r", "ab", "é" }
		local function random_text(longest)
			local t = {}
			for i = 1, math.random(0, longest) do t[i] = pieces[math.random(#pieces)] end
			return table.concat(t)
		end
		local rounds, done = math.ceil(1000 * tools.scale()), 0
		for round = 1, rounds do
			local text, old, new = random_text(30), random_text(4), random_text(4)
			local all = math.random(3) == 1
			if old ~= "" and old ~= new then
				local wanted, count = reference(text, old, new, all)
				local result = edit(text, old, new, all)
				local shown = ("SEED=%d, round %d: %q, %q, %q, all %s: %s"):format(
					seed, round, text, old, new, tostring(all), result.content)
				assert(result.is_error == (wanted == nil), shown)
				assert(get(at "f") == (wanted or text), shown .. ("\n%q"):format(get(at "f")))
				assert(wanted or count == 0 or result.content:find(count .. " times", 1, true), shown)
				done = done + (wanted and 1 or 0)
			end
		end
		assert.is_true(done > rounds / 20)
	end)
end)

describe("LS", function()
	it("lists entries by name, folders with a slash, links with where they lead", function()
		sh("cd '%s' && mkdir d && touch b .hidden '%s' && ln -s d l", folder, "a\\nb")
		local result = succeed("LS", { path = "." })
		assert.are.equal(".hidden\na\\\\nb\nb\nd/\nl -> d", result.content)
		assert.are.equal(5, result.metadata.entries)
	end)

	it("shows names that are no text in one line each", function()
		put(at "a\nb", "")
		put(at "\xff", "")
		assert.are.equal("a\\nb\n\\xff", succeed("LS", {}).content)
	end)

	it("is bounded", function()
		sh("cd '%s' && seq 1 1500 | xargs touch", folder)
		local result = succeed("LS", {})
		assert(result.content:find("(500 more; use Glob to pick some)", 1, true))
		assert.is_true(result.metadata.truncated)
		assert.are.equal(1500, result.metadata.entries)
	end)

	it("says what is empty and what is no folder", function()
		assert.are.equal("(the folder is empty)", succeed("LS", {}).content)
		put(at "f", "")
		refuse("LS", { path = "f" }, "is a file, not a folder")
	end)
end)

describe("a file system that fails", function()
	local mounted

	local function mount(options)
		mounted = at "small"
		sh("mkdir '%s'", mounted)
		return sh("mount -t tmpfs -o %s tmpfs '%s' && echo mounted", options, mounted) == "mounted\n"
	end

	after_each(function()
		if mounted then sh("umount '%s'", mounted) end
		mounted = nil
	end)

	local MAY_NOT = "NOT TESTED: this user may mount no file system (run the specs as root)"

	it("that is full leaves the old file whole", function()
		if not mount "size=64k" then return pending(MAY_NOT) end
		local old = ("o"):rep(30000)
		succeed("Write", { file_path = "small/f", content = old })
		for _, input in ipairs {
			{ "Write", { file_path = "small/f", content = ("n"):rep(60000) } },
			{ "Write", { file_path = "small/new", content = ("n"):rep(60000) } },
			{ "Edit", { file_path = "small/f", old_string = old, new_string = ("n"):rep(60000) } },
		} do
			refuse(input[1], input[2], "no space is left")
			assert.are.equal(old, get(at "small/f"))
			assert.are.equal("f\n", sh("ls -A '%s'", mounted))
		end
	end)

	it("that is read-only says so", function()
		if not mount "size=64k" then return pending(MAY_NOT) end
		put(at "small/f", "old")
		sh("mount -o remount,ro '%s'", mounted)
		refuse("Write", { file_path = "small/f", content = "x" }, "read-only")
		refuse("Write", { file_path = "small/d/f", content = "x" }, "read-only")
		refuse("Edit", { file_path = "small/f", old_string = "old", new_string = "x" }, "read-only")
		assert.are.equal("old", get(at "small/f"))
	end)

	-- A library before libc: the function in FAULT fails with EIO, for descriptors of files named target or alike.
	local FAULTS = [[
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <errno.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		#include <sys/types.h>
		#include <stdio.h>
		static int hit(const char *name)
		{
			const char *fault = getenv("FAULT");
			if (!fault || strcmp(fault, name) != 0) return 0;
			errno = EIO;
			return 1;
		}
		static int is_tmp(int fd)
		{
			char link[64], path[4096];
			snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
			ssize_t n = readlink(link, path, sizeof path - 1);
			if (n < 0) return 0;
			path[n] = 0;
			return strstr(path, "/.lattice-") != NULL;
		}
		#define NEXT(f) ((__typeof__(&f))dlsym(RTLD_NEXT, #f))
		ssize_t write(int fd, const void *b, size_t n) { return is_tmp(fd) && hit("write") ? -1 : NEXT(write)(fd, b, n); }
		int fsync(int fd)
		{
			if (is_tmp(fd) ? hit("fsync") : hit("fsync of the folder")) return -1;
			return NEXT(fsync)(fd);
		}
		int renameat(int a, const char *b, int c, const char *d) { return hit("renameat") ? -1 : NEXT(renameat)(a, b, c, d); }
		int fchmod(int fd, mode_t m) { return hit("fchmod") ? -1 : NEXT(fchmod)(fd, m); }
		ssize_t pread(int fd, void *b, size_t n, off_t o) { return hit("pread") ? -1 : NEXT(pread)(fd, b, n, o); }
		ssize_t pread64(int fd, void *b, size_t n, off_t o) { return hit("pread") ? -1 : NEXT(pread64)(fd, b, n, o); }
	]]

	local SCRIPT = [==[
		local tools = require "spec.support.tools"
		local ws = tools.workspace(arg[1])
		local names = { Write = { file_path = "target", content = "new" }, Read = { file_path = "target" },
			Edit = { file_path = "target", old_string = "old", new_string = "new" } }
		local result = tools.call(ws, arg[2], names[arg[2]])
		print(result.is_error, result.content, result.metadata.folder_synced)
	]==]

	local function run_with(fault, tool)
		return sh("FAULT='%s' LD_PRELOAD='%s' %s '%s' '%s' %s", fault, at "faults.so", os.getenv "LUA" or "lua5.4",
			at "script.lua", at "ws", tool)
	end

	it("with input/output errors leaves the old file whole", function()
		if os.getenv "LD_PRELOAD" then
			return pending "NOT TESTED: a sanitizer's library is preloaded, and this test preloads one that must be first"
		end
		put(at "faults.c", FAULTS)
		put(at "script.lua", SCRIPT)
		local built = sh("gcc -shared -fPIC -o '%s' '%s' -ldl", at "faults.so", at "faults.c")
		assert.are.equal("", built)
		sh("mkdir '%s'", at "ws")
		for _, fault in ipairs { "write", "fsync", "renameat", "fchmod" } do
			for _, tool in ipairs { "Write", "Edit" } do
				put(at "ws/target", "old")
				local out = run_with(fault, tool)
				assert(out:find("^true\t.*input/output error; the file is as it was before"), fault .. ": " .. out)
				assert.are.equal("old", get(at "ws/target"))
				assert.are.equal("target\n", sh("ls -A '%s'", at "ws"))
			end
		end
		for _, tool in ipairs { "Read", "Edit" } do
			local out = run_with("pread", tool)
			assert(out:find("^true\t.*input/output error"), out)
		end
		local out = run_with("fsync of the folder", "Write")
		assert(out:find("^false\t.*\tfalse\n$"), out)
		assert.are.equal("new", get(at "ws/target"))
	end)
end)

describe("a call of a built-in tool", function()
	it("can be stopped by a flag before it begins, and then has done nothing", function()
		local flag = core.flag()
		flag:set "enough"
		local result = call("Write", { file_path = "f", content = "x" }, { flag = flag })
		assert.is_true(result.is_error)
		assert.is_nil(get(at "f"))
	end)

	it("can be cancelled and collected at any time", function()
		for _ = 1, 200 do
			local op = ws:start("Write", { file_path = "f", content = "x" })
			op:cancel()
			assert.is_true(op:ready())
			local result, failure = op:result()
			assert.is_nil(result)
			assert.are.equal("abort", failure.kind)
			ws:start("Read", { file_path = "f" })
		end
		collectgarbage()
	end)
end)
