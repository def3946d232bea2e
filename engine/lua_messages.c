/* Bindings of messages and histories: core.history, core.history_from_json, core.message_from_json.
 *
 * A message and a history are owned by their userdata (a history also by exchanges that send it). Texts on their
 * way to Lua pass through a buffer that a userdata owns, so that a raise leaks nothing. */
#include "lua_messages.h"

#include "lua_core.h"
#include "json/read.h"

#define MESSAGE_TYPE "lattice.message"
#define HISTORY_TYPE "lattice.history"
#define SCRATCH_TYPE "lattice.messages_scratch"

/* Memory that is needed while Lua may raise. */
typedef struct {
	lat_buf text;
	lat_arena arena;
} scratch;

static int scratch_gc(lua_State *L)
{
	scratch *s = luaL_checkudata(L, 1, SCRATCH_TYPE);
	lat_buf_free(&s->text);
	lat_arena_free(&s->arena);
	return 0;
}

static scratch *push_scratch(lua_State *L)
{
	scratch *s = lua_newuserdatauv(L, sizeof *s, 0);
	*s = (scratch){LAT_BUF_INIT, LAT_ARENA_INIT};
	luaL_setmetatable(L, SCRATCH_TYPE);
	return s;
}

/* Frees at once what the collector would free later, and takes the userdata at idx off the stack. */
static void drop_scratch(lua_State *L, scratch *s, int idx)
{
	lat_buf_free(&s->text);
	lat_arena_free(&s->arena);
	lua_remove(L, idx);
}

/* Reads the JSON text in the scratch and pushes it as Lua data. */
static void push_json(lua_State *L, scratch *s)
{
	lat_error err;
	lat_value v;
	lat_status status = LAT_OK;
	if (!lat_buf_ok(&s->text))
		status = lat_fail_nomem(&err);
	lat_json_options options = {.max_bytes = SIZE_MAX};
	if (status == LAT_OK)
		status = lat_json_read(&s->arena, s->text.data, s->text.len, &options, &v, &err);
	if (status != LAT_OK)
		lat_lua_raise(L, &err);
	lat_lua_push_value(L, &v);
}

static int raise_if(lua_State *L, lat_status status, const lat_error *err)
{
	return status == LAT_OK ? 0 : lat_lua_raise(L, err);
}

/* ---- messages ---- */

lat_message **lat_lua_new_message(lua_State *L)
{
	lat_message **slot = lua_newuserdatauv(L, sizeof *slot, 0);
	*slot = NULL;
	luaL_setmetatable(L, MESSAGE_TYPE);
	return slot;
}

static lat_message *check_message(lua_State *L, int idx)
{
	lat_message **slot = luaL_checkudata(L, idx, MESSAGE_TYPE);
	luaL_argcheck(L, *slot, idx, "expected a whole message");
	return *slot;
}

static int message_gc(lua_State *L)
{
	lat_message **slot = luaL_checkudata(L, 1, MESSAGE_TYPE);
	lat_message_free(*slot);
	*slot = NULL;
	return 0;
}

/* m:table() → {role, content, model, stop_reason, usage, provider_response_id} */
static int message_table(lua_State *L)
{
	lat_message *m = check_message(L, 1);
	scratch *s = push_scratch(L);
	lat_message_json(m, &s->text);
	push_json(L, s);
	drop_scratch(L, s, -2);
	return 1;
}

/* m:json() → the message as it is sent back */
static int message_json(lua_State *L)
{
	lat_message *m = check_message(L, 1);
	scratch *s = push_scratch(L);
	lat_message_wire(m, &s->text);
	if (!lat_buf_ok(&s->text))
		return luaL_error(L, "not enough memory");
	lua_pushlstring(L, s->text.data, s->text.len);
	drop_scratch(L, s, -2);
	return 1;
}

