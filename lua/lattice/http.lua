--- HTTP requests for handlers: they wait in the engine, so that other handlers go on.

local core = require "lattice.core"
local options = require "lattice.options"
local signal = require "lattice.signal"
local task = require "lattice.task"

local http = {}

local DEFAULT_TIMEOUT_MS = 60000

local REQUEST_OPTIONS = {
	method = options.kind("an HTTP method such as \"GET\"", function(value)
		return type(value) == "string" and value:find "^%a+$" ~= nil
	end),
	url = options.kind("an http:// or https:// URL", function(value)
		return type(value) == "string" and value:find "^[hH][tT][tT][pP][sS]?://." ~= nil
	end),
	headers = options.kind("a table of header names and string values", function(value)
		if type(value) ~= "table" then
			return false
		end
		for name, text in pairs(value) do
			if type(name) ~= "string" or type(text) ~= "string" then
				return false
			end
		end
		return true
	end),
	body = options.string,
	timeout_ms = options.milliseconds,
	signal = signal.kind,
	max_bytes = options.positive_integer,
	follow_redirects = options.boolean,
}

local function header_list(headers)
	local list = {}
	for name, value in pairs(headers or {}) do
		list[#list + 1] = { name, value }
	end
	table.sort(list, function(a, b)
		return a[1] < b[1]
	end)
	return list
end

-- Names in lower case; a header that came more than once is joined by ", " (RFC 9110, section 5.3).
local function header_map(list)
	local map = {}
	for _, pair in ipairs(list) do
		local name = pair[1]:lower()
		map[name] = map[name] and map[name] .. ", " .. pair[2] or pair[2]
	end
	return map
end

--- Makes an HTTP request and waits for the whole reply. Any status is a reply; only a request that got none is a
--- failure. Works inside handlers (others go on meanwhile) and anywhere else.
---@param request table url; method (GET, or POST with a body), headers, body, timeout_ms (60,000), max_bytes of the
---  reply (64 MiB), signal, follow_redirects (true)
---@return table? reply {status = integer, headers = {[lower-case name] = value}, body = string, header_list}
---@return table? failure {kind = "timeout"|"io"|"limit"|"invalid", message = string}
function http.request(request)
	options.check("lattice.http.request", REQUEST_OPTIONS, request)
	if request == nil or not request.url then
		error("lattice.http.request: url: expected an http:// or https:// URL, got nil", 2)
	end
	local op <close> = core.http_start {
		method = request.method and request.method:upper(),
		url = request.url,
		headers = header_list(request.headers),
		body = request.body,
		timeout_ms = request.timeout_ms or DEFAULT_TIMEOUT_MS,
		max_bytes = request.max_bytes,
		follow_redirects = request.follow_redirects,
	}
	task.await(op, request.signal)
	local reply, failure = op:result()
	if not reply then
		return nil, failure
	end
	return { status = reply.status, headers = header_map(reply.headers), body = reply.body, header_list = reply.headers }
end

return http
