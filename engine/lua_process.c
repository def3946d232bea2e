/* Bindings of processes: core.process_start.
 *
 * An op is a userdata that owns its process; the processes of a state are owned by a userdata in the registry,
 * which outlives the ops that were collected before their process was reaped. All on the thread of the state. */
#include <stdlib.h>
#include <string.h>

#include "lua_at_exit.h"
#include "lua_core.h"
#include "lua_http.h"
#include "lua_loop.h"
#include "lua_process.h"
#include "scheduler/environment.h"
#include "scheduler/process.h"

#define ALL_TYPE     "lattice.processes"
#define PROCESS_TYPE "lattice.process"
#define WHAT         "process_start"

enum { RESULT = 1, ARGS_MAX = 100000, NS_PER_MS = 1000000 };

extern char **environ;

/* ---- the processes of a state ---- */

static const char ALL_KEY = 'k'; /* its address is the registry key */

typedef struct {
	lat_processes *all; /* NULL after the state began to close */
} all_box;

static int all_gc(lua_State *L)
{
	all_box *box = luaL_checkudata(L, 1, ALL_TYPE);
	lat_processes_free(box->all);
	box->all = NULL;
	return 0;
}

lat_processes *lat_lua_processes(lua_State *L)
{
	luaL_checkstack(L, 4, NULL);
	lua_rawgetp(L, LUA_REGISTRYINDEX, &ALL_KEY);
	all_box *box = lua_touserdata(L, -1);
	lua_pop(L, 1);
	if (box && !box->all)
		luaL_error(L, "this Lua state is closing: no process can be started");
	if (box)
		return box->all;
	lat_loop *loop = lat_lua_loop(L);
	lat_at_exit *at_exit = lat_lua_at_exit(L);
	box = lua_newuserdatauv(L, sizeof *box, 0);
	box->all = NULL;
	luaL_setmetatable(L, ALL_TYPE);
	lat_error err;
	box->all = lat_processes_new(loop, at_exit, &err);
	if (!box->all)
		lat_lua_raise(L, &err);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &ALL_KEY);
	return box->all;
}

/* ---- options: what they point to is kept alive by the stack and by the table `kept` ---- */

static const char *check_text(lua_State *L, int idx, const char *name)
{
	size_t len;
	if (lua_type(L, idx) != LUA_TSTRING)
		luaL_error(L, WHAT ": %s: expected a string, got %s", name, luaL_typename(L, idx));
	const char *s = lua_tolstring(L, idx, &len);
	if (strlen(s) != len)
		luaL_error(L, WHAT ": %s: has a NUL byte: remove it", name);
	return s;
}

static void keep(lua_State *L, int kept) /* pops a value */
{
	lua_rawseti(L, kept, (lua_Integer)lua_rawlen(L, kept) + 1);
}

static char **new_pointers(lua_State *L, int kept, size_t n)
{
	char **pointers = lua_newuserdatauv(L, (n + 1) * sizeof *pointers, 0);
	memset(pointers, 0, (n + 1) * sizeof *pointers);
	keep(L, kept);
	return pointers;
}

static char **command_line(lua_State *L, int kept)
{
	static const char *const shell[] = {"/bin/sh", "-c"};
	char **argv = new_pointers(L, kept, 3);
	argv[0] = (char *)shell[0];
	argv[1] = (char *)shell[1];
	argv[2] = (char *)check_text(L, -1, "command");
	keep(L, kept);
	return argv;
}

static char **argument_list(lua_State *L, int kept)
{
	if (lua_type(L, -1) != LUA_TTABLE)
		luaL_error(L, WHAT ": argv: expected a list of strings, got %s", luaL_typename(L, -1));
	lua_Unsigned n = lua_rawlen(L, -1);
	if (n == 0 || n > ARGS_MAX)
		luaL_error(L, WHAT ": argv: expected 1 to %d strings, got %I", ARGS_MAX, (LUAI_UACINT)n);
	char **argv = new_pointers(L, kept, (size_t)n);
	for (lua_Unsigned i = 0; i < n; i++) {
		char name[32];
		snprintf(name, sizeof name, "argv[%llu]", (unsigned long long)i + 1);
		lua_rawgeti(L, -1, (lua_Integer)i + 1);
		argv[i] = (char *)check_text(L, -1, name);
		keep(L, kept);
	}
	lua_pop(L, 1);
	return argv;
}

static char **get_arguments(lua_State *L, int kept)
{
	bool has_command = lua_getfield(L, 1, "command") != LUA_TNIL;
	bool has_argv = lua_getfield(L, 1, "argv") != LUA_TNIL;
	if (has_command == has_argv)
		luaL_error(L, WHAT ": expected either argv = {program, …} or command = \"…\"");
	lua_remove(L, has_command ? -1 : -2);
	return has_command ? command_line(L, kept) : argument_list(L, kept);
}

