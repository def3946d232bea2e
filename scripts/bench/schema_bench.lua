-- JSON text → validated Lua table: texts a second through schema:validate_json, the text of schema_bench.c.
-- Run after `make build`, from the root, with LUA_PATH='lua/?.lua;;' LUA_CPATH='build/?.so;;'.
local json = require "lattice.json"
local s = require "lattice.schema"

local ROUNDS, TEXTS_PER_ROUND = 7, 100000
local TEXT = '{"query": "how do coroutines yield across C", "limit": 20, "ratio": 0.75, '
	.. '"exact": true, "mode": "files", "tags": ["lua", "c", "engine"]}'

local schema = s.compile(s.object {
	query = s.string { min_length = 1 },
	limit = s.integer { min = 1, max = 100 },
	ratio = s.optional(s.number),
	exact = s.optional(s.boolean),
	mode = s.enum { "content", "files", "count" },
	tags = s.optional(s.array(s.string { min_length = 1 })),
})
local value = json.decode(TEXT)

local function measure(name, run)
	local best = 0
	for _ = 1, ROUNDS do
		local start = os.clock()
		for _ = 1, TEXTS_PER_ROUND do
			run()
		end
		best = math.max(best, TEXTS_PER_ROUND / (os.clock() - start))
	end
	print(("%-32s %10.0f a second"):format(name, best))
end

measure("json.decode", function() return json.decode(TEXT) end)
measure("schema:validate_json(text)", function() return schema:validate_json(TEXT) end)
measure("schema:validate(value)", function() return schema:validate(value) end)
