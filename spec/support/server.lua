-- Starts model servers for specs: each spec its own, in a process of its own, in a few lines.
--
--     local server = require "spec.support.server"
--     local s <close> = server.start { server.tool_use("add", { a = 1 }), "done" }
--     agent = … base_url = s.url …
--     assert.equal(2, #s:requests())
--
-- The child reads its script from a pipe and ends when that pipe closes: with `stop`, with the handle's collection, or
-- with the death of this process. Control calls go through luasocket, never through the engine under test.

local socket = require "socket"
local json = require "scripts.model_server.json"
local reply = require "scripts.model_server.reply"
local source = require "scripts.model_server.source"

local ROOT = debug.getinfo(1, "S").source:match("^@(.*)/spec/support/[^/]*$") or "."
local START_LIMIT_S, CONTROL_LIMIT_S = 10, 15

local support = setmetatable({ json = json }, { __index = reply })
source.alias(support)

local handle = {}
handle.__index = handle

-- ---- certificates: made once in a process, in a folder that goes away with it ----

local certificates

local function run(command)
	assert(os.execute(command), "failed: " .. command)
end

local function certificate_folder()
	if not certificates then
		local folder = os.tmpname()
		os.remove(folder)
		run(("sh '%s/scripts/model_server/make_certs.sh' '%s' >/dev/null 2>&1"):format(ROOT, folder))
		certificates = setmetatable({ folder = folder }, { __gc = function()
			os.execute("rm -rf '" .. folder .. "'")
		end })
	end
	return certificates.folder
end

-- ---- starting ----

local OPTIONS = { tls = true, http2 = true, builtin = true, lenient = true, quiet = true, no_record = true }

-- Parts the options of the process from the script, which may be source, a function, a table or a list of replies.
local function read_options(what)
	if type(what) ~= "table" then
		return {}, what
	end
	local options, script = {}, {}
	for key, value in pairs(what) do
		if OPTIONS[key] then
			options[key] = value
		else
			script[key] = value
		end
	end
	if what.kind then
		return options, what
	elseif #script > 0 then
		local replies = table.move(script, 1, #script, 1, {})
		for i = 1, #replies do
			script[i] = nil
		end
		script.replies = replies
	end
	return options, script
end

local function script_source(script)
	return type(script) == "string" and script or source.write(script)
end

local function command_line(options, port)
	local words = { ("unset LD_PRELOAD; exec lua5.4 '%s/scripts/model_server.lua' --announce %d"):format(ROOT, port) }
	if options.builtin then
		words[#words + 1] = "--builtin '" .. options.builtin .. "'"
	else
		words[#words + 1] = "--script -"
	end
	if options.tls or options.http2 then
		local name = type(options.tls) == "string" and options.tls or "server"
		local base = certificate_folder() .. "/" .. name
		words[#words + 1] = ("--tls '%s.crt' '%s.key'"):format(base, base)
	end
	words[#words + 1] = options.http2 and "--http2" or nil
	words[#words + 1] = options.lenient and "--lenient" or nil
	words[#words + 1] = options.no_record and "--no-record" or nil
	words[#words + 1] = options.quiet and "2>/dev/null" or nil
	return table.concat(words, " ")
end

local function announced(listener)
	local peer = listener:accept()
	if not peer then
		return nil, "it did not start in time"
	end
	local line = peer:receive("*l")
	peer:close()
	local url = line and line:match("^listening (%S+)")
	return url, url and (line:match("control (%S+)$") or url) or line
end

--- Starts a server.
---@param what string|function|table # Lua source of a script; a function(request, n); a list of replies; or a script
--- table (`replies`, `reply`, `by_turn`, `routes`, `strict`, …). A table may also hold `tls` (true, "expired",
--- "wrong_host"), `http2`, `builtin`, `lenient`, `quiet`, `no_record`; then `script` may hold the script.
---@return table server # `url`, `port`, `ca_file` (with tls); raises when it does not start
function support.start(what)
	local options, script
	if type(what) == "table" and what.script ~= nil then
		script, options = what.script, what
	else
		options, script = read_options(what)
	end
	local text = not options.builtin and script_source(script)
	local listener = assert(socket.bind("127.0.0.1", 0))
	listener:settimeout(START_LIMIT_S)
	local _, port = listener:getsockname()
	local pipe = assert(io.popen(command_line(options, port), "w"))
	if text then
		pipe:write(#text, "\n", text)
	end
	pipe:flush()
	local url, control = announced(listener)
	listener:close()
	if not url then
		pipe:close()
		error("the model server: " .. tostring(control), 2)
	end
	return setmetatable({
		url = url, port = math.tointeger(tonumber(url:match("(%d+)$"))), pipe = pipe,
		control_port = tonumber(control:match("(%d+)$")),
		ca_file = (options.tls or options.http2) and certificate_folder() .. "/ca.crt" or nil,
	}, handle)
end

-- ---- control ----

function handle:control(method, path)
	local peer = socket.tcp()
	peer:settimeout(CONTROL_LIMIT_S)
	assert(peer:connect("127.0.0.1", self.control_port))
	assert(peer:send(("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"):format(method, path)))
	local all = assert(peer:receive("*a"))
	peer:close()
	local head, body = all:match("^(.-)\r\n\r\n(.*)$")
	return assert(json.decode(body or "")), tonumber(head:match("^HTTP/1%.1 (%d+)"))
end

local record_mt = { __index = function(record, key)
	if key == "json" then
		local value = json.decode(record.body)
		rawset(record, "json", value)
		return value
	elseif key == "header" then
		return function(_, name)
			for _, pair in ipairs(record.headers) do
				if pair[1]:lower() == name:lower() then
					return pair[2]
				end
			end
		end
	end
end }

--- The requests so far, refused ones too: `{method, path, headers = {{name, value}, …}, body, connection, status,
--- refused}`; `json` is the decoded body, `request:header(name)` one header.
---@return table[]
function handle:requests()
	local list = {}
	for i, record in ipairs((self:control("GET", "/_requests"))) do
		if record.body_hex then
			record.body = record.body_hex:gsub("%x%x", function(digits)
				return string.char(tonumber(digits, 16))
			end)
		end
		list[i] = setmetatable(record, record_mt)
	end
	return list
end

--- Counters: `connections, open, requests, accepted, refused, in_flight, abandoned, records_dropped`.
--- Control calls and their connections are not counted.
---@return table
function handle:stats()
	return (self:control("GET", "/_stats"))
end

--- Ends the stalls of replies that are on their way.
function handle:release()
	self:control("POST", "/_release")
end

--- Forgets requests and counters; a list of replies starts anew.
function handle:reset()
	self:control("POST", "/_reset")
end

--- Waits until counters have come so far: `server:wait{ requests = 2 }`, `{ in_flight = 0 }`.
---@param counters table<string, integer>
---@return table stats # raises after ten seconds
function handle:wait(counters)
	local query = {}
	for name, value in pairs(counters) do
		query[#query + 1] = name .. "=" .. value
	end
	local stats, status = self:control("GET", "/_wait?" .. table.concat(query, "&"))
	if status ~= 200 then
		error("the model server never came to " .. table.concat(query, ", ") .. ": " .. json.encode(stats), 2)
	end
	return stats
end

--- Ends the server and waits for its process. Again is harmless.
function handle:stop()
	if self.pipe then
		self.pipe:close()
		self.pipe = nil
	end
end

handle.__close = handle.stop
handle.__gc = handle.stop

return support
