-- Finds what a user of the library can reach, and reads the LuaLS annotations above it.
-- Used by the docs check and by make_docs.lua.
--
-- Public is what hangs on the table of `require "lattice"`, on tables of functions in it, and on the objects that
-- its functions return (SAMPLES), unless its name begins with `_`.

local annotations = {}

---@class lattice.lint.Function
---@field name string as a user writes it: lattice.tool, agent:prompt
---@field file string? nil for a function in C
---@field line integer?
---@field params string[]
---@field doc string[] comment lines above it, without the dashes
---@field returns_value boolean its body returns something

local files = {}
local function lines_of(path)
	if not files[path] then
		files[path] = {}
		for line in io.lines(path) do
			table.insert(files[path], line)
		end
	end
	return files[path]
end

local function doc_above(lines, first)
	local doc = {}
	for i = first - 1, 1, -1 do
		local text = lines[i]:match "^%s*%-%-%-?(.*)$"
		if not text then
			break
		end
		table.insert(doc, 1, text)
	end
	return doc
end

-- Whether a body returns a value: inner functions, which are indented deeper and end on their own line, don't count.
local function returns_value(lines, first, last)
	if first == last then
		return lines[first]:match "%f[%w_]return%s+[^%s]" ~= nil and not lines[first]:match "return%s+end"
	end
	local inner
	for i = first + 1, last - 1 do
		local line = lines[i]
		local indent = #line:match "^\t*"
		if inner then
			if indent == inner and line:match "^\t*end" then
				inner = nil
			end
		elseif line:match "%f[%w_]function[%s%(]" and not line:match "%f[%w_]end[%s,)}]*$" then
			inner = indent
			if line:match "^\t*return%s" then
				return true
			end
		elseif line:match "%f[%w_]return%s+[^%s]" and not line:match "return%s+end" then
			return true
		end
	end
	return false
end

local function describe(name, fn)
	local info = debug.getinfo(fn, "Su")
	if info.what == "C" then
		return { name = name, params = {}, doc = {}, returns_value = false }
	end
	local path = info.source:match "^@%.?/?(.*)$"
	local lines = lines_of(path)
	local params = {}
	for i = 1, info.nparams do
		params[i] = debug.getlocal(fn, i)
	end
	if info.isvararg then
		params[#params + 1] = "..."
	end
	return {
		name = name,
		file = path,
		line = info.linedefined,
		params = params,
		doc = doc_above(lines, info.linedefined),
		returns_value = returns_value(lines, info.linedefined, info.lastlinedefined),
	}
end

local function by_name(a, b)
	return a.name < b.name
end

local function collect(list, container, prefix, seen)
	for key, member in pairs(container) do
		if type(key) == "string" and key:sub(1, 1) ~= "_" then
			if type(member) == "function" then
				list[#list + 1] = describe(prefix .. key, member)
			elseif type(member) == "table" and getmetatable(member) == nil and not seen[member] then
				seen[member] = true
				collect(list, member, prefix .. key .. ".", seen)
			end
		end
	end
end

-- Name in the docs → one object of the kind; a kind that this library has no maker for is left out.
local function samples(lattice)
	local options = { model = "none", model_client = { create = function() end } }
	local made = {}
	local function sample(name, maker, ...)
		if maker then
			made[name] = maker(...)
		end
	end
	sample("agent", lattice.create_bare_agent, options)
	sample("spec", lattice.define_agent, options)
	sample("schema", lattice.schema and lattice.schema.compile, { a = "string" })
	sample("constructor", lattice.schema and lattice.schema.string)
	sample("controller", lattice.abort_controller)
	sample("mailbox", lattice.create_memory_mailbox)
	sample("team", lattice.create_team, { lead = options, members = {} })
	made.signal = made.controller and made.controller.signal
	return made
end

--- Everything public, sorted by name.
---@return lattice.lint.Function[]
function annotations.public_functions()
	local lattice = require "lattice"
	local list = {}
	collect(list, lattice, "lattice.", { [lattice] = true })
	for name, object in pairs(samples(lattice)) do
		local metatable = getmetatable(object)
		local methods = metatable and metatable.__index
		if type(methods) == "table" then
			collect(list, methods, name .. ":", {})
		end
	end
	table.sort(list, by_name)
	return list
end

--- What the annotations of one function lack: a list of sentences.
---@param fn lattice.lint.Function
---@return string[]
function annotations.problems_of(fn)
	local problems = {}
	if not fn.file then
		return problems
	end
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
		if param ~= "self" and param:sub(1, 1) ~= "_" and not says("param", param) then
			problems[#problems + 1] = "lacks ---@param " .. param
		end
	end
	if fn.returns_value and not says "return" then
		problems[#problems + 1] = "returns something and lacks ---@return"
	end
	return problems
end

return annotations
