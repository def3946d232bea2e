/* What the bindings of HTTP and of exchanges share. Runs on the thread of its lua_State only. */
#ifndef LAT_LUA_HTTP_H
#define LAT_LUA_HTTP_H

#include <lua.h>
#include <stdbool.h>

#include "transport/http.h"

/* The one pool of connections of this state, made at the first call. Raises when it can't be made. */
lat_pool *lat_lua_pool(lua_State *L);

/* Fields of the options table at idx; a value of another type raises "<what>: <name>: expected …".
 * A string's bytes belong to the table. */
const char *lat_lua_opt_string(lua_State *L, int idx, const char *what, const char *name, size_t *len);
bool lat_lua_opt_boolean(lua_State *L, int idx, const char *what, const char *name, bool missing);
int64_t lat_lua_opt_ms(lua_State *L, int idx, const char *what, const char *name); /* as ns; 0: not there */
size_t lat_lua_opt_bytes(lua_State *L, int idx, const char *what, const char *name, size_t missing);

/* Option headers = {{name, value, secret = true?}, …}: pushes a block of memory that holds the array (nil
 * when there is none); its strings belong to the table. */
const lat_header *lat_lua_opt_headers(lua_State *L, int idx, const char *what, size_t *n);

/* "timeout", "abort", "limit", "invalid" or "io". */
const char *lat_lua_error_kind(const lat_error *err);

#endif
