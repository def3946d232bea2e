local core = require "lattice.core"
local json = require "lattice.json"
local s = require "lattice.schema"

-- What a schema sends to the model.
local function text_of(schema, options)
	return s.compile(schema, options):json()
end

-- The errors of a value as "path: message", in order.
local function complaints(schema, value)
	local ok, errors = s.compile(schema):validate(value)
	assert.is_false(ok)
	local lines = {}
	for i, e in ipairs(errors) do
		lines[i] = e.path .. ": " .. e.message
	end
	return lines
end

local function raises(message, fn, ...)
	local ok, err = pcall(fn, ...)
	assert.is_false(ok)
	assert.truthy(tostring(err):find(message, 1, true), "got: " .. tostring(err))
end

describe("a schema of constructors", function()
	it("writes its fields sorted, required and closed", function()
		assert.equal(
			'{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["b"],'
				.. '"additionalProperties":false}',
			text_of(s.object { b = s.string, a = s.optional(s.integer) })
		)
	end)

	it("keeps the order of a list of pairs", function()
		assert.equal(
			'{"type":"object","properties":{"z":{"type":"null"},"a":{}},"required":["z","a"],"additionalProperties":false}',
			text_of(s.object { { "z", s.null }, { "a", s.any } })
		)
	end)

	it("leaves an open object open, or gives the schema of its other members", function()
		assert.equal('{"type":"object","properties":{}}', text_of(s.object({}, { open = true })))
		assert.equal(
			'{"type":"object","properties":{},"additionalProperties":{"type":"number"}}',
			text_of(s.object({}, { open = s.number }))
		)
	end)

	it("takes the basic types bare and called", function()
		assert.equal('{"type":"integer"}', text_of(s.integer))
		assert.equal('{"type":"integer"}', text_of(s.integer {}))
		assert.equal('{"type":"integer"}', text_of(s.integer()))
		assert.equal('{"type":"integer","minimum":1,"maximum":9}', text_of(s.integer { min = 1, max = 9 }))
		assert.equal('{"type":"integer","minimum":1,"maximum":9}', text_of(s.integer { minimum = 1, maximum = 9 }))
		assert.equal(
			'{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1.5,"multipleOf":0.5}',
			text_of(s.number { exclusive_minimum = 0, exclusive_maximum = 1.5, multiple_of = 0.5 })
		)
		assert.equal(
			'{"type":"string","minLength":1,"maxLength":3,"pattern":"^a","format":"uuid"}',
			text_of(s.string { min_length = 1, max_length = 3, pattern = "^a", format = "uuid" })
		)
	end)

	it("has enums, literals, unions, arrays, records and null", function()
		assert.equal('{"type":"string","enum":["a","b"]}', text_of(s.enum { "a", "b" }))
		assert.equal('{"enum":[1,"b",null]}', text_of(s.enum { 1, "b", json.null }))
		assert.equal('{"const":{"k":1}}', text_of(s.literal { k = 1 }))
		assert.equal('{"anyOf":[{"type":"string"},{"type":"null"}]}', text_of(s.union { s.string, "null" }))
		assert.equal(
			'{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2,"uniqueItems":true}',
			text_of(s.array("string", { min_items = 1, max_items = 2, unique = true }))
		)
		assert.equal(
			'{"type":"object","additionalProperties":{"type":"number"},"propertyNames":{"pattern":"^x"},"minProperties":1}',
			text_of(s.record(s.number, { key_pattern = "^x", min_properties = 1 }))
		)
		assert.equal('{"type":["string","null"]}', text_of(s.nullable(s.string)))
		assert.equal('{"anyOf":[{"type":"string","enum":["a"]},{"type":"null"}]}', text_of(s.nullable(s.enum { "a" })))
	end)

	it("describes without changing what it describes", function()
		local plain = s.string { min_length = 1 }
		local described = s.optional(plain):describe "a path"
		assert.equal('{"type":"string","minLength":1,"description":"a path"}', text_of(described))
		assert.equal('{"type":"string","minLength":1}', text_of(plain))
		assert.equal('{"type":"string","minLength":1,"description":"b"}', text_of(described:describe "b"))
		assert.is_true(s.compile(s.object { f = described }):validate {})
		assert.equal('{"type":"boolean","title":"t","description":"d","examples":[true]}',
			text_of(s.boolean { examples = { true }, description = "d", title = "t" }))
	end)

	it("refuses unknown options with the closest known one", function()
		raises('schema.string: unknown option "minlength"', s.string, { minlength = 1 })
		raises('Did you mean "min_length"?', s.string, { minlength = 1 })
		raises('schema.array: unknown option "uniq"', s.array, s.string, { uniq = true })
		raises('schema.compile: unknown option "registred"', s.compile, s.string, { registred = {} })
		raises("schema.string: min_length: expected an integer from 0, got -1", s.string, { min_length = -1 })
		raises("schema.integer: min: expected an integer, got 1.5", s.integer, { min = 1.5 })
		raises("this schema is complete", s.array(s.string), {})
	end)

	it("names the caller's line when it raises", function()
		local line = debug.getinfo(1, "l").currentline
		local ok, err = pcall(function() s.object { a = 7 } end)
		assert.is_false(ok)
		assert.equal(("spec/schema_spec.lua:%d: schema: /properties/a: expected a schema, got number"):format(line + 1),
			(err:gsub("^.-spec/", "spec/")))
	end)

	it("refuses what makes no schema", function()
		raises("schema.enum: expected a list", s.enum, {})
		raises("schema.union: expected a list", s.union, s.string)
		raises("schema.literal: expected a value", s.literal, nil)
		raises("schema.default: expected a value", s.default, s.string, nil)
		raises("the default doesn't fit: expected integer, got string", s.default, s.integer, "1")
		raises('the field "a" stands twice', s.object, { { "a", s.string }, { "a", s.string } })
		raises("expected {name, schema} as field 1", s.object, { { "a" } })
		raises("expected a table of fields", s.object, s.string)
		raises("describe: expected a string", s.string.describe, s.string, 7)
	end)
end)