static void push_call(lua_State *L, const lat_message *m, const lat_block *b)
{
	const char *strings = m->strings.data;
	lua_createtable(L, 0, 4);
	lua_pushlstring(L, strings + b->id_from, b->id_len);
	lua_setfield(L, -2, "id");
	lua_pushlstring(L, strings + b->name_from, b->name_len);
	lua_setfield(L, -2, "name");
	lua_pushlstring(L, strings + b->input_from, b->input_len);
	lua_setfield(L, -2, "input_json");
	lua_pushboolean(L, b->complete);
	lua_setfield(L, -2, "complete");
}

/* m:calls() → {{id, name, input_json, complete}, …}: what the host has to run, in order */
static int message_calls(lua_State *L)
{
	lat_message *m = check_message(L, 1);
	lua_Integer n = 0;
	lua_newtable(L);
	for (size_t i = 0; i < m->n_blocks; i++) {
		if (m->blocks[i].is_call) {
			push_call(L, m, &m->blocks[i]);
			lua_rawseti(L, -2, ++n);
		}
	}
	return 1;
}

/* m:usage() → the provider's usage object as a table */
static int message_usage(lua_State *L)
{
	lat_message *m = check_message(L, 1);
	scratch *s = push_scratch(L);
	if (m->usage.len)
		lat_buf_append(&s->text, m->usage.data, m->usage.len);
	else
		lat_buf_str(&s->text, "{}");
	push_json(L, s);
	drop_scratch(L, s, -2);
	return 1;
}

static int push_text(lua_State *L, const lat_buf *text)
{
	if (text->len)
		lua_pushlstring(L, text->data, text->len);
	else
		lua_pushnil(L);
	return 1;
}

static int message_stop_reason(lua_State *L)
{
	return push_text(L, &check_message(L, 1)->stop_reason);
}

static int message_model(lua_State *L)
{
	return push_text(L, &check_message(L, 1)->model);
}

/* message_from_json(text) → message, or nil and what is wrong */
static int core_message_from_json(lua_State *L)
{
	size_t len;
	const char *text = luaL_checklstring(L, 1, &len);
	lat_message **slot = lat_lua_new_message(L);
	*slot = lat_message_new();
	lat_error err;
	lat_status status = *slot ? lat_message_read(*slot, text, len, &err) : lat_fail_nomem(&err);
	if (status == LAT_E_NOMEM)
		return lat_lua_raise(L, &err);
	return status == LAT_OK ? 1 : lat_lua_nil_error(L, &err);
}

static const luaL_Reg MESSAGE_METHODS[] = {
	{"table", message_table},
	{"json", message_json},
	{"calls", message_calls},
	{"usage", message_usage},
	{"stop_reason", message_stop_reason},
	{"model", message_model},
	{"__gc", message_gc},
	{NULL, NULL},
};

/* ---- histories ---- */

lat_history *lat_lua_check_history(lua_State *L, int idx)
{
	lat_history **slot = luaL_checkudata(L, idx, HISTORY_TYPE);
	luaL_argcheck(L, *slot, idx, "expected a history that is alive");
	return *slot;
}

static int history_gc(lua_State *L)
{
	lat_history **slot = luaL_checkudata(L, 1, HISTORY_TYPE);
	lat_history_free(*slot);
	*slot = NULL;
	return 0;
}

/* history() → an empty one */
static int core_history(lua_State *L)
{
	lat_history **slot = lua_newuserdatauv(L, sizeof *slot, 0);
	*slot = NULL;
	luaL_setmetatable(L, HISTORY_TYPE);
	*slot = lat_history_new();
	if (!*slot)
		return luaL_error(L, "not enough memory");
	return 1;
}

/* history_from_json(text) → history, mended; or nil and what is wrong */
static int core_history_from_json(lua_State *L)
{
	size_t len;
	const char *text = luaL_checklstring(L, 1, &len);
	core_history(L);
	lat_error err;
	lat_status status = lat_history_load(lat_lua_check_history(L, -1), text, len, &err);
	if (status == LAT_E_NOMEM)
		return lat_lua_raise(L, &err);
	return status == LAT_OK ? 1 : lat_lua_nil_error(L, &err);
}

