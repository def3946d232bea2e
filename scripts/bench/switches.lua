-- What waits of handlers cost: lua5.4 switches.lua N. Prints microseconds for a switch between bare coroutines, a
-- switch between tasks of the engine, and a round trip to a worker.

local core = require "lattice.core"
local lattice = require "lattice"
local task = require "lattice.task"

local N = tonumber(arg[1]) or 1000000
local ROUND_TRIPS = N // 50

local function per_switch(count, fn)
	local began = core.now_ms()
	fn()
	return (core.now_ms() - began) / count * 1000
end

local bare = per_switch(N, function()
	local co = coroutine.wrap(function()
		while true do
			coroutine.yield()
		end
	end)
	for _ = 1, N do
		co()
	end
end)

-- Two tasks hand a baton to each other: each wait is one switch, through the queue of ready tasks.
local switched = per_switch(N, function()
	local baton = { { done = true }, { done = false } }
	local function player(own, other)
		return function()
			for _ = 1, N // 2 do
				task.wait(baton[own])
				baton[own] = { done = false }
				task.fire(baton[other])
			end
		end
	end
	lattice.gather { player(1, 2), player(2, 1) }
end)

local worker = core.worker {
	source = function(input)
		return input
	end,
}
local function round_trip()
	local op <close> = worker:call(1, {})
	task.wait_op(op)
end
round_trip()
local trip = per_switch(ROUND_TRIPS, function()
	for _ = 1, ROUND_TRIPS do
		round_trip()
	end
end)

print(("%.3f %.3f %.3f"):format(bare, switched, trip))
