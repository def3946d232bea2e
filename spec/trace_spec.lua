local lattice = require "lattice"
local scripted = require "spec.support.scripted"

local call = scripted.call

-- The events and fields that docs/tracing.md tells of, from its tables.
local function documented()
	local common, events, in_events = {}, {}, false
	for line in io.lines "docs/tracing.md" do
		local first, rest = line:match "^| (`[^|]+`) | (.*) |$"
		if line:find "^| event |" then
			in_events = true
		elseif first and in_events then
			local name, fields = first:match "`([%w_]+)`", {}
			for field in rest:gsub("%b()", ""):gmatch "`([%w_]+)`" do
				fields[field] = true
			end
			events[name] = fields
		elseif first and not rest:find "^span" then
			for field in first:gmatch "`([%w_]+)`" do
				common[field] = true
			end
		end
	end
	return common, events
end

local function collector()
	local tracer = { events = {} }
	function tracer:emit(event)
		self.events[#self.events + 1] = event
	end
	return tracer
end

-- A run in which every kind of event comes.
local function run_everything()
	local tracer = collector()
	local turn = 0
	local tries = 0
	local agent = lattice.create_bare_agent {
		name = "traced",
		tracer = tracer,
		tools = {
			lattice.tool("probe", "", { n = "integer" }, function(input)
				if input.n == 2 then
					error "broken"
				end
				return { content = "fine", metadata = { bytes = 4 } }
			end),
		},
		hooks = {
			on_tool_result = function(event)
				return event.error and { content = "hidden", is_error = true } or nil
			end,
			on_model_request = function() end,
		},
		permission = function()
			return { behavior = "allow" }
		end,
		tool_batch_policy = {
			validate = function()
				return turn == 1 and { allowed = true } or { allowed = false, code = "no", message = "not again" }
			end,
		},
		model_client = {
			create = function()
				turn = turn + 1
				if turn <= 2 then
					return { content = { call("probe", { n = 1 }), call("probe", { n = 2 }) }, usage = { input_tokens = 3 } }
				end
				error "the model is gone"
			end,
		},
	}
	agent:prompt "go"
	assert.equal(0, tries)
	return tracer.events
end

describe("a trace", function()
	it("has exactly the events and fields that the document tells of", function()
		local common, events = documented()
		local seen = {}
		for _, event in ipairs(run_everything()) do
			local fields = assert(events[event.event], "undocumented event " .. event.event)
			seen[event.event] = seen[event.event] or {}
			for field in pairs(event) do
				assert.is_true(common[field] or fields[field], event.event .. "." .. field .. " is not documented")
				seen[event.event][field] = true
			end
			for field in pairs(common) do
				assert.is_not_nil(event[field] or (field == "parent_span_id" and ""), event.event .. " lacks " .. field)
			end
		end
		for name, fields in pairs(events) do
			if name ~= "retry" then -- only over the wire, below
				assert.is_table(seen[name], name .. " never came")
				for field in pairs(fields) do
					local has_error_only = name == "hook" and field == "error"
					assert.is_true(seen[name][field] or has_error_only, name .. "." .. field .. " never came")
				end
			end
		end
	end)

	it("ties spans together: calls below their query, a query in a handler below its call", function()
		local tracer = collector()
		local inner = lattice.tool("inner", "", {}, function()
			local agent = lattice.create_bare_agent { name = "inner", tracer = tracer, model_client = scripted.client { "x" } }
			return agent:prompt("go").result
		end)
		scripted.run({ call "inner" }, { name = "outer", tracer = tracer, tools = { inner } })
		local outer, tool, below
		for _, event in ipairs(tracer.events) do
			if event.event == "query_start" and event.agent == "outer" then
				outer = event
			elseif event.event == "tool_start" then
				tool = event
			elseif event.event == "query_start" then
				below = event
			end
		end
		assert.equal(outer.span_id, tool.parent_span_id)
		assert.equal(tool.span_id, below.parent_span_id)
		assert.equal(outer.trace_id, below.trace_id)
		assert.is_nil(outer.parent_span_id)
	end)

	it("has the traceback of a handler that raised, which the model never sees", function()
		local found
		for _, event in ipairs(run_everything()) do
			found = found or event.traceback
		end
		assert.matches("trace_spec.lua", found)
	end)

	it("comes in the order of things, on a clock that never goes back", function()
		local last = 0
		for _, event in ipairs(run_everything()) do
			assert.is_true(event.monotonic_ms >= last)
			last = event.monotonic_ms
		end
	end)

	it("runs the hook on a result before its tool_end", function()
		local order = {}
		for _, event in ipairs(run_everything()) do
			if event.tool_call_id then
				order[#order + 1] = event.event .. event.tool_call_id
			end
		end
		local text = table.concat(order, " ")
		assert.is_true(text:find("hook" .. "toolu", 1, true) < text:find("tool_end" .. "toolu", 1, true))
	end)
end)

local function read_lines(path)
	local lines = {}
	for line in io.lines(path) do
		lines[#lines + 1] = lattice.json.decode(line)
	end
	return lines
end

describe("a JSONL tracer", function()
	local path

	before_each(function()
		path = os.tmpname()
	end)

	after_each(function()
		os.remove(path)
		os.remove(path .. ".1")
	end)

	local function prompt_with(options)
		options.path = path
		local tracer <close> = lattice.create_jsonl_context_tracer(options)
		local agent = lattice.create_bare_agent { tracer = tracer, model_client = scripted.client { "one", "two" } }
		agent:prompt "go"
		agent:prompt "on"
		return tracer:status()
	end

	it("writes one line an event", function()
		prompt_with {}
		local lines = read_lines(path)
		assert.equal("query_start", lines[1].event)
		assert.equal("result", lines[#lines].event)
		assert.equal("success", lines[#lines].subtype)
	end)

	it("appends to what is there", function()
		prompt_with {}
		local before = #read_lines(path)
		prompt_with {}
		assert.equal(2 * before, #read_lines(path))
	end)

	it("lets redact change an event, drop it, or leave it", function()
		prompt_with {
			redact = function(event)
				if event.event == "model_request" then
					return false
				elseif event.event == "result" then
					return { event = "result", hidden = true }
				end
			end,
		}
		local kinds = {}
		for _, event in ipairs(read_lines(path)) do
			kinds[event.event] = event
		end
		assert.is_nil(kinds.model_request)
		assert.is_true(kinds.result.hidden)
		assert.is_nil(kinds.result.subtype)
		assert.is_not_nil(kinds.query_start)
	end)

	it("writes nothing of an event whose redact raises", function()
		local status = prompt_with {
			redact = function()
				error "broken"
			end,
		}
		assert.equal(0, #read_lines(path))
		assert.is_true(status.withheld > 0)
	end)

	it("turns to a new file when the old one is large", function()
		prompt_with { max_bytes = 600, keep = 1 }
		assert.is_true(#read_lines(path .. ".1") > 0)
	end)

	it("says once on a result that the disk is full, and loses no reply", function()
		local tracer <close> = lattice.create_jsonl_context_tracer { path = "/dev/full" }
		local agent = lattice.create_bare_agent { tracer = tracer, model_client = scripted.client { "a", "b", "c", "d" } }
		local told = 0
		for _, expected in ipairs { "a", "b", "c", "d" } do
			local result = agent:prompt "go"
			assert.equal(expected, result.result)
			if result.trace_error then
				told = told + 1
				assert.matches("/dev/full", result.trace_error)
			end
			tracer:flush(10000)
		end
		assert.equal(1, told)
	end)

	it("refuses bad options", function()
		assert.error_matches(function()
			lattice.create_jsonl_context_tracer { file = "x" }
		end, 'create_jsonl_context_tracer: unknown option "file"', 1, true)
		assert.error_matches(function()
			lattice.create_jsonl_context_tracer {}
		end, "path: expected", 1, true)
		assert.error_matches(function()
			lattice.create_jsonl_context_tracer { path = "/no/such/folder/x" }
		end, "/no/such/folder/x", 1, true)
	end)
end)
