-- The control endpoints: what a spec asks the server itself.

local cqueues = require "cqueues"
local json = require "scripts.model_server.json"

local control = {}

local WAIT_LIMIT_MS = 10000

local function answer(status, value)
	return { status = status, type = "application/json", body = json.encode(value) }
end

local function as_record(record)
	local copy = {}
	for key, value in pairs(record) do
		copy[key] = value
	end
	if not utf8.len(copy.body) then
		copy.body_hex, copy.body = copy.body:gsub(".", function(c)
			return ("%02x"):format(c:byte())
		end), nil
	end
	return copy
end

local handlers = {}

handlers["GET /_requests"] = function(state)
	local list = json.array()
	for i, record in ipairs(state.records) do
		list[i] = as_record(record)
	end
	return answer(200, list)
end

handlers["GET /_stats"] = function(state)
	return answer(200, state.stats)
end

handlers["POST /_release"] = function(state)
	state.releases.epoch = state.releases.epoch + 1
	state.releases.condition:signal()
	return answer(200, {})
end

handlers["POST /_reset"] = function(state)
	state:reset()
	return answer(200, {})
end

-- GET /_wait?requests=3: answers when the named counters have come that far (`open` and `in_flight`: when they are
-- equal), with 504 after ten seconds.
handlers["GET /_wait"] = function(state, request, conn)
	local function reached()
		for name, wanted in request.target:gmatch("[?&]([%a_]+)=(%d+)") do
			local now, exact = state.stats[name], name == "open" or name == "in_flight"
			if not now or now < tonumber(wanted) or exact and now ~= tonumber(wanted) then
				return false
			end
		end
		return true
	end
	local deadline = cqueues.monotime() + WAIT_LIMIT_MS / 1000
	while not reached() and cqueues.monotime() < deadline and not conn.gone do
		conn:wait(WAIT_LIMIT_MS, state.changed, reached)
	end
	return answer(reached() and 200 or 504, state.stats)
end

---@return boolean # whether a request is for a control endpoint
function control.is_for(request)
	return request.path:find("^/_") ~= nil
end

--- Answers a control request.
---@return table rendered
function control.handle(state, request, conn)
	local handler = handlers[request.method .. " " .. request.path]
	if not handler then
		return answer(404, { error = "no such control endpoint" })
	end
	return handler(state, request, conn)
end

return control
