/* The pool thread's side of worker handlers: a lua_State of its own for each thread, made at its first call.
 *
 * The state belongs to its thread (lat_thread_slot.local) and is closed there, at the thread's end or when it was
 * broken: by a stop in the middle or for lack of memory. It keeps the functions of the definitions that it ran,
 * and holds these definitions. How a handler is stopped: lua_worker_stop.c. */
#include "lua_worker_state.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "lua_core.h"
#include "lua_parcel.h"

enum { NS_PER_MS = 1000000 };

static lat_worker_state *state_of(lua_State *L)
{
	return *(lat_worker_state **)lua_getextraspace(L);
}

/* ---- the state ---- */

static int set_up(lua_State *L)
{
	luaL_openlibs(L);
	luaL_requiref(L, "lattice.core", luaopen_lattice_core, 0);
	lat_worker_guard_library(L);
	lua_settop(L, 0);
	return 0;
}

static void close_state(lat_worker_state *w)
{
	w->call = NULL;
	if (w->L)
		lua_close(w->L);
	w->L = NULL;
	for (size_t i = 0; i < w->n_loaded; i++)
		lat_worker_def_free(w->loaded[i].def);
	w->n_loaded = 0;
	w->stop = LAT_WORKER_OK;
}

static bool open_state(lat_worker_state *w)
{
	w->L = luaL_newstate();
	if (!w->L)
		return false;
	lat_worker_adopt(w);
	lua_pushcfunction(w->L, set_up);
	if (lua_pcall(w->L, 0, 0, 0) == LUA_OK)
		return true;
	close_state(w);
	return false;
}

static void free_state(void *local)
{
	lat_worker_state *w = local;
	close_state(w);
	lat_worker_free_stops(w);
	free(w->loaded);
	free(w);
}

static lat_worker_state *get_state(lat_thread_slot *thread)
{
	lat_worker_state *w = thread->local;
	if (!w) {
		w = calloc(1, sizeof *w);
		if (!w)
			return NULL;
		lat_worker_init_stops(w);
		thread->local = w;
		thread->free_local = free_state;
	}
	return w->L || open_state(w) ? w : NULL;
}

/* ---- definitions ---- */

static void forget_retired(lat_worker_state *w)
{
	size_t kept = 0;
	for (size_t i = 0; i < w->n_loaded; i++) {
		lat_worker_loaded *l = &w->loaded[i];
		if (atomic_load(&l->def->retired)) {
			luaL_unref(w->L, LUA_REGISTRYINDEX, l->function);
			lat_worker_def_free(l->def);
		} else {
			w->loaded[kept++] = *l;
		}
	}
	w->n_loaded = kept;
}

static void make_room(lua_State *L, lat_worker_state *w)
{
	if (w->n_loaded < w->loaded_cap)
		return;
	size_t cap = w->loaded_cap ? w->loaded_cap * 2 : 8;
	lat_worker_loaded *loaded = realloc(w->loaded, cap * sizeof *loaded);
	if (!loaded)
		luaL_error(L, "not enough memory");
	w->loaded = loaded;
	w->loaded_cap = cap;
}

static void set_package_path(lua_State *L, const lat_worker_def *def)
{
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	lua_getfield(L, -1, "package");
	lua_pushstring(L, def->path.data);
	lua_setfield(L, -2, "path");
	lua_pushstring(L, def->cpath.data);
	lua_setfield(L, -2, "cpath");
	lua_pop(L, 2);
}

static void push_module_handler(lua_State *L, const lat_worker_def *def)
{
	const char *name = def->module.data;
	lua_getglobal(L, "require");
	lua_pushstring(L, name);
	lua_call(L, 1, 1);
	if (lua_type(L, -1) == LUA_TTABLE)
		lua_getfield(L, -1, "handler");
	if (lua_type(L, -1) != LUA_TFUNCTION)
		luaL_error(L,
		           "worker module \"%s\": expected it to return a function, or a table with a function "
		           "\"handler\"",
		           name);
}

static void push_bytecode_handler(lua_State *L, const lat_worker_def *def)
{
	if (luaL_loadbufferx(L, def->bytecode.data, def->bytecode.len, "=worker", "b") != LUA_OK)
		lua_error(L);
	int function = lua_gettop(L);
	int next = function + 1; /* of the values that were packed */
	lat_lua_unpack(L, &def->upvalues);
	for (size_t i = 0; i < def->upvalue_kinds.len; i++) {
		switch (def->upvalue_kinds.data[i]) {
		case LAT_UPVALUE_GLOBALS:
			lua_pushglobaltable(L);
			break;
		case LAT_UPVALUE_SELF:
			lua_pushvalue(L, function);
			break;
		default:
			lua_pushvalue(L, next++);
		}
		lua_setupvalue(L, function, (int)i + 1);
	}
	lua_settop(L, function);
}

