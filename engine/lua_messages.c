/* Bindings of messages: core.message_from_json, and the message userdata that it and exchanges give out.
 *
 * A message is owned by its userdata. Texts on their way to Lua pass through a scratch, which a userdata
 * owns too, so that a raise leaks nothing. */
#include "lua_messages.h"

#include "lua_core.h"
#include "json/read.h"

#define MESSAGE_TYPE "lattice.message"
#define SCRATCH_TYPE "lattice.messages.scratch"

/* ---- scratch ---- */

static void scratch_free(lat_lua_scratch *s)
{
	lat_buf_free(&s->text);
	lat_arena_free(&s->arena);
}

static int scratch_gc(lua_State *L)
{
	scratch_free(luaL_checkudata(L, 1, SCRATCH_TYPE));
	return 0;
}

lat_lua_scratch *lat_lua_push_scratch(lua_State *L)
{
	lat_lua_scratch *s = lua_newuserdatauv(L, sizeof *s, 0);
	*s = (lat_lua_scratch){LAT_BUF_INIT, LAT_ARENA_INIT};
	luaL_setmetatable(L, SCRATCH_TYPE);
	return s;
}

void lat_lua_drop_scratch(lua_State *L, int idx)
{
	scratch_free(lua_touserdata(L, idx));
	lua_remove(L, idx);
}

void lat_lua_push_scratch_json(lua_State *L, lat_lua_scratch *s)
{
	lat_error err;
	lat_value v;
	lat_json_options options = {.max_bytes = SIZE_MAX};
	lat_status status = lat_buf_ok(&s->text) ? LAT_OK : lat_fail_nomem(&err);
	if (status == LAT_OK)
		status = lat_json_read(&s->arena, s->text.data, s->text.len, &options, &v, &err);
	if (status != LAT_OK)
		lat_lua_raise(L, &err);
	lat_lua_push_value(L, &v);
}

/* ---- messages ---- */

lat_message **lat_lua_new_message(lua_State *L)
{
	lat_message **slot = lua_newuserdatauv(L, sizeof *slot, 0);
	*slot = NULL;
	luaL_setmetatable(L, MESSAGE_TYPE);
	return slot;
}

const lat_message *lat_lua_check_message(lua_State *L, int idx)
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

/* m:table() → {role, content, model, stop_reason, stop_sequence, usage, provider_response_id} */
static int message_table(lua_State *L)
{
	const lat_message *m = lat_lua_check_message(L, 1);
	lat_lua_scratch *s = lat_lua_push_scratch(L);
	lat_message_write(m, &s->text);
	lat_lua_push_scratch_json(L, s);
	lat_lua_drop_scratch(L, -2);
	return 1;
}

/* m:json() → {"role":"assistant","content":[…]}: the message as it is sent back */
static int message_json(lua_State *L)
{
	const lat_message *m = lat_lua_check_message(L, 1);
	lat_lua_scratch *s = lat_lua_push_scratch(L);
	lat_message_write_wire(m, &s->text);
	if (!lat_buf_ok(&s->text))
		return luaL_error(L, "not enough memory");
	lua_pushlstring(L, s->text.data, s->text.len);
	lat_lua_drop_scratch(L, -2);
	return 1;
}

static int push_span(lua_State *L, lat_span s)
{
	if (s.s)
		lua_pushlstring(L, s.s, s.len);
	else
		lua_pushnil(L);
	return 1;
}

static void set_span(lua_State *L, const char *key, lat_span s)
{
	push_span(L, s);
	lua_setfield(L, -2, key);
}

static void push_call(lua_State *L, const lat_block *b)
{
	lua_createtable(L, 0, 5);
	set_span(L, "id", b->id);
	set_span(L, "name", b->name);
	set_span(L, "input_json", b->input);
	set_span(L, "problem", b->problem);
	lua_pushboolean(L, b->complete);
	lua_setfield(L, -2, "complete");
}

/* m:calls() → {{id, name, input_json, complete, problem?}, …}: what is ours to run, in order. `problem`
 * says why an input isn't complete. */
