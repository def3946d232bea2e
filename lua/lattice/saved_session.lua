--- Saved sessions: the table or the file that agent:save makes and load_agent reads.

local core = require "lattice.core"
local options = require "lattice.options"
local task = require "lattice.task"

local saved_session = {}

local KIND, VERSION = "lattice.session", 1

--- A session as plain data with a JSON form.
---@param session table session_id, name, history
---@return table saved {kind, version, session_id, name?, messages}
function saved_session.pack(session)
	return {
		kind = KIND,
		version = VERSION,
		session_id = session.session_id,
		name = session.name,
		messages = setmetatable(session.history:messages(), core.array_mt),
	}
end

local function to_json(session)
	return table.concat {
		'{"kind":"', KIND, '","version":', VERSION,
		',"session_id":', core.json_encode(session.session_id),
		session.name and ',"name":' .. core.json_encode(session.name) or "",
		',"messages":[', session.history:json(), "]}\n",
	}
end

--- Writes a session to a file: a temporary file is written, synced and renamed, so that there is always a whole one.
---@param session table session_id, name, history
---@param path string
---@return boolean? written
---@return string? problem
function saved_session.write(session, path)
	local folder = path:match "^(.*)/[^/]*$"
	folder = folder == "" and "/" or folder or "."
	local handle, problem = core.workspace { cwd = folder, roots = { { path = folder, access = { "read", "write" } } } }
	if not handle then
		return nil, problem
	end
	local name = path:match "[^/]*$"
	local op <close> = handle:start("Write", { file_path = name, content = to_json(session) })
	task.wait_op(op)
	local result, stopped = op:result()
	if not result or result.is_error then
		local text = result and result.content or stopped.message
		return nil, type(text) == "string" and text or core.json_encode(text)
	end
	return true
end

local function read(path)
	local file <close>, problem = io.open(path, "rb")
	if not file then
		return nil, problem
	end
	local text = file:read "a"
	if not text then
		return nil, path .. ": can't be read"
	end
	local saved
	saved, problem = core.json_decode(text)
	if type(saved) ~= "table" then
		return nil, ("%s: expected a saved session, got %s"):format(path, saved == nil and problem or "other JSON")
	end
	return saved
end

local function wrong(saved)
	if saved.kind ~= KIND then
		return ('kind: expected "%s", got %s'):format(KIND, options.got(saved.kind))
	elseif saved.version ~= VERSION then
		return ("version: expected %d, got %s: it was saved by another version"):format(VERSION, options.got(saved.version))
	elseif type(saved.session_id) ~= "string" or saved.session_id == "" then
		return "session_id: expected a non-empty string, got " .. options.got(saved.session_id)
	elseif type(saved.messages) ~= "table" then
		return "messages: expected a list, got " .. options.got(saved.messages)
	end
end

--- Reads what pack or write made; the history is mended where a run was cut in the middle.
---@param saved table|string a table, or the path of a file
---@return table? session {session_id, name, history}
---@return string? problem
function saved_session.unpack(saved)
	local label = "saved session"
	if type(saved) == "string" then
		label = saved
		local problem
		saved, problem = read(saved)
		if not saved then
			return nil, problem
		end
	end
	local problem = wrong(saved)
	if problem then
		return nil, label .. ": " .. problem
	end
	local list = setmetatable(table.move(saved.messages, 1, #saved.messages, 1, {}), core.array_mt)
	local ok, json = pcall(core.json_encode, list)
	if not ok then
		return nil, label .. ": messages: " .. json
	end
	local history
	history, problem = core.history_from_json(json)
	if not history then
		return nil, label .. ": messages: " .. tostring(problem)
	end
	return { session_id = saved.session_id, name = saved.name, history = history }
end

return saved_session
