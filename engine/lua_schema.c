/* Bindings of schemas: core.schema_compile and the userdata that it returns.
 *
 * The userdata owns one reference of the compiled schema and the scratch of its validations, and keeps the
 * schema's text as its user value. A raise in the middle of a validation (no memory while results are pushed)
 * leaves the scratch busy, and so does a finalizer that validates with the same schema in the middle of a
 * call: the next call then takes a scratch of its own. On the thread of the lua_State. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua_core.h"
#include "schema/schema.h"
#include "json/read.h"

#define SCHEMA_TYPE  "lattice.schema"
#define SCRATCH_TYPE "lattice.schema.scratch"

enum { SCRATCH_KEEPS_BYTES = 256 * 1024 }; /* between calls */

typedef struct {
	lat_arena arena;
	bool busy;
} scratch;

typedef struct {
	lat_schema *schema; /* NULL before it is compiled and after __gc */
	scratch own;
} schema_ud;

/* Methods have the metatable as their upvalue: comparing it is quicker than looking it up by name. */
static schema_ud *check_schema(lua_State *L)
{
	schema_ud *ud = lua_touserdata(L, 1);
	bool own = ud && lua_getmetatable(L, 1);
	if (own) {
		own = lua_rawequal(L, -1, lua_upvalueindex(1));
		lua_pop(L, 1);
	}
	if (!own)
		ud = luaL_checkudata(L, 1, SCHEMA_TYPE);
	if (!ud->schema)
		luaL_error(L, "schema: used after it was collected");
	return ud;
}

static int schema_gc(lua_State *L)
{
	schema_ud *ud = luaL_checkudata(L, 1, SCHEMA_TYPE);
	lat_schema_free(ud->schema);
	ud->schema = NULL;
	lat_arena_free(&ud->own.arena);
	return 0;
}

static int scratch_gc(lua_State *L)
{
	scratch *s = luaL_checkudata(L, 1, SCRATCH_TYPE);
	lat_arena_free(&s->arena);
	return 0;
}

/* What a validation works in; one that is made for this call stays on the stack. */
static scratch *take_scratch(lua_State *L, schema_ud *ud)
{
	scratch *s = &ud->own;
	if (s->busy) {
		s = lua_newuserdatauv(L, sizeof *s, 0);
		*s = (scratch){LAT_ARENA_INIT, false};
		luaL_setmetatable(L, SCRATCH_TYPE);
	}
	s->busy = true;
	return s;
}

static void give_back(scratch *s)
{
	lat_arena_reset(&s->arena);
	if ((size_t)(s->arena.end - s->arena.at) > SCRATCH_KEEPS_BYTES)
		lat_arena_free(&s->arena);
	s->busy = false;
}

/* ---- validating ---- */

static void push_field(lua_State *L, const char *name, const char *text)
{
	lua_pushstring(L, text);
	lua_setfield(L, -2, name);
}