describe("the short form", function()
	it("has type names, optional ones, lists and nested objects", function()
		assert.equal(
			'{"type":"object","properties":{"expr":{"type":"string"},"limit":{"type":"integer"},'
				.. '"tags":{"type":"array","items":{"type":"string"}},'
				.. '"where":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"],"additionalProperties":false}},'
				.. '"required":["expr","tags","where"],"additionalProperties":false}',
			text_of { expr = "string", limit = "integer?", tags = { "string" }, where = { x = "number" } }
		)
	end)

	it("mixes with constructors", function()
		assert.equal(
			'{"type":"object","properties":{"a":{"type":"string","minLength":1},'
				.. '"b":{"type":"array","items":{"type":"boolean"}}},'
				.. '"required":["a","b"],"additionalProperties":false}',
			text_of { a = s.string { min_length = 1 }, b = { s.boolean } }
		)
	end)

	it("is an object without fields when empty", function()
		assert.equal('{"type":"object","properties":{},"additionalProperties":false}', text_of {})
	end)

	it("says what a misspelt type should be", function()
		raises('schema: /properties/a: expected "string"', s.compile, { a = "strin" })
		raises("for alternatives use s.union", s.compile, { a = { "string", "number" } })
		raises("expected names as keys, got true", s.compile, { [true] = "string" })
		raises("expected a schema, got number", s.compile, { a = 1 })
	end)

	it("is told apart from JSON Schema by its keys and their values", function()
		-- keywords whose values are a keyword's: JSON Schema
		assert.equal('{"type":"string"}', text_of { type = "string" })
		assert.equal('{"maxLength":3,"type":["string","null"]}', text_of { type = { "string", "null" }, maxLength = 3 })
		assert.equal('{"properties":{"a":{"type":"string"}},"type":"object","x-note":1}',
			text_of { type = "object", properties = { a = { type = "string" } }, ["x-note"] = 1 })
		assert.equal('{"$ref":"#/$defs/a","$defs":{"a":{}}}', text_of(json.ordered {
			{ "$ref", "#/$defs/a" }, { "$defs", { a = {} } },
		}))
		assert.equal('{"enum":["a"]}', text_of { enum = { "a" } })
		-- another name among them, or a value that no keyword takes: fields
		assert.equal(
			'{"type":"object","properties":{"name":{"type":"string"},"type":{"type":"string"}},"required":["name","type"],'
				.. '"additionalProperties":false}',
			text_of { type = "string", name = "string" }
		)
		assert.equal(
			'{"type":"object","properties":{"type":{"type":"string"}},"additionalProperties":false}',
			text_of { type = "string?" }
		)
		assert.equal(
			'{"type":"object","properties":{"title":{"type":"string"}},"required":["title"],"additionalProperties":false}',
			text_of { title = "string" }
		)
		-- and s.object always means fields
		assert.equal(
			'{"type":"object","properties":{"type":{"type":"string"}},"required":["type"],"additionalProperties":false}',
			text_of(s.object { type = "string" })
		)
	end)
end)

