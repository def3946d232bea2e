/* Bindings of HTTP: core.http_start, and what exchanges need of it too.
 *
 * An op is a userdata that owns its transfer and what came of the reply; its Lua-side strings (the body
 * that is being sent) hang on its user values. All on the thread of the lua_State. */
#include "lua_http.h"

#include <string.h>

#include "base/buf.h"
#include "lua_core.h"
#include "lua_loop.h"

#define POOL_TYPE "lattice.pool"
#define HTTP_TYPE "lattice.http"
#define WHAT      "http_start"

enum {
	NS_PER_MS = 1000000,
	HEADERS_MAX = 1000,
	MAX_BYTES = 64 * 1024 * 1024, /* of a reply, unless told */
	MAX_REDIRECTS = 5,
	SENT_BODY = 1, /* user values */
	RESULT = 2
};

/* ---- the pool of a state ---- */

static const char POOL_KEY = 'k'; /* its address is the registry key */

typedef struct {
	lat_pool *pool; /* NULL after the state began to close */
} pool_box;

static int pool_gc(lua_State *L)
{
	pool_box *box = luaL_checkudata(L, 1, POOL_TYPE);
	lat_pool_free(box->pool);
	box->pool = NULL;
	return 0;
}

lat_pool *lat_lua_pool(lua_State *L)
{
	lat_lua_refuse_in_finalizer(L);
	luaL_checkstack(L, 4, NULL);
	lua_rawgetp(L, LUA_REGISTRYINDEX, &POOL_KEY);
	pool_box *box = lua_touserdata(L, -1);
	lua_pop(L, 1);
	if (box && !box->pool)
		luaL_error(L, "this Lua state is closing: its connections are gone");
	if (box)
		return box->pool;
	lat_loop *loop = lat_lua_loop(L);
	box = lua_newuserdatauv(L, sizeof *box, 0);
	box->pool = NULL;
	luaL_setmetatable(L, POOL_TYPE);
	lat_error err;
	box->pool = lat_http_pool_new(loop, &err);
	if (!box->pool)
		lat_lua_raise(L, &err);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &POOL_KEY);
	return box->pool;
}

/* ---- options ---- */

static int expected(lua_State *L, const char *what, const char *name, const char *wanted)
{
	return luaL_error(L, "%s: %s: expected %s, got %s", what, name, wanted, luaL_typename(L, -1));
}

const char *lat_lua_opt_string(lua_State *L, int idx, const char *what, const char *name, size_t *len)
{
	const char *s = NULL;
	int type = lua_getfield(L, idx, name);
	if (type == LUA_TSTRING)
		s = lua_tolstring(L, -1, len);
	else if (type != LUA_TNIL)
		expected(L, what, name, "a string");
	lua_pop(L, 1);
	return s;
}

bool lat_lua_opt_boolean(lua_State *L, int idx, const char *what, const char *name, bool missing)
{
	int type = lua_getfield(L, idx, name);
	if (type != LUA_TBOOLEAN && type != LUA_TNIL)
		expected(L, what, name, "a boolean");
	bool value = type == LUA_TNIL ? missing : lua_toboolean(L, -1);
	lua_pop(L, 1);
	return value;
}

int64_t lat_lua_opt_ms(lua_State *L, int idx, const char *what, const char *name)
{
	int64_t ns = 0;
	int type = lua_getfield(L, idx, name);
	if (type == LUA_TNUMBER && lua_tonumber(L, -1) > 0)
		ns = lat_lua_check_ms(L, lua_gettop(L));
	else if (type != LUA_TNIL)
		expected(L, what, name, "a positive number of milliseconds");
	lua_pop(L, 1);
	return ns;
}

size_t lat_lua_opt_bytes(lua_State *L, int idx, const char *what, const char *name, size_t missing)
{
	size_t bytes = missing;
	int type = lua_getfield(L, idx, name);
	if (type != LUA_TNIL) {
		int is_integer;
		lua_Integer n = lua_tointegerx(L, -1, &is_integer);
		if (type != LUA_TNUMBER || !is_integer || n <= 0)
			expected(L, what, name, "a positive integer (bytes)");
		bytes = (size_t)n;
	}
	lua_pop(L, 1);
	return bytes;
}

static void get_header(lua_State *L, const char *what, lua_Integer i, lat_header *out)
{
	if (lua_rawgeti(L, -1, i) != LUA_TTABLE)
		luaL_error(L, "%s: headers[%d]: expected {name, value}, got %s", what, (int)i, luaL_typename(L, -1));
	if (lua_rawgeti(L, -1, 1) != LUA_TSTRING || lua_rawgeti(L, -2, 2) != LUA_TSTRING)
		luaL_error(L, "%s: headers[%d]: expected a name and a value that are strings", what, (int)i);
	out->value = lua_tolstring(L, -1, &out->value_len);
	out->name = lua_tolstring(L, -2, &out->name_len);
	lua_getfield(L, -3, "secret");
	out->secret = lua_toboolean(L, -1);
	lua_pop(L, 4);
}

