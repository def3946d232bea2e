-- Scripts that come with the server, for benchmarks and the demo. What they answer depends on the request alone, so
-- that a thousand agents can share one server.

local reply = require "scripts.model_server.reply"

local builtins = {}

-- Results in a history, counted in the raw text: in a JSON string the quotes would be escaped, so that only
-- real blocks match. Cheap also where the body isn't decoded (`--lenient`).
local function count_results(raw)
	local _, n = raw:gsub('"type"%s*:%s*"tool_result"', "")
	return n
end

local function first_tool(request)
	return request.raw:match('"tools"%s*:%s*%[.-"name"%s*:%s*"([%w_-]+)"') or "step"
end

local make = {}

-- Asks for the first tool until the history holds `steps` results, then says so.
function make.loop(steps)
	steps = tonumber(steps) or 10
	return function(request)
		local done = count_results(request.raw)
		if done >= steps then
			return reply.text("All " .. steps .. " steps are done.")
		end
		return reply.message { "Step " .. done + 1 .. ".", reply.tool_use(first_tool(request), { step = done + 1 }) }
	end
end

-- One long text in deltas of `size` characters; the same bytes each time, so that they are made once.
function make.text(length, size)
	local line = "All work and no play makes a long and even text. "
	length = tonumber(length) or 1000000
	local text = line:rep(length // #line + 1):sub(1, length - 1) .. "."
	local made = reply.text(text, { delta_size = tonumber(size) or 20 })
	made.cache = true
	return function()
		return made
	end
end

-- A short answer to each turn.
function make.turns()
	return function(request)
		local _, turns = request.raw:gsub('"role"%s*:%s*"assistant"', "")
		return reply.text("Answer " .. turns + 1 .. ".")
	end
end

function make.demo()
	return require("scripts.demo_model").answer
end

--- Opens `name[:argument[:argument]]`.
---@param spec string
---@return function|table # what a script's chunk may return
function builtins.open(spec)
	local name, rest = spec:match("^(%w+):?(.*)$")
	if not make[name] then
		error(("no builtin script %q: there are demo, loop:STEPS, text:CHARACTERS:DELTA and turns"):format(spec), 0)
	end
	local arguments = {}
	for argument in rest:gmatch("[^:]+") do
		arguments[#arguments + 1] = argument
	end
	return make[name](table.unpack(arguments))
end

return builtins
