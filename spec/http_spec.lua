-- HTTP from Lua (lattice.core), against the model server: results as data, TLS, HTTP/2, proxies, certificates.

local core = require "lattice.core"
local server = require "spec.support.server"

local ids = {}

local function wait(op)
	while not op:ready() do
		core.turn(nil, ids)
	end
	return op:result()
end

local function request(options)
	return wait(core.http_start(options))
end

-- Turns the loop until the server has seen so many requests.
local function reach(s, requests)
	while s:stats().requests < requests do
		core.turn(1, ids)
	end
end

-- Variables of the environment are read once in a state: each case has a process of its own. Returns what the
-- chunk prints; `url` is its first argument.
local CLEAN = "-u CURL_CA_BUNDLE -u SSL_CERT_FILE -u SSL_CERT_DIR -u http_proxy -u all_proxy -u no_proxy -u NO_PROXY"

local function in_process(environment, url, chunk)
	local file = os.tmpname()
	local script = assert(io.open(file, "w"))
	script:write([[
		local core = require "lattice.core"
		local function request(options)
			local op = core.http_start(options)
			while not op:ready() do core.turn(nil, {}) end
			return op:result()
		end
	]], chunk)
	script:close()
	local pipe = assert(io.popen(("env %s %s lua5.4 %s %s 2>&1"):format(CLEAN, environment, file, url)))
	local out = pipe:read("a")
	pipe:close()
	os.remove(file)
	return out
end

local SHOW = [[
	local reply, problem = request { url = arg[1], body = "{}", headers = { { "x-api-key", "hush" } } }
	print(reply and reply.status or problem.kind, reply and reply.body or problem.message)
]]

