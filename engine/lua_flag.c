/* Bindings of flags: core.flag. A userdata holds its flag; the same flag may be held by userdata of several
 * states, each on its own thread. */
#include "lua_flag.h"

#include <string.h>

#include "lua_core.h"

#define FLAG_TYPE "lattice.flag"

typedef struct {
	lat_flag *flag; /* NULL until it is made */
} flag_box;

static flag_box *new_box(lua_State *L)
{
	flag_box *box = lua_newuserdatauv(L, sizeof *box, 0);
	box->flag = NULL;
	luaL_setmetatable(L, FLAG_TYPE);
	return box;
}

void lat_lua_push_flag(lua_State *L, lat_flag *f)
{
	new_box(L)->flag = f;
	lat_flag_hold(f);
}

lat_flag *lat_lua_to_flag(lua_State *L, int idx)
{
	flag_box *box = luaL_testudata(L, idx, FLAG_TYPE);
	return box ? box->flag : NULL;
}

static lat_flag *check_flag(lua_State *L)
{
	flag_box *box = luaL_checkudata(L, 1, FLAG_TYPE);
	luaL_argcheck(L, box->flag, 1, "this flag is closed");
	return box->flag;
}

static int flag_gc(lua_State *L)
{
	flag_box *box = luaL_checkudata(L, 1, FLAG_TYPE);
	lat_flag_free(box->flag);
	box->flag = NULL;
	return 0;
}

/* flag:set(reason?) → true for the call that set it; a reason that isn't a string is not kept */
static int flag_set(lua_State *L)
{
	lat_flag *f = check_flag(L);
	size_t len = 0;
	const char *reason = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &len) : NULL;
	lua_pushboolean(L, lat_flag_set(f, reason, len));
	return 1;
}

static int flag_is_set(lua_State *L)
{
	lua_pushboolean(L, lat_flag_is_set(check_flag(L)));
	return 1;
}

/* flag.aborted → boolean; flag.reason → string or nil; else a method */
static int flag_index(lua_State *L)
{
	lat_flag *f = check_flag(L);
	const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
	if (strcmp(key, "aborted") == 0) {
		lua_pushboolean(L, lat_flag_is_set(f));
	} else if (strcmp(key, "reason") == 0) {
		size_t len;
		const char *reason = lat_flag_reason(f, &len);
		if (reason)
			lua_pushlstring(L, reason, len);
		else
			lua_pushnil(L);
	} else {
		lua_pushvalue(L, 2);
		lua_rawget(L, lua_upvalueindex(1));
	}
	return 1;
}

/* flag() → a flag that threads share: it can be sent to a worker */
static int core_flag(lua_State *L)
{
	flag_box *box = new_box(L);
	box->flag = lat_flag_new();
	if (!box->flag)
		return luaL_error(L, "not enough memory");
	return 1;
}

static const luaL_Reg METHODS[] = {
	{"set", flag_set},
	{"is_set", flag_is_set},
	{NULL, NULL},
};

void lat_lua_open_flag(lua_State *L)
{
	luaL_newmetatable(L, FLAG_TYPE);
	lua_pushcfunction(L, flag_gc);
	lua_setfield(L, -2, "__gc");
	luaL_newlib(L, METHODS);
	lua_pushcclosure(L, flag_index, 1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, core_flag);
	lua_setfield(L, -2, "flag");
}