static int message_calls(lua_State *L)
{
	const lat_message *m = lat_lua_check_message(L, 1);
	lua_Integer n = 0;
	lua_newtable(L);
	for (size_t i = 0; i < m->count; i++) {
		if (m->blocks[i].is_call) {
			push_call(L, &m->blocks[i]);
			lua_rawseti(L, -2, ++n);
		}
	}
	return 1;
}

/* m:usage() → the provider's usage object as a table, empty when there was none */
static int message_usage(lua_State *L)
{
	const lat_message *m = lat_lua_check_message(L, 1);
	lat_lua_scratch *s = lat_lua_push_scratch(L);
	if (m->usage_json.len > 0)
		lat_buf_append(&s->text, m->usage_json.data, m->usage_json.len);
	else
		lat_buf_str(&s->text, "{}");
	lat_lua_push_scratch_json(L, s);
	lat_lua_drop_scratch(L, -2);
	return 1;
}

/* Pushes the text of one text block. Strings without escapes are views: nothing is copied but to Lua. */
static void push_block_text(lua_State *L, lat_lua_scratch *s, lat_span block)
{
	lat_error err;
	lat_value v;
	lat_json_options options = {.max_bytes = SIZE_MAX};
	if (lat_json_read(&s->arena, block.s, block.len, &options, &v, &err) != LAT_OK)
		lat_lua_raise(L, &err);
	const lat_value *text = lat_value_get(&v, "text");
	if (text && text->type == LAT_STRING)
		lua_pushlstring(L, text->u.s, text->len);
	else
		lua_pushliteral(L, "");
}

/* m:text() → the text blocks, one after the other */
static int message_text(lua_State *L)
{
	const lat_message *m = lat_lua_check_message(L, 1);
	lat_lua_scratch *s = lat_lua_push_scratch(L);
	int scratch = lua_gettop(L);
	lua_pushliteral(L, "");
	for (size_t i = 0; i < m->count; i++) {
		if (lat_span_is(m->blocks[i].type, "text")) {
			push_block_text(L, s, lat_message_block(m, i));
			lua_concat(L, 2);
		}
	}
	lat_lua_drop_scratch(L, scratch);
	return 1;
}

static int message_stop_reason(lua_State *L)
{
	return push_span(L, lat_lua_check_message(L, 1)->stop_reason);
}

static int message_model(lua_State *L)
{
	return push_span(L, lat_lua_check_message(L, 1)->model);
}

/* message_from_json(text) → message, or nil and what is wrong */
static int core_message_from_json(lua_State *L)
{
	size_t len;
	const char *text = luaL_checklstring(L, 1, &len);
	lat_message **slot = lat_lua_new_message(L);
	lat_error err;
	*slot = lat_message_from_json(text, len, &err);
	if (*slot)
		return 1;
	return err.kind == LAT_E_NOMEM ? lat_lua_raise(L, &err) : lat_lua_nil_error(L, &err);
}

static const luaL_Reg MESSAGE_METHODS[] = {
	{"table", message_table}, {"json", message_json}, {"calls", message_calls},
	{"usage", message_usage}, {"text", message_text}, {"stop_reason", message_stop_reason},
	{"model", message_model}, {"__gc", message_gc},   {NULL, NULL},
};

static const luaL_Reg SCRATCH_METHODS[] = {{"__gc", scratch_gc}, {NULL, NULL}};

static const luaL_Reg FUNCTIONS[] = {{"message_from_json", core_message_from_json}, {NULL, NULL}};

void lat_lua_register_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
	luaL_newmetatable(L, name);
	luaL_setfuncs(L, methods, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

void lat_lua_open_messages(lua_State *L)
{
	lat_lua_register_type(L, MESSAGE_TYPE, MESSAGE_METHODS);
	lat_lua_register_type(L, SCRATCH_TYPE, SCRATCH_METHODS);
	luaL_setfuncs(L, FUNCTIONS, 0);
	lat_lua_open_history(L);
}
