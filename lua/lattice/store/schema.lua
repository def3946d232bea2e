--- Versions of tables: each step of a component is applied once, whatever number of processes begins at once.

local schema = {}

local ATTEMPTS = 10 -- processes that begin at once get into each other's way, and look again

local function versions_table(dialect)
	return ([[CREATE TABLE IF NOT EXISTS lattice_schema (
	component text NOT NULL, version bigint NOT NULL, applied_at bigint NOT NULL DEFAULT (%s),
	PRIMARY KEY (component, version))]]):format(dialect.now)
end

local function current_version(database, component)
	local results, why = database:run({ { versions_table(database.dialect) } }, true)
	if results then
		results, why = database:run({
			{ "SELECT coalesce(max(version), 0) FROM lattice_schema WHERE component = $1", component },
		}, false)
	end
	if not results then
		return nil, why
	end
	return results[1][1][1]
end

-- The row comes first: of two processes the second one fails on it, and finds the step done.
local function apply(database, component, version, step)
	local statements = { {
		"INSERT INTO lattice_schema (component, version) VALUES ($1, CAST($2 AS bigint))", component, version,
	} }
	for _, sql in ipairs(step) do
		statements[#statements + 1] = { sql }
	end
	return database:run(statements, true)
end

--- Brings a component's tables to the newest version.
---@param database table a store: dialect, run
---@param component string
---@param steps string[][] statements that lead from version n - 1 to n
---@return boolean? done
---@return table? failure {kind, message}
function schema.migrate(database, component, steps)
	local failure
	for _ = 1, ATTEMPTS do
		local version, why = current_version(database, component)
		if version and version > #steps then
			return nil, {
				kind = "invalid",
				message = ("the %s tables were made by a newer version of lattice (%d; this one knows %d): "
					.. "upgrade it, or use another database"):format(component, version, #steps),
			}
		elseif version == #steps then
			return true
		elseif version then
			local applied
			applied, why = apply(database, component, version + 1, steps[version + 1])
			why = not applied and why or nil
		end
		failure = why or failure
		if why and why.kind ~= "invalid" then
			break
		end
	end
	return nil, failure
end

return schema
