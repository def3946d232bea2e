local json = require "lattice.json"
local core = require "lattice.core"
local json_values = require "spec.support.json_values"

local SCALE = tonumber(os.getenv "LATTICE_SPEC_SCALE") or 1
local SEED = tonumber(os.getenv "SEED") or os.time()

local function rounds(all)
	return math.max(20, math.floor(all * SCALE))
end

local function seeded(what)
	print(("%s: SEED=%d"):format(what, SEED))
	math.randomseed(SEED)
	return math.random
end

local function raises(value, message)
	local ok, err = pcall(json.encode, value)
	assert.is_false(ok)
	assert.equal("json.encode: " .. message, err)
end

local function nested(levels)
	return ("["):rep(levels) .. ("]"):rep(levels)
end

describe("decoding JSON", function()
	it("gives Lua's own types", function()
		local value = json.decode ' {"s":"text","i":7,"f":7.0,"t":true,"n":null,"a":[1,[]],"o":{}} '
		assert(json_values.equal(value, {
			s = "text", i = 7, f = 7.0, t = true, n = json.null, a = json.array { 1, json.array() }, o = {},
		}))
		assert.equal("float", math.type(value.f))
		assert.is_nil(getmetatable(value.o))
	end)

	it("marks arrays, empty ones too, so that they are encoded as arrays", function()
		assert.equal('{"a":[],"b":{}}', json.encode(json.decode '{"b":{},"a":[]}'))
		assert.equal(core.array_mt, getmetatable(json.decode "[]"))
	end)

	it("gives null as json.null, at the top as well", function()
		assert.equal(json.null, json.decode "null")
		assert.is_false((json.decode "false"))
	end)

	it("keeps the last of equal keys", function()
		assert.same({ a = 2 }, json.decode [[{"a":1,"\u0061":2}]])
	end)

	it("keeps NUL bytes in keys and strings", function()
		assert.same({ ["a\0b"] = "\0" }, json.decode [[{"a\u0000b":"\u0000"}]])
		assert.equal([[{"a\u0000b":"\u0000"}]], json.encode { ["a\0b"] = "\0" })
	end)

	it("says what is wrong, what would be right, and at which byte", function()
		local function fails(text, message)
			local value, err = json.decode(text)
			assert.is_nil(value)
			assert.equal(message, err)
		end
		fails("", "invalid JSON: expected a value, got the end of the text")
		fails('{"a":tru}', "invalid JSON at byte 6: expected a value, got 't'")
		fails("[1,2", "invalid JSON: expected ',' or ']', got the end of the text")
		fails("[1] 2", "invalid JSON at byte 5: expected nothing behind the value, got '2'")
		fails('["\xff"]', "invalid JSON at byte 3: invalid UTF-8 in a string")
		fails("1e999", "JSON refused at byte 1: the number is past the range of a double")
	end)

	it("takes 1000 levels of nesting and refuses one more", function()
		local text = nested(1000)
		assert.equal(text, json.encode(json.decode(text)))
		local value, message = json.decode(nested(1001))
		assert.is_nil(value)
		assert.equal("JSON refused at byte 1001: nested deeper than 1000 levels", message)
		assert.is_nil((json.decode(("["):rep(1000000))))
		assert.is_nil((json.decode(('{"a":'):rep(1000000))))
	end)

	it("takes 1000 levels inside a coroutine inside a coroutine", function()
		local text = nested(1000)
		local inner = coroutine.wrap(function()
			return coroutine.wrap(function()
				return json.encode(json.decode(text))
			end)()
		end)
		assert.equal(text, inner())
	end)

	it("refuses what passes the given limits", function()
		assert.same({ 1 }, json.decode("[1]", 3, 1))
		local _, message = json.decode("[1]", 2)
		assert.equal("JSON refused at byte 3: the text has 3 bytes, at most 2 are allowed", message)
		_, message = json.decode("[[1]]", nil, 1)
		assert.equal("JSON refused at byte 2: nested deeper than 1 levels", message)
		assert.is_nil((json.decode(nested(1001), nil, 5000)))
	end)

	it("takes texts of 50 MB and refuses those past 64 MiB unless told otherwise", function()
		local long = ("x"):rep(50000000)
		local value = json.decode('["' .. long .. '"]')
		assert(value[1] == long)
		long = long .. ("x"):rep(20000000)
		local _, message = json.decode('"' .. long .. '"')
		assert.equal("JSON refused at byte 67108865: the text has 70000002 bytes, "
			.. "at most 67108864 are allowed", message)
		assert((json.decode('"' .. long .. '"', 80000000)) == long)
	end)

	it("takes objects of very many keys", function()
		local n = rounds(300000)
		local parts = {}
		for i = 1, n do
			parts[i] = ('"k%d":%d'):format(i, i)
		end
		local text = "{" .. table.concat(parts, ",") .. "," .. table.concat(parts, ",") .. "}"
		local value = json.decode(text)
		local count = 0
		for key, i in pairs(value) do
			assert(key == "k" .. i)
			count = count + 1
		end
		assert.equal(n, count)
	end)

	it("raises for what isn't a text or a limit", function()
		local function misuse(message, ...)
			local ok, err = pcall(json.decode, ...)
			assert.is_false(ok)
			assert.equal(message, err)
		end
		misuse("json.decode: expected a string, got number", 7)
		misuse("json.decode: expected a string, got no value")
		misuse("json.decode: max_bytes: expected a positive integer, got 0", "1", 0)
		misuse("json.decode: max_depth: expected a positive integer, got 1.5", "1", 1, 1.5)
		misuse("json.decode: max_depth: expected a positive integer, got x", "1", 1, "x")
	end)
end)

