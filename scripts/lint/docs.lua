-- Fails when a public function lacks annotations, or when docs/ and README.md never mention it.
-- Run from the root: lua5.4 scripts/lint/docs.lua

package.path = "./?.lua;./lua/?.lua;./lua/?/init.lua;" .. package.path
local annotations = require "scripts.lint.annotations"

local problems = 0
local function complain(format, ...)
	problems = problems + 1
	io.stderr:write(format:format(...), "\n")
end

local function read_docs()
	local texts = {}
	local find <close> = assert(io.popen "ls README.md docs/*.md")
	for path in find:lines() do
		local file <close> = assert(io.open(path))
		texts[#texts + 1] = file:read "a"
	end
	return table.concat(texts, "\n")
end

local docs = read_docs()

-- A plain find with a border behind it, so that `lattice.tool` isn't found in `lattice.tool_use`.
local function mentioned(name)
	local from = 1
	while true do
		local first, last = docs:find(name, from, true)
		if not first then
			return false
		end
		if not docs:sub(last + 1, last + 1):match "[%w_]" then
			return true
		end
		from = last + 1
	end
end

for _, path in ipairs(annotations.library_files()) do
	for _, fn in ipairs(annotations.functions_of(path)) do
		for _, problem in ipairs(annotations.problems_of(fn)) do
			complain("%s:%d: %s%s%s %s", fn.file, fn.line, fn.owner, fn.method and ":" or ".", fn.name, problem)
		end
	end
end

-- Everything that a user reaches from the library's table, tables of functions included.
local function check_table(value, name, seen)
	if seen[value] then
		return
	end
	seen[value] = true
	for key, member in pairs(value) do
		local full = name .. "." .. tostring(key)
		if type(key) ~= "string" or key:sub(1, 1) == "_" then
			goto continue
		end
		if type(member) == "function" and not mentioned(full) then
			complain("%s is public and stands in no document", full)
		elseif type(member) == "table" and getmetatable(member) == nil then
			check_table(member, full, seen)
		end
		::continue::
	end
end

local ok, lattice = pcall(require, "lattice")
if ok then
	check_table(lattice, "lattice", {})
else
	complain("the library can't be loaded: %s", tostring(lattice))
end

os.exit(problems == 0 and 0 or 1, true)
