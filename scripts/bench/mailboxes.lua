-- The rows of the benchmark that are about mailboxes, beside a C program that sends the same statements; run.lua calls
-- this with its own tools.

local ITEMS = 2000
local LEAST = 0.7 -- of the floor's rate

---@param bench table row, median, read_command, lua, bin, rounds
return function(bench)
	local function rates(kind, new_place)
		io.stderr:write(("… %d work items through a mailbox, %s\n"):format(ITEMS, kind))
		local file = os.tmpname()
		local floor, lattice = {}, {}
		for round = 1, math.max(bench.rounds // 2, 3) do
			local function run(program, place, ...)
				return tonumber(bench.read_command(("%s %s \"%s\" %s"):format(program, kind, place, table.concat({ ... }, " "))))
			end
			local place, remove = new_place()
			run(bench.lua .. " scripts/bench/mailbox.lua", place, "statements", file)
			floor[round] = run(bench.bin .. "mailbox_floor", place, file, ITEMS)
			remove()
			place, remove = new_place()
			lattice[round] = run(bench.lua .. " scripts/bench/mailbox.lua", place, ITEMS)
			remove()
		end
		os.remove(file)
		local name = "work items through a mailbox, " .. kind
		local raw, own = bench.median(floor), bench.median(lattice)
		bench.row(name, "items/s", raw, own, "%.0f")
		bench.row(name, "rate / floor", nil, own / raw, "%.2f", ">=", LEAST)
	end

	rates("sqlite", require("spec.support.mailboxes").sqlite_path)
	local postgres = require "spec.support.postgres"
	if not postgres.unavailable() then
		rates("postgres", function()
			local dsn, schema = postgres.new_schema()
			return dsn, function()
				postgres.drop_schema(schema)
			end
		end)
	end
end