static void push_errors(lua_State *L, const lat_schema_errors *errors)
{
	lua_createtable(L, (int)errors->count, 0);
	for (size_t i = 0; i < errors->count; i++) {
		const lat_schema_error *e = &errors->items[i];
		lua_createtable(L, 0, 4);
		push_field(L, "path", e->path);
		push_field(L, "expected", e->expected);
		push_field(L, "actual", e->actual);
		push_field(L, "message", e->message);
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
}

static int push_verdict(lua_State *L, scratch *s, lat_status status, const lat_value *value,
                        const lat_schema_errors *errors)
{
	if (status == LAT_E_NOMEM) {
		give_back(s);
		return luaL_error(L, "not enough memory");
	}
	lua_pushboolean(L, status == LAT_OK);
	if (status == LAT_OK)
		lat_lua_push_value(L, value);
	else
		push_errors(L, errors);
	give_back(s);
	return 2;
}

/* Where in a Lua value ($.a[2]["b c"], see lua_to_value.c) as a JSON pointer (/a/1/b c). */
static const char *pointer_of(const char *path, char *out, size_t room)
{
	size_t n = 0;
	const char *p = *path == '$' ? path + 1 : path;
	while (*p && n + 24 < room) {
		bool quoted = p[0] == '[' && p[1] == '"';
		out[n++] = '/';
		if (*p == '[' && !quoted) {
			char *end;
			n += (size_t)snprintf(out + n, room - n, "%lld", strtoll(p + 1, &end, 10) - 1);
			p = *end == ']' ? end + 1 : end;
			continue;
		}
		for (p += quoted ? 2 : 1; *p && n + 2 < room && !(quoted ? *p == '"' : *p == '.' || *p == '['); p++) {
			p += quoted && *p == '\\' && (p[1] == '"' || p[1] == '\\');
			if (*p == '~' || *p == '/')
				out[n++] = '~';
			out[n++] = *p == '~' ? '0' : *p == '/' ? '1' : *p;
		}
		p += quoted && *p == '"' ? 1 : 0;
		p += quoted && *p == ']' ? 1 : 0;
	}
	out[n] = '\0';
	return out;
}

/* A Lua value that has no JSON form (a function, a cycle, bytes that aren't UTF-8): one error like any other. */
static int push_unconvertible(lua_State *L, scratch *s, lat_status status, const lat_error *err)
{
	char path[sizeof err->path * 2];
	lat_schema_error e = {pointer_of(err->path, path, sizeof path), "a value with a JSON form", "",
	                      err->message};
	if (status == LAT_E_NOMEM)
		return push_verdict(L, s, status, NULL, NULL);
	return push_verdict(L, s, LAT_E_INVALID, NULL, &(lat_schema_errors){&e, 1, 1});
}

/* schema:validate(value) → true, value with defaults | false, errors */
static int schema_validate(lua_State *L)
{
	schema_ud *ud = check_schema(L);
	luaL_checkany(L, 2);
	lua_settop(L, 2);
	scratch *s = take_scratch(L, ud);
	lat_value value;
	lat_error err;
	lat_schema_errors errors;
	lat_status status = lat_lua_to_value(L, 2, &s->arena, &value, &err);
	if (status != LAT_OK)
		return push_unconvertible(L, s, status, &err);
	status = lat_schema_validate(ud->schema, &value, &s->arena, &errors);
	return push_verdict(L, s, status, &value, &errors);
}

/* schema:validate_json(text) → the same */
static int schema_validate_json(lua_State *L)
{
	schema_ud *ud = check_schema(L);
	size_t len;
	if (lua_type(L, 2) != LUA_TSTRING)
		return luaL_error(L, "schema:validate_json: expected a string, got %s", luaL_typename(L, 2));
	const char *text = lua_tolstring(L, 2, &len);
	lua_settop(L, 2);
	scratch *s = take_scratch(L, ud);
	lat_value value;
	lat_schema_errors errors;
	lat_status status = lat_schema_validate_text(ud->schema, text, len, &s->arena, &value, &errors);
	return push_verdict(L, s, status, &value, &errors);
}

/* schema:json() → the text that the schema was compiled from, byte for byte */
static int schema_json(lua_State *L)
{
	check_schema(L);
	lua_getiuservalue(L, 1, 1);
	return 1;
}

/* ---- compiling ---- */

static lat_status read_text(lua_State *L, int idx, lat_arena *arena, lat_value *out, lat_error *err)
{
	size_t len;
	const char *text = lua_tolstring(L, idx, &len);
	lat_status status = lat_json_read(arena, text, len, NULL, out, err);
	return status;
}

static size_t count_registered(lua_State *L, int idx)
{
	size_t n = 0;
	if (lua_isnoneornil(L, idx))
		return 0;
	if (!lua_istable(L, idx))
		return (size_t)luaL_error(L, "schema_compile: registered: expected a table, got %s",
		                          luaL_typename(L, idx));
	for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1), n++)
		if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
			return (size_t)luaL_error(L, "schema_compile: registered: expected JSON texts by URI");
	return n;
}

/* Pushes nil and a message that says which text it was. */
static int fail_text(lua_State *L, const char *what, const lat_error *err)
{
	lua_pushnil(L);
	lua_pushfstring(L, "%s isn't valid JSON: %s (offset %I)", what, err->message, (LUAI_UACINT)err->offset);
	return 2;
}

