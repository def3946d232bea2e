-- The server: accepts connections, reads requests, checks and records them, asks the script, sends the reply.
-- One process, one thread; each connection is a coroutine of one cqueues controller (epoll).

local cqueues = require "cqueues"
local condition = require "cqueues.condition"
local socket = require "cqueues.socket"

local control = require "scripts.model_server.control"
local http = require "scripts.model_server.http"
local json = require "scripts.model_server.json"
local memory = require "scripts.model_server.memory"
local render = require "scripts.model_server.render"
local reply = require "scripts.model_server.reply"
local strict = require "scripts.model_server.strict"
local writer = require "scripts.model_server.writer"

local server = {}
server.__index = server

local MAX_BODY_BYTES = 32 * 1024 * 1024 -- the bound of the real service
local MAX_RECORDED_BYTES = 256 * 1024 * 1024
local DRAIN_LIMIT_BYTES, DRAIN_LIMIT_S = 256 * 1024 * 1024, 2

-- ---- requests ----

local request_methods = {}

-- The body is decoded when somebody looks at it: benchmarks run without.
local request_mt = { __index = function(request, key)
	if key == "body" then
		local body, problem = json.decode(rawget(request, "raw"))
		rawset(request, "body", body)
		rawset(request, "body_problem", problem)
		return body
	end
	return request_methods[key]
end }

function request_methods:wants_stream()
	local body = rawget(self, "body")
	if json.is_object(body) then
		return body.stream == true
	end
	return self.raw:find('"stream"%s*:%s*true') ~= nil
end

function request_methods:model()
	local body = rawget(self, "body")
	if json.is_object(body) then
		return type(body.model) == "string" and body.model or nil
	end
	return self.raw:match('"model"%s*:%s*"([^"\\]*)"')
end

-- ---- state ----

--- Makes a server.
---@param script table # from script.new
---@param options? table # `record_file` (a file handle), `log` (function), `tls` (an SSL context)
---@return table
function server.new(script, options)
	local made = setmetatable({ script = script, options = options or {}, queue = cqueues.new(), open = 0 }, server)
	made.releases = { epoch = 0, condition = condition.new() }
	made.changed = condition.new()
	made.memory = memory.new()
	made.stats = { connections = 0, open = 0 }
	made:reset()
	return made
end

--- Forgets requests and counters; the script starts anew, connections stay.
function server:reset()
	local stats = { connections = 0, open = self.stats.open }
	stats.requests, stats.accepted, stats.refused, stats.in_flight = 0, 0, 0, self.stats.in_flight or 0
	stats.abandoned, stats.records_dropped = 0, 0
	self.stats, self.records, self.recorded_bytes, self.ids, self.first_record = stats, {}, 0, {}, 1
end

function server:count(name, by)
	self.stats[name] = self.stats[name] + by
	self.changed:signal()
end

