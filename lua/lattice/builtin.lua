--- The built-in tools: what a model is told of them, what they read and write, and the way to the engine, which runs
--- them on its threads.

local errors = require "lattice.errors"
local file_access = require "lattice.file_access"
local options = require "lattice.options"
local schema = require "lattice.schema"
local shell = require "lattice.shell"
local task = require "lattice.task"
local tool = require "lattice.tool"
local workspace = require "lattice.workspace"

local builtin = {}

local s = schema

local function path(text)
	return s.string({ min_length = 1 }):describe(text)
end

local function safe()
	return true
end

local FILE = "The file's path: absolute, or relative to the working folder"
local FOLDER = "The folder's path: absolute, or relative to the working folder, which is the default"

local TOOLS = {
	{
		name = "Read",
		reads = "file_path",
		description = "Reads a file and returns its text with line numbers (number, tab, line). By default the first "
			.. "2000 lines; with offset and limit, a part of a long file. Lines over 2000 characters are cut. Images (PNG, "
			.. "JPEG, GIF, WebP) and PDF files are shown as such. Other binary files can't be read. The numbers and the tab "
			.. "are not part of the file.",
		schema = s.object {
			file_path = path(FILE),
			offset = s.optional(s.integer({ minimum = 0 }):describe "The first line to read, from 1"),
			limit = s.optional(s.integer({ minimum = 1 }):describe "How many lines to read"),
		},
	},
	{
		name = "Write",
		writes = "file_path",
		description = "Writes a whole file: makes it with its folders, or replaces what is there, all at once. To change "
			.. "a part of a file, use Edit. Fails when the file has changed since you read it: then read it again.",
		schema = s.object {
			file_path = path(FILE),
			content = s.string():describe "All of the file's text",
		},
	},
	{
		name = "Edit",
		writes = "file_path",
		description = "Replaces old_string by new_string in a file. old_string must be exactly what stands in the file, "
			.. "blanks included, without the line numbers of Read, and must be there once: give enough lines around the "
			.. "change to make it unique, or set replace_all. The kind of line ends is kept. Fails when the file has changed "
			.. "since you read it: then read it again.",
		schema = s.object {
			file_path = path(FILE),
			old_string = s.string({ min_length = 1 }):describe "The text to replace",
			new_string = s.string():describe "The text to put in its place",
			replace_all = s.optional(s.boolean():describe "Replace every occurrence (default false)"),
		},
	},
	{
		name = "LS",
		lists = "path",
		description = "Lists the entries of one folder, sorted by name; folders end with a slash, links show where they "
			.. "lead. At most 1000 are shown.",
		schema = s.object { path = s.optional(path(FOLDER)) },
	},
	{
		name = "Glob",
		lists = "path",
		description = "Finds files whose path fits a pattern, the newest first: * and ? within a name, ** over folders, "
			.. "[abc], {a,b}. Files that .gitignore leaves out are left out.",
		schema = s.object {
			pattern = s.string({ min_length = 1 }):describe 'The pattern, for example "src/**/*.lua"',
			path = s.optional(path(FOLDER)),
		},
	},
	{
		name = "Grep",
		lists = "path",
		description = "Searches file contents for a regular expression (PCRE2 syntax). Binary files and what .gitignore "
			.. "leaves out are skipped.",
		schema = s.object {
			pattern = s.string({ min_length = 1 }):describe "The regular expression",
			path = s.optional(path "A file or folder to search; the working folder by default"),
			glob = s.optional(s.string({ min_length = 1 }):describe 'Only files that fit, for example "*.lua"'),
			output_mode = s.optional(
				s.enum({ "files_with_matches", "files", "content", "count" })
					:describe "the names of files (default), matching lines, or how many lines match in each file"
			),
			context = s.optional(s.integer({ minimum = 0 }):describe "Lines to show around each match, with content"),
			case_insensitive = s.optional(s.boolean():describe "Upper and lower case are the same (default false)"),
			multiline = s.optional(s.boolean():describe "A match may go over several lines (default false)"),
			head_limit = s.optional(s.integer({ minimum = 1 }):describe "At most so many lines of output"),
		},
	},
	{
		name = "Bash",
		description = "Runs a command in a shell and returns its output, and its exit status where that isn't 0. The "
			.. "working folder is kept from one call to the next; variables and functions are not. There is no input. Use "
			.. "Read, Write, Edit, LS, Glob and Grep for what they can do.",
		schema = s.object {
			command = s.string({ min_length = 1 }):describe "The command",
			timeout_ms = s.optional(s.integer({ minimum = 1 }):describe "The longest it may take, in milliseconds"),
			description = s.optional(s.string():describe "What it does, in a few words, for whoever reads along"),
		},
	},
}

