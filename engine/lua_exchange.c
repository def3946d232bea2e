/* Bindings of exchanges: core.exchange.
 *
 * An exchange lives inside its userdata, which never moves. The strings that it borrows hang on user
 * values, as does its history. All on the thread of the lua_State. */
#include "exchange/exchange.h"

#include <string.h>

#include "lua_core.h"
#include "lua_http.h"
#include "lua_messages.h"

#define EXCHANGE_TYPE "lattice.exchange"
#define WHAT          "exchange"

enum { /* user values */
	   PREFIX = 1,
	   MESSAGES,
	   SUFFIX,
	   HISTORY,
	   SECRETS,        /* a block of memory with lat_spans … */
	   SECRET_STRINGS, /* … of these */
	   RESULT,
	   VALUES = RESULT
};

enum { SECRETS_MAX = 100, MAX_REPLY_BYTES = 64 * 1024 * 1024 /* unless told */ };

static lat_exchange *check(lua_State *L)
{
	return luaL_checkudata(L, 1, EXCHANGE_TYPE);
}

static int exchange_id(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)check(L)->op.id);
	return 1;
}

/* ready(): an event waits, or it is done */
static int exchange_ready(lua_State *L)
{
	const lat_exchange *x = check(L);
	lua_pushboolean(L, lat_exchange_event(x) || lat_exchange_done(x));
	return 1;
}

static int exchange_done(lua_State *L)
{
	lua_pushboolean(L, lat_exchange_done(check(L)));
	return 1;
}

/* next_event() → the service's own event as a table, or nil when none waits */
static int exchange_next_event(lua_State *L)
{
	lat_exchange *x = check(L);
	const lat_value *event = lat_exchange_event(x);
	if (!event)
		return 0;
	lat_lua_push_value(L, event); /* may raise: then the event still waits */
	lat_exchange_next(x);
	return 1;
}

/* next_message() → {type = "stream_event", event = …}: the same, as a query hands it over; or nil */
static int exchange_next_message(lua_State *L)
{
	lat_exchange *x = check(L);
	const lat_value *event = lat_exchange_event(x);
	if (!event)
		return 0;
	lua_createtable(L, 0, 2);
	lua_pushliteral(L, "stream_event");
	lua_setfield(L, -2, "type");
	lat_lua_push_value(L, event);
	lua_setfield(L, -2, "event");
	lat_exchange_next(x);
	return 1;
}

static void push_problem(lua_State *L, const lat_reply_error *problem)
{
	lua_createtable(L, 0, 7);
	lua_pushstring(L, lat_reply_kind_name(problem->kind));
	lua_setfield(L, -2, "kind");
	lua_pushstring(L, problem->message);
	lua_setfield(L, -2, "message");
	lua_pushboolean(L, problem->retryable);
	lua_setfield(L, -2, "retryable");
	if (problem->status) {
		lua_pushinteger(L, problem->status);
		lua_setfield(L, -2, "status");
	}
	if (problem->type[0]) {
		lua_pushstring(L, problem->type);
		lua_setfield(L, -2, "type");
	}
	if (problem->request_id[0]) {
		lua_pushstring(L, problem->request_id);
		lua_setfield(L, -2, "request_id");
	}
	if (problem->retry_after_ms >= 0) {
		lua_pushinteger(L, problem->retry_after_ms);
		lua_setfield(L, -2, "retry_after_ms");
	}
}

/* message() → message, or nil and {kind=, message=, retryable=, status=, type=, request_id=,
 * retry_after_ms=}; the same at every call. Events that nobody took are void. */
static int exchange_message(lua_State *L)
{
	lat_exchange *x = check(L);
	if (!lat_reader_over(&x->reader))
		return luaL_error(L, "the exchange is still running: wait until done()");
	const lat_reply_error *problem = lat_reader_problem(&x->reader);
	if (problem)
		lua_pushnil(L);
	if (lua_getiuservalue(L, 1, RESULT) != LUA_TNIL)
		return problem ? 2 : 1;
	lua_pop(L, 1);
	if (problem) {
		push_problem(L, problem);
	} else {
		lat_message **box = lat_lua_new_message(L);
		*box = lat_reader_take(&x->reader);
		if (!*box)
			return luaL_error(L, "not enough memory");
	}
	lua_pushvalue(L, -1);
	lua_setiuservalue(L, 1, RESULT);
	return problem ? 2 : 1;
}

/* What was cancelled in time is an "abort"; no notice is sent. */
static int exchange_cancel(lua_State *L)
{
	lat_exchange_cancel(check(L));
	return 0;
}

static int exchange_gc(lua_State *L)
{
	lat_exchange_free(check(L));
	return 0;
}

/* Cancels, and gives all memory back that message() doesn't need any more: the collector sees little of
 * it. */
static int exchange_close(lua_State *L)
{
	lat_exchange_cancel(check(L));
	if (lua_getiuservalue(L, 1, RESULT) != LUA_TNIL)
		lat_exchange_free(check(L));
	for (int value = PREFIX; value <= SECRET_STRINGS; value++) {
		lua_pushnil(L);
		lua_setiuservalue(L, 1, value);
	}
	return 0;
}

