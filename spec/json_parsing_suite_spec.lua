local json = require "lattice.json"
local json_values = require "spec.support.json_values"

local FOLDER = "../shared/cases/json-parsing"

-- What the suite leaves open, and we take. The rest of its i_ files is refused: text that isn't UTF-8, halves
-- of surrogate pairs, numbers that no double is near to.
local TAKEN = {
	["i_number_double_huge_neg_exp.json"] = true, -- 0.0
	["i_number_real_underflow.json"] = true, -- 0.0
	["i_number_too_big_neg_int.json"] = true, -- the nearest double
	["i_number_too_big_pos_int.json"] = true,
	["i_structure_500_nested_arrays.json"] = true,
}

local function case_names()
	local names = {}
	local list <close> = assert(io.popen(("ls '%s' 2>/dev/null"):format(FOLDER)))
	for name in list:lines() do
		if name:match "%.json$" then
			table.insert(names, name)
		end
	end
	return names
end

local function read_file(name)
	local file <close> = assert(io.open(FOLDER .. "/" .. name, "rb"))
	return file:read "a"
end

local function is_read_and_comes_back(text)
	local value, message = json.decode(text)
	assert(value ~= nil, message)
	local encoded = json.encode(value)
	local again = json.decode(encoded)
	assert(json_values.equal(value, again), encoded)
	assert.equal(encoded, json.encode(again))
end

local function is_refused(text)
	local value, message = json.decode(text)
	assert.is_nil(value)
	assert(message:match "^invalid JSON" or message:match "^JSON refused", message)
end

describe("the JSON parsing suite", function()
	local names = case_names()
	if #names == 0 then
		pending(("has no cases here: %s is missing"):format(FOLDER))
	end
	for _, name in ipairs(names) do
		local kind = name:sub(1, 2)
		if kind == "y_" or TAKEN[name] then
			it("reads " .. name .. " and gets it back from its encoding", function()
				is_read_and_comes_back(read_file(name))
			end)
		else
			it("refuses " .. name, function()
				is_refused(read_file(name))
			end)
		end
	end
end)
