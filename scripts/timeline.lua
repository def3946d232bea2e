-- Draws the tool calls of a trace as a timeline: lua5.4 scripts/timeline.lua TRACE.jsonl [OUT.svg]
--
-- Without OUT it prints a text picture. The trace is one that create_jsonl_context_tracer wrote.

local lattice = require "lattice"

local timeline = {}

local ROW, LEFT, WIDTH, TOP = 26, 180, 640, 40
local COLOURS = { model = "#8aa4c8", tool = "#6cab7b", failed = "#c97064" }

--- Reads a trace: bars {label, kind, from, to} in milliseconds from its first event, in the order they began.
---@param path string
---@return table[] bars
---@return number length ms
function timeline.read(path)
	local bars, open, first, last = {}, {}, nil, 0
	local function begin(key, label, kind, at)
		open[key] = { label = label, kind = kind, from = at, order = #bars + 1 }
		bars[#bars + 1] = open[key]
	end
	for line in io.lines(path) do
		local event = lattice.json.decode(line)
		first = first or event.monotonic_ms
		local at = event.monotonic_ms - first
		last = math.max(last, at)
		if event.event == "model_request" then
			begin("model" .. event.span_id, "model, turn " .. event.turn, "model", at)
		elseif event.event == "model_response" or event.event == "model_error" then
			open["model" .. event.span_id].to = at
		elseif event.event == "tool_start" then
			begin(event.span_id, event.tool_name, "tool", at)
		elseif event.event == "tool_end" and open[event.span_id] then
			open[event.span_id].to = event.ended_ms and event.ended_ms - first or at
			open[event.span_id].kind = event.is_error and "failed" or "tool"
		end
	end
	for _, bar in ipairs(bars) do
		bar.to = bar.to or last
	end
	return bars, math.max(last, 0.001)
end

local function escape(text)
	return (text:gsub('[&<>"]', { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

--- The timeline as an SVG picture.
---@param bars table[]
---@param length number ms
---@return string
function timeline.svg(bars, length)
	local height = TOP + #bars * ROW + 10
	local out = {
		('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">'):format(
			LEFT + WIDTH + 20,
			height
		),
		'<rect width="100%" height="100%" fill="#ffffff"/>',
	}
	for tick = 0, 4 do
		local x = LEFT + WIDTH * tick / 4
		out[#out + 1] = ('<line x1="%.1f" y1="28" x2="%.1f" y2="%d" stroke="#dddddd"/>'):format(x, x, height - 6)
		out[#out + 1] = ('<text x="%.1f" y="20" text-anchor="middle" fill="#555555">%.1f ms</text>'):format(
			x,
			length * tick / 4
		)
	end
	for row, bar in ipairs(bars) do
		local y = TOP + (row - 1) * ROW
		local x, width = LEFT + WIDTH * bar.from / length, math.max(2, WIDTH * (bar.to - bar.from) / length)
		out[#out + 1] = ('<text x="%d" y="%d" text-anchor="end" fill="#222222">%s</text>'):format(
			LEFT - 10,
			y + 14,
			escape(bar.label)
		)
		out[#out + 1] = ('<rect x="%.1f" y="%d" width="%.1f" height="18" rx="3" fill="%s"/>'):format(
			x,
			y,
			width,
			COLOURS[bar.kind]
		)
	end
	out[#out + 1] = "</svg>\n"
	return table.concat(out, "\n")
end

--- The timeline as text, a line a bar.
---@param bars table[]
---@param length number ms
---@param width? integer characters
---@return string
function timeline.text(bars, length, width)
	width = width or 48
	local lines = {}
	for row, bar in ipairs(bars) do
		local from = math.floor(width * bar.from / length)
		local to = math.max(from + 1, math.floor(width * bar.to / length + 0.5))
		lines[row] = ("%-16s |%s%s%s| %6.1f ms"):format(
			bar.label:sub(1, 16),
			(" "):rep(from),
			(bar.kind == "failed" and "x" or bar.kind == "model" and "·" or "█"):rep(to - from),
			(" "):rep(width - to),
			bar.to - bar.from
		)
	end
	return table.concat(lines, "\n") .. "\n"
end

if arg and arg[0] and arg[0]:find "timeline.lua$" then
	local bars, length = timeline.read(assert(arg[1], "usage: lua5.4 scripts/timeline.lua TRACE.jsonl [OUT.svg]"))
	if arg[2] then
		local file <close> = assert(io.open(arg[2], "w"))
		file:write(timeline.svg(bars, length))
	else
		io.write(timeline.text(bars, length))
	end
end

return timeline
