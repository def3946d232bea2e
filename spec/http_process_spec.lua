local lattice = require "lattice"
local scripted = require "spec.support.scripted"
local server = require "spec.support.server"

local call = scripted.call

local function slow_server()
	return server.start { routes = { ["GET /slow"] = server.raw { body = "late", delay_ms = 3600000 } }, replies = {} }
end

describe("lattice.http.request", function()
	it("returns status, headers and body, inside a handler and outside of any agent", function()
		local own <close> = server.start {
			routes = {
				["GET /page"] = server.status(201, { ["X-Thing"] = "a b" }, { hello = "world" }),
			},
			replies = {},
		}
		local reply = lattice.http.request { url = own.url .. "/page" }
		assert.equal(201, reply.status)
		assert.equal("a b", reply.headers["x-thing"])
		assert.same({ hello = "world" }, lattice.json.decode(reply.body))
		local get = lattice.tool("get", "", {}, function()
			return lattice.http.request({ url = own.url .. "/page" }).body
		end)
		assert.equal('{"hello":"world"}', scripted.run({ call "get" }, { tools = { get } })[1].content)
	end)

	it("sends method, headers and body", function()
		local own <close> = server.start(function()
			return "fine"
		end)
		lattice.http.request {
			url = own.url .. "/v1/messages",
			method = "POST",
			headers = { ["X-Mine"] = "yes", ["content-type"] = "application/json" },
			body = '{"a":1}',
		}
		local request = own:requests()[1]
		assert.equal("POST", request.method)
		assert.equal('{"a":1}', request.body)
		assert.equal("yes", request:header "x-mine")
	end)

	it("gives nil and what failed when no reply came", function()
		local _, failure = lattice.http.request { url = "http://127.0.0.1:1/" }
		assert.equal("io", failure.kind)
		assert.matches("127.0.0.1", failure.message)
		local own <close> = slow_server()
		_, failure = lattice.http.request { url = own.url .. "/slow", timeout_ms = 20 }
		assert.equal("timeout", failure.kind)
	end)

	it("bounds the reply", function()
		local own <close> = server.start {
			routes = { ["GET /big"] = server.raw { body = ("x"):rep(100000) } },
			replies = {},
		}
		local _, failure = lattice.http.request { url = own.url .. "/big", max_bytes = 1000 }
		assert.equal("limit", failure.kind)
	end)

	it("refuses bad requests before anything is sent", function()
		for _, case in ipairs {
			{ {}, "url: expected an http:// or https:// URL" },
			{ { url = "file:///etc/passwd" }, "url: expected an http:// or https:// URL" },
			{ { url = "http://x", method = "GET /" }, "method: expected an HTTP method" },
			{ { url = "http://x", hedaers = {} }, 'Did you mean "headers"' },
			{ { url = "http://x", headers = { a = 1 } }, "headers: expected" },
		} do
			local ok, problem = pcall(lattice.http.request, case[1])
			assert.is_false(ok)
			assert.is_truthy(problem:find(case[2], 1, true), problem)
		end
		local _, failure = lattice.http.request { url = "http://127.0.0.1:1/", headers = { a = "b\r\nc: d" } }
		assert.equal("invalid", failure.kind)
	end)

	it("ends at once when its signal is aborted", function()
		local own <close> = slow_server()
		local ok, problem = pcall(lattice.http.request, {
			url = own.url .. "/slow",
			signal = lattice.abort_timeout(5),
		})
		assert.is_false(ok)
		assert.equal("error_abort", problem.name)
	end)

	it("overlaps with its neighbours in a batch", function()
		-- Each reply waits until the server has seen all three requests: they can only come at once.
		local own <close> = server.start {
			routes = { ["GET /together"] = server.raw { body = "met", wait_requests = 3 } },
			replies = {},
		}
		local get = lattice.tool("get", "", {}, function()
			return lattice.http.request({ url = own.url .. "/together" }).body
		end, { is_concurrency_safe = function()
			return true
		end })
		local results = scripted.run({ call "get", call "get", call "get" }, { tools = { get } })
		for _, block in ipairs(results) do
			assert.equal("met", block.content)
		end
	end)
end)

describe("lattice.process.run", function()
	it("returns status and both streams, inside a handler and outside of any agent", function()
		local result = lattice.process.run { command = "echo out; echo err >&2; exit 3" }
		assert.equal(3, result.status)
		assert.equal("out\n", result.stdout)
		assert.equal("err\n", result.stderr)
		local run = lattice.tool("run", "", {}, function()
			return lattice.process.run({ argv = { "printf", "%s", "a b" } }).stdout
		end)
		assert.equal("a b", scripted.run({ call "run" }, { tools = { run } })[1].content)
	end)

	it("hands stdin over and sets folder and environment", function()
		local result = lattice.process.run {
			command = 'cat; pwd; echo "$LATTICE_SPEC"',
			stdin = "in\n",
			cwd = "/",
			env = { LATTICE_SPEC = "set" },
		}
		assert.equal("in\n/\nset\n", result.stdout)
	end)

	it("ends a program that takes too long, with its children", function()
		local result = lattice.process.run { command = "sleep 3600 | sleep 3600", timeout_ms = 30 }
		assert.is_true(result.timed_out)
	end)

	it("ends the whole group when the call is stopped", function()
		local marker = os.tmpname()
		local run = lattice.tool("run", "", {}, function()
			lattice.process.run { command = "echo $$ > " .. marker .. "; sleep 3600 & wait" }
			return "never"
		end)
		local _, result = scripted.run({ call "run" }, { tools = { run } }, { signal = lattice.abort_timeout(50) })
		assert.equal("error_abort", result.subtype)
		local file <close> = assert(io.open(marker))
		local pid = file:read "n"
		os.remove(marker)
		if pid then -- the program had begun: nothing of its group may be left
			assert.equal(1, lattice.process.run({ command = "kill -0 -- -" .. pid .. " 2>/dev/null || exit 1" }).status)
		end
	end)

	it("says what could not be started", function()
		local result, failure = lattice.process.run { argv = { "/no/such/program" } }
		assert.is_nil(result)
		assert.matches("/no/such/program", failure.message)
	end)

	it("refuses bad options", function()
		local bad = { {}, { argv = {} }, { argv = { "a" }, command = "b" }, { command = "x", env = { a = 1 } }, { comand = "x" } }
		for _, wrong in ipairs(bad) do
			assert.is_false(pcall(lattice.process.run, wrong))
		end
	end)
end)
