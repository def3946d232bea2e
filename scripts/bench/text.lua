-- 1 MB of text in 20-byte deltas, each of which is handed to the script: lua5.4 text.lua BASE_URL
local lattice = require "lattice"
local agent = lattice.create_bare_agent { api_key = "bench", base_url = arg[1], model = "bench-model" }
local bytes, result = 0, nil
for message in agent:query("Read the file line by line.", { stream = true }) do
	if message.type == "stream_event" and message.event.type == "content_block_delta" then
		bytes = bytes + #message.event.delta.text
	elseif message.type == "result" then
		result = message
	end
end
assert(result.subtype == "success" and #result.result == 1 << 20 and bytes == 1 << 20)
