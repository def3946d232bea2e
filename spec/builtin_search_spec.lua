--- Glob and Grep: on generated trees they agree with git and ripgrep; what they say when there is nothing to agree on.

local session = require "spec.support.session"

local system = session.system

local SEED = tonumber(os.getenv "SEED") or os.time()
local SCALE = tonumber(os.getenv "LATTICE_SPEC_SCALE") or 1

local function scaled(n)
	return math.max(30, math.floor(n * SCALE))
end

local function has(command)
	return system("command -v " .. command .. " || true") ~= ""
end

-- Lines, without the newlines.
local function lines_of(text)
	local lines = {}
	for line in text:gmatch "[^\n]+" do
		lines[#lines + 1] = line
	end
	return lines
end

local function sorted(text)
	local lines = lines_of(text)
	table.sort(lines)
	return lines
end

local WORDS = {
	"return", "static", "int", "needle", "value", "count", "foo", "bar", "baz", "alpha_beta", "lat_buf_new(", "NOTE", "x9y8",
	"0x1f", "3.14", "1234567", "if (", "){", "}", "== NULL;", "\"text\"", "für", "können", "ähnlich", "naïve", "ÄRGER", "ſ",
	"K", "\u{212A}", "日本", "_", "--", "::", "the", "end", "e",
}

local function random_line()
	local words = {}
	for i = 1, math.random(0, 9) do
		words[i] = WORDS[math.random(#WORDS)]
	end
	return table.concat(words, math.random(4) == 1 and "_" or " ")
end

local function random_text()
	local kind = math.random(20)
	if kind == 1 then
		return ""
	elseif kind == 2 then
		return "\0\1needle\nreturn\n"
	end
	local lines = {}
	for i = 1, math.random(0, 40) do
		lines[i] = random_line()
	end
	local text = table.concat(lines, kind == 3 and "\r\n" or "\n") .. (math.random(5) == 1 and "" or "\n")
	if kind == 4 then
		text = text .. "caf\xe9 needle f\xfcr\n"
	elseif kind == 5 then
		text = "\n\n" .. text .. "\n\n"
	end
	return text
end

local function make_tree(folder, files)
	math.randomseed(SEED)
	local endings = { ".c", ".h", ".lua", ".o", ".md" }
	for i = 1, files do
		local where = folder .. "/d" .. math.random(6)
		if math.random(2) == 1 then
			where = where .. "/e" .. math.random(4)
		end
		os.execute("mkdir -p " .. where)
		session.write(where .. "/f" .. i .. endings[math.random(#endings)], random_text())
	end
	session.write(folder .. "/.gitignore", "*.o\n/d1/e2/\n!f1*.o\n")
	session.write(folder .. "/d2/.gitignore", "!*.o\ne3\n*.h\n")
	session.write(folder .. "/.hidden", "needle\n")
end

local PATTERNS = {
	"needle", "return", "\\bfoo\\b", "NOTE", "lat_[a-z]+_new", "^static", "\\breturn\\s+\\w", "[0-9]{5,}", "foo|bar|baz",
	"(alpha|beta)_", "^\\s*if \\(", "\\w+_\\w+_\\w+", "x+\\d", "\"[^\"]*\"", "[A-Z]{3,}", "a.c", ".*needle.*", "^$", "\\}$",
	"e$", "^[^ ]+ ", "\\d+\\.\\d+", "(?i)NEEDLE", "(?i)für", "0x[0-9a-f]+", "<", "::", "f.r", "für", "k.nnen", "\\w*ä\\w*", "ß",
	"\\W{3}", "\\S{12}", "(?i)k", "(?i)s$", "日.", "[äöü]", "never_there", "(\\w)\\w\\d", "n[^x]*e", "[^a]b", "\\s$",
	"$", "^", "caf", "\\x{e4}", "\\p{Lu}\\p{Lu}", "n\\w+e\\b.*\\bend",
}

local RG = "rg --no-config --hidden --no-require-git --no-ignore-dot --no-ignore-global -g '!.git' "

local function quoted(text)
	return "'" .. text:gsub("'", "'\\''") .. "'"
end

local compare_with_ripgrep = has "rg" and describe or pending

compare_with_ripgrep("Grep and ripgrep", function()
	local folder, own

	setup(function()
		print("SEED=" .. SEED)
		folder = session.folder()
		make_tree(folder, scaled(250))
		own = session.open(folder)
	end)

	teardown(function()
		own:close()
		session.remove(folder)
	end)

	local function rg(arguments, pattern)
		return system("cd " .. folder .. " && " .. RG .. arguments .. " -e " .. quoted(pattern) .. " 2>&1")
	end

	for index, pattern in ipairs(PATTERNS) do
		it("find the same files for " .. pattern, function()
			local text = own:call("Grep", { pattern = pattern })
			assert.are.same(sorted(rg("-l", pattern)), text == "No matches found." and {} or sorted(text))
		end)

		it("count the same lines for " .. pattern, function()
			local text = own:call("Grep", { pattern = pattern, output_mode = "count" })
			assert.are.same(sorted(rg("-c", pattern)), text == "No matches found." and {} or sorted(text))
		end)

		it("show the same lines for " .. pattern, function()
			local context = index % 3
			local path = "d" .. index % 5 + 2 -- not d1: ripgrep 13 takes rules above a path that it is given for others
			local arguments = path .. " -n -H --no-heading --sort path -C " .. context
			local expected = rg(arguments, pattern):gsub("\r\n", "\n"):gsub("[^\n]*binary file[^\n]*\n?", "")
			local text = own:call("Grep", { pattern = pattern, output_mode = "content", context = context, path = path })
			text = text == "No matches found." and "" or text
			expected = expected:gsub("\xe9 needle f\xfcr", "\u{FFFD} needle f\u{FFFD}r"):gsub("\n$", "")
			local cut = text:find "\n%(cut here"
			if cut then -- more than a model gets to see
				text = text:sub(1, cut - 1)
				expected = expected:sub(1, #text)
			end
			assert.are.equal(expected, text)
		end)
	end

	for _, pattern in ipairs { "needle", "FÜR", "Static", "ärger", "[a-k]oo", "ſ", "k" } do
		it("find the same lines whatever the case for " .. pattern, function()
			local text = own:call("Grep", { pattern = pattern, output_mode = "count", case_insensitive = true })
			assert.are.same(sorted(rg("-c -i", pattern)), text == "No matches found." and {} or sorted(text))
		end)
	end

	for _, pattern in ipairs { "needle.*?\\n.*?return", "foo\\s+bar", "^$\\n^$", "e\\n[^a-z]" } do
		it("find the same files over several lines for " .. pattern:gsub("\n", "\\n"), function()
			local text = own:call("Grep", { pattern = pattern, multiline = true })
			assert.are.same(sorted(rg("-l -U --multiline-dotall", pattern)), text == "No matches found." and {} or sorted(text))
		end)
	end

	it("leave out what a glob with ! says", function()
		local text = own:call("Grep", { pattern = "e", glob = "!*.c" })
		assert.are.same(sorted(rg("-l -g '!*.c'", "e")), sorted(text))
	end)
end)

describe("Grep", function()
	local folder, own

	before_each(function()
		folder = session.folder()
		own = session.open(folder)
	end)

	after_each(function()
		own:close()
		session.remove(folder)
	end)

	it("shows a line with its number and the lines around it", function()
		session.write(folder .. "/a.txt", "1\n2\n3 x\n4\n5\n6\n7\n8 x\n9\n")
		local text = own:call("Grep", { pattern = "x", output_mode = "content", context = 1 })
		assert.are.equal("a.txt-2-2\na.txt:3:3 x\na.txt-4-4\n--\na.txt-7-7\na.txt:8:8 x\na.txt-9-9", text)
	end)

	it("names paths as the folder was given", function()
		system("mkdir " .. folder .. "/sub")
		session.write(folder .. "/sub/a.txt", "x\n")
		assert.are.equal("sub/a.txt", (own:call("Grep", { pattern = "x", path = "sub/" })))
		assert.are.equal(folder .. "/sub/a.txt", (own:call("Grep", { pattern = "x", path = folder })))
		assert.are.equal("sub/a.txt:1:x", (own:call("Grep", { pattern = "x", path = "sub/a.txt", output_mode = "content" })))
	end)

	it("stops at head_limit and says so", function()
		session.write(folder .. "/a.txt", ("x\n"):rep(50))
		local text, _, result = own:call("Grep", { pattern = "x", output_mode = "content", head_limit = 2 })
		assert.is_truthy(text:find "^a.txt:1:x\na.txt:2:x\n%(cut here")
		assert.is_true(result.metadata.truncated)
	end)

	it("cuts what is too much for a model, at a line's end", function()
		session.write(folder .. "/a.txt", ("a line that matches\n"):rep(10000))
		local text, _, result = own:call("Grep", { pattern = "line", output_mode = "content" })
		assert.is_true(#text < 51000)
		assert.is_truthy(text:find "matches\n%(cut here")
		assert.is_true(result.metadata.truncated)
	end)

	it("shows of a long line what is around the match", function()
		session.write(folder .. "/a.txt", ("ä"):rep(5000) .. "needle" .. ("ö"):rep(5000) .. "\n")
		local text = own:call("Grep", { pattern = "needle", output_mode = "content" })
		assert.is_true(#text < 700)
		assert.is_truthy(text:find("äneedleö", 1, true))
		assert.is_truthy(text:find("a line of 20006 bytes", 1, true))
		assert.is_nil(text:find "\u{FFFD}")
	end)

	it("searches lines and files that are larger than its window", function()
		local long = ("x"):rep(3 * 1024 * 1024)
		session.write(folder .. "/a.txt", "needle 1\n" .. long .. "needle 2\n" .. ("short\n"):rep(400000) .. "needle 3\nend\n")
		assert.are.equal("a.txt:3", (own:call("Grep", { pattern = "needle", output_mode = "count" })))
		local text = own:call("Grep", { pattern = "^needle", output_mode = "content", context = 1 })
		assert.is_truthy(text:find("--\na.txt-400002-short\na.txt:400003:needle 3\na.txt-400004-end", 1, true))
		assert.are.equal("a.txt", (own:call("Grep", { pattern = "short\\nneedle 3", multiline = true })))
	end)

	it("leaves out binary files, links, FIFOs and devices, and doesn't hang", function()
		session.write(folder .. "/binary", "\0needle\n")
		session.write(folder .. "/text", "needle\n")
		system("cd " .. folder .. " && mkfifo fifo && ln -s text link && ln -s / root")
		local text, _, result = own:call("Grep", { pattern = "needle|root:" })
		assert.are.equal("text", text)
		assert.are.equal(1, result.metadata.binary)
		local refused, is_error = own:call("Grep", { pattern = "x", path = "fifo" })
		assert.is_true(is_error)
		assert.is_truthy(refused:find "FIFO")
	end)

	it("helps with what is wrong in a pattern", function()
		local text, is_error = own:call("Grep", { pattern = "a(b" })
		assert.is_true(is_error)
		assert.is_truthy(text:find("missing closing parenthesis", 1, true))
		assert.is_truthy(own:call("Grep", { pattern = "a\\nb" }):find("set multiline", 1, true))
		assert.is_truthy(own:call("Grep", { pattern = "a", glob = "{a" }):find("without its", 1, true))
	end)

	it("gives up on a pattern that never ends", function()
		for i = 1, 30 do
			session.write(folder .. "/" .. i, ("a"):rep(40) .. "\n")
		end
		local text, is_error = own:call("Grep", { pattern = "(a+)+(a+)+(a+)+$b|(?=(a+)+b)x" })
		assert.is_true(is_error or text:find "weren't searched" ~= nil or text == "No matches found.")
		local hard, failed = own:call("Grep", { pattern = "^(([a-z])+.)+[A-Z]([a-z])+$" })
		assert.is_true(failed)
		assert.is_truthy(hard:find("too many steps", 1, true))
	end)

	it("is refused outside the workspace, links included", function()
		system("ln -s /etc " .. folder .. "/etc")
		for _, path in ipairs { "/etc", "..", "etc", "etc/passwd" } do
			local text, is_error = own:call("Grep", { pattern = "root", path = path })
			assert.is_true(is_error)
			assert.is_truthy(text:find("permission_denied", 1, true))
		end
		assert.are.equal("No matches found.", (own:call("Grep", { pattern = "root" })))
	end)

	it("finds what a lookaround asks for in its line alone", function()
		session.write(folder .. "/a.txt", "foo\nbar\nfoobar\n")
		local function lines(pattern)
			return (own:call("Grep", { pattern = pattern, output_mode = "content" }))
		end
		assert.are.equal("a.txt:3:foobar", lines "(?<=foo)bar")
		assert.are.equal("a.txt:1:foo", lines "foo(?!bar)")
		assert.are.equal("a.txt:1:foo\na.txt:2:bar\na.txt:3:foobar", lines "\\A\\w++\\z")
		assert.are.equal("a.txt:2:bar", lines "(?<!foo)bar")
	end)
end)

local compare_with_git = has "git" and describe or pending

compare_with_git("Glob and git", function()
	it("list the same files", function()
		local folder = session.folder()
		make_tree(folder, scaled(200))
		system("cd " .. folder .. " && git init -q")
		local own <close> = session.open(folder)
		local expected = sorted(system("cd " .. folder .. " && git -c core.excludesFile=/dev/null ls-files -co --exclude-standard"))
		assert.are.same(expected, sorted((own:call("Glob", { pattern = "**" }))))
		session.remove(folder)
	end)
end)

describe("Glob", function()
	local folder, own

	before_each(function()
		folder = session.folder()
		own = session.open(folder)
		system("cd " .. folder .. " && mkdir -p src/deep lib && touch -d @1000 src/a.c && touch -d @3000 src/deep/b.c "
			.. "&& touch -d @2000 lib/c.h && touch -d @500 .dot '[x].md'")
	end)

	after_each(function()
		own:close()
		session.remove(folder)
	end)

	local cases = {
		["**/*.c"] = "src/deep/b.c\nsrc/a.c",
		["src/*.c"] = "src/a.c",
		["*/*"] = "lib/c.h\nsrc/a.c",
		["**/*.{c,h}"] = "src/deep/b.c\nlib/c.h\nsrc/a.c",
		["{src,lib}/**/[a-b].?"] = "src/deep/b.c\nsrc/a.c",
		["./src/**/b.c"] = "src/deep/b.c",
		["src/**"] = "src/deep/b.c\nsrc/a.c",
		["\\[x\\].md"] = "[x].md",
		[".*"] = ".dot",
		["**/deep/**"] = "src/deep/b.c",
	}
	for pattern, expected in pairs(cases) do
		it("lists, newest first, what fits " .. pattern, function()
			assert.are.equal(expected, (own:call("Glob", { pattern = pattern })))
		end)
	end

	it("starts where it is told, by path or by an absolute pattern", function()
		assert.are.equal("src/a.c", (own:call("Glob", { pattern = "*.c", path = "src" })))
		assert.are.equal(folder .. "/src/a.c", (own:call("Glob", { pattern = folder .. "/src/*.c" })))
		own:bash "cd src"
		assert.are.equal("lib/c.h", (own:call("Glob", { pattern = "lib/*" })))
	end)

	it("says that nothing fits, and what its signs mean", function()
		local text, is_error = own:call("Glob", { pattern = "*.c" })
		assert.is_truthy(text:find "^No files match")
		assert.is_false(is_error)
	end)

	it("shows the newest thousand of many", function()
		system("cd " .. folder .. " && mkdir many && cd many && touch -d @100 $(seq 1200)")
		local text, _, result = own:call("Glob", { pattern = "many/*" })
		assert.are.equal(1001, #lines_of(text))
		assert.is_truthy(text:find("200 more match", 1, true))
		assert.is_true(result.metadata.truncated)
		assert.are.equal(1200, result.metadata.matches)
	end)

	it("is refused outside the workspace", function()
		for _, input in ipairs { { pattern = "*", path = "/etc" }, { pattern = "/etc/*" }, { pattern = "../*" } } do
			local text, is_error = own:call("Glob", input)
			assert.is_true(is_error)
			assert.is_truthy(text:find("permission_denied", 1, true))
		end
	end)

	it("takes no longer for a pattern that could be read in many ways", function()
		session.write(folder .. "/" .. ("a"):rep(200), "")
		local pattern = ("*a"):rep(60) .. ("{a,aa,aaa}"):rep(60) .. "b"
		assert.is_truthy(own:call("Glob", { pattern = pattern }):find "^No files match")
		assert.is_truthy(own:call("Glob", { pattern = ("**/"):rep(200) .. "nothing" }):find "^No files match")
	end)
end)
