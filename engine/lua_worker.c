/* Bindings of worker handlers: core.worker. The script's side: see lua_worker.h for the other one.
 *
 * A worker is a userdata that holds its definition and whose user value is its pool; a call's op is a userdata
 * that owns its call and whose user value is the worker. The pool that workers share is kept in the registry,
 * apart from the one of the built-in tools: a handler that computes for long must not hold them up. */
#include "lua_worker.h"

#include <stdlib.h>
#include <string.h>

#include "lua_core.h"
#include "lua_flag.h"
#include "lua_loop.h"
#include "lua_parcel.h"
#include "lua_threads.h"

#define WORKER_TYPE "lattice.worker"
#define CALL_TYPE   "lattice.worker_call"
#define CURE        "; pass it in the input, or use worker = \"module.name\""

enum { NS_PER_MS = 1000000 };

static const char WORKER_THREADS_KEY = 'k'; /* its address is the registry key */

typedef struct {
	lat_worker_def *def;
} worker_box;

typedef struct {
	lat_worker_call *call; /* NULL: cancelled */
	lua_Integer id;
} call_box;

/* ---- definition ---- */

static void check_buf(lua_State *L, const lat_buf *b)
{
	if (!lat_buf_ok(b))
		luaL_error(L, "not enough memory");
}

static void set_text(lua_State *L, lat_buf *b, const char *s)
{
	lat_buf_append(b, s, strlen(s));
	lat_buf_byte(b, '\0');
	check_buf(L, b);
}

static void note_package_path(lua_State *L, const char *field, lat_buf *b)
{
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	const char *path = "";
	if (lua_getfield(L, -1, "package") == LUA_TTABLE && lua_getfield(L, -1, field) == LUA_TSTRING)
		path = lua_tostring(L, -1);
	set_text(L, b, path);
}

static int append_bytecode(lua_State *L, const void *bytes, size_t n, void *self)
{
	(void)L;
	lat_buf *b = self;
	lat_buf_append(b, bytes, n);
	return lat_buf_ok(b) ? 0 : 1;
}

static void note_upvalue(lua_State *L, lat_worker_def *def, int function, int seen, const char *name)
{
	char what[96];
	lat_upvalue_kind kind = LAT_UPVALUE_DATA;
	lua_pushglobaltable(L);
	if (lua_rawequal(L, -1, -2) || strcmp(name, "_ENV") == 0) /* a sandbox's too */
		kind = LAT_UPVALUE_GLOBALS;
	else if (lua_rawequal(L, function, -2))
		kind = LAT_UPVALUE_SELF;
	lua_pop(L, 1);
	lat_buf_byte(&def->upvalue_kinds, (char)kind);
	check_buf(L, &def->upvalue_kinds);
	snprintf(what, sizeof what, "worker: upvalue %.60s", *name ? name : "?");
	if (kind == LAT_UPVALUE_DATA)
		lat_lua_pack(L, seen, -1, &def->upvalues, what, CURE);
}

/* The function at idx: its code, and what it refers to outside itself. */
static void define_function(lua_State *L, lat_worker_def *def, int idx)
{
	if (lua_iscfunction(L, idx))
		luaL_error(L, "worker: a C function can't cross to another thread" CURE);
	int seen = lat_lua_begin_pack(L);
	const char *name;
	for (int i = 1; (name = lua_getupvalue(L, idx, i)) != NULL; i++) {
		note_upvalue(L, def, idx, seen, name);
		lua_pop(L, 1);
	}
	lua_pushvalue(L, idx);
	if (lua_dump(L, append_bytecode, &def->bytecode, 0) != 0)
		check_buf(L, &def->bytecode);
	lua_pop(L, 1);
}

static void define(lua_State *L, lat_worker_def *def, int idx)
{
	size_t len;
	if (lua_type(L, idx) == LUA_TFUNCTION) {
		define_function(L, def, idx);
	} else if (lua_type(L, idx) == LUA_TSTRING) {
		const char *name = lua_tolstring(L, idx, &len);
		if (len == 0 || strlen(name) != len)
			luaL_error(L, "worker: source: expected the name of a module");
		set_text(L, &def->module, name);
	} else {
		luaL_error(L, "worker: source: expected a function or the name of a module, got %s",
		           luaL_typename(L, idx));
	}
	note_package_path(L, "path", &def->path);
	note_package_path(L, "cpath", &def->cpath);
}