static const luaL_Reg METHODS[] = {
	{"id", exchange_id},
	{"ready", exchange_ready},
	{"done", exchange_done},
	{"message", exchange_message},
	{"cancel", exchange_cancel},
	{"next_event", exchange_next_event},
	{"next_message", exchange_next_message},
	{"__gc", exchange_gc},
	{"__close", exchange_close},
	{NULL, NULL},
};

/* ---- starting one ---- */

/* An option that is a string, hung on the exchange (at 2). */
static lat_span borrow(lua_State *L, const char *name, int value)
{
	lat_span span = {NULL, 0};
	span.s = lat_lua_opt_string(L, 1, WHAT, name, &span.len);
	lua_getfield(L, 1, name);
	lua_setiuservalue(L, 2, value);
	return span.s ? span : lat_span_str("");
}

static lat_secrets borrow_secrets(lua_State *L)
{
	lat_secrets secrets = {NULL, 0};
	int type = lua_getfield(L, 1, "secrets");
	if (type == LUA_TNIL) {
		lua_pop(L, 1);
		return secrets;
	}
	lua_Unsigned n = type == LUA_TTABLE ? lua_rawlen(L, -1) : SECRETS_MAX + 1;
	if (n > SECRETS_MAX)
		luaL_error(L, WHAT ": secrets: expected a list of at most %d strings", SECRETS_MAX);
	lua_createtable(L, (int)n, 0);
	lat_span *list = lua_newuserdatauv(L, (n + 1) * sizeof *list, 0);
	for (lua_Unsigned i = 0; i < n; i++) {
		if (lua_rawgeti(L, -3, (lua_Integer)i + 1) != LUA_TSTRING)
			luaL_error(L, WHAT ": secrets[%d]: expected a string, got %s", (int)i + 1, luaL_typename(L, -1));
		list[i].s = lua_tolstring(L, -1, &list[i].len);
		lua_rawseti(L, -3, (lua_Integer)i + 1);
	}
	lua_setiuservalue(L, 2, SECRETS);
	lua_setiuservalue(L, 2, SECRET_STRINGS);
	lua_pop(L, 1);
	secrets.list = list;
	secrets.count = (size_t)n;
	return secrets;
}

static lat_history *borrow_history(lua_State *L)
{
	lat_history *history = NULL;
	if (lua_getfield(L, 1, "history") != LUA_TNIL)
		history = lat_lua_check_history(L, -1);
	lua_setiuservalue(L, 2, HISTORY);
	return history;
}

static const char *check_url(lua_State *L)
{
	size_t len = 0;
	const char *url = lat_lua_opt_string(L, 1, WHAT, "url", &len);
	if (!url) {
		luaL_error(L, WHAT ": url: expected a string, got nil");
		return "";
	}
	return strlen(url) == len ? url : ""; /* an empty one is refused, as one with a NUL byte must be */
}

/* exchange{url, headers, prefix, history or messages, suffix, events, secrets, cache_mark, timeout_ms, …}
 * → op */
static int core_exchange(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	lat_pool *pool = lat_lua_pool(L);
	lat_exchange *x = lua_newuserdatauv(L, sizeof *x, VALUES); /* at 2 */
	*x = (lat_exchange){.http = NULL};
	luaL_setmetatable(L, EXCHANGE_TYPE);
	lat_exchange_request request = {
		.url = check_url(L),
		.prefix = borrow(L, "prefix", PREFIX),
		.messages = borrow(L, "messages", MESSAGES),
		.suffix = borrow(L, "suffix", SUFFIX),
		.history = borrow_history(L),
		.cache_mark = lat_lua_opt_boolean(L, 1, WHAT, "cache_mark", false),
		.events = lat_lua_opt_boolean(L, 1, WHAT, "events", false),
		.secrets = borrow_secrets(L),
		.timeout_ns = lat_lua_opt_ms(L, 1, WHAT, "timeout_ms"),
		.idle_timeout_ns = lat_lua_opt_ms(L, 1, WHAT, "idle_timeout_ms"),
		.connect_timeout_ns = lat_lua_opt_ms(L, 1, WHAT, "connect_timeout_ms"),
		.max_request_bytes = lat_lua_opt_bytes(L, 1, WHAT, "max_request_bytes", 0),
		.max_reply_bytes = lat_lua_opt_bytes(L, 1, WHAT, "max_reply_bytes", MAX_REPLY_BYTES),
	};
	request.headers = lat_lua_opt_headers(L, 1, WHAT, &request.header_count);
	lat_error err;
	if (lat_exchange_start(x, pool, &request, &err) != LAT_OK)
		return lat_lua_raise(L, &err);
	lua_settop(L, 2);
	return 1;
}

void lat_lua_open_exchange(lua_State *L)
{
	luaL_newmetatable(L, EXCHANGE_TYPE);
	luaL_setfuncs(L, METHODS, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, core_exchange);
	lua_setfield(L, -2, "exchange");
}
