/* The exit list of a lua_State is held by a userdata in the registry; entries hold it themselves. */
#include "lua_at_exit.h"

#include "lua_core.h"

#define LIST_TYPE "lattice.at_exit"

typedef struct {
	lat_at_exit *list; /* NULL before it is made and after the state began to close */
} list_box;

static const char LIST_KEY = 'k'; /* its address is the registry key */

static int list_gc(lua_State *L)
{
	list_box *box = luaL_checkudata(L, 1, LIST_TYPE);
	lat_at_exit_free(box->list);
	box->list = NULL;
	return 0;
}

lat_at_exit *lat_lua_at_exit(lua_State *L)
{
	luaL_checkstack(L, 4, NULL);
	lua_rawgetp(L, LUA_REGISTRYINDEX, &LIST_KEY);
	list_box *box = lua_touserdata(L, -1);
	lua_pop(L, 1);
	if (box && !box->list)
		luaL_error(L, "this Lua state is closing");
	if (box)
		return box->list;
	box = lua_newuserdatauv(L, sizeof *box, 0);
	box->list = NULL;
	if (luaL_newmetatable(L, LIST_TYPE)) {
		lua_pushcfunction(L, list_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	lat_error err;
	box->list = lat_at_exit_new(&err);
	if (!box->list)
		lat_lua_raise(L, &err);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &LIST_KEY);
	return box->list;
}
