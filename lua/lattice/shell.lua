--- The shell of a session: what its Bash commands may do, and the folder for their temporary files.

local core = require "lattice.core"
local options = require "lattice.options"

local shell = {}

local SECRET_LEAST = 8 -- characters; shorter ones would hide half of the environment

--- The options of agents and of create_builtin_tools that concern Bash.
shell.OPTIONS = {
	bash_confinement = options.one_of { "best_effort", "required", "off" },
	bash_network = options.boolean,
	bash_reads = options.one_of { "all", "workspace" },
}

--- Whether any of them is given.
---@param given table
---@return string? name
function shell.given(given)
	for name in pairs(shell.OPTIONS) do
		if given[name] ~= nil then
			return name
		end
	end
end

local function secrets_of(given)
	local list = {}
	for _, secret in pairs {
		given.api_key or false,
		given.auth_token or false,
		os.getenv "ANTHROPIC_API_KEY" or false,
		os.getenv "ANTHROPIC_AUTH_TOKEN" or false,
	} do
		if secret and #secret >= SECRET_LEAST then
			list[#list + 1] = secret
		end
	end
	return list
end

local function open(opened)
	local settings = opened.shell_settings
	local temp, problem = core.private_folder { keep = false }
	if not temp then
		return nil, problem
	end
	local bash
	bash, problem = core.bash {
		workspace = opened.handle,
		temp = temp:path(),
		confinement = settings.confinement,
		confine_reads = settings.reads == "workspace",
		confine_network = settings.network == false,
		secrets = settings.secrets,
	}
	if not bash then
		temp:remove()
		return nil, problem
	end
	opened.temp, opened.bash, opened.bash_lacks = temp, bash, bash:lacks()
	return bash
end

--- Says what the shell of an opened workspace may do. Where confinement is required and this kernel can't, raises.
---@param prefix string for errors
---@param opened table what workspace.open made
---@param given table options
---@param level integer whose line an error names
function shell.configure(prefix, opened, given, level)
	opened.shell_settings = {
		confinement = given.bash_confinement or "best_effort",
		network = given.bash_network,
		reads = given.bash_reads,
		secrets = secrets_of(given),
	}
	if given.bash_confinement == "required" then
		local bash, problem = open(opened)
		if not bash then
			error(prefix .. ": bash_confinement: " .. problem, level + 1)
		end
	end
end

--- Starts a command. What of the confinement this kernel can't do comes once, with the first.
---@param opened table
---@param input table command, timeout_ms
---@param grants? userdata
---@return userdata? op
---@return string? lacks a sentence; where there is no op, why
function shell.start(opened, input, grants)
	local bash, problem = opened.bash, nil
	if not bash then
		bash, problem = open(opened)
	end
	if not bash then
		return nil, problem
	end
	local lacks = opened.bash_lacks
	opened.bash_lacks = nil
	return bash:start(input.command, input.timeout_ms, grants), lacks
end

return shell