describe("JSON Schema", function()
	it("keeps the bytes of a string", function()
		local text = '{ "type" : "integer",\n"minimum": 1 }'
		assert.equal(text, text_of(text))
		assert.equal("true", text_of "true")
	end)

	it("writes a table's keys sorted, with constructors inside written out", function()
		assert.equal(
			'{"items":{"type":"string","minLength":1},"type":"array"}',
			text_of { type = "array", items = s.string { min_length = 1 } }
		)
	end)

	it("writes an empty Lua table as a list where the draft wants one", function()
		assert.equal('{"enum":[1],"required":[]}', text_of { required = {}, enum = { 1 } })
		assert.equal('{"properties":{"a":{"default":[],"type":"array"}},"type":"object"}',
			text_of { type = "object", properties = { a = { type = "array", default = {} } } })
	end)

	it("is an error at definition when it is bad, with the place", function()
		raises("schema: /properties/x/type: expected one of", s.compile, { properties = { x = { type = "strng" } } })
		raises("schema: /minLength: expected an integer of 0 or more", s.compile, '{"minLength":-1}')
		raises("schema: the schema isn't valid JSON", s.compile, '{"type":')
		raises("schema: /$ref: \"other\" leads to no schema", s.compile, { ["$ref"] = "other" })
		raises("never end", s.compile, '{"$ref":"#"}')
		raises("schema: /pattern: not an ECMA-262 regular expression", s.compile, s.string { pattern = "(" })
	end)

	it("reaches registered documents by their URI, and fetches nothing", function()
		local schema = s.compile({ ["$ref"] = "http://a.example/names#/$defs/name" }, {
			registered = { ["http://a.example/names"] = { ["$defs"] = { name = { type = "string" } } } },
		})
		assert.is_true(schema:validate "x")
		assert.is_false(schema:validate(1))
		raises("registered: expected documents by URI", s.compile, "true", { registered = { "true" } })
		raises("http://a.example/x isn't valid JSON", s.compile, "true", { registered = { ["http://a.example/x"] = "{" } })
	end)

	it("checks formats only when asked to", function()
		assert.is_true(s.compile(s.string { format = "uuid" }):validate "x")
		local ok, errors = s.compile(s.string { format = "uuid" }, { format_assertion = true }):validate "x"
		assert.is_false(ok)
		assert.equal('expected UUID, got string "x"', errors[1].message)
	end)

	it("may be compiled already", function()
		local schema = s.compile(s.integer)
		assert.equal(schema, s.compile(schema))
		assert.equal('{"type":"array","items":{"type":"integer"}}', text_of(s.array(schema)))
	end)
end)

describe("the bytes sent to a model", function()
	it("are the same whatever order a table was filled in", function()
		local names = {}
		for i = 1, 50 do
			names[i] = "field_" .. i
		end
		local function build(order)
			local fields = {}
			for _, i in ipairs(order) do
				fields[names[i]] = s.record(s.union { "string", s.object { b = "integer", a = "boolean?" } })
			end
			return text_of(fields)
		end
		local up, down = {}, {}
		for i = 1, 50 do
			up[i], down[i] = i, 51 - i
		end
		local first = build(up)
		assert.equal(first, build(down))
		assert.equal(first, build(up))
	end)
end)

