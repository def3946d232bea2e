/* Flags as Lua sees them. Runs on the thread of its lua_State only; the flag itself is shared among threads. */
#ifndef LAT_LUA_FLAG_H
#define LAT_LUA_FLAG_H

#include <lua.h>

#include "scheduler/flag.h"

/* Pushes a userdata that holds f too. */
void lat_lua_push_flag(lua_State *L, lat_flag *f);
/* The flag of the userdata at idx, its own: NULL when it is something else. */
lat_flag *lat_lua_to_flag(lua_State *L, int idx);

#endif
