/* The pools of a lua_State: each is owned by a userdata, which closes it (and so joins its threads) when it is
 * collected. The one that all bindings share is kept in the registry. */
#include "lua_pool.h"

#include "lua_core.h"

#define POOL_TYPE "lattice.pool"

typedef struct {
	lat_pool *pool; /* NULL before it is made and after the state began to close */
} pool_box;

static const char POOL_KEY = 'k'; /* its address is the registry key */

static int pool_gc(lua_State *L)
{
	pool_box *box = luaL_checkudata(L, 1, POOL_TYPE);
	lat_pool_free(box->pool);
	box->pool = NULL;
	return 0;
}

lat_pool *lat_lua_new_pool(lua_State *L, size_t threads)
{
	luaL_checkstack(L, 4, NULL);
	pool_box *box = lua_newuserdatauv(L, sizeof *box, 0);
	box->pool = NULL;
	if (luaL_newmetatable(L, POOL_TYPE)) {
		lua_pushcfunction(L, pool_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	lat_error err;
	box->pool = lat_pool_new(threads, 0, &err);
	if (!box->pool)
		lat_lua_raise(L, &err);
	return box->pool;
}

lat_pool *lat_lua_pool(lua_State *L)
{
	luaL_checkstack(L, 4, NULL);
	lua_rawgetp(L, LUA_REGISTRYINDEX, &POOL_KEY);
	pool_box *box = lua_touserdata(L, -1);
	lua_pop(L, 1);
	if (box && !box->pool)
		luaL_error(L, "this Lua state is closing: its threads are gone");
	if (box)
		return box->pool;
	lat_pool *pool = lat_lua_new_pool(L, 0);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &POOL_KEY);
	return pool;
}
