/* Bindings of the Bash tool: core.bash.
 *
 * A userdata owns a session's shell; a call's op is a userdata that owns its call, which holds the session. All on
 * the thread of the lua_State; the waiting is the loop's. */
#include <stdlib.h>
#include <string.h>

#include "lua_core.h"
#include "lua_http.h"
#include "lua_loop.h"
#include "lua_process.h"
#include "lua_workspace.h"
#include "workspace/bash.h"
#include "workspace/landlock.h"

#define BASH_TYPE "lattice.bash"
#define CALL_TYPE "lattice.bash_call"

enum { RESULT = 1, SECRETS_MAX = 1000, NS_PER_MS = 1000000 };

/* ---- a session's shell ---- */

typedef struct {
	lat_bash *bash; /* NULL until it is made */
} bash_box;

static lat_bash *check_bash(lua_State *L)
{
	bash_box *box = luaL_checkudata(L, 1, BASH_TYPE);
	luaL_argcheck(L, box->bash, 1, "this shell is closed");
	return box->bash;
}

static lat_bash_confinement get_confinement(lua_State *L)
{
	static const char *const NAMES[] = {"best_effort", "required", "off", NULL};
	lua_getfield(L, 1, "confinement");
	int which = luaL_checkoption(L, -1, "best_effort", NAMES);
	lua_pop(L, 1);
	return which == 0 ? LAT_BASH_BEST_EFFORT : which == 1 ? LAT_BASH_REQUIRED : LAT_BASH_OFF;
}

/* The list as pointers, in a userdata that is pushed; the strings belong to the list, which stays on the stack. */
static const char *const *get_secrets(lua_State *L, size_t *n)
{
	*n = 0;
	if (lua_getfield(L, 1, "secrets") == LUA_TNIL)
		return NULL;
	luaL_argcheck(L, lua_istable(L, -1), 1, "secrets: expected a list of strings");
	size_t len = lua_rawlen(L, -1);
	luaL_argcheck(L, len <= SECRETS_MAX, 1, "secrets: too many");
	const char **list = lua_newuserdatauv(L, (len + 1) * sizeof *list, 0);
	for (size_t i = 0; i < len; i++) {
		lua_rawgeti(L, -2, (lua_Integer)i + 1);
		luaL_argcheck(L, lua_type(L, -1) == LUA_TSTRING, 1, "secrets: expected a list of strings");
		list[i] = lua_tostring(L, -1);
		lua_pop(L, 1);
	}
	*n = len;
	return list;
}

static int get_abi(lua_State *L)
{
	int abi = lat_landlock_abi();
	lua_getfield(L, 1, "landlock");
	lua_Integer most = luaL_optinteger(L, -1, abi);
	lua_pop(L, 1);
	return most < 0 ? 0 : most < abi ? (int)most : abi;
}

/* bash{workspace = ws, temp = path, confinement = "best_effort" | "required" | "off", confine_reads =,
 * confine_network =, secrets = {value, …}, landlock = highest ABI to use} → bash | nil, message */
static int core_bash(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	size_t len = 0;
	lua_getfield(L, 1, "workspace"); /* at 2 */
	lat_bash_options options = {
		.ws = lat_lua_check_workspace(L, 2),
		.temp = lat_lua_opt_string(L, 1, "bash", "temp", &len),
		.confinement = get_confinement(L),
		.confine_reads = lat_lua_opt_boolean(L, 1, "bash", "confine_reads", false),
		.confine_network = lat_lua_opt_boolean(L, 1, "bash", "confine_network", false),
		.abi = get_abi(L),
	};
	luaL_argcheck(L, len > 0 && strlen(options.temp) == len, 1, "temp: expected the path of a folder");
	options.secrets = get_secrets(L, &options.n_secrets);
	bash_box *box = lua_newuserdatauv(L, sizeof *box, 0);
	box->bash = NULL;
	luaL_setmetatable(L, BASH_TYPE);
	lat_error err;
	box->bash = lat_bash_new(&options, &err);
	if (box->bash)
		return 1;
	return err.kind == LAT_E_NOMEM ? lat_lua_raise(L, &err) : lat_lua_nil_error(L, &err);
}

static int bash_gc(lua_State *L)
{
	bash_box *box = luaL_checkudata(L, 1, BASH_TYPE);
	lat_bash_free(box->bash);
	box->bash = NULL;
	return 0;
}

/* bash:cwd() → string */
static int bash_cwd(lua_State *L)
{
	lua_pushstring(L, lat_bash_cwd(check_bash(L)));
	return 1;
}

/* bash:lacks() → what of the confinement this kernel can't do, a sentence, or nil */
static int bash_lacks(lua_State *L)
{
	lua_pushstring(L, lat_bash_lacks(check_bash(L)));
	return 1;
}

/* ---- a call ---- */

typedef struct {
	lat_bash_call *call; /* NULL: it couldn't be started, or was cancelled, or the result has been made */
	lua_Integer id;
	lat_op failed_op; /* the notice of one that couldn't be started */
	lat_error error;
	lat_buf text;
	bool confined;
} call_box;

static call_box *check_call(lua_State *L)
{
	return luaL_checkudata(L, 1, CALL_TYPE);
}

