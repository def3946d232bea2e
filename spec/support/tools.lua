--- Calls built-in tools right at the engine, without an agent around them, in a folder of its own.

local core = require "lattice.core"

local tools = {}

local BOTH = { "read", "write" }

--- A new empty folder; `tools.remove_folders` removes all of them.
local folders = {}
function tools.folder()
	local folder = assert(core.private_folder {})
	folders[#folders + 1] = folder
	return folder:path()
end

function tools.remove_folders()
	for index = #folders, 1, -1 do
		folders[index]:remove()
		folders[index] = nil
	end
end

function tools.workspace(cwd, options)
	options = options or {}
	local roots = { { path = cwd, access = BOTH } }
	return assert(core.workspace { cwd = cwd, roots = roots, fallback = options.fallback })
end

--- Runs one tool and waits for its result.
function tools.call(ws, name, input, options)
	local op <close> = ws:start(name, input, options)
	local ids = {}
	while not op:ready() do
		core.turn(nil, ids)
	end
	return op:result()
end

function tools.put(path, text)
	local file <close> = assert(io.open(path, "wb"))
	assert(file:write(text))
end

--- The bytes of a file, nil where there is none.
function tools.get(path)
	local file <close> = io.open(path, "rb")
	return file and file:read "a"
end

-- Without the libraries of a sanitizer that this process may run under: they don't suit every program.
local function sh_raw(command)
	local op <close> = core.process_start { command = command, env = { LD_PRELOAD = false }, merge_stderr = true }
	local ids = {}
	while not op:ready() do
		core.turn(nil, ids)
	end
	return assert(op:result()).stdout
end

--- What a shell command prints.
function tools.sh(command, ...)
	return sh_raw(command:format(...))
end

--- What a script prints that runs in a process of its own, with the libraries that a sanitizer preloads.
function tools.script(path, arguments, environment)
	local preload = os.getenv "LD_PRELOAD"
	local set = (environment or "") .. (preload and (" LD_PRELOAD='%s'"):format(preload) or "")
	return sh_raw(("%s %s '%s' %s"):format(set, os.getenv "LUA" or "lua5.4", path, arguments))
end

function tools.scale()
	return tonumber(os.getenv "LATTICE_SPEC_SCALE") or 1
end

return tools
