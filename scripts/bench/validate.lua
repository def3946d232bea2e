-- JSON text to a validated Lua table, texts per second: lua5.4 validate.lua TEXT N
-- Without arguments it prints its schema as JSON, for validate.c.
local s = require("lattice").schema
local schema = s.compile(s.object {
	path = s.string { min_length = 1 },
	pattern = s.string,
	line = s.integer { min = 1 },
	limit = s.optional(s.integer),
	mode = s.enum { "content", "files", "count" },
	multiline = s.boolean,
})
if not arg[1] then
	print(schema:json())
	return
end
local text, times = arg[1], tonumber(arg[2])
assert(schema:validate_json(text))
local begun = os.clock()
for _ = 1, times do
	schema:validate_json(text)
end
print(("%.0f"):format(times / (os.clock() - begun)))
