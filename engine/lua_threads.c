/* The pools of a lua_State: each is owned by a userdata, which closes it (and so joins its threads) when it is
 * collected. The one that all bindings share is kept in the registry. */
#include "lua_threads.h"

#include "lua_core.h"

#define THREADS_TYPE "lattice.threads"

typedef struct {
	lat_threads *pool; /* NULL before it is made and after the state began to close */
} threads_box;

static const char THREADS_KEY = 'k'; /* its address is the registry key */

static int threads_gc(lua_State *L)
{
	threads_box *box = luaL_checkudata(L, 1, THREADS_TYPE);
	lat_threads_free(box->pool);
	box->pool = NULL;
	return 0;
}

lat_threads *lat_lua_new_threads(lua_State *L, size_t threads)
{
	luaL_checkstack(L, 4, NULL);
	threads_box *box = lua_newuserdatauv(L, sizeof *box, 0);
	box->pool = NULL;
	if (luaL_newmetatable(L, THREADS_TYPE)) {
		lua_pushcfunction(L, threads_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	lat_error err;
	box->pool = lat_threads_new(threads, 0, &err);
	if (!box->pool)
		lat_lua_raise(L, &err);
	return box->pool;
}

lat_threads *lat_lua_to_threads(lua_State *L, int idx)
{
	threads_box *box = luaL_checkudata(L, idx, THREADS_TYPE);
	if (!box->pool)
		luaL_error(L, "this Lua state is closing: its threads are gone");
	return box->pool;
}

lat_threads *lat_lua_threads(lua_State *L)
{
	luaL_checkstack(L, 4, NULL);
	lat_threads *pool;
	if (lua_rawgetp(L, LUA_REGISTRYINDEX, &THREADS_KEY) != LUA_TNIL) {
		pool = lat_lua_to_threads(L, -1);
		lua_pop(L, 1);
		return pool;
	}
	lua_pop(L, 1);
	pool = lat_lua_new_threads(L, 0);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &THREADS_KEY);
	return pool;
}
