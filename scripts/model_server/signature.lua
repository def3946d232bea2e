-- Signatures of thinking blocks: a keyed checksum (FNV-1a, 64 bit), made and checked by the server itself, so that
-- a block that comes back changed is refused, also in a history that another run of the server started.

local signature = {}

local KEY = "lattice model server"
local BASIS, PRIME = 0xcbf29ce484222325, 0x100000001b3 -- FNV-1a, 64 bit
local STRIDE = 4096 -- bytes taken from string.byte at once

local function checksum(text)
	local hash = BASIS
	for at = 1, #text, STRIDE do
		for _, c in ipairs { text:byte(at, at + STRIDE - 1) } do
			hash = (hash ~ c) * PRIME
		end
	end
	return hash
end

---@param thinking string
---@return string
function signature.of_thinking(thinking)
	return ("sig/%016x=="):format(checksum(KEY .. thinking))
end

--- The data of a redacted block with `seed` inside, checkable by itself.
---@param seed string
---@return string
function signature.redacted(seed)
	return ("red/%s/%016x=="):format(seed, checksum(KEY .. "redacted" .. seed))
end

---@param data string
---@return boolean
function signature.is_redacted(data)
	local seed = data:match("^red/(.*)/%x+==$")
	return seed ~= nil and signature.redacted(seed) == data
end

return signature