static void push_shared_threads(lua_State *L)
{
	if (lua_rawgetp(L, LUA_REGISTRYINDEX, &WORKER_THREADS_KEY) != LUA_TNIL)
		return;
	lua_pop(L, 1);
	lat_lua_new_threads(L, 0);
	lua_pushvalue(L, -1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &WORKER_THREADS_KEY);
}

static void push_threads(lua_State *L, int options)
{
	if (lua_getfield(L, options, "pool_size") == LUA_TNIL) {
		push_shared_threads(L);
		return;
	}
	lua_Integer size = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
	if (size < 1 || size > LAT_THREADS_MAX)
		luaL_error(L, "worker: pool_size: expected an integer from 1 to %d", LAT_THREADS_MAX);
	lat_lua_new_threads(L, (size_t)size);
}

/* worker{source = function or "module.name", pool_size =} → worker; without pool_size it shares its threads with
 * the others that have none, as many as cores */
static int core_worker(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	worker_box *box = lua_newuserdatauv(L, sizeof *box, 1);
	*box = (worker_box){.def = NULL};
	luaL_setmetatable(L, WORKER_TYPE);
	box->def = calloc(1, sizeof *box->def);
	if (!box->def)
		return luaL_error(L, "not enough memory");
	atomic_init(&box->def->holds, 1);
	lua_getfield(L, 1, "source");
	define(L, box->def, 3);
	push_threads(L, 1);
	lua_setiuservalue(L, 2, 1);
	lua_settop(L, 2);
	return 1;
}

static int worker_gc(lua_State *L)
{
	worker_box *box = luaL_checkudata(L, 1, WORKER_TYPE);
	if (box->def)
		atomic_store(&box->def->retired, true);
	lat_worker_def_free(box->def);
	box->def = NULL;
	return 0;
}

/* ---- a call ---- */

static void note_signal(lua_State *L, lat_worker_call *call, int ctx)
{
	if (lua_type(L, ctx) != LUA_TTABLE)
		return;
	lua_pushstring(L, "signal");
	lua_rawget(L, ctx);
	call->signal = lat_lua_to_flag(L, -1);
	if (call->signal)
		lat_flag_hold(call->signal);
	lua_pop(L, 1);
}

static lat_worker_call *new_call(const worker_box *worker, lat_threads *threads, lat_loop *loop)
{
	lat_worker_call *call = calloc(1, sizeof *call);
	if (!call)
		return NULL;
	lat_job_init(&call->job, threads, loop, lat_worker_run, lat_worker_drop);
	atomic_fetch_add(&worker->def->holds, 1);
	call->job.interruptible = true;
	call->def = worker->def;
	call->outcome = LAT_WORKER_ABORT; /* until it has run */
	return call;
}

/* worker:call(input, ctx, timeout_ms) → op. When ctx.signal is a flag, its being set stops the call. */
static int worker_call(lua_State *L)
{
	worker_box *worker = luaL_checkudata(L, 1, WORKER_TYPE);
	luaL_argcheck(L, worker->def, 1, "this worker is closed");
	int64_t timeout_ns = lua_isnoneornil(L, 4) ? 0 : lat_lua_check_ms(L, 4);
	lua_settop(L, 3);
	lua_getiuservalue(L, 1, 1);
	lat_threads *threads = lat_lua_to_threads(L, -1);
	lua_settop(L, 3);
	lat_loop *loop = lat_lua_loop(L);
	call_box *box = lua_newuserdatauv(L, sizeof *box, 1);
	*box = (call_box){.call = NULL};
	luaL_setmetatable(L, CALL_TYPE);
	lua_pushvalue(L, 1);
	lua_setiuservalue(L, 4, 1);
	lat_worker_call *call = box->call = new_call(worker, threads, loop);
	if (!call)
		return luaL_error(L, "not enough memory");
	box->id = (lua_Integer)call->job.op.id;
	call->timeout_ms = (lua_Number)timeout_ns / NS_PER_MS;
	note_signal(L, call, 3);
	int seen = lat_lua_begin_pack(L);
	lat_lua_pack(L, seen, 2, &call->input, "input", "");
	lat_lua_pack(L, seen, 3, &call->input, "ctx", "");
	lat_error err;
	if (lat_job_submit(&call->job, &err) != LAT_OK)
		return lat_lua_raise(L, &err);
	lua_settop(L, 4);
	return 1;
}

