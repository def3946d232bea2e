-- The model server: an HTTP server that speaks the Messages API from a script, with faults on demand.
-- lua5.4 scripts/model_server.lua --help; docs/model_server.md has the whole of it.

local here = arg[0]:match("^(.*)/scripts/[^/]*$") or ("./" .. arg[0]):match("^(.*)/[^/]*$") .. "/.."
package.path = here .. "/?.lua;" .. package.path

local USAGE = [[
lua5.4 scripts/model_server.lua [options]
  --port N            listen on this port of 127.0.0.1 (default 0: a free one)
  --script FILE       replies from a Lua script; "-": from stdin (a line with its length in bytes, then its bytes)
  --builtin NAME      demo (default) | loop:STEPS | text:CHARACTERS:DELTA | turns
  --lenient           take every request, as fast as possible (benchmarks)
  --no-record         keep no requests
  --record FILE       append each request to FILE, a JSON document a line
  --tls CERT KEY      serve TLS with these PEM files
  --http2             with --tls: HTTP/2 as well, through nghttpx
  --announce PORT     write the URL to this port of 127.0.0.1 instead of stdout
Prints "listening URL" and ends when stdin closes.
]]

local function die(message)
	io.stderr:write("model server: ", message, "\n")
	os.exit(1)
end

local TAKES = { port = 1, script = 1, builtin = 1, record = 1, tls = 2, announce = 1, lenient = 0, ["no-record"] = 0,
	http2 = 0, help = 0 }

local function read_arguments()
	local options, i = {}, 1
	while arg[i] do
		local name = arg[i]:match("^%-%-(.+)$")
		local takes = TAKES[name]
		if not takes or not arg[i + takes] then
			die("what is " .. arg[i] .. "?\n" .. USAGE)
		end
		options[name] = takes == 2 and { arg[i + 1], arg[i + 2] } or takes == 1 and arg[i + 1] or true
		i = i + 1 + takes
	end
	return options
end

local function announce(options, line)
	if not options.announce then
		io.stdout:write(line, "\n"):flush()
		return
	end
	local there = require("cqueues.socket").connect("127.0.0.1", tonumber(options.announce))
	there:xwrite(line .. "\n", "bn")
	there:close()
end

local function load_script(options)
	local script = require "scripts.model_server.script"
	if not options.script then
		return script.builtin(options.builtin or "demo")
	elseif options.script == "-" then
		local size = tonumber(io.stdin:read("l"))
		return script.load(io.stdin:read(size), "=script")
	end
	local file = assert(io.open(options.script, "rb"))
	local source = file:read("a")
	file:close()
	return script.load(source, "@" .. options.script)
end

local function start(options)
	local script = load_script(options)
	script.strict = script.strict and not options.lenient
	script.record = script.record and not options["no-record"]
	local server = require("scripts.model_server.server").new(script, {
		record_file = options.record and assert(io.open(options.record, "ab")),
		log = function(line)
			io.stderr:write(line, "\n")
		end,
	})
	local port = tonumber(options.port or 0)
	local line
	local tls = require "scripts.model_server.tls"
	if options.tls then
		local plain = server:listen(0)
		local secure = options.http2 and tls.front(options.tls[1], options.tls[2], plain, port)
			or server:listen(port, tls.context(options.tls[1], options.tls[2]))
		line = ("listening https://127.0.0.1:%d control http://127.0.0.1:%d"):format(secure, plain)
	else
		line = ("listening http://127.0.0.1:%d"):format(server:listen(port))
	end
	server:watch_stdin(function()
		tls.stop()
		os.exit(0, false)
	end)
	return server, line
end

local options = read_arguments()
if options.help then
	io.stdout:write(USAGE)
	os.exit(0)
end
local ok, server, line = xpcall(start, debug.traceback, options)
if not ok then
	pcall(announce, options, "failed " .. tostring(server):gsub("\n", " | "))
	die(tostring(server))
end
announce(options, line)
server:run()
