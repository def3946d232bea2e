-- 1 MB of text in 20-byte deltas: lua5.4 text.lua BASE_URL [events]
-- With `events` each delta is handed to the script as well.
local lattice = require "lattice"
local agent = lattice.create_bare_agent { api_key = "bench", base_url = arg[1], model = "bench-model" }
local result, bytes = nil, 0
if arg[2] == "events" then
	for message in agent:query("Read the file line by line.", { stream = true }) do
		if message.type == "stream_event" and message.event.type == "content_block_delta" then
			bytes = bytes + #message.event.delta.text
		elseif message.type == "result" then
			result = message
		end
	end
	assert(bytes == 1 << 20)
else
	result = agent:prompt "Read the file line by line."
end
assert(result.subtype == "success" and #result.result == 1 << 20)
