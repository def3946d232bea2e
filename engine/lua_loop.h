/* The one loop of a lua_State, for the other bindings. Runs on the thread of its lua_State only. */
#ifndef LAT_LUA_LOOP_H
#define LAT_LUA_LOOP_H

#include <lua.h>
#include <stdint.h>

#include "scheduler/loop.h"

/* The loop of this state, made at the first call and kept in the registry. It is let go when the state
 * closes; ops hold it themselves. Raises when it can't be made, and in finalizers: what is made in one
 * while the state closes is never collected. */
lat_loop *lat_lua_loop(lua_State *L);

/* That last check alone. */
void lat_lua_refuse_in_finalizer(lua_State *L);

/* The argument as nanoseconds, rounded up. Raises unless it is a number of milliseconds >= 0. */
int64_t lat_lua_check_ms(lua_State *L, int arg);

#endif
