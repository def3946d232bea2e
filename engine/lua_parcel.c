/* Packing and unpacking of parcels: see lua_parcel.h. Recursion is bounded by LAT_LUA_PARCEL_MAX_DEPTH on the way
 * in, and so on the way out. The parcel belongs to the caller. */
#include "lua_parcel.h"

#include <ctype.h>
#include <string.h>

#include "lua_core.h"
#include "lua_flag.h"
#include "lua_value.h"

enum { SLOTS_A_LEVEL = 6, PATH_STEPS = 16 };

/* ---- packing ---- */

typedef struct {
	lua_State *L;
	int seen; /* table → its number */
	lat_parcel *p;
	const char *what, *cure;
} packer;

typedef struct step step; /* where we are: the table's key that leads down, as a stack place */
struct step {
	const step *up;
	int key; /* 0: the value itself */
	int depth;
};

static bool is_name(const char *s, size_t len)
{
	if (len == 0 || len > 40 || isdigit((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_')
			return false;
	return true;
}

static void push_key(lua_State *L, int key)
{
	size_t len;
	if (lua_isinteger(L, key)) {
		lua_pushfstring(L, "[%I]", (LUAI_UACINT)lua_tointeger(L, key));
	} else if (lua_type(L, key) == LUA_TSTRING) {
		const char *s = lua_tolstring(L, key, &len);
		lua_pushfstring(L, is_name(s, len) ? ".%s" : "[\"%s\"]", s);
	} else {
		lua_pushfstring(L, "[a %s]", luaL_typename(L, key));
	}
}

/* Pushes what[1].name…; of a long path only its end. */
static void push_path(const packer *k, const step *at)
{
	lua_State *L = k->L;
	lua_pushstring(L, "");
	int steps = 0;
	for (; at && at->key && steps < PATH_STEPS; at = at->up, steps++) {
		push_key(L, at->key);
		lua_insert(L, -2);
		lua_concat(L, 2);
	}
	lua_pushfstring(L, at && at->key ? "%s..." : "%s", k->what);
	lua_insert(L, -2);
	lua_concat(L, 2);
}

static void refuse(const packer *k, const step *at, const char *why)
{
	luaL_checkstack(k->L, SLOTS_A_LEVEL, NULL);
	push_path(k, at);
	luaL_error(k->L, "%s: %s%s", lua_tostring(k->L, -1), why, k->cure);
}

static void refuse_type(const packer *k, const step *at, int idx)
{
	lua_pushfstring(k->L, "a %s can't cross to another thread", luaL_typename(k->L, idx));
	refuse(k, at, lua_tostring(k->L, -1));
}

static void pack_value(packer *k, const step *at, int idx);

static bool has_array_mark(const packer *k, const step *at, int idx)
{
	lua_State *L = k->L;
	if (!lua_getmetatable(L, idx))
		return false;
	lat_lua_push_array_mt(L);
	if (!lua_rawequal(L, -1, -2))
		refuse(k, at, "a table with a metatable can't cross to another thread");
	lua_pop(L, 2);
	return true;
}

static void pack_content(packer *k, const step *at, int table)
{
	lua_State *L = k->L;
	for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
		step down = {.up = at, .key = lua_gettop(L) - 1, .depth = at->depth + 1};
		pack_value(k, &down, down.key);
		pack_value(k, &down, down.key + 1);
	}
	lat_parcel_add(k->p, LAT_P_CLOSE);
}

static void pack_table(packer *k, const step *at, int idx)
{
	lua_State *L = k->L;
	if (at->depth >= LAT_LUA_PARCEL_MAX_DEPTH)
		refuse(k, at, "tables can't be nested deeper than 2000 levels");
	luaL_checkstack(L, SLOTS_A_LEVEL, NULL);
	lua_pushvalue(L, idx);
	if (lua_rawget(L, k->seen) != LUA_TNIL) {
		lat_parcel_add_ref(k->p, (size_t)lua_tointeger(L, -1));
		lua_pop(L, 1);
		return;
	}
	lua_pop(L, 1);
	size_t number = lat_parcel_open_table(k->p, has_array_mark(k, at, idx));
	lua_pushvalue(L, idx);
	lua_pushinteger(L, (lua_Integer)number);
	lua_rawset(L, k->seen);
	pack_content(k, at, idx);
}

static void pack_userdata(packer *k, const step *at, int idx)
{
	lat_flag *flag = lat_lua_to_flag(k->L, idx);
	if (!flag)
		refuse_type(k, at, idx);
	lat_parcel_add_flag(k->p, flag);
}

static void pack_number(packer *k, int idx)
{
	if (lua_isinteger(k->L, idx))
		lat_parcel_add_integer(k->p, lua_tointeger(k->L, idx));
	else
		lat_parcel_add_float(k->p, lua_tonumber(k->L, idx));
}

static void pack_value(packer *k, const step *at, int idx)
{
	lua_State *L = k->L;
	size_t len;
	const char *s;
	switch (lua_type(L, idx)) {
	case LUA_TNIL:
		lat_parcel_add(k->p, LAT_P_NIL);
		break;
	case LUA_TBOOLEAN:
		lat_parcel_add(k->p, lua_toboolean(L, idx) ? LAT_P_TRUE : LAT_P_FALSE);
		break;
	case LUA_TNUMBER:
		pack_number(k, idx);
		break;
	case LUA_TSTRING:
		s = lua_tolstring(L, idx, &len);
		lat_parcel_add_string(k->p, s, len);
		break;
	case LUA_TTABLE:
		pack_table(k, at, idx);
		break;
	case LUA_TUSERDATA:
		pack_userdata(k, at, idx);
		break;
	case LUA_TLIGHTUSERDATA:
		if (!lua_touserdata(L, idx)) {
			lat_parcel_add(k->p, LAT_P_NULL);
			break;
		} /* fall through */
	default:
		refuse_type(k, at, idx);
	}
}

int lat_lua_begin_pack(lua_State *L)
{
	luaL_checkstack(L, SLOTS_A_LEVEL, NULL);
	lua_newtable(L);
	return lua_gettop(L);
}

void lat_lua_pack(lua_State *L, int seen, int idx, lat_parcel *p, const char *what, const char *cure)
{
	packer k = {.L = L, .seen = seen, .p = p, .what = what, .cure = cure};
	step top = {.up = NULL, .key = 0, .depth = 0};
	luaL_checkstack(L, SLOTS_A_LEVEL, NULL);
	pack_value(&k, &top, lua_absindex(L, idx));
	if (!lat_parcel_ok(p))
		luaL_error(L, "not enough memory");
}

/* ---- unpacking ---- */

typedef struct {
	lua_State *L;
	const lat_parcel *p;
	size_t at;
	int tables; /* number → table, when there are refs; else 0 */
	lua_Integer n_tables;
	int mt; /* the array mark */
} unpacker;

static void push_item(unpacker *u, const lat_parcel_item *item);

static void push_table(unpacker *u, bool array_mark)
{
	lua_State *L = u->L;
	luaL_checkstack(L, SLOTS_A_LEVEL, NULL);
	lua_newtable(L);
	if (u->tables) {
		lua_pushvalue(L, -1);
		lua_rawseti(L, u->tables, ++u->n_tables);
	}
	for (;;) {
		lat_parcel_item key = lat_parcel_next(u->p, &u->at);
		if (key.tag == LAT_P_CLOSE || key.tag == LAT_P_END)
			break;
		push_item(u, &key);
		lat_parcel_item value = lat_parcel_next(u->p, &u->at);
		push_item(u, &value);
		lua_rawset(L, -3);
	}
	if (array_mark) {
		lua_pushvalue(L, u->mt);
		lua_setmetatable(L, -2);
	}
}

static void push_item(unpacker *u, const lat_parcel_item *item)
{
	lua_State *L = u->L;
	switch (item->tag) {
	case LAT_P_FALSE:
	case LAT_P_TRUE:
		lua_pushboolean(L, item->tag == LAT_P_TRUE);
		break;
	case LAT_P_INTEGER:
		lua_pushinteger(L, item->u.integer);
		break;
	case LAT_P_FLOAT:
		lua_pushnumber(L, item->u.number);
		break;
	case LAT_P_STRING:
		lua_pushlstring(L, item->u.string.s, item->u.string.len);
		break;
	case LAT_P_NULL:
		lua_pushlightuserdata(L, NULL);
		break;
	case LAT_P_FLAG:
		lat_lua_push_flag(L, item->u.flag);
		break;
	case LAT_P_TABLE:
	case LAT_P_ARRAY:
		push_table(u, item->tag == LAT_P_ARRAY);
		break;
	case LAT_P_REF:
		lua_rawgeti(L, u->tables, (lua_Integer)item->u.ref);
		break;
	default:
		lua_pushnil(L);
	}
}

int lat_lua_unpack(lua_State *L, const lat_parcel *p)
{
	luaL_checkstack(L, SLOTS_A_LEVEL, NULL);
	unpacker u = {.L = L, .p = p};
	lat_lua_push_array_mt(L);
	u.mt = lua_gettop(L);
	lua_newtable(L);
	int tables = lua_gettop(L);
	u.tables = p->has_refs ? tables : 0;
	int n = 0;
	for (;; n++) {
		lat_parcel_item item = lat_parcel_next(p, &u.at);
		if (item.tag == LAT_P_END)
			break;
		luaL_checkstack(L, SLOTS_A_LEVEL, NULL);
		push_item(&u, &item);
	}
	lua_remove(L, tables);
	lua_remove(L, u.mt);
	return n;
}
