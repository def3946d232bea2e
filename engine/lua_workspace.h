/* Workspaces and sets of roots that come from Lua, for other bindings. Runs on the thread of its lua_State. */
#ifndef LAT_LUA_WORKSPACE_H
#define LAT_LUA_WORKSPACE_H

#include <lua.h>

#include "workspace/workspace.h"

/* What the userdata at idx holds; raises where it isn't one. */
lat_workspace *lat_lua_check_workspace(lua_State *L, int idx);
const lat_roots *lat_lua_opt_roots(lua_State *L, int idx); /* NULL: nothing, or nil */

/* The method of a workspace that starts a tool (lua_tool_call.c), and the type of its op, made once a state. */
int lat_lua_start_tool(lua_State *L);
void lat_lua_setup_tool_calls(lua_State *L);

#endif