function server:record(request, conn)
	local record = { method = request.method, path = request.target, headers = json.array(), body = request.raw,
		connection = conn.id }
	for i, pair in ipairs(request.headers) do
		record.headers[i] = json.array { pair[1], pair[2] }
	end
	if self.options.record_file then
		self.options.record_file:write(json.encode(record), "\n"):flush()
	end
	if not self.script.record then
		return record
	end
	self.recorded_bytes = self.recorded_bytes + #request.raw
	if self.recorded_bytes > MAX_RECORDED_BYTES then
		self.recorded_bytes = #request.raw
		self.stats.records_dropped = self.stats.records_dropped + #self.records
		self.records = {}
	end
	self.records[#self.records + 1] = record
	return record
end

function server:log(...)
	if self.options.log then
		self.options.log(...)
	end
end

-- ---- one request ----

function server:context(request)
	return {
		request = request, memory = self.memory,
		id = function(prefix)
			self.ids[prefix] = (self.ids[prefix] or 0) + 1
			return ("%s%08d"):format(prefix, self.ids[prefix])
		end,
	}
end

local function with_defaults(made, defaults)
	for name, value in pairs(defaults) do
		if made.options[name] == nil then
			made.options[name] = value
		end
	end
	return made
end

function server:render(value, context)
	local cache = type(value) == "table" and value.cache and value
	local cached_as = context.request:wants_stream() and "as_stream" or "as_json"
	if cache and cache[cached_as] then
		return cache[cached_as]
	end
	local made, problem = reply.normalise(value)
	if not made then
		error(problem, 0)
	end
	local rendered = render.reply(with_defaults(made, self.script.defaults), context)
	rendered.request_id = rendered.request_id or context.id "req_"
	if cache then
		cache[cached_as] = rendered
	end
	return rendered
end

function server:script_failed(problem, context)
	self:log("model server: the script failed: " .. tostring(problem))
	local rendered = render.api_error(500, "api_error", "the script failed: " .. tostring(problem), context.id "req_")
	rendered.options = { headers = { ["x-should-retry"] = "false" } }
	return rendered
end

function server:ask(choose, request, context)
	local ok, value = xpcall(function()
		return self:render(choose(request, request.n), context)
	end, debug.traceback)
	return ok and value or self:script_failed(value, context)
end

local function refusal_of(self, request)
	if not self.script.strict then
		return nil
	end
	local refusal = strict.check_headers(request, self.script.api_key)
	if refusal then
		return refusal
	end
	if request.body == nil then
		return { status = 400, type = "invalid_request_error",
			message = "The request body is not valid JSON: " .. request.body_problem }
	end
	return strict.check_body(request.body, self.memory)
end

function server:answer_message(request, context)
	if request.method ~= "POST" then
		return render.api_error(405, nil, "Method Not Allowed", context.id "req_")
	end
	local refusal = refusal_of(self, request)
	if refusal then
		self:count("refused", 1)
		return render.api_error(refusal.status, refusal.type, refusal.message, context.id "req_"), refusal.message
	end
	self:count("accepted", 1)
	request.n = self.stats.accepted
	return self:ask(self.script.choose, request, context)
end

function server:answer(request)
	local context = self:context(request)
	local route = self.script.routes[request.method .. " " .. request.path] or self.script.routes[request.path]
	if route then
		request.n = self.stats.requests
		return self:ask(type(route) == "function" and route or function()
			return route
		end, request, context)
	elseif request.path:find("/v1/messages$") then
		return self:answer_message(request, context)
	end
	return render.api_error(404, nil, "Not found: " .. request.path, context.id "req_")
end

-- Holds a reply until so many requests have come: overlap without clocks.
local function wait_for_requests(self, conn, wanted)
	return conn:wait(nil, self.changed, function()
		return self.stats.requests >= wanted
	end)
end

-- A connection for control calls is none that a spec counts.
function server:not_a_client(conn)
	if not conn.for_control then
		conn.for_control = true
		self:count("connections", -1)
		self:count("open", -1)
	end
end

function server:serve_request(conn, request)
	setmetatable(request, request_mt)
	if control.is_for(request) then
		self:not_a_client(conn)
		local controlled = control.handle(self, request, conn)
		return writer.send(conn, request, controlled, self.releases)
	end
	local stats = self.stats
	self:count("requests", 1)
	self:count("in_flight", 1)
	local record = self:record(request, conn)
	local rendered, refused = self:answer(request)
	record.status, record.refused = rendered.status, refused
	local wanted = rendered.options and rendered.options.wait_requests
	local alive = not wanted or wait_for_requests(self, conn, wanted)
	local ok, again = pcall(writer.send, conn, request, rendered, self.releases)
	if not ok then
		again = writer.send(conn, request, self:script_failed(again, self:context(request)), self.releases)
	end
	stats.abandoned = stats.abandoned + (conn.gone and 1 or 0)
	self:count("in_flight", -1)
	return alive and again
end

-- ---- connections ----

-- Takes what the client still sends, so that closing doesn't reset the connection before it has read its refusal.
local function drain(conn)
	conn.socket:shutdown("w")
	local taken, deadline = 0, cqueues.monotime() + DRAIN_LIMIT_S
	while taken < DRAIN_LIMIT_BYTES and cqueues.monotime() < deadline do
		local data = conn.socket:xread(-65536, deadline - cqueues.monotime())
		if not data then
			break
		end
		taken = taken + #data
	end
	conn.gone = true
end

function server:refuse_bytes(conn, status, request)
	local rendered = render.api_error(status, nil, nil, "req_refused")
	rendered.options = { close = true }
	writer.send(conn, request or { method = "GET", by_name = {} }, rendered, self.releases)
	drain(conn)
end

function server:serve(conn)
	while not conn.gone do
		local request, status, partial = http.read_request(conn, self.script.max_body or MAX_BODY_BYTES)
		if status then
			self:refuse_bytes(conn, status, partial)
		end
		if not request or not self:serve_request(conn, request) then
			return
		end
	end
end

function server:accepted(accepted, tls)
	self.last_id = (self.last_id or 0) + 1
	local conn = http.connection(accepted, self.last_id)
	self:count("connections", 1)
	self:count("open", 1)
	local ok, problem = xpcall(function()
		if not tls or accepted:starttls(tls) == accepted then
			self:serve(conn)
		end
	end, debug.traceback)
	if not ok then
		self:log("model server: " .. tostring(problem))
	end
	conn:close()
	if not conn.for_control then
		self:count("open", -1)
	end
end

--- Listens on a port of 127.0.0.1 (0: a free one).
---@param port integer
---@param tls? userdata # openssl.ssl.context: TLS from the first byte
---@return integer port
function server:listen(port, tls)
	local listener = socket.listen { host = "127.0.0.1", port = port, reuseaddr = true, nodelay = true }
	listener:onerror(function(_, _, why)
		return why
	end)
	assert(listener:listen())
	local _, _, bound = listener:localname()
	self.queue:wrap(function()
		while true do
			local accepted = listener:accept { nodelay = true }
			if accepted then
				self.queue:wrap(self.accepted, self, accepted, tls)
			else
				cqueues.sleep(0.01) -- out of descriptors: others must end first
			end
		end
	end)
	return bound
end

-- Whether epoll takes stdin: a pipe, socket or terminal, not a file or /dev/null.
local function can_poll_stdin()
	local probe = cqueues.new()
	probe:wrap(function()
		cqueues.poll({ pollfd = 0, events = "r" }, 0)
	end)
	return (probe:loop(0.01))
end

--- Calls `ended` when stdin is closed; where stdin can't be polled nothing happens.
---@param ended fun()
function server:watch_stdin(ended)
	if not can_poll_stdin() then
		return
	end
	self.queue:wrap(function()
		repeat
			cqueues.poll { pollfd = 0, events = "r" }
		until not io.stdin:read(1)
		ended()
	end)
end

--- Serves until the process ends.
function server:run()
	while true do
		local ok, problem = self.queue:loop()
		if not ok then
			self:log("model server: " .. tostring(problem))
		end
	end
end

return server
