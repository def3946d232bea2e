/* Bindings of JSON: core.json_encode, json_decode, null, array_mt, ordered_mt.
 *
 * Each function keeps one scratch userdata as its upvalue: it owns the arena and the buffer of a call, so
 * that a raise can't leak them, and saves making them for each call. A call that raised leaves its scratch
 * busy; the next one then makes another, and the collector frees the old. The same holds for a call from a
 * finalizer that the collector runs in the middle of a call. */
#include "base/buf.h"
#include "lua_core.h"
#include "lua_value.h"
#include "json/read.h"
#include "json/write.h"

#define SCRATCH_TYPE "lattice.json.scratch"

enum { SCRATCH_KEEPS_BYTES = 256 * 1024 }; /* between calls */

typedef struct {
	lat_arena arena;
	lat_buf buf;
	bool busy;
	bool closed; /* its __gc has run: it keeps nothing from now on */
} scratch;

static void scratch_free(scratch *s)
{
	lat_arena_free(&s->arena);
	lat_buf_free(&s->buf);
}

static int scratch_gc(lua_State *L)
{
	scratch *s = luaL_checkudata(L, 1, SCRATCH_TYPE);
	scratch_free(s);
	s->closed = true;
	return 0;
}

static scratch *push_scratch(lua_State *L)
{
	scratch *s = lua_newuserdatauv(L, sizeof *s, 0);
	*s = (scratch){LAT_ARENA_INIT, LAT_BUF_INIT, false, false};
	luaL_setmetatable(L, SCRATCH_TYPE);
	return s;
}

/* Pushes the scratch of this call: it stays on the stack until the call ends. */
static scratch *take_scratch(lua_State *L)
{
	scratch *s = lua_touserdata(L, lua_upvalueindex(1));
	if (s->busy) {
		s = push_scratch(L);
		lua_pushvalue(L, -1);
		lua_replace(L, lua_upvalueindex(1));
	} else {
		lua_pushvalue(L, lua_upvalueindex(1));
	}
	s->busy = true;
	return s;
}

static void give_back(scratch *s)
{
	lat_arena_reset(&s->arena);
	lat_buf_clear(&s->buf);
	size_t kept = (size_t)(s->arena.end - s->arena.at);
	if (s->closed || kept > SCRATCH_KEEPS_BYTES || s->buf.cap > SCRATCH_KEEPS_BYTES)
		scratch_free(s);
	s->busy = false;
}

/* json_encode(value) → string; raises with the path */
static int json_encode(lua_State *L)
{
	luaL_checkany(L, 1);
	lua_settop(L, 1);
	scratch *s = take_scratch(L);
	lat_value tree;
	lat_error err;
	lat_status status = lat_lua_to_value(L, 1, &s->arena, &tree, &err);
	if (status == LAT_OK)
		status = lat_json_write_value(&s->buf, &tree, &err);
	if (status == LAT_OK && !lat_buf_ok(&s->buf))
		status = lat_fail_nomem(&err);
	if (status != LAT_OK) {
		give_back(s);
		if (err.path[0])
			return luaL_error(L, "json.encode: %s: %s", err.path, err.message);
		return luaL_error(L, "json.encode: %s", err.message);
	}
	lua_pushlstring(L, s->buf.data, s->buf.len);
	give_back(s);
	return 1;
}

static size_t opt_limit(lua_State *L, int idx, const char *name)
{
	if (lua_isnoneornil(L, idx))
		return 0;
	int whole;
	lua_Integer n = lua_tointegerx(L, idx, &whole);
	if (lua_type(L, idx) != LUA_TNUMBER || !whole || n < 1)
		luaL_error(L, "json.decode: %s: expected a positive integer, got %s", name,
		           luaL_tolstring(L, idx, NULL));
	return (size_t)n;
}

/* json_decode(text, max_bytes?, max_depth?) → value | nil, message */
static int json_decode(lua_State *L)
{
	if (lua_type(L, 1) != LUA_TSTRING)
		return luaL_error(L, "json.decode: expected a string, got %s", luaL_typename(L, 1));
	size_t len, max_depth = opt_limit(L, 3, "max_depth");
	lat_json_options options = {.max_bytes = opt_limit(L, 2, "max_bytes")};
	options.max_depth = max_depth < LAT_JSON_DEFAULT_DEPTH ? (unsigned)max_depth : LAT_JSON_DEFAULT_DEPTH;
	const char *text = lua_tolstring(L, 1, &len);
	lua_settop(L, 1);
	scratch *s = take_scratch(L);
	lat_value tree;
	lat_error err;
	lat_status status = lat_json_read(&s->arena, text, len, &options, &tree, &err);
	if (status == LAT_OK)
		lat_lua_push_value(L, &tree);
	give_back(s);
	if (status == LAT_OK)
		return 1;
	if (status == LAT_E_NOMEM)
		return lat_lua_raise(L, &err);
	lua_pushnil(L);
	if (err.offset >= len) /* the message says so */
		lua_pushfstring(L, "invalid JSON: %s", err.message);
	else
		lua_pushfstring(L, "%s at byte %I: %s", status == LAT_E_LIMIT ? "JSON refused" : "invalid JSON",
		                (LUAI_UACINT)err.offset + 1, err.message);
	return 2;
}

static void add_function(lua_State *L, const char *name, lua_CFunction function)
{
	push_scratch(L);
	lua_pushcclosure(L, function, 1);
	lua_setfield(L, -2, name);
}

void lat_lua_open_json(lua_State *L)
{
	lat_lua_value_setup(L);
	if (luaL_newmetatable(L, SCRATCH_TYPE)) {
		lua_pushcfunction(L, scratch_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_pop(L, 1);
	add_function(L, "json_encode", json_encode);
	add_function(L, "json_decode", json_decode);
	lua_pushlightuserdata(L, NULL);
	lua_setfield(L, -2, "null");
	lat_lua_push_array_mt(L);
	lua_setfield(L, -2, "array_mt");
	lat_lua_push_ordered_mt(L);
	lua_setfield(L, -2, "ordered_mt");
}