/* bash:start(command, timeout_ms?, grants?) → op */
static int bash_start(lua_State *L)
{
	lat_bash *bash = check_bash(L);
	size_t len;
	const char *command = luaL_checklstring(L, 2, &len);
	lua_Integer timeout_ms = luaL_optinteger(L, 3, 0);
	const lat_roots *grants = lat_lua_opt_roots(L, 4);
	lat_loop *loop = lat_lua_loop(L);
	lat_processes *all = lat_lua_processes(L);
	call_box *box = lua_newuserdatauv(L, sizeof *box, 1);
	*box = (call_box){.text = LAT_BUF_INIT, .confined = lat_bash_is_confined(bash)};
	luaL_setmetatable(L, CALL_TYPE);
	if (strlen(command) != len)
		lat_fail(&box->error, LAT_E_INVALID, "command: it has a NUL byte, which no shell can read");
	else
		box->call = lat_bash_start(bash, all, grants, command, timeout_ms, &box->error);
	if (!box->call && box->error.kind == LAT_E_NOMEM)
		return lat_lua_raise(L, &box->error);
	if (box->call) {
		box->id = (lua_Integer)lat_process_op(lat_bash_process(box->call))->id;
		return 1;
	}
	lat_op_init(&box->failed_op, loop);
	box->id = (lua_Integer)box->failed_op.id;
	lat_loop_notify(&box->failed_op);
	return 1;
}

static int call_id(lua_State *L)
{
	lua_pushinteger(L, check_call(L)->id);
	return 1;
}

static bool is_running(const call_box *box)
{
	return box->call && !lat_process_done(lat_bash_process(box->call));
}

static int call_ready(lua_State *L)
{
	lua_pushboolean(L, !is_running(check_call(L)));
	return 1;
}

/* Also __close. Kills the group; the result is an "abort" unless there was one; no notice is sent. */
static int call_cancel(lua_State *L)
{
	call_box *box = check_call(L);
	lat_op_forget(&box->failed_op);
	if (is_running(box)) {
		lat_bash_call_free(box->call);
		box->call = NULL;
		lat_fail(&box->error, LAT_E_ABORT, "the command was cancelled");
	}
	return 0;
}

static int call_gc(lua_State *L)
{
	call_box *box = check_call(L);
	lat_op_forget(&box->failed_op);
	lat_bash_call_free(box->call);
	box->call = NULL;
	lat_buf_free(&box->text);
	return 0;
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

static void set_boolean(lua_State *L, const char *name, bool value)
{
	lua_pushboolean(L, value);
	lua_setfield(L, -2, name);
}

static void push_outcome(lua_State *L, call_box *box, const lat_bash_result *r)
{
	lua_createtable(L, 0, 3);
	lua_pushlstring(L, box->text.data, box->text.len);
	lua_setfield(L, -2, "content");
	set_boolean(L, "is_error", r->is_error);
	lua_createtable(L, 0, 8);
	lua_pushinteger(L, r->process.signal ? r->process.signal : r->process.status);
	lua_setfield(L, -2, r->process.signal ? "signal" : "exit_status");
	set_boolean(L, "timed_out", r->process.timed_out);
	set_boolean(L, "truncated", r->process.truncated);
	set_boolean(L, "confined", box->confined);
	lua_pushinteger(L, (lua_Integer)box->text.len);
	lua_setfield(L, -2, "bytes");
	lua_pushnumber(L, (lua_Number)r->duration_ns / NS_PER_MS);
	lua_setfield(L, -2, "duration_ms");
	lua_setfield(L, -2, "metadata");
}

/* result() → {content =, is_error =, metadata = {exit_status = or signal =, timed_out =, truncated =, confined =,
 * bytes =, duration_ms =}} | nil, {kind =, message =}; the same at every call */
static int call_result(lua_State *L)
{
	call_box *box = check_call(L);
	if (is_running(box))
		return luaL_error(L, "the command is still running: wait until ready()");
	if (lua_getiuservalue(L, 1, RESULT) != LUA_TNIL)
		return 1;
	lat_bash_result r;
	lat_buf_clear(&box->text); /* of an earlier call that ran out of memory */
	if (box->call)
		box->error.kind = lat_bash_finish(box->call, &box->text, &r, &box->error);
	if (box->error.kind == LAT_E_NOMEM)
		return lat_lua_raise(L, &box->error);
	if (box->error.kind != LAT_OK)
		return push_failure(L, &box->error);
	push_outcome(L, box, &r);
	lua_pushvalue(L, -1);
	lua_setiuservalue(L, 1, RESULT);
	lat_buf_free(&box->text);
	lat_bash_call_free(box->call);
	box->call = NULL;
	return 1;
}

static const luaL_Reg CALL_METHODS[] = {
	{"id", call_id},
	{"ready", call_ready},
	{"cancel", call_cancel},
	{"result", call_result},
	{"__gc", call_gc},
	{"__close", call_cancel},
	{NULL, NULL},
};

static const luaL_Reg BASH_METHODS[] = {
	{"start", bash_start}, {"cwd", bash_cwd}, {"lacks", bash_lacks}, {"__gc", bash_gc}, {NULL, NULL},
};

static void new_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
	luaL_newmetatable(L, name);
	luaL_setfuncs(L, methods, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

void lat_lua_open_bash(lua_State *L)
{
	new_type(L, BASH_TYPE, BASH_METHODS);
	new_type(L, CALL_TYPE, CALL_METHODS);
	lua_pushcfunction(L, core_bash);
	lua_setfield(L, -2, "bash");
}