describe("an HTTP request", function()
	it("comes back as status, headers in order, and body", function()
		local s <close> = server.start { replies = { server.raw {
			body = "made", status = 201, content_type = "text/plain", headers = { { "x-a", "1" }, { "x-a", "2" } },
		} }, strict = false }
		local reply = request { url = s.url .. "/v1/messages", body = "{}" }
		assert.equal(201, reply.status)
		assert.equal("made", reply.body)
		local values = {}
		for _, pair in ipairs(reply.headers) do
			if pair[1]:lower() == "x-a" then
				values[#values + 1] = pair[2]
			end
		end
		assert.same({ "1", "2" }, values)
	end)

	it("gives the same result at every call of result()", function()
		local s <close> = server.start { "hi" }
		local op = core.http_start { url = s.url .. "/nowhere" }
		assert.equal(wait(op), op:result())
	end)

	it("is GET without a body, POST with one, or what `method` says", function()
		local s <close> = server.start { strict = false, replies = { "a", "b", "c" } }
		for _, options in ipairs { {}, { body = "{}" }, { method = "PUT", body = "{}" } } do
			options.url = s.url .. "/v1/messages"
			request(options)
		end
		local methods = {}
		for i, record in ipairs(s:requests()) do
			methods[i] = record.method
		end
		assert.same({ "GET", "POST", "PUT" }, methods)
	end)

	it("takes bytes of any kind, NUL included, both ways", function()
		local bytes = {}
		for i = 0, 255 do
			bytes[#bytes + 1] = string.char(i)
		end
		bytes = table.concat(bytes):rep(1000)
		local raw = server.raw { body = bytes, content_type = "x/y" }
		local s <close> = server.start { strict = false, replies = { raw } }
		local reply = request { url = s.url .. "/v1/messages", body = bytes }
		assert.is_true(reply.body == bytes)
		assert.is_true(s:requests()[1].body == bytes)
	end)

	it("undoes gzip", function()
		local zipped = server.text("zipped", { gzip = true, stream = false })
		local s <close> = server.start { strict = false, replies = { zipped } }
		local reply = request { url = s.url .. "/v1/messages", body = "{}" }
		assert.equal("zipped", core.json_decode(reply.body).content[1].text)
	end)

	it("uses its connection again, and several when many run at once", function()
		local replies = {}
		for i = 1, 26 do
			replies[i] = i > 10 and server.text("x", { wait_requests = 26 }) or "x"
		end
		local s <close> = server.start { strict = false, replies = replies }
		for _ = 1, 10 do
			request { url = s.url .. "/v1/messages", body = "{}" }
		end
		assert.equal(1, s:stats().connections)
		local ops = {}
		for i = 1, 16 do
			ops[i] = core.http_start { url = s.url .. "/v1/messages", body = "{}" }
		end
		for _, op in ipairs(ops) do
			assert.equal(200, wait(op).status)
		end
		assert.equal(16, s:stats().connections)
	end)

	it("fails as data when the world says no", function()
		local _, problem = request { url = "http://user:hush@127.0.0.1:1/hush", headers = { { "x-api-key", "hush" } } }
		assert.equal("io", problem.kind)
		assert.matches("127.0.0.1:1", problem.message, 1, true)
		assert.not_matches("hush", problem.message)
	end)

	it("fails as data, unsent, when header, URL or method can't be right", function()
		local s <close> = server.start { strict = false, replies = { "x" } }
		for _, options in ipairs {
			{ headers = { { "x-api-key", "hush\n" } } }, { headers = { { "a b", "1" } } },
			{ headers = { { "a", "hush\0" } } }, { url = "hush" }, { url = s.url .. "/\0hush" }, { method = "GET\0" },
			{ method = "G T" },
		} do
			options.url = options.url or s.url
			local reply, problem = request(options)
			assert.is_nil(reply)
			assert.equal("invalid", problem.kind)
			assert.not_matches("hush", problem.message)
		end
		assert.equal(0, s:stats().connections)
	end)

	it("raises when an option has the wrong type, naming it", function()
		for option, value in pairs {
			url = 1, method = {}, headers = "x", body = 5, timeout_ms = -1, idle_timeout_ms = "soon",
			connect_timeout_ms = 0, max_bytes = 1.5, follow_redirects = "yes",
		} do
			local options = { url = "http://127.0.0.1:1" }
			options[option] = value
			assert.error_matches(function()
				core.http_start(options)
			end, "http_start: " .. option .. ": expected ")
		end
		assert.error_matches(function()
			core.http_start { url = "http://127.0.0.1:1", headers = { { "a" } } }
		end, "headers%[1%]")
	end)

	it("is bounded in time and size", function()
		local s <close> = server.start { strict = false, reply = function()
			return { kind = "raw", body = ("x"):rep(1000), options = { stall_at = 10, stall_ms = 600000 } }
		end }
		for option, value in pairs { timeout_ms = 20, idle_timeout_ms = 20 } do
			local _, problem = request { url = s.url .. "/v1/messages", body = "{}", [option] = value }
			assert.equal("timeout", problem.kind)
			assert.matches("20 ms", problem.message)
		end
		local _, problem = request { url = s.url .. "/v1/messages", body = "{}", max_bytes = 5 }
		assert.equal("limit", problem.kind)
	end)

	it("ends at once when cancelled, closed or forgotten", function()
		local s <close> = server.start { strict = false, reply = function()
			return { kind = "raw", body = "x", options = { stall_at = 0, stall_ms = 600000 } }
		end }
		local op = core.http_start { url = s.url .. "/v1/messages", body = "{}" }
		reach(s, 1)
		op:cancel()
		local _, problem = op:result()
		assert.equal("abort", problem.kind)
		do
			local scoped <close> = core.http_start { url = s.url .. "/v1/messages", body = "{}" }
			reach(s, 2)
			assert.is_false(scoped:ready())
		end
		core.http_start { url = s.url .. "/v1/messages", body = "{}" }
		reach(s, 3)
		collectgarbage()
		collectgarbage()
		s:wait { open = 0 }
	end)
end)

describe("TLS", function()
	it("trusts what SSL_CERT_FILE, CURL_CA_BUNDLE or SSL_CERT_DIR names", function()
		local s <close> = server.start { tls = true, strict = false, replies = { "a", "b", "c" } }
		local folder = os.tmpname()
		os.remove(folder)
		assert(os.execute(("mkdir %s && cp %s %s/ca.pem && openssl rehash %s"):format(folder, s.ca_file, folder, folder)))
		for _, variable in ipairs {
			"SSL_CERT_FILE=" .. s.ca_file, "CURL_CA_BUNDLE=" .. s.ca_file, "SSL_CERT_DIR=" .. folder,
		} do
			assert.matches("^200", in_process(variable, s.url .. "/v1/messages", SHOW))
		end
		os.execute("rm -r " .. folder)
	end)

	it("refuses a certificate that nobody trusted signed, an expired one, and another host's", function()
		for kind, trusted in pairs { server = false, expired = true, wrong_host = true } do
			local s <close> = server.start { tls = kind, strict = false, replies = { "a" } }
			local out = in_process(trusted and "SSL_CERT_FILE=" .. s.ca_file or "", s.url .. "/v1/messages", SHOW)
			assert.matches("^io\trequest to 127.0.0.1:%d+ failed: SSL", out)
			assert.not_matches("hush", out)
			assert.equal(0, s:stats().requests)
		end
	end)

	it("speaks HTTP/2 where the server does, many requests on one connection", function()
		local s <close> = server.start { http2 = true, strict = false, quiet = true, reply = function()
			return "hi"
		end }
		local out = in_process("SSL_CERT_FILE=" .. s.ca_file, s.url .. "/v1/messages", [[
			local function sockets()
				local list <close> = io.popen("ls -l /proc/$PPID/fd | grep -c socket:")
				return list:read("n")
			end
			request { url = arg[1], body = "{}" }
			local before, ops = sockets(), {}
			for i = 1, 8 do
				ops[i] = core.http_start { url = arg[1], body = "{}" }
			end
			for i = 1, 8 do
				while not ops[i]:ready() do core.turn(nil, {}) end
				print(ops[i]:result().status)
			end
			print(sockets() - before .. " new connections")
		]])
		assert.equal(("200\n"):rep(8) .. "0 new connections\n", out)
	end)
end)

describe("proxies", function()
	it("are taken from http_proxy, but not for hosts of no_proxy", function()
		local proxy <close> = server.start { strict = false, reply = function()
			return { kind = "raw", body = "from the proxy", options = {} }
		end }
		local target <close> = server.start { strict = false, reply = function()
			return { kind = "raw", body = "from the target", options = {} }
		end }
		local url = target.url .. "/v1/messages"
		assert.matches("from the proxy", in_process("no_proxy= http_proxy=" .. proxy.url, url, SHOW))
		assert.equal(0, target:stats().requests)
		assert.matches("from the target", in_process("no_proxy=127.0.0.1 http_proxy=" .. proxy.url, url, SHOW))
		assert.equal(1, target:stats().requests)
	end)
end)

describe("a redirect to another host", function()
	it("is followed without secrets", function()
		local target <close> = server.start { strict = false, replies = { "x" } }
		local s <close> = server.start { strict = false, replies = {
			server.status(307, { location = target.url:gsub("127.0.0.1", "localhost") .. "/v1/messages" }, "go"),
		} }
		local reply = request { url = s.url .. "/v1/messages", body = "{}", headers = {
			{ "x-api-key", "hush" }, { "authorization", "hush" }, { "x-mine", "hush", secret = true }, { "x-public", "seen" },
		} }
		assert.equal(200, reply.status)
		local record = target:requests()[1]
		assert.equal("seen", record:header("x-public"))
		for _, pair in ipairs(record.headers) do
			assert.not_equal("hush", pair[2])
		end
	end)

	it("isn't followed when told not to", function()
		local s <close> = server.start { strict = false, replies = {
			server.status(302, { location = "http://127.0.0.1:1/" }, "go"),
		} }
		local reply = request { url = s.url .. "/v1/messages", body = "{}", follow_redirects = false }
		assert.equal(302, reply.status)
	end)
end)
