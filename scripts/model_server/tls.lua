-- TLS: a context for the server's own sockets (HTTP/1.1, every fault works), and nghttpx in front of it where HTTP/2
-- is wanted (from Debian's nghttp2-proxy; HTTP/2 is not written anew here).

local cqueues = require "cqueues"
local socket = require "cqueues.socket"

local tls = {}

local FRONT_TRIES = 5
local FRONT_LIMIT_S, FRONT_POLL_S = 5, 0.005

local function read(path)
	local file = assert(io.open(path, "rb"))
	local text = file:read("a")
	file:close()
	return text
end

---@param cert string # PEM file
---@param key string # PEM file
---@return userdata # openssl.ssl.context
function tls.context(cert, key)
	local context = require("openssl.ssl.context").new("TLS", true)
	context:setCertificate(require("openssl.x509").new(read(cert)))
	context:setPrivateKey(require("openssl.pkey").new(read(key)))
	return context
end

local function free_port()
	local probe = socket.listen { host = "127.0.0.1", port = 0, reuseaddr = true }
	assert(probe:listen())
	local _, _, port = probe:localname()
	probe:close()
	return port
end

local function accepts(port)
	local probe = socket.connect("127.0.0.1", port)
	probe:onerror(function(_, _, why)
		return why
	end)
	local ok = probe:connect(0.5) ~= nil
	probe:close()
	return ok
end

-- Starts nghttpx under a shell that ends it when this process closes the pipe or dies.
local function spawn(cert, key, backend, port)
	local command = ("nghttpx --conf=/dev/null --single-process --workers=1 --no-ocsp --log-level=FATAL "
		.. "--errorlog-file=/dev/null --no-via --no-server-rewrite --no-add-x-forwarded-proto "
		.. "--backend-read-timeout=1h --backend-write-timeout=1h --frontend-read-timeout=1h "
		.. "--frontend-http2-read-timeout=1h -f127.0.0.1,%d -b127.0.0.1,%d '%s' '%s' >/dev/null 2>&1 & "
		.. "read over; kill $!; wait"):format(port, backend, key, cert)
	return io.popen(command, "w")
end

local front_process

--- Ends the nghttpx that `front` started, if any.
function tls.stop()
	if front_process then
		front_process:close()
		front_process = nil
	end
end

--- Puts nghttpx in front of a plain port, for TLS with HTTP/2 and HTTP/1.1.
---@param cert string
---@param key string
---@param backend integer # port of the plain server
---@param wanted integer # port to listen on; 0: a free one
---@return integer port
function tls.front(cert, key, backend, wanted)
	for _ = 1, FRONT_TRIES do
		local port = wanted ~= 0 and wanted or free_port()
		front_process = spawn(cert, key, backend, port)
		local deadline = cqueues.monotime() + FRONT_LIMIT_S
		while cqueues.monotime() < deadline do
			if accepts(port) then
				return port
			end
			cqueues.sleep(FRONT_POLL_S) -- another program's start: there is nothing to wait on but its port
		end
		tls.stop()
	end
	error("nghttpx does not start: is nghttp2-proxy installed?", 0)
end

return tls
