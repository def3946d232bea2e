-- Writes the reference of every public function from its annotations: lua5.4 scripts/make_docs.lua FOLDER

package.path = "./?.lua;./lua/?.lua;./lua/?/init.lua;" .. package.path
local annotations = require "scripts.lint.annotations"

local folder = assert(arg[1], "give the folder to write into")
assert(os.execute(("mkdir -p '%s'"):format(folder)))

local function tagged(doc, tag)
	local found = {}
	for _, line in ipairs(doc) do
		found[#found + 1] = line:match("^%s*@" .. tag .. "%s+(.*)$")
	end
	return found
end

local path = folder .. "/api.md"
local out <close> = assert(io.open(path, "w"))
out:write "# Reference\n\nMade from the annotations in `lua/lattice` by `make docs`.\n"
local functions = annotations.public_functions()
for _, fn in ipairs(functions) do
	local params = {}
	for _, param in ipairs(fn.params) do
		params[#params + 1] = param ~= "self" and param or nil
	end
	out:write("\n## `", fn.name, "(", table.concat(params, ", "), ")`\n\n")
	for _, line in ipairs(fn.doc) do
		if not line:match "^%s*@" then
			out:write((line:gsub("^ ", "")), "\n")
		end
	end
	for _, param in ipairs(tagged(fn.doc, "param")) do
		local name, rest = param:match "^(%S+)%s*(.*)$"
		out:write("- `", name, "`: ", rest, "\n")
	end
	for _, result in ipairs(tagged(fn.doc, "return")) do
		out:write("- returns ", result, "\n")
	end
end
print(("%s: %d functions"):format(path, #functions))
