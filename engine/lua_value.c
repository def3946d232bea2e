/* What all bindings need: errors as Lua errors, trees as Lua data, and the metatables that mark tables.
 * Owns the metatables, which live in the registry. On the thread of the lua_State. */
#include "lua_value.h"

#include <limits.h>

#include "lua_core.h"

/* Their addresses are registry keys: to read one takes no memory, so it can't raise. */
static const char ARRAY_KEY = 'a', ORDERED_KEY = 'o', PAIRS_KEY = 'p';

static void register_mt(lua_State *L, const void *key, const char *name)
{
	lua_createtable(L, 0, 1);
	lua_pushstring(L, name);
	lua_setfield(L, -2, "__name");
	lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

void lat_lua_value_setup(lua_State *L)
{
	int known = lua_rawgetp(L, LUA_REGISTRYINDEX, &PAIRS_KEY);
	lua_pop(L, 1);
	if (known == LUA_TSTRING)
		return;
	register_mt(L, &ARRAY_KEY, "json.array");
	register_mt(L, &ORDERED_KEY, "json.ordered");
	lua_pushstring(L, "__pairs");
	lua_rawsetp(L, LUA_REGISTRYINDEX, &PAIRS_KEY);
}

void lat_lua_push_array_mt(lua_State *L)
{
	lua_rawgetp(L, LUA_REGISTRYINDEX, &ARRAY_KEY);
}

void lat_lua_push_ordered_mt(lua_State *L)
{
	lua_rawgetp(L, LUA_REGISTRYINDEX, &ORDERED_KEY);
}

void lat_lua_push_pairs_key(lua_State *L)
{
	lua_rawgetp(L, LUA_REGISTRYINDEX, &PAIRS_KEY);
}

int lat_lua_raise(lua_State *L, const lat_error *err)
{
	if (err->path[0])
		return luaL_error(L, "%s: %s", err->path, err->message);
	return luaL_error(L, "%s", err->message);
}

int lat_lua_nil_error(lua_State *L, const lat_error *err)
{
	lua_pushnil(L);
	if (err->path[0])
		lua_pushfstring(L, "%s: %s", err->path, err->message);
	else
		lua_pushstring(L, err->message);
	return 2;
}

static int size_hint(uint32_t n)
{
	return n < INT_MAX ? (int)n : INT_MAX;
}

/* mt: stack place of the array metatable. Recursion is as deep as the tree: LAT_JSON_DEFAULT_DEPTH. */
static void push(lua_State *L, const lat_value *v, int mt)
{
	switch (v->type) {
	case LAT_NULL:
		lua_pushlightuserdata(L, NULL);
		break;
	case LAT_FALSE:
	case LAT_TRUE:
		lua_pushboolean(L, v->type == LAT_TRUE);
		break;
	case LAT_INT:
		lua_pushinteger(L, v->u.i);
		break;
	case LAT_DOUBLE:
		lua_pushnumber(L, v->u.d);
		break;
	case LAT_STRING:
		lua_pushlstring(L, v->u.s, v->len);
		break;
	case LAT_ARRAY:
		luaL_checkstack(L, 3, NULL);
		lua_createtable(L, size_hint(v->len), 0);
		for (uint32_t i = 0; i < v->len; i++) {
			push(L, &v->u.items[i], mt);
			lua_rawseti(L, -2, (lua_Integer)i + 1);
		}
		lua_pushvalue(L, mt);
		lua_setmetatable(L, -2);
		break;
	default: /* LAT_OBJECT */
		luaL_checkstack(L, 3, NULL);
		lua_createtable(L, 0, size_hint(v->len));
		for (size_t i = 0; i < v->len; i++) {
			const lat_value *key = &v->u.items[2 * i];
			lua_pushlstring(L, key->u.s, key->len);
			push(L, key + 1, mt);
			lua_rawset(L, -3);
		}
	}
}

void lat_lua_push_value(lua_State *L, const lat_value *v)
{
	luaL_checkstack(L, 2, NULL);
	lat_lua_push_array_mt(L);
	push(L, v, lua_gettop(L));
	lua_remove(L, -2);
}
