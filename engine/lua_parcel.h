/* Lua values in and out of a parcel. Runs on the thread of its lua_State only.
 *
 * What crosses: nil, booleans, integers, floats, strings (any bytes), lattice.null, flags, and tables of these
 * that have no metatable or the array mark; tables that are shared or in a cycle come out shared and in a cycle.
 * Keys and values are raw. */
#ifndef LAT_LUA_PARCEL_H
#define LAT_LUA_PARCEL_H

#include <lua.h>

#include "scheduler/parcel.h"

enum { LAT_LUA_PARCEL_MAX_DEPTH = 2000 };

/* Pushes what packing must remember (tables met so far) and returns its place: one for all values of a parcel. */
int lat_lua_begin_pack(lua_State *L);
/* Adds the value at idx. Raises "<what>.items[3].f: a function can't cross to another thread<cure>", and when
 * memory runs out; the parcel's owner must be safe from a raise. */
void lat_lua_pack(lua_State *L, int seen, int idx, lat_parcel *p, const char *what, const char *cure);

/* Pushes every value of the parcel and returns how many. Raises when memory runs out. */
int lat_lua_unpack(lua_State *L, const lat_parcel *p);

#endif