const lat_header *lat_lua_opt_headers(lua_State *L, int idx, const char *what, size_t *n)
{
	idx = lua_absindex(L, idx);
	*n = 0;
	int type = lua_getfield(L, idx, "headers");
	if (type == LUA_TNIL)
		return NULL;
	if (type != LUA_TTABLE)
		expected(L, what, "headers", "a list of {name, value}");
	lua_Unsigned count = lua_rawlen(L, -1);
	if (count > HEADERS_MAX)
		luaL_error(L, "%s: headers: expected at most %d, got %I", what, HEADERS_MAX, (LUAI_UACINT)count);
	lat_header *headers = lua_newuserdatauv(L, (count + 1) * sizeof *headers, 0);
	lua_insert(L, -2);
	for (lua_Unsigned i = 0; i < count; i++)
		get_header(L, what, (lua_Integer)i + 1, &headers[i]);
	lua_pop(L, 1);
	*n = (size_t)count;
	return headers;
}

const char *lat_lua_error_kind(const lat_error *err)
{
	switch (err->kind) {
	case LAT_E_TIMEOUT:
		return "timeout";
	case LAT_E_ABORT:
		return "abort";
	case LAT_E_LIMIT:
		return "limit";
	case LAT_E_INVALID:
		return "invalid";
	default:
		return "io";
	}
}

/* ---- an op ---- */

typedef struct {
	lat_op op;
	lat_http *http;
	const char *sent; /* the body: a Lua string's bytes */
	bool done;
	lat_error error; /* kind LAT_OK: the reply is whole */
	int status;
	lat_buf fields, body;
} http_op;

static void read_body(void *self, size_t offset, char *dst, size_t n)
{
	memcpy(dst, ((http_op *)self)->sent + offset, n);
}

static void on_head(void *self, const lat_head *head)
{
	http_op *op = self;
	op->status = head->status;
	lat_buf_append(&op->fields, head->fields, head->len);
}

static lat_http_verdict on_data(void *self, const char *bytes, size_t n)
{
	http_op *op = self;
	lat_buf_append(&op->body, bytes, n);
	return lat_buf_ok(&op->body) ? LAT_HTTP_MORE : LAT_HTTP_STOP;
}

static void on_done(void *self, const lat_error *err)
{
	http_op *op = self;
	op->done = true;
	if (err)
		op->error = *err;
	if (!lat_buf_ok(&op->body) || !lat_buf_ok(&op->fields))
		lat_fail_nomem(&op->error);
	lat_loop_notify(&op->op);
}

static int http_id(lua_State *L)
{
	http_op *op = luaL_checkudata(L, 1, HTTP_TYPE);
	lua_pushinteger(L, (lua_Integer)op->op.id);
	return 1;
}

static int http_ready(lua_State *L)
{
	http_op *op = luaL_checkudata(L, 1, HTTP_TYPE);
	lua_pushboolean(L, op->done);
	return 1;
}

/* Also __gc and __close. What was cancelled in time is an "abort"; no notice is sent. */
static int http_cancel(lua_State *L)
{
	http_op *op = luaL_checkudata(L, 1, HTTP_TYPE);
	lat_http_free(op->http);
	op->http = NULL;
	lat_op_forget(&op->op);
	if (!op->done)
		lat_fail(&op->error, LAT_E_ABORT, "the request was cancelled");
	op->done = true;
	return 0;
}

static int http_gc(lua_State *L)
{
	http_op *op = luaL_checkudata(L, 1, HTTP_TYPE);
	http_cancel(L);
	lat_buf_free(&op->fields);
	lat_buf_free(&op->body);
	return 0;
}

static void push_fields(lua_State *L, const http_op *op)
{
	lat_head head = {op->status, op->fields.data, op->fields.len};
	lat_header field;
	lua_Integer n = 0;
	lua_newtable(L);
	for (size_t at = 0; lat_head_next(&head, &at, &field);) {
		lua_createtable(L, 2, 0);
		lua_pushlstring(L, field.name, field.name_len);
		lua_rawseti(L, -2, 1);
		lua_pushlstring(L, field.value, field.value_len);
		lua_rawseti(L, -2, 2);
		lua_rawseti(L, -2, ++n);
	}
}

