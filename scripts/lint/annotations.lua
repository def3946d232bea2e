-- Reads the LuaLS annotations above functions. Used by the docs check and by make_docs.lua.
--
-- A function counts as public when it hangs on a table: `function M.name(…)`, `function Class:name(…)`,
-- `M.name = function(…)`, unless the name begins with `_`.

local annotations = {}

---@class lattice.lint.Function
---@field file string
---@field line integer
---@field owner string the table it hangs on
---@field name string
---@field method boolean
---@field params string[] the names between the parentheses
---@field doc string[] comment lines above it, without the dashes
---@field returns_value boolean its body returns something

local function split_params(text)
	local params = {}
	for name in text:gmatch "[%w_%.]+" do
		params[#params + 1] = name
	end
	return params
end

local PATTERNS = {
	"^function%s+([%w_%.]+)([%.:])([%w_]+)%s*%(([^)]*)%)",
	"^([%w_%.]+)(%.)([%w_]+)%s*=%s*function%s*%(([^)]*)%)",
}

local function parse_head(line)
	for _, pattern in ipairs(PATTERNS) do
		local owner, separator, name, params = line:match(pattern)
		if owner then
			return owner, separator == ":", name, split_params(params)
		end
	end
end

-- The body ends at the first line that is `end` without indentation.
local function returns_value(lines, first)
	if lines[first]:match "%send%s*$" then
		return lines[first]:match "%sreturn%s+[^;%s]" and not lines[first]:match "%sreturn%s+end"
	end
	local depth_of_inner
	for i = first + 1, #lines do
		local line = lines[i]
		if line:match "^end" then
			return false
		end
		local indent = #line:match "^\t*"
		if depth_of_inner and indent <= depth_of_inner and line:match "^\t*end" then
			depth_of_inner = nil
		elseif not depth_of_inner and line:match "function%s*[%w_]*%s*%(" and not line:match "%send[%s,)]*$" then
			depth_of_inner = indent
		elseif not depth_of_inner and line:match "%f[%w_]return%s+[^%s]" and not line:match "return%s+end" then
			return true
		end
	end
	return false
end

local function doc_above(lines, first)
	local doc = {}
	for i = first - 1, 1, -1 do
		local text = lines[i]:match "^%-%-%-?(.*)$"
		if not text then
			break
		end
		table.insert(doc, 1, text)
	end
	return doc
end

--- The public functions of one Lua file.
---@param path string
---@return lattice.lint.Function[]
function annotations.functions_of(path)
	local lines = {}
	for line in io.lines(path) do
		lines[#lines + 1] = line
	end
	local found = {}
	for i, line in ipairs(lines) do
		local owner, method, name, params = parse_head(line)
		if owner and name:sub(1, 1) ~= "_" then
			found[#found + 1] = {
				file = path,
				line = i,
				owner = owner,
				name = name,
				method = method,
				params = params,
				doc = doc_above(lines, i),
				returns_value = returns_value(lines, i),
			}
		end
	end
	return found
end

--- What the library's annotations lack for one function: a list of sentences.
---@param fn lattice.lint.Function
---@return string[]
function annotations.problems_of(fn)
	local problems = {}
	local function says(tag, word)
		for _, line in ipairs(fn.doc) do
			local found = line:match("^%s*@" .. tag .. "%s+(%S+)")
			if found and (not word or found:gsub("%?$", "") == word) then
				return true
			end
		end
		return false
	end
	local prose = false
	for _, line in ipairs(fn.doc) do
		prose = prose or line:match "^%s*[^@%s]" ~= nil
	end
	if not prose then
		problems[#problems + 1] = "has no comment that says what it does"
	end
	for _, param in ipairs(fn.params) do
		if not says("param", param) and param:sub(1, 1) ~= "_" then
			problems[#problems + 1] = "lacks ---@param " .. param
		end
	end
	if fn.returns_value and not says "return" then
		problems[#problems + 1] = "returns something and lacks ---@return"
	end
	return problems
end

--- Lua files of the library, sorted.
---@return string[]
function annotations.library_files()
	local files = {}
	local find <close> = assert(io.popen "find lua -name '*.lua' | LC_ALL=C sort")
	for path in find:lines() do
		files[#files + 1] = path
	end
	return files
end

return annotations