static void push_handler(lua_State *L, lat_worker_state *w, lat_worker_def *def)
{
	for (size_t i = 0; i < w->n_loaded; i++) {
		if (w->loaded[i].def == def) {
			lua_rawgeti(L, LUA_REGISTRYINDEX, w->loaded[i].function);
			return;
		}
	}
	forget_retired(w);
	make_room(L, w);
	set_package_path(L, def);
	if (def->module.len)
		push_module_handler(L, def);
	else
		push_bytecode_handler(L, def);
	lua_pushvalue(L, -1);
	int function = luaL_ref(L, LUA_REGISTRYINDEX);
	w->loaded[w->n_loaded++] = (lat_worker_loaded){.def = def, .function = function};
	atomic_fetch_add(&def->holds, 1);
}

/* ---- a call ---- */

static int run_handler(lua_State *L)
{
	lat_worker_state *w = state_of(L);
	lat_worker_call *call = w->call;
	lua_settop(L, 1);
	push_handler(L, w, call->def);
	lua_replace(L, 1);
	lua_settop(L, 1);
	lua_call(L, lat_lua_unpack(L, &call->input), LUA_MULTRET);
	int n = lua_gettop(L);
	int seen = lat_lua_begin_pack(L);
	for (int i = 1; i <= n; i++)
		lat_lua_pack(L, seen, i, &call->output, "the worker's result", "");
	return 0;
}

static int note_traceback(lua_State *L)
{
	lat_worker_call *call = state_of(L)->call;
	size_t len;
	luaL_traceback(L, L, NULL, 1);
	const char *text = lua_tolstring(L, -1, &len);
	lat_buf_clear(&call->traceback);
	lat_buf_append(&call->traceback, text, len);
	lua_pop(L, 1);
	return 1;
}

static int pack_raised(lua_State *L)
{
	int seen = lat_lua_begin_pack(L);
	lat_lua_pack(L, seen, 1, &state_of(L)->call->output, "error", "");
	return 0;
}

static int pack_raised_text(lua_State *L)
{
	luaL_tolstring(L, 1, NULL);
	lua_replace(L, 1);
	return pack_raised(L);
}

static bool try_to_pack(lua_State *L, lua_CFunction pack)
{
	lat_parcel_clear(&state_of(L)->call->output);
	lua_pushcfunction(L, pack);
	lua_pushvalue(L, 1);
	bool ok = lua_pcall(L, 1, 0, 0) == LUA_OK;
	lua_settop(L, 1);
	return ok;
}

/* What was raised is on the stack, alone. A value that can't cross goes as its text. */
static void take_error(lat_worker_state *w, int status)
{
	lat_worker_call *call = w->call;
	/* Lua's buffers raise that text as a common error. */
	bool no_memory =
		lua_type(w->L, 1) == LUA_TSTRING && strcmp(lua_tostring(w->L, 1), "not enough memory") == 0;
	call->outcome = status == LUA_ERRMEM || no_memory ? LAT_WORKER_MEMORY : LAT_WORKER_ERROR;
	bool packed = call->outcome == LAT_WORKER_ERROR &&
	              (try_to_pack(w->L, pack_raised) || try_to_pack(w->L, pack_raised_text));
	if (!packed)
		lat_parcel_clear(&call->output);
}

void lat_worker_run(lat_job *job, lat_thread_slot *thread)
{
	lat_worker_call *call = (lat_worker_call *)job;
	lat_worker_state *w = get_state(thread);
	call->outcome = w ? LAT_WORKER_OK : LAT_WORKER_MEMORY;
	if (call->signal && lat_flag_is_set(call->signal))
		call->outcome = LAT_WORKER_ABORT;
	if (call->outcome != LAT_WORKER_OK)
		return;
	w->due_ns = call->timeout_ms > 0 ? lat_now_ns() + (int64_t)(call->timeout_ms * NS_PER_MS) : INT64_MAX;
	lat_worker_begin_stops(w, call);
	lua_settop(w->L, 0);
	lua_pushcfunction(w->L, note_traceback);
	lua_pushcfunction(w->L, run_handler);
	int status = lua_pcall(w->L, 0, 0, 1);
	lua_remove(w->L, 1);
	if (status != LUA_OK)
		take_error(w, status);
	if (w->stop != LAT_WORKER_OK) { /* whatever the handler made of it */
		call->outcome = w->stop;
		lat_parcel_clear(&call->output);
	}
	lat_worker_end_stops(w);
	if (w->stop != LAT_WORKER_OK || call->outcome == LAT_WORKER_MEMORY)
		close_state(w);
	else
		lua_settop(w->L, 0);
}

void lat_worker_drop(lat_job *job)
{
	lat_worker_call *call = (lat_worker_call *)job;
	lat_flag_free(call->signal);
	lat_parcel_clear(&call->input);
	lat_parcel_clear(&call->output);
	lat_buf_free(&call->traceback);
	lat_worker_def_free(call->def);
	free(call);
}

void lat_worker_def_free(lat_worker_def *def)
{
	if (!def || atomic_fetch_sub(&def->holds, 1) > 1)
		return;
	lat_buf_free(&def->module);
	lat_buf_free(&def->bytecode);
	lat_buf_free(&def->upvalue_kinds);
	lat_parcel_clear(&def->upvalues);
	lat_buf_free(&def->path);
	lat_buf_free(&def->cpath);
	free(def);
}