/* result() → {status=, headers={{name, value}, …}, body=} | nil, {kind=, message=}; the same at every call */
static int http_result(lua_State *L)
{
	http_op *op = luaL_checkudata(L, 1, HTTP_TYPE);
	if (!op->done)
		return luaL_error(L, "the request is still running: wait until ready()");
	bool failed = op->error.kind != LAT_OK;
	if (failed)
		lua_pushnil(L);
	if (lua_getiuservalue(L, 1, RESULT) != LUA_TNIL)
		return failed ? 2 : 1;
	lua_createtable(L, 0, 3);
	if (failed) {
		lua_pushstring(L, lat_lua_error_kind(&op->error));
		lua_setfield(L, -2, "kind");
		lua_pushstring(L, op->error.message);
		lua_setfield(L, -2, "message");
	} else {
		lua_pushinteger(L, op->status);
		lua_setfield(L, -2, "status");
		push_fields(L, op);
		lua_setfield(L, -2, "headers");
		lua_pushlstring(L, op->body.data ? op->body.data : "", op->body.len);
		lua_setfield(L, -2, "body");
	}
	lua_pushvalue(L, -1);
	lua_setiuservalue(L, 1, RESULT);
	lat_buf_free(&op->fields);
	lat_buf_free(&op->body);
	lua_remove(L, -2);
	return failed ? 2 : 1;
}

static const luaL_Reg HTTP_METHODS[] = {
	{"id", http_id},
	{"ready", http_ready},
	{"cancel", http_cancel},
	{"result", http_result},
	{"__gc", http_gc},
	{"__close", http_cancel},
	{NULL, NULL},
};

static unsigned opt_redirects(lua_State *L, int idx)
{
	lua_Integer n = MAX_REDIRECTS;
	int type = lua_getfield(L, idx, "follow_redirects");
	if (type == LUA_TNUMBER && lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 0)
		n = lua_tointeger(L, -1);
	else if (type == LUA_TBOOLEAN)
		n = lua_toboolean(L, -1) ? MAX_REDIRECTS : 0;
	else if (type != LUA_TNIL)
		expected(L, WHAT, "follow_redirects", "a boolean or the most redirects to follow");
	lua_pop(L, 1);
	return n < 100 ? (unsigned)n : 100;
}

/* A C string of the option; one with a NUL byte inside is what nobody can use. */
static const char *opt_cstring(lua_State *L, const char *name, lat_error *err)
{
	size_t len = 0;
	const char *s = lat_lua_opt_string(L, 1, WHAT, name, &len);
	if (s && strlen(s) != len)
		lat_fail(err, LAT_E_INVALID, "the %s has a NUL byte: remove it", name);
	return s;
}

static http_op *new_op(lua_State *L)
{
	lat_loop *loop = lat_lua_loop(L);
	http_op *op = lua_newuserdatauv(L, sizeof *op, 2);
	*op = (http_op){.http = NULL};
	luaL_setmetatable(L, HTTP_TYPE);
	lat_op_init(&op->op, loop);
	return op;
}

/* http_start{method, url, headers, body, timeout_ms, …} → op */
static int core_http_start(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	lat_pool *pool = lat_lua_pool(L);
	http_op *op = new_op(L); /* at 2 */
	lat_http_request request = {
		.method = opt_cstring(L, "method", &op->error),
		.url = opt_cstring(L, "url", &op->error),
		.timeout_ns = lat_lua_opt_ms(L, 1, WHAT, "timeout_ms"),
		.idle_timeout_ns = lat_lua_opt_ms(L, 1, WHAT, "idle_timeout_ms"),
		.connect_timeout_ns = lat_lua_opt_ms(L, 1, WHAT, "connect_timeout_ms"),
		.max_reply_bytes = lat_lua_opt_bytes(L, 1, WHAT, "max_bytes", MAX_BYTES),
		.max_redirects = opt_redirects(L, 1),
	};
	if (!request.url)
		return luaL_error(L, WHAT ": url: expected a string, got nil");
	request.headers = lat_lua_opt_headers(L, 1, WHAT, &request.header_count);
	lat_http_source body = {.read = read_body, .self = op};
	op->sent = lat_lua_opt_string(L, 1, WHAT, "body", &body.size);
	if (op->sent) {
		lua_getfield(L, 1, "body");
		lua_setiuservalue(L, 2, SENT_BODY);
		request.body = &body;
	}
	const lat_http_sink sink = {on_head, on_data, on_done, op};
	if (op->error.kind == LAT_OK)
		op->http = lat_http_start(pool, &request, &sink, &op->error);
	if (op->error.kind == LAT_E_NOMEM)
		return lat_lua_raise(L, &op->error);
	if (!op->http) {
		op->done = true;
		lat_loop_notify(&op->op);
	}
	lua_settop(L, 2);
	return 1;
}

static void add_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
	luaL_newmetatable(L, name);
	luaL_setfuncs(L, methods, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

void lat_lua_open_http(lua_State *L)
{
	static const luaL_Reg POOL_METHODS[] = {{"__gc", pool_gc}, {NULL, NULL}};
	add_type(L, POOL_TYPE, POOL_METHODS);
	add_type(L, HTTP_TYPE, HTTP_METHODS);
	lua_pushcfunction(L, core_http_start);
	lua_setfield(L, -2, "http_start");
}
