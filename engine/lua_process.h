/* The child processes of a lua_State, for bindings that start some. Runs on the thread of its lua_State. */
#ifndef LAT_LUA_PROCESS_H
#define LAT_LUA_PROCESS_H

#include <lua.h>

#include "scheduler/process.h"

/* Made at the first call and kept in the registry; closed when the state closes. Raises when they can't be made, and
 * when the state is closing. */
lat_processes *lat_lua_processes(lua_State *L);

#endif
