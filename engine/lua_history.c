/* Bindings of histories: core.history, core.history_from_json. A history is owned by its userdata; a
 * request in flight holds bytes of it, not the history. */
#include "lua_core.h"
#include "lua_messages.h"

#define HISTORY_TYPE "lattice.history"

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

static lat_history **push_history(lua_State *L)
{
	lat_history **slot = lua_newuserdatauv(L, sizeof *slot, 0);
	*slot = NULL;
	luaL_setmetatable(L, HISTORY_TYPE);
	return slot;
}

static int raise_if(lua_State *L, lat_status status, const lat_error *err)
{
	return status == LAT_OK ? 0 : lat_lua_raise(L, err);
}

/* history() → an empty one */
static int core_history(lua_State *L)
{
	lat_history **slot = push_history(L);
	lat_error err;
	*slot = lat_history_new(&err);
	return *slot ? 1 : lat_lua_raise(L, &err);
}

/* history_from_json(text) → history, mended; or nil and what is wrong. The text is an array of messages. */
static int core_history_from_json(lua_State *L)
{
	size_t len;
	const char *text = luaL_checklstring(L, 1, &len);
	lat_history **slot = push_history(L);
	lat_error err;
	*slot = lat_history_from_json(text, len, &err);
	if (*slot)
		return 1;
	return err.kind == LAT_E_NOMEM ? lat_lua_raise(L, &err) : lat_lua_nil_error(L, &err);
}

/* h:add_user(blocks): content blocks as JSON, joined by commas; raises when they don't fit */
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
	return raise_if(L, lat_history_add_assistant(h, lat_lua_check_message(L, 2), &err), &err);
}

/* h:close_calls(text): a result with is_error for each open call */
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

/* h:json() → the messages, joined by commas */
static int history_json(lua_State *L)
{
	const lat_history *h = lat_lua_check_history(L, 1);
	lat_lua_scratch *s = lat_lua_push_scratch(L);
	lat_history_write(h, &s->text);
	if (!lat_buf_ok(&s->text))
		return luaL_error(L, "not enough memory");
	lua_pushlstring(L, s->text.len > 0 ? s->text.data : "", s->text.len);
	lat_lua_drop_scratch(L, -2);
	return 1;
}

/* h:messages() → a copy as Lua data */
static int history_messages(lua_State *L)
{
	const lat_history *h = lat_lua_check_history(L, 1);
	lat_lua_scratch *s = lat_lua_push_scratch(L);
	lat_buf_reserve(&s->text, lat_history_len(h) + sizeof LAT_HISTORY_CLOSE + 2);
	lat_buf_byte(&s->text, '[');
	lat_history_write(h, &s->text);
	lat_buf_byte(&s->text, ']');
	lat_lua_push_scratch_json(L, s);
	lat_lua_drop_scratch(L, -2);
	return 1;
}

/* h:open_calls() → {{id, name}, …} */
static int history_open_calls(lua_State *L)
{
	const lat_history *h = lat_lua_check_history(L, 1);
	size_t n = lat_history_open_calls(h);
	lua_createtable(L, (int)n, 0);
	for (size_t i = 0; i < n; i++) {
		lat_span id, name;
		lat_history_open_call(h, i, &id, &name);
		lua_createtable(L, 0, 2);
		lua_pushlstring(L, id.s, id.len);
		lua_setfield(L, -2, "id");
		lua_pushlstring(L, name.s, name.len);
		lua_setfield(L, -2, "name");
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	return 1;
}

/* h:truncate(n): keeps the first n messages; calls of the last one are open then */
static int history_truncate(lua_State *L)
{
	lat_history *h = lat_lua_check_history(L, 1);
	lua_Integer n = luaL_checkinteger(L, 2);
	luaL_argcheck(L, n >= 0, 2, "expected a number of messages");
	lat_error err;
	return raise_if(L, lat_history_truncate(h, (size_t)n, &err), &err);
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

static const luaL_Reg FUNCTIONS[] = {
	{"history", core_history},
	{"history_from_json", core_history_from_json},
	{NULL, NULL},
};

void lat_lua_open_history(lua_State *L)
{
	lat_lua_register_type(L, HISTORY_TYPE, HISTORY_METHODS);
	luaL_setfuncs(L, FUNCTIONS, 0);
}
