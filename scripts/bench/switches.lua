-- What a wait of a handler costs beside a bare coroutine: lua5.4 switches.lua N. Prints both in microseconds.

local lattice = require "lattice"
local task = require "lattice.task"

local N = tonumber(arg[1]) or 1000000

local function per_switch(fn)
	local began = os.clock()
	fn()
	return (os.clock() - began) / N * 1e6
end

local bare = per_switch(function()
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
local switched = per_switch(function()
	local baton = { { done = false }, { done = false } }
	local function player(own, other)
		return function()
			for _ = 1, N // 2 do
				task.wait(baton[own])
				baton[own] = { done = false }
				task.fire(baton[other])
			end
		end
	end
	task.fire(baton[1])
	lattice.gather { player(1, 2), player(2, 1) }
end)

print(("%.3f %.3f"):format(bare, switched))
