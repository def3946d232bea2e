-- Fails when a public function lacks annotations, or when docs/ and README.md never mention it.
-- Run from the root: lua5.4 scripts/lint/docs.lua

package.path = "./?.lua;./lua/?.lua;./lua/?/init.lua;" .. package.path
local annotations = require "scripts.lint.annotations"

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
local function stands(name)
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

-- By its whole name; a method by `:name`, a constructor of schemas by `s.name` too.
local function mentioned(name)
	local method, constructor = name:match ":[%w_]+$", name:match "^lattice%.schema%.([%w_]+)$"
	return stands(name) or method and stands(method) or constructor and stands("s." .. constructor)
end

local problems = 0
local functions = annotations.public_functions()
for _, fn in ipairs(functions) do
	local faults = annotations.problems_of(fn)
	if not mentioned(fn.name) then
		faults[#faults + 1] = "stands in no document"
	end
	for _, fault in ipairs(faults) do
		problems = problems + 1
		io.stderr:write(("%s:%d: %s %s\n"):format(fn.file or "engine", fn.line or 0, fn.name, fault))
	end
end
print(("%d public functions, %d faults in their docs"):format(#functions, problems))
os.exit(problems == 0 and #functions > 0 and 0 or 1, true)
