-- JSON text to validated input, texts per second: lua5.4 validate.lua TEXT N [value]
-- The text goes through a 6-field schema in C. With `value` each also becomes a Lua table.
local lattice = require "lattice"
local s = lattice.schema
local schema = s.compile(s.object {
	path = s.string { min_length = 1 },
	pattern = s.string(),
	line = s.integer { minimum = 1 },
	limit = s.optional(s.integer()),
	mode = s.enum { "content", "files", "count" },
	multiline = s.boolean(),
})
local text, times = arg[1], tonumber(arg[2])
assert(schema:validate_json(text))
local begun = os.clock()
for _ = 1, times do
	schema:validate_json(text)
end
print(("%.0f"):format(times / (os.clock() - begun)))
