/* What the binding files share: one function each that adds its functions to the table of `lattice.core`.
 *
 * Bindings run on the thread of their lua_State only. A C resource is always owned by a full userdata with
 * __gc (made before the resource), so that a raise can't leak it. */
#ifndef LAT_LUA_CORE_H
#define LAT_LUA_CORE_H

#include <lauxlib.h>
#include <lua.h>

#include "base/error.h"
#include "base/value.h"

/* The module, also for Lua states that the engine makes. */
__attribute__((visibility("default"))) int luaopen_lattice_core(lua_State *L);

/* Each expects the core table on top of the stack, and leaves it there. */
void lat_lua_open_json(lua_State *L);
void lat_lua_open_schema(lua_State *L);
void lat_lua_open_loop(lua_State *L);
void lat_lua_open_batch(lua_State *L);
void lat_lua_open_process(lua_State *L);
void lat_lua_open_flag(lua_State *L);
void lat_lua_open_worker(lua_State *L);
void lat_lua_open_trace(lua_State *L);
void lat_lua_open_http(lua_State *L);
void lat_lua_open_messages(lua_State *L);
void lat_lua_open_exchange(lua_State *L);
void lat_lua_open_sigint(lua_State *L);
void lat_lua_open_folder(lua_State *L);
void lat_lua_open_sqlite(lua_State *L);
void lat_lua_open_postgres(lua_State *L);
void lat_lua_open_workspace(lua_State *L);
void lat_lua_open_bash(lua_State *L);
void lat_lua_open_random(lua_State *L);

/* ---- shared by bindings (lua_value.c) ---- */

/* Raises err as a Lua error (a string, with the path where there is one). Never returns. */
int lat_lua_raise(lua_State *L, const lat_error *err);
/* nil, message: for what the world does, not the caller. Returns 2. */
int lat_lua_nil_error(lua_State *L, const lat_error *err);
/* Pushes a tree as Lua data: null is lattice.null, arrays carry the array metatable. May raise on memory. */
void lat_lua_push_value(lua_State *L, const lat_value *v);
/* Builds a tree of the Lua value at idx; strings are views into Lua's: keep the value on the stack meanwhile.
 * Never raises and runs no Lua code; err names the path. An empty table without a mark gets LAT_V_EITHER. */
lat_status lat_lua_to_value(lua_State *L, int idx, lat_arena *arena, lat_value *out, lat_error *err);

#endif
