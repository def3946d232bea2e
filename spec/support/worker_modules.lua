-- A module for worker handlers in specs: it loads once in each state and counts the calls there.
local calls = 0

return {
	handler = function(input)
		calls = calls + 1
		return { echo = input, calls = calls }
	end,
}
