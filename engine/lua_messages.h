/* What other bindings need of messages and histories. On the thread of the lua_State. */
#ifndef LAT_LUA_MESSAGES_H
#define LAT_LUA_MESSAGES_H

#include <lua.h>

#include "messages/history.h"

/* Pushes an empty message userdata; put the lat_message into *slot at once: from then on Lua frees it. */
lat_message **lat_lua_new_message(lua_State *L);

/* The history of a userdata argument. Raises when it is none. */
lat_history *lat_lua_check_history(lua_State *L, int idx);

#endif
