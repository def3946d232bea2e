-- The JSON-Schema-Test-Suite's cases for draft 2020-12, each one a test. They are read from ../shared and never
-- copied; `remotes/` is what the cases call http://localhost:1234/. Without them one pending test says so.
local core = require "lattice.core"

local ROOT = "../shared/cases/json-schema/"
local REMOTES = "http://localhost:1234/"

local function read_file(path)
	local file = io.open(path, "rb")
	if not file then return nil end
	local text = file:read "a"
	file:close()
	return text
end

local function list(command)
	local pipe = assert(io.popen(command))
	local names = {}
	for name in pipe:lines() do
		names[#names + 1] = name
	end
	pipe:close()
	return names
end

local function remotes()
	local found = {}
	for _, path in ipairs(list("find " .. ROOT .. "remotes -name '*.json' | sort")) do
		found[REMOTES .. path:sub(#(ROOT .. "remotes/") + 1)] = read_file(path)
	end
	return found
end

local function define_tests(file, registered, options)
	for _, group in ipairs(assert(core.json_decode(read_file(file)))) do
		describe(group.description, function()
			local schema
			setup(function()
				schema = assert(core.schema_compile(core.json_encode(group.schema), registered, options))
			end)
			for _, case in ipairs(group.tests) do
				it(case.description, function()
					local valid, detail = schema:validate_json(core.json_encode(case.data))
					local message = valid and "accepted" or core.json_encode(detail)
					assert.are.equal(case.valid, valid, message)
					assert.are.equal(case.valid, (schema:validate(case.data)), message)
				end)
			end
		end)
	end
end

describe("draft 2020-12", function()
	local files = list("ls " .. ROOT .. "*.json 2>/dev/null")
	if #files == 0 then
		pending(ROOT .. " isn't there: the suite of the draft was not run")
		return
	end
	local registered = remotes()
	for _, file in ipairs(files) do
		describe(file:match "([^/]+)%.json$", function()
			define_tests(file, registered)
		end)
	end
	for _, file in ipairs(list("ls " .. ROOT .. "optional/format/*.json")) do
		describe("format " .. file:match "([^/]+)%.json$" .. ", asserted", function()
			define_tests(file, registered, { format_assertion = true })
		end)
	end
end)
