/* Bindings of the built-in tools that run on the pool: ws:start. A call's op is a userdata that owns its
 * call, which holds the workspace and the grants for as long as it runs. All on the thread of the lua_State,
 * but for run, which is the pool's. */
#include <stdlib.h>
#include <string.h>

#include "lua_core.h"
#include "lua_flag.h"
#include "lua_loop.h"
#include "lua_threads.h"
#include "lua_workspace.h"
#include "workspace/tool.h"
#include "json/read.h"

#define CALL_TYPE "lattice.tool_call"

enum { NS_PER_MS = 1000000 };

typedef struct {
	lat_job job; /* first */
	lat_tool_call call;
	const lat_tool *tool;
	lat_arena arena;
	lat_value input;
	lat_roots *grants;
	lat_flag *flag;
	int64_t duration_ns;
} tool_job;

typedef struct {
	tool_job *job; /* NULL: cancelled */
	lua_Integer id;
} call_box;

static bool is_stopped(const lat_tool_call *call)
{
	const tool_job *j = (const tool_job *)((const char *)call - offsetof(tool_job, call));
	return atomic_load(&j->job.cancelled) || (j->flag && lat_flag_is_set(j->flag));
}

static void run(lat_job *job, lat_thread_slot *thread)
{
	(void)thread;
	tool_job *j = (tool_job *)job;
	int64_t began = lat_now_ns();
	if (is_stopped(&j->call))
		lat_tool_fail(&j->call, "stopped before it began");
	else
		j->tool->run(&j->call);
	j->duration_ns = lat_now_ns() - began;
}

static void drop(lat_job *job)
{
	tool_job *j = (tool_job *)job;
	lat_buf_free(&j->call.result.text);
	lat_buf_free(&j->call.result.data);
	lat_buf_free(&j->call.result.metadata);
	lat_arena_free(&j->arena);
	lat_workspace_free(j->call.ws);
	lat_roots_free(j->grants);
	lat_flag_free(j->flag);
	free(j);
}

static bool copy_string(lua_State *L, int idx, lat_arena *arena, lat_value *out)
{
	size_t len;
	const char *s = lua_tolstring(L, idx, &len);
	char *copy = len <= UINT32_MAX ? lat_arena_copy(arena, s, len) : NULL;
	*out = lat_value_string_view(copy, copy ? len : 0);
	return copy != NULL;
}

static bool copy_member(lua_State *L, lat_arena *arena, lat_value *out)
{
	*out = lat_value_null();
	if (lua_type(L, -1) == LUA_TSTRING)
		return copy_string(L, -1, arena, out);
	if (lua_type(L, -1) == LUA_TBOOLEAN)
		*out = lat_value_bool(lua_toboolean(L, -1));
	else if (lua_isinteger(L, -1))
		*out = lat_value_int(lua_tointeger(L, -1));
	else if (lua_type(L, -1) == LUA_TNUMBER)
		*out = lat_value_double(lua_tonumber(L, -1));
	return true;
}

/* The table at idx as an object of plain members; what isn't plain becomes null. */
static bool copy_input(lua_State *L, int idx, lat_arena *arena, lat_value *out)
{
	size_t n = 0, i = 0;
	for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1))
		n += lua_type(L, -2) == LUA_TSTRING;
	lat_value *members = n <= UINT32_MAX / 2 ? lat_arena_alloc(arena, (2 * n + 1) * sizeof *members) : NULL;
	if (!members)
		return false;
	for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1))
		if (lua_type(L, -2) == LUA_TSTRING) {
			if (!copy_string(L, -2, arena, &members[i]) || !copy_member(L, arena, &members[i + 1]))
				return false;
			i += 2;
		}
	*out = (lat_value){.type = LAT_OBJECT, .len = (uint32_t)n, .u.items = members};
	return true;
}

static tool_job *new_job(lat_threads *threads, lat_loop *loop, lat_workspace *ws, const lat_tool *tool)
{
	tool_job *j = calloc(1, sizeof *j);
	if (!j)
		return NULL;
	lat_job_init(&j->job, threads, loop, run, drop);
	lat_workspace_hold(ws);
	j->call = (lat_tool_call){.ws = ws, .input = &j->input, .is_stopped = is_stopped};
	j->tool = tool;
	return j;
}

static void get_call_options(lua_State *L, int idx, tool_job *j)
{
	lua_getfield(L, idx, "grants");
	j->grants = (lat_roots *)lat_lua_opt_roots(L, -1);
	if (j->grants)
		lat_roots_hold(j->grants);
	j->call.grants = j->grants;
	lua_getfield(L, idx, "flag");
	j->flag = lat_lua_to_flag(L, -1);
	if (j->flag)
		lat_flag_hold(j->flag);
	lua_pop(L, 2);
}

/* ws:start(tool_name, input, {grants = roots?, flag = flag?}?) → op. When the flag is set, the tool stops where it
 * can, and the op becomes ready. */
