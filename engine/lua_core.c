/* luaopen_lattice_core: puts the bindings together. Runs on the thread that requires the module. */
#include "lua_core.h"

int luaopen_lattice_core(lua_State *L)
{
	lua_newtable(L);
	lat_lua_open_json(L);
	lat_lua_open_schema(L);
	lat_lua_open_loop(L);
	lat_lua_open_batch(L);
	lat_lua_open_process(L);
	lat_lua_open_flag(L);
	lat_lua_open_worker(L);
	lat_lua_open_trace(L);
	lat_lua_open_http(L);
	lat_lua_open_messages(L);
	lat_lua_open_exchange(L);
	lat_lua_open_sigint(L);
	lat_lua_open_folder(L);
	lat_lua_open_sqlite(L);
	lat_lua_open_postgres(L);
	lat_lua_open_workspace(L);
	lat_lua_open_bash(L);
	lat_lua_open_random(L);
	return 1;
}