/* h:add_user(blocks): comma-joined JSON of content blocks */
static int history_add_user(lua_State *L)
{
	lat_history *h = lat_lua_check_history(L, 1);
	size_t len;
	const char *blocks = luaL_checklstring(L, 2, &len);
	lat_error err;
	return raise_if(L, lat_history_add_user(h, blocks, len, &err), &err);
}

static int history_add_assistant(lua_State *L)
{
	lat_history *h = lat_lua_check_history(L, 1);
	lat_error err;
	return raise_if(L, lat_history_add_assistant(h, check_message(L, 2), &err), &err);
}

/* h:close_calls(text): an is_error result for each open call */
static int history_close_calls(lua_State *L)
{
	lat_history *h = lat_lua_check_history(L, 1);
	size_t len;
	const char *text = luaL_checklstring(L, 2, &len);
	lat_error err;
	return raise_if(L, lat_history_close_calls(h, text, len, &err), &err);
}

static int history_count(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)lat_history_count(lat_lua_check_history(L, 1)));
	return 1;
}

/* h:json() → the messages, comma-joined */
static int history_json(lua_State *L)
{
	lat_slice bytes = lat_history_bytes(lat_lua_check_history(L, 1));
	lua_pushlstring(L, bytes.len ? bytes.s : "", bytes.len);
	return 1;
}

/* h:messages() → a copy as Lua data */
static int history_messages(lua_State *L)
{
	lat_slice bytes = lat_history_bytes(lat_lua_check_history(L, 1));
	scratch *s = push_scratch(L);
	lat_buf_byte(&s->text, '[');
	lat_buf_append(&s->text, bytes.s, bytes.len);
	lat_buf_byte(&s->text, ']');
	push_json(L, s);
	drop_scratch(L, s, -2);
	return 1;
}

/* h:open_calls() → {{id, name}, …} */
static int history_open_calls(lua_State *L)
{
	lat_history *h = lat_lua_check_history(L, 1);
	size_t n = lat_history_open_calls(h);
	lua_createtable(L, (int)n, 0);
	for (size_t i = 0; i < n; i++) {
		lat_slice id = lat_history_open_id(h, i), name = lat_history_open_name(h, i);
		lua_createtable(L, 0, 2);
		lua_pushlstring(L, id.s, id.len);
		lua_setfield(L, -2, "id");
		lua_pushlstring(L, name.s, name.len);
		lua_setfield(L, -2, "name");
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	return 1;
}

static int history_truncate(lua_State *L)
{
	lat_history *h = lat_lua_check_history(L, 1);
	lua_Integer n = luaL_checkinteger(L, 2);
	luaL_argcheck(L, n >= 0, 2, "expected a number of messages");
	lat_history_truncate(h, (size_t)n);
	return 0;
}

static const luaL_Reg HISTORY_METHODS[] = {
	{"add_user", history_add_user},
	{"add_assistant", history_add_assistant},
	{"close_calls", history_close_calls},
	{"count", history_count},
	{"json", history_json},
	{"messages", history_messages},
	{"open_calls", history_open_calls},
	{"truncate", history_truncate},
	{"__gc", history_gc},
	{NULL, NULL},
};

static const luaL_Reg SCRATCH_METHODS[] = {{"__gc", scratch_gc}, {NULL, NULL}};

static const luaL_Reg FUNCTIONS[] = {
	{"history", core_history},
	{"history_from_json", core_history_from_json},
	{"message_from_json", core_message_from_json},
	{NULL, NULL},
};

static void register_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
	luaL_newmetatable(L, name);
	luaL_setfuncs(L, methods, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

void lat_lua_open_messages(lua_State *L)
{
	register_type(L, MESSAGE_TYPE, MESSAGE_METHODS);
	register_type(L, HISTORY_TYPE, HISTORY_METHODS);
	register_type(L, SCRATCH_TYPE, SCRATCH_METHODS);
	luaL_setfuncs(L, FUNCTIONS, 0);
}
