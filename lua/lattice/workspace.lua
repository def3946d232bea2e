--- Workspaces: the folder of a session, and the folders that its built-in tools may touch.

local core = require "lattice.core"
local options = require "lattice.options"

local workspace = {}

---@class lattice.workspace what a handler sees as ctx.workspace
---@field path? string the folder of the session, absolute; nil where the session has none
local view_class = { __name = "lattice.workspace" }

function view_class:__tostring()
	return string.format("lattice.workspace(%s)", self.path or "none")
end

local opened_of = setmetatable({}, { __mode = "k" }) -- view → what workspace.open made
local grants_of = setmetatable({}, { __mode = "k" }) -- view → roots of the query

--- The options `workspace` and `allowed_directories`.
workspace.kind = options.nested { path = options.text, keep = options.boolean }
workspace.directories_kind = options.list(options.text, "a list of folders")

local BOTH = { "read", "write" }

local function fail(prefix, problem, level)
	error(prefix .. ": " .. problem, level + 1)
end

-- Opens the folders for built-in tools: all of them for reading and writing.
local function open_roots(prefix, cwd, directories, level)
	local roots = { { path = cwd, access = BOTH } }
	for _, path in ipairs(directories or {}) do
		roots[#roots + 1] = { path = path, access = BOTH }
	end
	local handle, problem = core.workspace { cwd = cwd, roots = roots }
	return handle or fail(prefix, problem, level + 1)
end

--- Opens the folders of tools that have a fixed one.
---@param prefix string for errors
---@param cwd string where relative paths start
---@param directories? string[] further folders
---@param level integer whose line an error names
---@return table opened {path, handle}
function workspace.at(prefix, cwd, directories, level)
	local handle = open_roots(prefix, cwd, directories, level + 1)
	return { path = handle:cwd(), handle = handle }
end

--- Makes the folder of a session and opens it.
---
--- Without a path it is a private one (mode 0700 under $TMPDIR), removed at the session's end unless `keep`. With one,
--- it is that folder, made where it isn't there; it is kept unless `keep` is false and it was made.
---@param prefix string for errors
---@param given table the option: path, keep
---@param directories? string[] the option allowed_directories
---@param level integer whose line an error names
---@return table opened {path, handle, folder}
function workspace.open(prefix, given, directories, level)
	local keep = given.keep
	if keep == nil then
		keep = given.path ~= nil
	end
	local folder, problem = core.private_folder { path = given.path, keep = keep }
	if not folder then
		fail(prefix, "workspace: " .. problem, level + 1)
	end
	local opened = workspace.at(prefix, folder:path(), directories, level + 1)
	opened.folder = folder
	return opened
end

--- Ends a session's use of its folder: removes it unless it is kept.
---@param opened table
function workspace.close(opened)
	if opened.temp then
		opened.temp:remove()
	end
	if opened.folder then
		opened.folder:remove()
	end
end

local GRANT = {
	root = options.text,
	access = options.list(options.one_of { "read", "write" }, 'a list of "read" and "write"'),
	reason = options.string,
}

--- Opens what a query grants beyond the agent's own folders. To write includes to read.
---@param prefix string for errors
---@param given any the option permissions.workspace_grants
---@param level integer whose line an error names
---@return userdata? roots
function workspace.grants(prefix, given, level)
	local roots = {}
	for index, grant in ipairs(given or {}) do
		local label = string.format("%s: permissions.workspace_grants[%d]", prefix, index)
		options.check(label, GRANT, grant, level + 1)
		if not grant.root then
			fail(label, "root: expected a folder, got nil", level + 1)
		elseif #(grant.access or {}) == 0 then
			fail(label, 'access: expected a list of "read" and "write"', level + 1)
		end
		local writes = table.concat(grant.access, " "):find "write"
		roots[index] = { path = grant.root, access = writes and BOTH or { "read" } }
	end
	if #roots == 0 then
		return nil
	end
	local handle, problem = core.workspace_roots(roots)
	return handle or fail(prefix .. ": permissions.workspace_grants", problem, level + 1)
end

--- What the handlers of one query get as ctx.workspace.
---@param opened? table the session's own
---@param grants? userdata the query's
---@return lattice.workspace? view nil when there is neither
function workspace.view(opened, grants)
	if not opened and not grants then
		return nil
	end
	local view = setmetatable({ path = opened and opened.path }, view_class)
	opened_of[view], grants_of[view] = opened, grants
	return view
end

--- What a view stands for.
---@param view? lattice.workspace
---@return table? opened
---@return userdata? grants
function workspace.behind(view)
	if view == nil then
		return nil
	end
	return opened_of[view], grants_of[view]
end

return workspace