-- What a call touches, as canonical paths. Bash may write wherever it is let.
local function file_set(spec, input, opened, grants)
	local handle = opened.handle
	local key = spec.reads or spec.writes or spec.lists
	if key then
		local name = handle:canonical(input[key] or ".", grants) or input[key]
		return spec.writes and { write = { name } } or { read = { name } }
	end
	local set = { write = {} }
	for _, roots in ipairs { handle:roots(), grants and grants:list() or {} } do
		for _, root in ipairs(roots) do
			set.write[#set.write + 1] = root.path
		end
	end
	return set
end

-- The same for the plan of one batch, which compares names: whoever looks at a folder looks at everything.
local function resources_of(spec, bound)
	return function(input, ctx)
		if spec.lists then
			return { read = { "*" } }
		elseif not spec.reads and not spec.writes then
			return { write = { "*" } }
		end
		local opened, grants = workspace.behind(ctx.workspace)
		return file_set(spec, input, bound or opened, grants)
	end
end

local NO_WORKSPACE = "this tool belongs to the workspace of an agent, and the agent has none: give it the option "
	.. "workspace, or use create_builtin_tools"

local function stopped(signal)
	error(task.abort_error(signal.reason), 0)
end

-- A command runs on the loop, not on a thread of the pool: there may be many, and each may take long.
local function run_command(opened, input, ctx, grants)
	local op <close>, lacks = shell.start(opened, input, grants)
	if not op then
		return { content = "Bash: " .. lacks, is_error = true }
	end
	if task.wait_op(op, ctx.signal) then
		stopped(ctx.signal)
	end
	local result, failure = op:result()
	if not result then
		return { content = "Bash: " .. failure.message, is_error = true }
	end
	result.metadata.unconfined = lacks
	return result
end

local function handler_of(spec, bound)
	return function(input, ctx)
		local own, grants = workspace.behind(ctx.workspace)
		local opened = bound or own
		if not opened then
			error(errors.new("workspace_error", NO_WORKSPACE), 0)
		end
		local entry <close> = file_access.queue(file_set(spec, input, opened, grants))
		if entry:wait(ctx.signal) then
			stopped(ctx.signal)
		end
		if spec.name == "Bash" then
			return run_command(opened, input, ctx, grants)
		end
		local op <close> = opened.handle:start(spec.name, input, { grants = grants, flag = ctx.signal:flag() })
		task.wait_op(op) -- the flag makes it stop soon; what has been done is told as it is
		local result = op:result()
		if not result or result.is_error and ctx.signal.aborted then
			stopped(ctx.signal)
		end
		return result
	end
end

local function make(bound)
	local list = {}
	for _, spec in ipairs(TOOLS) do
		list[#list + 1] = tool.define {
			name = spec.name,
			description = spec.description,
			kind = "builtin",
			schema = schema.compile(spec.schema),
			handler = handler_of(spec, bound),
			is_concurrency_safe = (spec.reads or spec.lists) and safe or nil,
			resources = resources_of(spec, bound),
		}
	end
	return list
end

local BUILTIN_OPTIONS = {
	cwd = options.text,
	allowed_directories = workspace.directories_kind,
}
for name, kind in pairs(shell.OPTIONS) do
	BUILTIN_OPTIONS[name] = kind
end

--- Read, Write, Edit, LS, Glob, Grep and Bash for folders of the host's choice. They stay beneath `cwd` and the allowed
--- directories, whatever links are there.
---@param builtin_options? table cwd (default: the process's), allowed_directories; bash_confinement ("best_effort",
---  "required" or "off"), bash_network (default true), bash_reads ("all" or "workspace")
---@return lattice.tool_definition[]
function builtin.create_tools(builtin_options)
	local given = options.check("create_builtin_tools", BUILTIN_OPTIONS, builtin_options)
	local opened = workspace.at("create_builtin_tools", given.cwd or ".", given.allowed_directories, 2)
	shell.configure("create_builtin_tools", opened, given, 2)
	return make(opened)
end

local shared

--- The same tools for the workspace of whichever agent calls them (see the agent option `workspace`).
---@return lattice.tool_definition[]
function builtin.create_workspace_tools()
	shared = shared or make(nil)
	return table.move(shared, 1, #shared, 1, {})
end

return builtin
