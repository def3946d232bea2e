/* A Lua launcher that is built with a sanitizer, so that nothing needs preloading; it stands as `lua5.4` at the head of
 * PATH, for the specs and for whatever they start.
 *     lua5.4 [-e CODE]… [SCRIPT [ARGUMENT…]]
 * One thread; closes its state before it ends, so that what the state didn't free is a leak. */
#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int with_traceback(lua_State *L)
{
	luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
	return 1;
}

/* As lua.c does it: the script is arg[0], what stands before it has negative indices. */
static void set_arguments(lua_State *L, int argc, char **argv, int script)
{
	lua_createtable(L, argc - script, script + 1);
	for (int i = 0; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i - script);
	}
	lua_setglobal(L, "arg");
}

/* Calls the chunk that was just loaded with the strings of argv behind it; says what went wrong. */
static bool run(lua_State *L, int load_status, int n, char **argv)
{
	if (load_status == LUA_OK) {
		lua_pushcfunction(L, with_traceback);
		lua_insert(L, 1);
		for (int i = 0; i < n; i++)
			lua_pushstring(L, argv[i]);
		load_status = lua_pcall(L, n, 0, 1);
	}
	if (load_status != LUA_OK)
		fprintf(stderr, "lua5.4: %s\n", lua_tostring(L, -1));
	lua_settop(L, 0);
	return load_status == LUA_OK;
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	if (!L)
		return 2;
	luaL_openlibs(L);
	int script = 1;
	while (script + 1 < argc && strcmp(argv[script], "-e") == 0)
		script += 2;
	set_arguments(L, argc, argv, script);
	bool ok = true;
	for (int i = 2; i < script && ok; i += 2)
		ok = run(L, luaL_loadbufferx(L, argv[i], strlen(argv[i]), "=(command line)", NULL), 0, NULL);
	if (ok && script < argc)
		ok = run(L, luaL_loadfile(L, argv[script]), argc - script - 1, argv + script + 1);
	lua_close(L);
	return ok ? 0 : 1;
}
