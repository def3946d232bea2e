--- A PostgreSQL server for specs: a private data folder, a unix socket and a port of the loopback, started with the
--- first spec that wants it and shared by the others, stopped when this process ends, however it ends.

local socket = require "socket"

local postgres = {}

-- Kept in the registry: each spec file loads this module anew.
local kept = debug.getregistry()
local KEY = "lattice.spec.postgres"
local server = kept[KEY] -- a table; .why: it can't be had

local function quoted(text)
	return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function output_of(command)
	local pipe <close> = assert(io.popen(command .. " 2>&1"))
	local text = pipe:read "a"
	return pipe:close(), (text:gsub("%s+$", ""))
end

local function free_port()
	local probe = assert(socket.bind("127.0.0.1", 0))
	local _, port = probe:getsockname()
	probe:close()
	return math.tointeger(tonumber(port))
end

-- The server refuses to run as root. What a sanitizer wants to have loaded is not for it.
local function as_owner(command)
	local _, user = output_of "id -u"
	local shell = user == "0" and "runuser -u postgres -- sh -c " or "sh -c "
	return "env -u LD_PRELOAD " .. shell .. quoted(command)
end

local function run(command)
	local ok, text = output_of(as_owner("cd / && " .. command))
	return ok, text
end

local SETTINGS = "-c listen_addresses=127.0.0.1 -c port=%d -c unix_socket_directories=%s -c max_connections=60"

local function start_command()
	return ("%s/pg_ctl -D %s/data -l %s/log -w -o %s start </dev/null >/dev/null"):format(
		server.bin, server.folder, server.folder, quoted(SETTINGS:format(server.port, server.folder)))
end

local function start()
	local _, found = output_of "ls -d /usr/lib/postgresql/*/bin"
	local programs = found:match ".*(/usr/lib/postgresql/%d+/bin)"
	if not programs then
		return nil, "there is no PostgreSQL server (Debian package postgresql)"
	end
	local _, folder = output_of(as_owner "mktemp -d /tmp/lattice_pg.XXXXXX")
	server = { bin = programs, folder = folder, port = free_port() }
	local ok, text = run(("%s/initdb -D %s/data -A trust -U lattice -E UTF8 --locale=C -N"):format(programs, folder))
	if ok then
		ok, text = run(start_command())
	end
	if not ok then
		os.execute("rm -rf " .. quoted(folder))
		server = nil
		return nil, text
	end
	-- Its input ends with this process, even when that is killed.
	local stop = as_owner(("cd / && %s/pg_ctl -D %s/data -m immediate stop >/dev/null 2>&1"):format(programs, folder))
	server.watchdog = assert(io.popen(("exec setsid sh -c %s"):format(
		quoted(("trap '' INT TERM HUP; cat >/dev/null; %s; rm -rf %s"):format(stop, quoted(folder)))), "w"))
	return server
end

--- Why there is no server here, or nil: then it runs.
---@return string?
function postgres.unavailable()
	if not server then
		local started, why = start()
		if not started then
			server = { why = why }
			io.stderr:write("SKIPPED: no PostgreSQL for the specs: ", why, "\n")
		end
		kept[KEY] = server
	end
	return server.why
end

--- Runs SQL with psql; raises where it fails.
---@param sql string
---@return string
function postgres.psql(sql)
	local command = "env -u LD_PRELOAD %s/psql -X -q -t -A -v ON_ERROR_STOP=1 -h %s -p %d -U lattice -d postgres -c %s"
	local ok, text = output_of(command:format(server.bin, server.folder, server.port, quoted(sql)))
	return assert(ok and text, text)
end


--- A connection string with a schema of its own.
---@param over_tcp? boolean
---@return string dsn
---@return string schema
function postgres.new_schema(over_tcp)
	server.schemas = (server.schemas or 0) + 1
	local schema = "spec_" .. server.schemas
	postgres.psql("CREATE SCHEMA " .. schema)
	local host = over_tcp and "127.0.0.1" or server.folder
	return ("host=%s port=%d user=lattice dbname=postgres options='-c search_path=%s'"):format(
		host, server.port, schema), schema
end

---@param schema string
function postgres.drop_schema(schema)
	postgres.psql(("SET client_min_messages = error; DROP SCHEMA %s CASCADE"):format(schema))
end

--- Stops the server as a crash would.
function postgres.stop()
	assert(run(("%s/pg_ctl -D %s/data -m immediate stop >/dev/null"):format(server.bin, server.folder)))
end

function postgres.start_again()
	assert(run(start_command()))
end

function postgres.restart()
	postgres.stop()
	postgres.start_again()
end

--- Ends every connection but psql's own.
function postgres.end_connections()
	postgres.psql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lattice'"
end

return postgres
