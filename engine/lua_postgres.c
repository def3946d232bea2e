/* Bindings of PostgreSQL: core.postgres_connect. Internal: the library's Lua files use it, scripts use mailboxes.
 *
 * A connection is an op that is ready when something about it is new (it is up, it broke, a notice has come); its
 * userdata owns the connection. An op of statements owns its request, which holds the connection itself. All on the
 * thread of the lua_State, collected in whatever order. */
#include <string.h>

#include "lua_core.h"
#include "lua_loop.h"
#include "stores/postgres.h"

#define CONNECTION_TYPE "lattice.postgres"
#define REQUEST_TYPE    "lattice.postgres_run"

/* ---- requests ---- */

typedef struct {
	lat_postgres_request *request; /* NULL before it is made and after it was let go */
	lat_statements statements;     /* until the request has them */
	lat_arena arena;               /* of the given values, while they are copied */
} request_op;

static lat_postgres_request *check_request(lua_State *L)
{
	request_op *op = luaL_checkudata(L, 1, REQUEST_TYPE);
	luaL_argcheck(L, op->request, 1, "this op is closed");
	return op->request;
}

static int request_id(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)lat_postgres_request_op(check_request(L))->id);
	return 1;
}

static int request_ready(lua_State *L)
{
	lua_pushboolean(L, lat_postgres_request_done(check_request(L)));
	return 1;
}

/* cancel, __gc, __close: what was sent is carried through, what was not is not. */
static int request_let_go(lua_State *L)
{
	request_op *op = luaL_checkudata(L, 1, REQUEST_TYPE);
	lat_postgres_request *request = op->request;
	op->request = NULL;
	if (request)
		lat_postgres_request_free(request);
	lat_statements_free(&op->statements);
	lat_arena_free(&op->arena);
	return 0;
}

static void push_kind_and_message(lua_State *L, const lat_error *err)
{
	const char *kind = "invalid";
	if (err->kind == LAT_E_CLOSED)
		kind = "lost";
	else if (err->kind == LAT_E_TIMEOUT)
		kind = "timeout";
	lua_createtable(L, 0, 2);
	lua_pushstring(L, kind);
	lua_setfield(L, -2, "kind");
	lua_pushstring(L, err->message);
	lua_setfield(L, -2, "message");
}

/* result() → rows of each statement | nil, {kind = "lost", "timeout" (try again) or "invalid", message =} */
static int request_result(lua_State *L)
{
	lat_postgres_request *request = check_request(L);
	if (!lat_postgres_request_done(request))
		return luaL_error(L, "the statements are still running: wait until ready()");
	lat_value results;
	lat_error err;
	lat_status status = lat_postgres_request_result(request, &results, &err);
	if (status == LAT_E_NOMEM)
		return lat_lua_raise(L, &err);
	if (status == LAT_OK) {
		lat_lua_push_value(L, &results);
		return 1;
	}
	lua_pushnil(L);
	push_kind_and_message(L, &err);
	return 2;
}

static const luaL_Reg REQUEST_METHODS[] = {
	{"id", request_id},
	{"ready", request_ready},
	{"cancel", request_let_go},
	{"result", request_result},
	{"__gc", request_let_go},
	{"__close", request_let_go},
	{NULL, NULL},
};

/* ---- connections ---- */

typedef struct {
	lat_postgres *pg; /* NULL: closed */
} connection;

static lat_postgres *check_connection(lua_State *L)
{
	connection *c = luaL_checkudata(L, 1, CONNECTION_TYPE);
	luaL_argcheck(L, c->pg, 1, "the connection is closed");
	return c->pg;
}

static int connection_id(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)lat_postgres_op(check_connection(L))->id);
	return 1;
}

/* ready() → it is up or broken */
static int connection_ready(lua_State *L)
{
	connection *c = luaL_checkudata(L, 1, CONNECTION_TYPE);
	lua_pushboolean(L, !c->pg || lat_postgres_state_of(c->pg) != LAT_POSTGRES_CONNECTING);
	return 1;
}

/* state() → "connecting" | "ready" | "broken", message */
static int connection_state(lua_State *L)
{
	lat_postgres *pg = check_connection(L);
	switch (lat_postgres_state_of(pg)) {
	case LAT_POSTGRES_CONNECTING:
		lua_pushliteral(L, "connecting");
		return 1;
	case LAT_POSTGRES_READY:
		lua_pushliteral(L, "ready");
		return 1;
	default:
		lua_pushliteral(L, "broken");
		lua_pushstring(L, lat_postgres_error(pg)->message);
		return 2;
	}
}

/* noticed() → whether a notice has come since the last call */
static int connection_noticed(lua_State *L)
{
	lua_pushboolean(L, lat_postgres_take_notice(check_connection(L)));
	return 1;
}

/* Also cancel, __gc and __close */
static int connection_close(lua_State *L)
{
	connection *c = luaL_checkudata(L, 1, CONNECTION_TYPE);
	lat_postgres *pg = c->pg;
	c->pg = NULL;
	if (pg)
		lat_postgres_close(pg);
	return 0;
}

/* run({{sql, parameter…}, …}) → op: one transaction */
static int connection_run(lua_State *L)
{
	lat_postgres *pg = check_connection(L);
	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 2);
	request_op *op = lua_newuserdatauv(L, sizeof *op, 0);
	*op = (request_op){.request = NULL};
	luaL_setmetatable(L, REQUEST_TYPE);
	lat_error err;
	lat_value given;
	lat_status status = lat_lua_to_value(L, 2, &op->arena, &given, &err);
	if (status == LAT_OK)
		status = lat_statements_copy(&op->statements, &given, &err);
	lat_arena_free(&op->arena);
	if (status == LAT_OK)
		op->request = lat_postgres_run(pg, &op->statements, &err);
	if (!op->request)
		return lat_lua_raise(L, &err);
	return 1;
}

static const luaL_Reg CONNECTION_METHODS[] = {
	{"id", connection_id},         {"ready", connection_ready},
	{"state", connection_state},   {"noticed", connection_noticed},
	{"run", connection_run},       {"close", connection_close},
	{"cancel", connection_close},  {"__gc", connection_close},
	{"__close", connection_close}, {NULL, NULL},
};

/* postgres_connect(dsn) → connection, connecting | nil, message: the library isn't there, or dsn is no connection
 * string */
static int core_postgres_connect(lua_State *L)
{
	size_t len;
	const char *dsn = luaL_checklstring(L, 1, &len);
	luaL_argcheck(L, strlen(dsn) == len, 1, "has a NUL byte: remove it");
	lat_loop *loop = lat_lua_loop(L);
	connection *c = lua_newuserdatauv(L, sizeof *c, 0);
	c->pg = NULL;
	luaL_setmetatable(L, CONNECTION_TYPE);
	lat_error err;
	c->pg = lat_postgres_connect(loop, dsn, &err);
	if (c->pg)
		return 1;
	return err.kind == LAT_E_NOMEM ? lat_lua_raise(L, &err) : lat_lua_nil_error(L, &err);
}

static void new_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
	luaL_newmetatable(L, name);
	luaL_setfuncs(L, methods, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

void lat_lua_open_postgres(lua_State *L)
{
	new_type(L, CONNECTION_TYPE, CONNECTION_METHODS);
	new_type(L, REQUEST_TYPE, REQUEST_METHODS);
	lua_pushcfunction(L, core_postgres_connect);
	lua_setfield(L, -2, "postgres_connect");
}