describe("validation", function()
	local search = s.compile(s.object {
		expr = s.string { min_length = 1 },
		limit = s.default(s.integer { min = 1, max = 100 }, 10),
		ratio = s.optional(s.number),
		tags = s.optional(s.array(s.string)),
	})

	it("gives the value with its defaults", function()
		local ok, value = search:validate { expr = "x" }
		assert.is_true(ok)
		assert.same({ expr = "x", limit = 10 }, value)
		assert.equal("integer", math.type(value.limit))
	end)

	it("leaves the caller's value as it was", function()
		local given = { expr = "x" }
		search:validate(given)
		assert.same({ expr = "x" }, given)
	end)

	it("reads, checks and gives JSON text in one go", function()
		local ok, value = search:validate_json '{"expr":"x","limit":1.0,"tags":[]}'
		assert.is_true(ok)
		assert.same({ expr = "x", limit = 1, tags = json.array() }, value)
		assert.equal("integer", math.type(value.limit))
		assert.equal(core.array_mt, getmetatable(value.tags))
	end)

	it("names every bad path, not only the first", function()
		assert.same({
			'/bogus: unknown property "bogus", expected one of the properties "n", "name", "tags"',
			"/n: expected a number of at most 5, got integer 9",
			"/tags/1: expected string, got integer 2",
			"/tags/2: expected string, got null",
			'/name: required property "name" is missing',
		}, complaints({ n = s.integer { max = 5 }, name = "string", tags = { "string" } },
			{ n = 9, tags = { "a", 2, json.null }, bogus = true }))
	end)

	it("tells each part of an error apart", function()
		local _, errors = s.compile(s.integer):validate "7"
		assert.same({ {
			path = "", expected = "integer", actual = 'string "7"', message = 'expected integer, got string "7"',
		} }, errors)
	end)

	it("stops telling after fifty and says how many more there are", function()
		local list = {}
		for i = 1, 80 do
			list[i] = i
		end
		local lines = complaints({ "string" }, list)
		assert.equal(51, #lines)
		assert.equal(": … and 30 more", lines[51])
	end)

	it("makes one error of a text that isn't JSON", function()
		for _, text in ipairs { "", "{", '{"a":1}x', "\xFF", '{"a":NaN}', "\0" } do
			local ok, errors = search:validate_json(text)
			assert.is_false(ok)
			assert.equal(1, #errors)
			assert.equal("", errors[1].path)
			assert.truthy(errors[1].message:find "^not valid JSON: .+%(offset %d+%)$")
		end
		assert.has_error(function() search:validate_json(7) end)
		assert.has_error(function() search.validate() end)
		assert.has_error(function() search.validate("x", "y") end)
		assert.has_error(function() search:validate() end)
		assert.has_error(function() search.json(io.stdout) end)
	end)

	it("makes one error of a Lua value without a JSON form, with its place", function()
		local any = s.compile(s.any)
		local cycle = {}
		cycle.x = { cycle }
		for path, value in pairs {
			["/a/1/b c"] = { a = { 1, { ["b c"] = print } } },
			["/n"] = { n = 0 / 0 },
			["/s"] = { s = "\xFF" },
			["/x/0"] = cycle,
		} do
			local ok, errors = any:validate(value)
			assert.is_false(ok)
			assert.equal(1, #errors)
			assert.equal(path, errors[1].path)
		end
	end)

	it("takes an empty Lua table for a list or an object, as the schema wants", function()
		local ok, value = s.compile({ list = { "string" }, map = s.record(s.any) }):validate { list = {}, map = {} }
		assert.is_true(ok)
		assert.equal('{"list":[],"map":{}}', json.encode(value))
		assert.is_true(s.compile(s.union { s.array(s.any), s.object {} }):validate {})
		assert.is_false(s.compile(s.object {}):validate(json.array()))
	end)

	it("fills in nested defaults, and a fresh copy each time", function()
		local schema = s.compile {
			options = s.default(s.object { deep = s.default({ "integer" }, json.array { 1, 2 }) }, {}),
		}
		local _, first = schema:validate {}
		assert.same({ options = { deep = json.array { 1, 2 } } }, first)
		first.options.deep[1] = "changed"
		local _, second = schema:validate {}
		assert.same({ options = { deep = json.array { 1, 2 } } }, second)
	end)
end)

describe("integers in a schema", function()
	local integer, number = s.compile(s.integer), s.compile(s.number)

	it("keep all 64 bits both ways", function()
		for _, text in ipairs { "1618065507111835497", "9223372036854775807", "-9223372036854775808", "9007199254740993" } do
			for _, schema in ipairs { integer, number } do
				local ok, value = schema:validate_json(text)
				assert.is_true(ok)
				assert.equal(text, json.encode(value))
				ok, value = schema:validate(math.tointeger(text))
				assert.is_true(ok)
				assert.equal(text, json.encode(value))
			end
		end
	end)

	it("are errors when int64 can't hold them, and the nearest double where a number will do", function()
		for _, text in ipairs {
			"18446744073709551616", "9223372036854775808", "-9223372036854775809", "1e19", "1e300",
			"9007199254740993.0", "4503599627370496.4", "1.00000000000000000000000000001", "1e-400",
		} do
			assert.is_false((integer:validate_json(text)), text)
			local ok, value = number:validate_json(text)
			assert.is_true(ok)
			assert.equal(tonumber(text) + 0.0, value)
		end
		assert.is_false((integer:validate(2.0 ^ 63)))
		assert.is_false((integer:validate(1.5)))
	end)

	it("take whole floats and hand them on as integers", function()
		for text, expected in pairs { ["1.0"] = 1, ["1e3"] = 1000, ["-0.0"] = 0, ["1e18"] = 10 ^ 18 // 1 | 0 } do
			local ok, value = integer:validate_json(text)
			assert.is_true(ok)
			assert.equal(expected, value)
			assert.equal("integer", math.type(value))
		end
		local _, value = integer:validate(2.0 ^ 53)
		assert.equal("integer", math.type(value))
	end)

	it("compare exactly with bounds past 2^53", function()
		local bounded = s.compile(s.integer { min = 9007199254740993, max = math.maxinteger })
		assert.is_false((bounded:validate(9007199254740992)))
		assert.is_true((bounded:validate(9007199254740993)))
		assert.is_true((bounded:validate(math.maxinteger)))
	end)
end)

describe("extreme input", function()
	it("keeps NUL bytes in names and values", function()
		local schema = s.compile(s.object { ["a\0b"] = s.string { max_length = 3 } })
		local ok, value = schema:validate_json '{"a\\u0000b":"\\u0000x\\u0000"}'
		assert.is_true(ok)
		assert.equal("\0x\0", value["a\0b"])
		assert.same({ '/a\\u0000c: unknown property "a\\u0000c", expected one of the properties "a\\u0000b"',
			'/a\\u0000b: required property "a\\u0000b" is missing' }, complaints(schema, { ["a\0c"] = 1 }))
	end)

	it("goes 1000 levels deep and says so beyond", function()
		local nested = s.compile '{"type":"array","items":{"$ref":"#"}}'
		assert.is_true((nested:validate_json(("["):rep(1000) .. ("]"):rep(1000))))
		local ok, errors = nested:validate_json(("["):rep(1001) .. ("]"):rep(1001))
		assert.is_false(ok)
		assert.equal("", errors[1].path)
	end)

	it("takes a text of 50 MB, and refuses one past the reader's limit", function()
		local list = s.compile(s.array(s.string))
		local item = '"' .. ("x"):rep(998) .. '",'
		local text = "[" .. item:rep(50000) .. '""]'
		local ok, value = list:validate_json(text)
		assert.is_true(ok)
		assert.equal(50001, #value)
		local refused, errors = list:validate_json("[" .. item:rep(68000) .. '""]')
		assert.is_false(refused)
		assert.equal(1, #errors)
	end)

	it("finds a repeated item among many in good time", function()
		local unique = s.compile '{"uniqueItems":true}'
		local list = {}
		for i = 1, 100000 do
			list[i] = { id = i, name = "n" .. i }
		end
		assert.is_true((unique:validate(list)))
		list[100000] = { name = "n7", id = 7.0 }
		local ok, errors = unique:validate(list)
		assert.is_false(ok)
		assert.truthy(errors[1].message:find("items 6 and 99999 are equal", 1, true))
	end)

	it("gives up on a pattern that would never end, and says so", function()
		local schema = s.compile(s.string { pattern = "^(a|aa)+$" })
		local ok, errors = schema:validate(("a"):rep(80) .. "!")
		assert.is_false(ok)
		assert.truthy(errors[1].message:find("match limit", 1, true))
	end)

	it("gives up on a schema that branches without end", function()
		local defs = { ["0"] = { type = "null" } }
		for i = 1, 40 do
			local ref = { ["$ref"] = "#/$defs/" .. i - 1 }
			defs[tostring(i)] = { allOf = { ref, ref } }
		end
		local ok, errors = s.compile { ["$ref"] = "#/$defs/40", ["$defs"] = defs }:validate(json.null)
		assert.is_false(ok)
		assert.truthy(errors[1].message:find("too much work", 1, true))
	end)
end)

describe("a compiled schema", function()
	it("validates from a finalizer in the middle of a validation", function()
		local schema = s.compile(s.array(s.object { n = "integer", t = "string" }))
		local ran, wrong = 0, 0
		local function plant()
			setmetatable({}, { __gc = function()
				local ok, value = schema:validate_json '[{"n":7,"t":"inner"}]'
				ran = ran + 1
				if not ok or value[1].t ~= "inner" then wrong = wrong + 1 end
			end })
		end
		local items = {}
		for i = 1, 500 do
			items[i] = ('{"n":%d,"t":"outer %d"}'):format(i, i)
		end
		local text = "[" .. table.concat(items, ",") .. "]"
		for _ = 1, 50 do
			for _ = 1, 20 do plant() end
			local ok, value = schema:validate_json(text)
			assert.is_true(ok)
			for i = 1, 500 do
				if value[i].n ~= i or value[i].t ~= "outer " .. i then wrong = wrong + 1 end
			end
		end
		collectgarbage()
		assert.is_true(ran > 0)
		assert.equal(0, wrong)
	end)

	it("hides its metatable and stays usable when its text is asked for", function()
		local schema = s.compile(s.any)
		assert.equal("lattice.schema", getmetatable(schema))
		assert.equal("{}", schema:json())
	end)
end)