static call_box *check_call(lua_State *L)
{
	return luaL_checkudata(L, 1, CALL_TYPE);
}

static bool is_over(const call_box *box)
{
	return !box->call || lat_job_done(&box->call->job);
}

static int call_id(lua_State *L)
{
	lua_pushinteger(L, check_call(L)->id);
	return 1;
}

static int call_ready(lua_State *L)
{
	lua_pushboolean(L, is_over(check_call(L)));
	return 1;
}

/* op:stop(): a call that waits for a thread never begins; one that runs is stopped at once, without the grace of
 * its signal. The op becomes ready when that has happened. */
static int call_stop(lua_State *L)
{
	call_box *box = check_call(L);
	if (box->call)
		lat_job_cancel(&box->call->job);
	return 0;
}

/* Also __close. As stop, but nobody waits for it: the op is ready, and sends no notice. */
static int call_cancel(lua_State *L)
{
	call_box *box = check_call(L);
	if (is_over(box))
		return 0;
	lat_job_abandon(&box->call->job);
	box->call = NULL;
	return 0;
}

static int call_gc(lua_State *L)
{
	call_box *box = check_call(L);
	if (box->call)
		lat_job_abandon(&box->call->job);
	box->call = NULL;
	return 0;
}

static void push_message(lua_State *L, const lat_worker_call *call)
{
	char text[64] = "aborted";
	if (call && call->outcome == LAT_WORKER_TIMEOUT)
		snprintf(text, sizeof text, "timed out after %.14g ms", call->timeout_ms);
	if (call && call->outcome == LAT_WORKER_MEMORY)
		strcpy(text, "not enough memory");
	if (call && call->outcome == LAT_WORKER_ERROR && lat_lua_unpack(L, &call->output) == 1)
		return;
	lua_pushstring(L, text);
}

/* result() → true, values… | false, message, traceback or nil, kind ("error", "abort", "timeout", "memory"). The
 * message of an "error" is the value that was raised, as data or else as text. */
static int call_result(lua_State *L)
{
	static const char *const kinds[] = {
		[LAT_WORKER_OK] = "",           [LAT_WORKER_ERROR] = "error",
		[LAT_WORKER_ABORT] = "abort",   [LAT_WORKER_TIMEOUT] = "timeout",
		[LAT_WORKER_MEMORY] = "memory",
	};
	call_box *box = check_call(L);
	const lat_worker_call *call = box->call;
	if (!is_over(box))
		return luaL_error(L, "the worker is still running: wait until ready()");
	lat_worker_outcome outcome = call ? call->outcome : LAT_WORKER_ABORT;
	lua_pushboolean(L, outcome == LAT_WORKER_OK);
	if (outcome == LAT_WORKER_OK)
		return 1 + lat_lua_unpack(L, &call->output);
	push_message(L, call);
	if (call && call->traceback.len && lat_buf_ok(&call->traceback))
		lua_pushlstring(L, call->traceback.data, call->traceback.len);
	else
		lua_pushnil(L);
	lua_pushstring(L, kinds[outcome]);
	return 4;
}

static const luaL_Reg WORKER_METHODS[] = {
	{"call", worker_call},
	{"__gc", worker_gc},
	{NULL, NULL},
};

static const luaL_Reg CALL_METHODS[] = {
	{"id", call_id},         {"ready", call_ready}, {"result", call_result},  {"stop", call_stop},
	{"cancel", call_cancel}, {"__gc", call_gc},     {"__close", call_cancel}, {NULL, NULL},
};

static void new_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
	luaL_newmetatable(L, name);
	luaL_setfuncs(L, methods, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

void lat_lua_open_worker(lua_State *L)
{
	new_type(L, WORKER_TYPE, WORKER_METHODS);
	new_type(L, CALL_TYPE, CALL_METHODS);
	lua_pushcfunction(L, core_worker);
	lua_setfield(L, -2, "worker");
}