/* Reads the documents of the table at idx into *documents. 0, or the results of a failure. */
static int read_documents(lua_State *L, int idx, lat_arena *arena, lat_schema_document **documents, size_t n)
{
	lat_schema_document *all = lat_arena_alloc(arena, n * sizeof *all);
	lat_value *values = all ? lat_arena_alloc(arena, n * sizeof *values) : NULL;
	lat_error err;
	if (!values)
		return luaL_error(L, "not enough memory");
	*documents = all;
	lua_pushnil(L);
	for (size_t i = 0; i < n && lua_next(L, idx); i++, lua_pop(L, 1)) {
		const char *uri = lua_tostring(L, -2);
		lat_status status = read_text(L, -1, arena, &values[i], &err);
		if (status == LAT_E_NOMEM)
			return luaL_error(L, "not enough memory");
		if (status != LAT_OK)
			return fail_text(L, uri, &err);
		all[i] = (lat_schema_document){uri, &values[i]};
	}
	lua_settop(L, idx + 2); /* the key that lua_next left */
	return 0;
}

static bool option_is_set(lua_State *L, int idx, const char *name)
{
	if (lua_isnoneornil(L, idx))
		return false;
	luaL_checktype(L, idx, LUA_TTABLE);
	lua_getfield(L, idx, name);
	bool set = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return set;
}

/* schema_compile(json_text, registered?, options?) → schema | nil, message */
static int schema_compile(lua_State *L)
{
	if (lua_type(L, 1) != LUA_TSTRING)
		return luaL_error(L, "schema_compile: expected JSON text, got %s", luaL_typename(L, 1));
	lua_settop(L, 3);
	lat_schema_options options = {.document_count = count_registered(L, 2),
	                              .format_assertion = option_is_set(L, 3, "format_assertion")};
	schema_ud *ud = lua_newuserdatauv(L, sizeof *ud, 1);
	*ud = (schema_ud){NULL, {LAT_ARENA_INIT, false}};
	luaL_setmetatable(L, SCHEMA_TYPE);
	lua_pushvalue(L, 1);
	lua_setiuservalue(L, 4, 1);
	lat_schema_document *documents = NULL;
	lat_value schema;
	lat_error err;
	lat_error_clear(&err);
	lat_status status = read_text(L, 1, &ud->own.arena, &schema, &err);
	if (status == LAT_E_SYNTAX || status == LAT_E_LIMIT)
		return fail_text(L, "the schema", &err);
	int failed = options.document_count && status == LAT_OK
	                 ? read_documents(L, 2, &ud->own.arena, &documents, options.document_count)
	                 : 0;
	if (failed)
		return failed;
	options.documents = documents;
	if (status == LAT_OK)
		status = lat_schema_compile(&schema, &options, &ud->schema, &err);
	lua_settop(L, 4);
	if (status == LAT_E_NOMEM)
		return lat_lua_raise(L, &err);
	if (status != LAT_OK)
		return lat_lua_nil_error(L, &err);
	give_back(&ud->own);
	return 1;
}

static void add_type(lua_State *L, const char *name, lua_CFunction gc, const luaL_Reg *methods)
{
	luaL_newmetatable(L, name);
	lua_pushcfunction(L, gc);
	lua_setfield(L, -2, "__gc");
	lua_pushstring(L, name);
	lua_setfield(L, -2, "__metatable");
	lua_newtable(L);
	lua_pushvalue(L, -2);
	luaL_setfuncs(L, methods, 1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

void lat_lua_open_schema(lua_State *L)
{
	static const luaL_Reg METHODS[] = {{"validate", schema_validate},
	                                   {"validate_json", schema_validate_json},
	                                   {"json", schema_json},
	                                   {NULL, NULL}};
	static const luaL_Reg NONE[] = {{NULL, NULL}};
	add_type(L, SCHEMA_TYPE, schema_gc, METHODS);
	add_type(L, SCRATCH_TYPE, scratch_gc, NONE);
	lua_pushcfunction(L, schema_compile);
	lua_setfield(L, -2, "schema_compile");
}
