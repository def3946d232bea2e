/* The pool of threads of a lua_State, for bindings that hand jobs to it. Runs on the thread of its lua_State. */
#ifndef LAT_LUA_THREADS_H
#define LAT_LUA_THREADS_H

#include <lua.h>

#include "scheduler/threads.h"

/* The pool of this state, as many threads as cores, made at the first call and kept in the registry. It is closed
 * when the state closes (jobs still hold its memory). Raises when it can't be made, and when the state is closing. */
lat_threads *lat_lua_threads(lua_State *L);

/* Pushes a userdata that owns a pool of its own (threads 0: as many as cores). Raises when it can't be made. */
lat_threads *lat_lua_new_threads(lua_State *L, size_t threads);

/* The pool that the userdata at idx owns. Raises when it is closed. */
lat_threads *lat_lua_to_threads(lua_State *L, int idx);

#endif
