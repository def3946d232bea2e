rockspec_format = "3.0"
package = "lattice"
version = "scm-1"

-- Built from the tree it stands in (`luarocks --lua-version 5.4 make`); nothing is fetched.
source = {
	url = "file://.",
}

description = {
	summary = "A Lua-scriptable agent engine",
	detailed = [[
A C engine owns HTTP transport, JSON, input validation, scheduling and result ordering;
agents, tools and batch policies are written in Lua.]],
	license = "MIT",
}

supported_platforms = { "linux" }

dependencies = {
	"lua >= 5.4, < 5.5",
}

-- The Makefile finds libcurl, PCRE2 and Lua by pkg-config, with the flags of every other build.
build = {
	type = "make",
	build_target = "build",
	install_target = "install",
	install_variables = {
		INST_LUADIR = "$(LUADIR)",
		INST_LIBDIR = "$(LIBDIR)",
	},
}
