--- Running programs: the wait is in the engine, so other handlers go on.

local core = require "lattice.core"
local options = require "lattice.options"
local signal = require "lattice.signal"
local task = require "lattice.task"

local process = {}

local RUN_OPTIONS = {
	argv = options.list(options.string, "a list of strings, the program first"),
	command = options.text,
	cwd = options.text,
	env = options.kind("a table of names and string values (false takes a name away)", function(value)
		if type(value) ~= "table" then
			return false
		end
		for name, text in pairs(value) do
			if type(name) ~= "string" or name == "" or name:find "[=%z]" or type(text) ~= "string" and text ~= false then
				return false
			end
		end
		return true
	end),
	clear_env = options.boolean,
	stdin = options.string,
	timeout_ms = options.milliseconds,
	max_output = options.positive_integer,
	merge_stderr = options.boolean,
	signal = signal.kind,
}

--- Runs a program and waits for its end. A status other than 0 is a result, not a failure.
---
--- The program gets a process group of its own; when the call is stopped or its time is over, the whole group is
--- ended (TERM, then KILL). It inherits the environment but for names that look like secrets (…_API_KEY, …_TOKEN,
--- …_SECRET, …_PASSWORD and the like).
---@param run table argv = {program, …} or command = text for /bin/sh; cwd; env: names to add, or to take away with
---  false; clear_env (starts from nothing); stdin; timeout_ms; max_output (bytes kept of each stream, head and tail;
---  1 MiB); merge_stderr (both streams in stdout, in the order they came); signal
---@return table? result {status = integer?, signal = integer?, stdout, stderr, truncated, timed_out}
---@return table? failure {kind, message} when it could not be started
function process.run(run)
	options.check("lattice.process.run", RUN_OPTIONS, run)
	if run == nil or (run.argv == nil) == (run.command == nil) or (run.argv and #run.argv == 0) then
		error("lattice.process.run: expected one of argv = {program, …} and command = text", 2)
	end
	local started = {}
	for key, value in pairs(run) do
		started[key] = value
	end
	started.signal = nil
	local op <close>, failure = core.process_start(started)
	if not op then
		return nil, failure
	end
	task.await(op, run.signal)
	return op:result()
end

return process
