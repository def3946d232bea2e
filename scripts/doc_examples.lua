-- Finds and runs the examples in README.md and docs/*.md: every block fenced as ```lua run.
--
-- Each runs as a script of its own under lua5.4, with a model server in ANTHROPIC_BASE_URL. What that answers stands
-- in a comment before the block, in the server's own language; without one it says "Hello.":
--     <!-- model: return { replies = { tool_use("add", { a = 20, b = 22 }), "The sum is 42." } } -->
-- A line that ends in `--> text` promises that the output has this text.

local doc_examples = {}

---@class lattice.DocExample
---@field name string file and line
---@field code string
---@field model string source of the model server's script
---@field expected string[]

local DEFAULT_MODEL = 'return function() return "Hello." end'

local function read_file(path)
	local file <close> = assert(io.open(path))
	return file:read "a"
end

local function write_temporary(text)
	local path = os.tmpname()
	local file <close> = assert(io.open(path, "w"))
	file:write(text)
	return path
end

local function expected_of(code)
	local expected = {}
	for text in code:gmatch "%-%->%s*([^\n]+)" do
		expected[#expected + 1] = text
	end
	return expected
end

local function examples_of(path, list)
	local code, first, number, model = nil, 0, 0, nil
	for line in (read_file(path) .. "\n"):gmatch "(.-)\n" do
		number = number + 1
		if code and line:match "^```" then
			local text = table.concat(code, "\n")
			list[#list + 1] = {
				name = path .. ":" .. first,
				code = text,
				model = model or DEFAULT_MODEL,
				expected = expected_of(text),
			}
			code, model = nil, nil
		elseif code then
			code[#code + 1] = line
		elseif line:match "^```lua run%s*$" then
			code, first = {}, number
		else
			model = line:match "^<!%-%- model: (.*) %-%->%s*$" or model
		end
	end
end

--- Every example that is marked as runnable.
---@return lattice.DocExample[]
function doc_examples.list()
	local list = {}
	local find <close> = assert(io.popen "ls README.md docs/*.md")
	for path in find:lines() do
		examples_of(path, list)
	end
	return list
end

--- Runs one example.
---@param example lattice.DocExample
---@return boolean ok it ended well and printed what it promises
---@return string output with the reason where it isn't ok
function doc_examples.run(example)
	local code, model = write_temporary(example.code), write_temporary(example.model)
	local lua = os.getenv "LUA" or "lua5.4"
	local command = ("scripts/with_model_server.sh --script %s -- %s %s 2>&1"):format(model, lua, code)
	local pipe = assert(io.popen(command))
	local output = pipe:read "a"
	local ok = pipe:close()
	os.remove(code)
	os.remove(model)
	if not ok then
		return false, output
	end
	for _, text in ipairs(example.expected) do
		if not output:find(text, 1, true) then
			return false, ("it did not print %q but:\n%s"):format(text, output)
		end
	end
	return true, output
end

return doc_examples
