std = "lua54"
max_line_length = 120
include_files = { "lua", "**/*.lua", "*.rockspec", ".luacheckrc", ".busted" }
files["spec/**/*_spec.lua"] = {
	std = "lua54+busted",
	max_line_length = 140,
	-- Functions that a spec hands to the model server find its constructors there.
	read_globals = { "text", "tool_use", "thinking", "message", "status", "raw", "events", "json" },
}
files["scripts/examples/broken_project/spec/*.lua"] = { std = "lua54+busted" }
files["scripts/examples/code_fixer_model.lua"] = { read_globals = { "tool_use", "message" } }
files["*.rockspec"] = { std = "rockspec" }
files[".busted"] = { std = "lua54" }
exclude_files = { "build", "build-*" }
