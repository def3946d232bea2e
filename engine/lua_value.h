/* Metatables that say what a table means as JSON (private to the bindings). */
#ifndef LAT_LUA_VALUE_H
#define LAT_LUA_VALUE_H

#include <lua.h>

#include "base/error.h"
#include "base/value.h"

/* Makes both metatables, once a state; before anything else here. */
void lat_lua_value_setup(lua_State *L);

/* Each pushes one value and can't raise; the caller sees to the stack's room. */
void lat_lua_push_array_mt(lua_State *L);   /* of a table that is an array, empty or not */
void lat_lua_push_ordered_mt(lua_State *L); /* of an array of {key, value} that is an object in that order */
void lat_lua_push_pairs_key(lua_State *L);  /* the string "__pairs" */

#endif
