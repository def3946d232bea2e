/* Binding of Ctrl-C: core.sigint(). Runs on the thread of its lua_State; the userdata owns the watch. */
#include "lua_core.h"
#include "lua_loop.h"
#include "scheduler/sigint.h"

#define SIGINT_TYPE "lattice.sigint"

static lat_sigint *check(lua_State *L)
{
	return luaL_checkudata(L, 1, SIGINT_TYPE);
}

static int sigint_id(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)check(L)->op.id);
	return 1;
}

static int sigint_ready(lua_State *L)
{
	lua_pushboolean(L, check(L)->fired);
	return 1;
}

static int sigint_rearm(lua_State *L)
{
	lat_error err;
	if (lat_sigint_rearm(check(L), &err) != LAT_OK)
		return lat_lua_raise(L, &err);
	return 0;
}

static int sigint_cancel(lua_State *L)
{
	lat_sigint_disarm(check(L));
	return 0;
}

static const luaL_Reg METHODS[] = {
	{"id", sigint_id},
	{"ready", sigint_ready},
	{"rearm", sigint_rearm},
	{"cancel", sigint_cancel},
	{"__gc", sigint_cancel},
	{"__close", sigint_cancel},
	{NULL, NULL},
};

/* sigint() → op that is ready when SIGINT came, until op:rearm(); raises when one is watched already */
static int core_sigint(lua_State *L)
{
	lat_loop *loop = lat_lua_loop(L);
	lat_sigint *s = lua_newuserdatauv(L, sizeof *s, 0);
	*s = (lat_sigint){.armed = false};
	luaL_setmetatable(L, SIGINT_TYPE);
	lat_error err;
	if (lat_sigint_arm(s, loop, &err) != LAT_OK)
		return lat_lua_raise(L, &err);
	return 1;
}

void lat_lua_open_sigint(lua_State *L)
{
	luaL_newmetatable(L, SIGINT_TYPE);
	luaL_setfuncs(L, METHODS, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, core_sigint);
	lua_setfield(L, -2, "sigint");
}
