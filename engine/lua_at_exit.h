/* What a lua_State must still do when the process exits. Runs on the thread of its lua_State only. */
#ifndef LAT_LUA_AT_EXIT_H
#define LAT_LUA_AT_EXIT_H

#include <lua.h>

#include "scheduler/at_exit.h"

/* The list of this state, made at the first call and kept in the registry. Raises when it can't be made, and when
 * the state is closing. */
lat_at_exit *lat_lua_at_exit(lua_State *L);

#endif