describe("integers past 2^53 (case 8 of the known faults)", function()
	local EDGES = {
		"9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993",
		"1618065507111835497", "999999999999999999", "1000000000000000000", "9223372036854775806",
		"9223372036854775807", "-9223372036854775807", "-9223372036854775808", "4294967296",
		"-4294967297", "0",
	}

	for _, digits in ipairs(EDGES) do
		it("stay exact both ways: " .. digits, function()
			local value = json.decode('{"id":' .. digits .. "}")
			assert.equal("integer", math.type(value.id))
			assert.equal(digits, ("%d"):format(value.id))
			assert.equal('{"id":' .. digits .. "}", json.encode(value))
		end)
	end

	it("stay exact at every power of two and its neighbours", function()
		for shift = 0, 63 do
			for offset = -1, 1 do
				for _, n in ipairs { (1 << shift) + offset, -(1 << shift) + offset } do
					local digits = ("%d"):format(n)
					assert.equal(digits, json.encode(n))
					assert.equal(n, json.decode(digits))
					assert.equal("integer", math.type(json.decode(digits)))
				end
			end
		end
	end)

	it("stay exact for any of int64", function()
		local random = seeded "any of int64"
		for _ = 1, rounds(20000) do
			local n = random(0)
			local text = json.encode { n }
			assert.equal(("[%d]"):format(n), text)
			local back = json.decode(text)[1]
			assert(back == n and math.type(back) == "integer", text)
		end
	end)

	it("are the nearest float when int64 can't hold them", function()
		for digits, nearest in pairs {
			["9223372036854775808"] = 0x1p63,
			["-9223372036854775809"] = -0x1p63,
			["18446744073709551615"] = 0x1p64,
			["18446744073709551616"] = 0x1p64,
			["100000000000000000000"] = 1e20,
		} do
			local value = json.decode(digits)
			assert.equal("float", math.type(value))
			assert.equal(nearest, value)
		end
	end)

	it("are not confused with floats of the same value", function()
		assert.equal("[1,1.0,-0.0,9007199254740992.0]", json.encode { 1, 1.0, -0.0, 0x1p53 })
		assert.equal("float", math.type(json.decode "1e3"))
		assert.equal("float", math.type(json.decode "9007199254740993.0"))
	end)
end)

