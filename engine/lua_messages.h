/* What other bindings need of messages and histories. On the thread of the lua_State. */
#ifndef LAT_LUA_MESSAGES_H
#define LAT_LUA_MESSAGES_H

#include <lauxlib.h>
#include <lua.h>

#include "messages/history.h"

/* Pushes an empty message userdata; put the lat_message into *slot at once: from then on Lua frees it. */
lat_message **lat_lua_new_message(lua_State *L);

/* The message, the history of a userdata argument. Raise when it is none. */
const lat_message *lat_lua_check_message(lua_State *L, int idx);
lat_history *lat_lua_check_history(lua_State *L, int idx);

/* Memory that is needed while Lua may raise: a userdata owns it. Push it first, fill it, and drop it (from
 * its place on the stack, which may be relative) when all is done; after a raise the collector frees it. */
typedef struct {
	lat_buf text;
	lat_arena arena;
} lat_lua_scratch;

lat_lua_scratch *lat_lua_push_scratch(lua_State *L);
void lat_lua_drop_scratch(lua_State *L, int idx);
/* Reads the JSON text in the scratch and pushes it as Lua data. Raises when it isn't JSON, or memory ran
 * out. */
void lat_lua_push_scratch_json(lua_State *L, lat_lua_scratch *scratch);

void lat_lua_open_history(lua_State *L); /* called by lat_lua_open_messages */

/* Makes a type of userdata: a metatable with methods. */
void lat_lua_register_type(lua_State *L, const char *name, const luaL_Reg *methods);

#endif