int lat_lua_start_tool(lua_State *L)
{
	lat_workspace *ws = lat_lua_check_workspace(L, 1);
	const lat_tool *tool = lat_tool_find(luaL_checkstring(L, 2));
	luaL_argcheck(L, tool, 2, "there is no such built-in tool");
	luaL_checktype(L, 3, LUA_TTABLE);
	lua_settop(L, 4);
	lat_threads *threads = lat_lua_threads(L);
	lat_loop *loop = lat_lua_loop(L);
	call_box *box = lua_newuserdatauv(L, sizeof *box, 0); /* at 5 */
	*box = (call_box){.job = NULL};
	luaL_setmetatable(L, CALL_TYPE);
	tool_job *j = box->job = new_job(threads, loop, ws, tool);
	if (!j)
		return luaL_error(L, "not enough memory");
	box->id = (lua_Integer)j->job.op.id;
	if (!lua_isnil(L, 4))
		get_call_options(L, 4, j);
	if (!copy_input(L, 3, &j->arena, &j->input))
		return luaL_error(L, "not enough memory");
	lat_error err;
	if (lat_job_submit(&j->job, &err) != LAT_OK)
		return lat_lua_raise(L, &err);
	lua_settop(L, 5);
	return 1;
}

static call_box *check_call(lua_State *L)
{
	return luaL_checkudata(L, 1, CALL_TYPE);
}

static int call_id(lua_State *L)
{
	lua_pushinteger(L, check_call(L)->id);
	return 1;
}

static int call_ready(lua_State *L)
{
	const call_box *box = check_call(L);
	lua_pushboolean(L, !box->job || lat_job_done(&box->job->job));
	return 1;
}

/* Also __gc and __close. The tool stops where it can, and nobody waits for it; no notice is sent. */
static int call_cancel(lua_State *L)
{
	call_box *box = check_call(L);
	if (box->job)
		lat_job_abandon(&box->job->job);
	box->job = NULL;
	return 0;
}

static void push_buf(lua_State *L, const lat_buf *b)
{
	lua_pushlstring(L, b->data ? b->data : "", b->len);
}

static void push_blocks(lua_State *L, const lat_tool_result *r)
{
	lua_Integer n = 0;
	lua_createtable(L, 2, 0);
	if (r->text.len > 0) {
		lua_createtable(L, 0, 2);
		lua_pushliteral(L, "text");
		lua_setfield(L, -2, "type");
		push_buf(L, &r->text);
		lua_setfield(L, -2, "text");
		lua_rawseti(L, -2, ++n);
	}
	lua_createtable(L, 0, 2);
	lua_pushstring(L, r->block);
	lua_setfield(L, -2, "type");
	lua_createtable(L, 0, 3);
	lua_pushliteral(L, "base64");
	lua_setfield(L, -2, "type");
	lua_pushstring(L, r->media_type);
	lua_setfield(L, -2, "media_type");
	push_buf(L, &r->data);
	lua_setfield(L, -2, "data");
	lua_setfield(L, -2, "source");
	lua_rawseti(L, -2, ++n);
}

static void push_metadata(lua_State *L, tool_job *j)
{
	lat_buf json = LAT_BUF_INIT;
	lat_value tree;
	lat_error err;
	lat_buf_byte(&json, '{');
	lat_buf_append(&json, j->call.result.metadata.data, j->call.result.metadata.len);
	lat_buf_byte(&json, '}');
	const lat_json_options options = {.flags = LAT_JSON_COPY_STRINGS};
	lat_status status = lat_buf_ok(&json)
	                        ? lat_json_read(&j->arena, json.data, json.len, &options, &tree, &err)
	                        : lat_fail_nomem(&err);
	lat_buf_free(&json);
	if (status != LAT_OK)
		lat_lua_raise(L, &err);
	lat_lua_push_value(L, &tree);
	lua_pushnumber(L, (lua_Number)j->duration_ns / NS_PER_MS);
	lua_setfield(L, -2, "duration_ms");
}

/* result() → {content = string or blocks, is_error = boolean, metadata = table} | nil, {kind = "abort", message =};
 * bytes of the text that aren't UTF-8 stay as they are */
static int call_result(lua_State *L)
{
	const call_box *box = check_call(L);
	tool_job *j = box->job;
	if (j && !lat_job_done(&j->job))
		return luaL_error(L, "the tool is still running: wait until ready()");
	if (!j || !j->job.ran) {
		lua_pushnil(L);
		lua_createtable(L, 0, 2);
		lua_pushliteral(L, "abort");
		lua_setfield(L, -2, "kind");
		lua_pushliteral(L, "the call was cancelled");
		lua_setfield(L, -2, "message");
		return 2;
	}
	const lat_tool_result *r = &j->call.result;
	if (!lat_buf_ok(&r->text) || !lat_buf_ok(&r->data) || !lat_buf_ok(&r->metadata))
		return luaL_error(L, "not enough memory");
	lua_createtable(L, 0, 3);
	if (r->block)
		push_blocks(L, r);
	else
		push_buf(L, &r->text);
	lua_setfield(L, -2, "content");
	lua_pushboolean(L, r->is_error);
	lua_setfield(L, -2, "is_error");
	push_metadata(L, j);
	lua_setfield(L, -2, "metadata");
	return 1;
}

static const luaL_Reg CALL_METHODS[] = {
	{"id", call_id},
	{"ready", call_ready},
	{"result", call_result},
	{"cancel", call_cancel},
	{"__gc", call_cancel},
	{"__close", call_cancel},
	{NULL, NULL},
};

void lat_lua_setup_tool_calls(lua_State *L)
{
	luaL_newmetatable(L, CALL_TYPE);
	luaL_setfuncs(L, CALL_METHODS, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}