/* Pushes a table name → value of what the child inherits. */
static void push_inherited(lua_State *L)
{
	lua_newtable(L);
	for (char **e = environ; e && *e; e++) {
		const char *equals = strchr(*e, '=');
		if (!equals || equals == *e || lat_environment_is_secret(*e, (size_t)(equals - *e)))
			continue;
		lua_pushlstring(L, *e, (size_t)(equals - *e));
		lua_pushstring(L, equals + 1);
		lua_rawset(L, -3);
	}
}

/* Puts option env = {NAME = value or false} over the table below it; pops the option. */
static void apply_env(lua_State *L)
{
	if (lua_type(L, -1) != LUA_TTABLE)
		luaL_error(L, WHAT ": env: expected a table of names and values, got %s", luaL_typename(L, -1));
	for (lua_pushnil(L); lua_next(L, -2);) {
		const char *name = check_text(L, -2, "env: a name");
		if (!*name || strchr(name, '='))
			luaL_error(L, WHAT ": env: \"%s\" can't be a name: expected one without \"=\"", name);
		bool removes = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
		if (!removes && lua_type(L, -1) != LUA_TSTRING)
			luaL_error(L, WHAT ": env.%s: expected a string, or false to leave it out, got %s", name,
			           luaL_typename(L, -1));
		if (!removes)
			check_text(L, -1, name);
		lua_pushvalue(L, -2);
		if (removes)
			lua_pushnil(L);
		else
			lua_pushvalue(L, -2);
		lua_rawset(L, -6);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
}

static char **get_environment(lua_State *L, int kept)
{
	if (lat_lua_opt_boolean(L, 1, WHAT, "clear_env", false))
		lua_newtable(L);
	else
		push_inherited(L);
	if (lua_getfield(L, 1, "env") == LUA_TNIL)
		lua_pop(L, 1);
	else
		apply_env(L);
	size_t n = 0;
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
		n++;
	char **envp = new_pointers(L, kept, n);
	size_t i = 0;
	for (lua_pushnil(L); lua_next(L, -2);) {
		envp[i++] = (char *)lua_pushfstring(L, "%s=%s", lua_tostring(L, -2), lua_tostring(L, -1));
		keep(L, kept);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return envp;
}

/* An option that is a string stays on the stack. */
static const char *get_cwd(lua_State *L)
{
	return lua_getfield(L, 1, "cwd") == LUA_TNIL ? NULL : check_text(L, -1, "cwd");
}

static const char *get_stdin(lua_State *L, size_t *len)
{
	int type = lua_getfield(L, 1, "stdin");
	if (type != LUA_TNIL && type != LUA_TSTRING)
		luaL_error(L, WHAT ": stdin: expected a string, got %s", luaL_typename(L, -1));
	return type == LUA_TNIL ? NULL : lua_tolstring(L, -1, len);
}

static lat_process_options get_options(lua_State *L, int kept)
{
	lat_process_options options = {.argv = get_arguments(L, kept)};
	options.envp = get_environment(L, kept);
	options.cwd = get_cwd(L);
	options.input = get_stdin(L, &options.input_len);
	options.timeout_ns = lat_lua_opt_ms(L, 1, WHAT, "timeout_ms");
	options.max_output = lat_lua_opt_bytes(L, 1, WHAT, "max_output", LAT_PROCESS_DEFAULT_OUTPUT);
	options.merge_stderr = lat_lua_opt_boolean(L, 1, WHAT, "merge_stderr", false);
	return options;
}

/* ---- an op ---- */

typedef struct {
	lat_process *process; /* NULL: it couldn't be started, or was cancelled, or the result has been made */
	lua_Integer id;
	lat_op failed_op; /* the notice of one that couldn't be started */
	lat_error error;
	lat_buf out, errors;
} process_op;

static process_op *check_op(lua_State *L)
{
	return luaL_checkudata(L, 1, PROCESS_TYPE);
}

static int process_id(lua_State *L)
{
	lua_pushinteger(L, check_op(L)->id);
	return 1;
}

static int process_ready(lua_State *L)
{
	process_op *op = check_op(L);
	lua_pushboolean(L, !op->process || lat_process_done(op->process));
	return 1;
}

/* Also __close. Kills the group; the result is an "abort" unless there was one; no notice is sent. */
static int process_cancel(lua_State *L)
{
	process_op *op = check_op(L);
	lat_op_forget(&op->failed_op);
	if (op->process && !lat_process_done(op->process)) {
		lat_process_abandon(op->process);
		op->process = NULL;
		lat_fail(&op->error, LAT_E_ABORT, "the process was cancelled");
	}
	return 0;
}

static int process_gc(lua_State *L)
{
	process_op *op = check_op(L);
	lat_op_forget(&op->failed_op);
	if (op->process)
		lat_process_abandon(op->process);
	op->process = NULL;
	lat_buf_free(&op->out);
	lat_buf_free(&op->errors);
	return 0;
}

/* op:pid() → the number of the group's leader, or nil when it isn't running any more */
static int process_pid(lua_State *L)
{
	process_op *op = check_op(L);
	if (op->process && !lat_process_done(op->process))
		lua_pushinteger(L, lat_process_pid(op->process));
	else
		lua_pushnil(L);
	return 1;
}

static void push_output(lua_State *L, lat_buf *b, const char *name)
{
	lua_pushlstring(L, b->data ? b->data : "", b->len);
	lat_buf_free(b);
	lua_setfield(L, -2, name);
}

static void push_outcome(lua_State *L, process_op *op, const lat_process_result *r)
{
	lua_createtable(L, 0, 6);
	push_output(L, &op->out, "stdout");
	push_output(L, &op->errors, "stderr");
	if (r->signal)
		lua_pushinteger(L, r->signal);
	else
		lua_pushinteger(L, r->status);
	lua_setfield(L, -2, r->signal ? "signal" : "status");
	lua_pushboolean(L, r->truncated);
	lua_setfield(L, -2, "truncated");
	lua_pushboolean(L, r->timed_out);
	lua_setfield(L, -2, "timed_out");
}

static int push_failure(lua_State *L, const lat_error *err)
{
	lua_pushnil(L);
	lua_createtable(L, 0, 2);
	lua_pushstring(L, lat_lua_error_kind(err));
	lua_setfield(L, -2, "kind");
	lua_pushstring(L, err->message);
	lua_setfield(L, -2, "message");
	return 2;
}

/* result() → {status = or signal =, stdout =, stderr =, truncated =, timed_out =} | nil, {kind =, message =};
 * the same at every call */
static int process_result(lua_State *L)
{
	process_op *op = check_op(L);
	if (op->process && !lat_process_done(op->process))
		return luaL_error(L, "the process is still running: wait until ready()");
	if (lua_getiuservalue(L, 1, RESULT) != LUA_TNIL)
		return 1;
	lat_process_result r;
	lat_buf_clear(&op->out); /* of an earlier call that ran out of memory */
	lat_buf_clear(&op->errors);
	if (op->process)
		op->error.kind = lat_process_result_of(op->process, &r, &op->out, &op->errors, &op->error);
	if (op->error.kind == LAT_OK && !(lat_buf_ok(&op->out) && lat_buf_ok(&op->errors)))
		return luaL_error(L, "not enough memory");
	if (op->error.kind != LAT_OK)
		return push_failure(L, &op->error);
	push_outcome(L, op, &r);
	lua_pushvalue(L, -1);
	lua_setiuservalue(L, 1, RESULT);
	lat_process_abandon(op->process);
	op->process = NULL;
	return 1;
}

static const luaL_Reg METHODS[] = {
	{"id", process_id},   {"ready", process_ready}, {"cancel", process_cancel},  {"result", process_result},
	{"pid", process_pid}, {"__gc", process_gc},     {"__close", process_cancel}, {NULL, NULL},
};

/* process_start{argv = {…} or command =, cwd =, env = {NAME = value or false}, clear_env =, stdin =, timeout_ms =,
 * max_output =, merge_stderr =} → op */
static int core_process_start(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	lat_loop *loop = lat_lua_loop(L);
	lat_processes *all = lat_lua_processes(L);
	lua_newtable(L);
	lat_process_options options = get_options(L, 2);
	process_op *op = lua_newuserdatauv(L, sizeof *op, 1);
	*op = (process_op){.out = LAT_BUF_INIT, .errors = LAT_BUF_INIT};
	luaL_setmetatable(L, PROCESS_TYPE);
	op->process = lat_process_start(all, &options, &op->error);
	if (!op->process && op->error.kind == LAT_E_NOMEM)
		return lat_lua_raise(L, &op->error);
	if (op->process) {
		op->id = (lua_Integer)lat_process_op(op->process)->id;
		return 1;
	}
	lat_op_init(&op->failed_op, loop);
	op->id = (lua_Integer)op->failed_op.id;
	lat_loop_notify(&op->failed_op);
	return 1;
}

void lat_lua_open_process(lua_State *L)
{
	luaL_newmetatable(L, ALL_TYPE);
	lua_pushcfunction(L, all_gc);
	lua_setfield(L, -2, "__gc");
	luaL_newmetatable(L, PROCESS_TYPE);
	luaL_setfuncs(L, METHODS, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 2);
	lua_pushcfunction(L, core_process_start);
	lua_setfield(L, -2, "process_start");
}