describe("encoding JSON", function()
	it("sorts keys by their bytes, whatever order they came in", function()
		local t = {}
		for _, key in ipairs { "b", "a", "Z", "aa", "", "é", "~" } do
			t[key] = 1
		end
		assert.equal('{"":1,"Z":1,"a":1,"aa":1,"b":1,"~":1,"é":1}', json.encode(t))
	end)

	it("sorts many keys as few", function()
		local t, keys = {}, {}
		for i = 1, 500 do
			keys[i] = ("k%d"):format(i * 7919 % 1000)
			t[keys[i]] = i
		end
		table.sort(keys)
		local found = {}
		for key in json.encode(t):gmatch '"(k%d+)"' do
			table.insert(found, key)
		end
		assert.same(keys, found)
	end)

	it("keeps the order of json.ordered", function()
		local inner = json.ordered { { "z", 1 }, { "a", json.ordered {} } }
		assert.equal('{"b":[{"z":1,"a":{}}],"a":null}',
			json.encode(json.ordered { { "b", { inner } }, { "a", json.null } }))
	end)

	it("takes an empty table for an object unless it is marked", function()
		assert.equal("{}", json.encode {})
		assert.equal("[]", json.encode(json.array {}))
		assert.equal("[1]", json.encode { 1 })
	end)

	it("escapes only what must be escaped", function()
		assert.equal([["\"\\/\b\f\n\r\t\u0000\u001f]] .. "\u{7f}é€\u{2028}\u{1F600}\"",
			json.encode "\"\\/\b\f\n\r\t\0\u{1f}\u{7f}é€\u{2028}\u{1F600}")
	end)

	it("writes floats with the fewest digits that read back", function()
		assert.equal("[0.1,0.30000000000000004,1e300,5e-324,123456.789,1e100]",
			json.encode { 0.1, 0.1 + 0.2, 1e300, 5e-324, 123456.789, 1e100 })
	end)

	it("gives the same bytes each time", function()
		local random = seeded "the same bytes"
		for _ = 1, rounds(500) do
			local value = json_values.random(random, 4)
			local text = json.encode(value)
			assert.equal(text, json.encode(json.decode(text)))
		end
	end)

	it("ignores a plain metatable, and refuses one that shows other members", function()
		assert.equal('{"a":1}', json.encode(setmetatable({ a = 1 }, { __index = { b = 2 } })))
		raises({ x = setmetatable({}, { __pairs = pairs }) },
			"$.x: a table with __pairs shows other members than it has; copy it first")
	end)

	it("raises at the caller's line", function()
		local ok, err = pcall(function()
			json.encode(print)
		end)
		assert.is_false(ok)
		assert(err:match "json_spec%.lua:%d+: json%.encode: ", err)
	end)
end)

describe("a value without a JSON form", function()
	it("is refused with its path", function()
		raises(0 / 0, "$: NaN has no JSON form")
		raises({ a = { 1, { b = 0 / 0 } } }, "$.a[2].b: NaN has no JSON form")
		raises({ -math.huge }, "$[1]: infinity has no JSON form")
		raises(nil, "$: nil has no JSON form; use json.null")
		raises({ f = print }, "$.f: a value of type function has no JSON form")
		raises({ { coroutine.create(print) } }, "$[1][1]: a value of type thread has no JSON form")
		raises({ u = io.stdout }, "$.u: a value of type userdata has no JSON form")
		raises(json.ordered { { "k", { 0 / 0 } } }, "$.k[1]: NaN has no JSON form")
	end)

	it("is refused when the path needs quotes", function()
		raises({ ["two words"] = { ['"\n'] = print } },
			[[$["two words"]["\"\x0a"]: a value of type function has no JSON form]])
		raises({ ["é"] = print }, [[$["é"]: a value of type function has no JSON form]])
	end)

	it("is refused when it isn't UTF-8, as a string and as a key", function()
		raises({ a = "ok\xff" }, "$.a: the string is not UTF-8: byte 3 is 0xff")
		raises({ { ["\xed\xa0\x80"] = 1 } }, [=[$[1]["\xed\xa0\x80"]: the key is not UTF-8: byte 1 is 0xed]=])
		raises(json.ordered { { "\x80", 1 } }, [=[$["\x80"]: the key is not UTF-8: byte 1 is 0x80]=])
	end)

	it("is refused as a mixed or sparse table", function()
		raises({ t = { 1, 2, x = 3 } }, '$.t: a mixed table: items and the key "x" have no form together')
		raises({ 1, [0] = 2 }, "$: a mixed table: items and the key 0 have no form together")
		raises({ 1, nil, 3 }, "$[2]: a sparse array: no value here; use json.null")
		raises({ 1, [3] = 3 }, "$: a sparse array: item 3 behind a hole; use json.null")
		raises({ [5] = 1 }, "$: the key 5: keys are strings, and arrays start at 1")
		raises({ a = 1, [1.5] = 1 }, "$: the key 1.5: keys are strings, and arrays start at 1")
		raises({ [true] = 1 }, "$: the key of type boolean: keys are strings, and arrays start at 1")
		raises(json.array { x = 1 }, '$: marked as an array, but has the key "x"')
	end)

	it("is refused as a cycle, naming the first table that stands inside itself", function()
		local t = { a = { {} } }
		t.a[1].b = t.a
		raises(t, "$.a[1].b: a cycle: this table stands inside itself")
		local own = {}
		own[1] = own
		raises({ x = own }, "$.x[1]: a cycle: this table stands inside itself")
	end)

	it("is not a table that stands in two places", function()
		local shared = { 1 }
		assert.equal('{"a":[1],"b":[[1],[1]]}', json.encode { a = shared, b = { shared, shared } })
	end)

	it("is refused past 1000 levels", function()
		local t = {}
		for _ = 1, 999 do
			t = { t }
		end
		assert.equal(2000, #json.encode(t))
		local ok, err = pcall(json.encode, { t })
		assert.is_false(ok)
		assert(err:match "^json%.encode: %$%[1%]%[1%].*%.%.%.: nested deeper than 1000 levels$", err)
	end)

	it("is refused in json.ordered that isn't pairs, or has a key twice", function()
		raises(json.ordered { { "a" } }, "$: json.ordered: item 1 must be {string, value}")
		raises(json.ordered { { "a", 1 }, { 2, 2 } }, "$: json.ordered: item 2 must be {string, value}")
		raises(json.ordered { { "a", 1 }, "b" }, "$: json.ordered: item 2 must be {string, value}")
		raises({ o = json.ordered { { "a", 1 }, { "b", 1 }, { "a", 2 } } },
			"$.o.a: the key stands twice in json.ordered")
		raises(json.ordered { x = 1 }, '$: marked as an array, but has the key "x"')
	end)
end)

describe("json.array and json.ordered", function()
	it("mark the given table itself", function()
		local t = { 1 }
		assert.equal(t, json.array(t))
		assert.equal(t, json.array(t))
		assert.equal(core.array_mt, getmetatable(json.array()))
	end)

	it("raise at the caller's line for what isn't a plain table", function()
		local function misuse(message, mark, value)
			local ok, err = pcall(function()
				local marked = mark(value)
				return marked
			end)
			assert.is_false(ok)
			assert(err:find("json_spec.lua:", 1, true) and err:find(message, 1, true), err)
		end
		misuse("json.array: expected a table, got number", json.array, 7)
		misuse("json.array: the table has a metatable already", json.array, setmetatable({}, {}))
		misuse("json.ordered: expected a table, got nil", json.ordered, nil)
		misuse("json.ordered: the table has a metatable already", json.ordered, json.array())
	end)
end)

describe("any value with a JSON form", function()
	it("comes back equal from its text", function()
		local random = seeded "any value"
		for _ = 1, rounds(3000) do
			local value = json_values.random(random, 5)
			local text = json.encode(value)
			local back, message = json.decode(text)
			assert(back ~= nil, message)
			assert(json_values.equal(value, back), text)
		end
	end)

	it("comes back equal while finalizers encode and decode in the middle of calls", function()
		local function list_of(n, name)
			local list = {}
			for i = 1, n do
				list[i] = { id = i, name = name .. "\n" .. i }
			end
			return json.encode(list)
		end
		local text, other = list_of(400, "item"), list_of(600, "finalized")
		local finalized, wrong = 0, 0
		local function litter()
			setmetatable({}, { __gc = function()
				for _ = 1, 2 do
					wrong = wrong + (json.encode(json.decode(other)) == other and 0 or 1)
				end
				finalized = finalized + 1
			end })
		end
		for _ = 1, rounds(200) do
			for _ = 1, 5 do
				litter()
			end
			assert(json.encode(json.decode(text)) == text)
		end
		collectgarbage()
		assert(finalized > 0)
		assert.equal(0, wrong)
	end)
end)

describe("the examples of the annotations", function()
	it("are so", function()
		assert.equal('{"id":7,"tags":[]}', json.encode { id = 7, tags = json.array() })
		assert.same({ id = 7 }, json.decode '{"id":7}')
		assert.equal("[]", json.encode(json.array {}))
		assert.equal('{"b":1,"a":2}', json.encode(json.ordered { { "b", 1 }, { "a", 2 } }))
	end)
end)
