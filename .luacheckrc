std = "lua54"
max_line_length = 120
include_files = { "lua", "**/*.lua", "*.rockspec", ".luacheckrc", ".busted" }
files["spec/**/*_spec.lua"] = { std = "lua54+busted", max_line_length = 140 }
files["*.rockspec"] = { std = "rockspec" }
files[".busted"] = { std = "lua54" }
exclude_files = { "build", "build-*" }
