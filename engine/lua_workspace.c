/* Bindings of workspaces: core.workspace, core.workspace_roots. A userdata holds its workspace, or set of
 * roots. On the thread of the lua_State. */
#include <errno.h>
#include <string.h>

#include "lua_core.h"
#include "lua_http.h"
#include "lua_workspace.h"
#include "workspace/file.h"

#define WORKSPACE_TYPE "lattice.workspace"
#define ROOTS_TYPE     "lattice.workspace_roots"

enum { ROOTS_MAX = 1000, SWEEP_MAX = 200 * 1000 /* entries; some 0.1 s */ };

/* ---- roots ---- */

typedef struct {
	lat_roots *roots; /* NULL until they are open */
} roots_box;

static unsigned get_access(lua_State *L, const char *what, int i)
{
	unsigned access = 0;
	if (lua_getfield(L, -1, "access") != LUA_TTABLE)
		luaL_error(L, "%s[%d].access: expected a list of \"read\" and \"write\"", what, i);
	for (lua_Integer k = 1; lua_rawgeti(L, -1, k) != LUA_TNIL; k++) {
		const char *one = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
		if (strcmp(one, "read") == 0)
			access |= LAT_ACCESS_READ;
		else if (strcmp(one, "write") == 0)
			access |= LAT_ACCESS_WRITE;
		else
			luaL_error(L, "%s[%d].access[%d]: expected \"read\" or \"write\"", what, i, (int)k);
		lua_pop(L, 1);
	}
	lua_pop(L, 2);
	return access;
}

/* The list at idx as specs, in a userdata that is pushed; their strings belong to the list. */
static lat_root_spec *get_specs(lua_State *L, int idx, const char *what, size_t *n)
{
	idx = lua_absindex(L, idx);
	*n = lua_rawlen(L, idx);
	if (*n > ROOTS_MAX)
		luaL_error(L, "%s: expected at most %d roots, got %I", what, ROOTS_MAX, (LUAI_UACINT)*n);
	lat_root_spec *specs = lua_newuserdatauv(L, (*n + 1) * sizeof *specs, 0);
	for (size_t i = 0; i < *n; i++) {
		size_t len = 0;
		int at = (int)i + 1;
		if (lua_rawgeti(L, idx, at) != LUA_TTABLE)
			luaL_error(L, "%s[%d]: expected {path =, access =}, got %s", what, at, luaL_typename(L, -1));
		if (lua_getfield(L, -1, "path") == LUA_TSTRING)
			specs[i].path = lua_tolstring(L, -1, &len);
		if (len == 0 || strlen(specs[i].path) != len)
			luaL_error(L, "%s[%d].path: expected a path without NUL bytes", what, at);
		lua_pop(L, 1);
		specs[i].access = get_access(L, what, at);
		lua_pop(L, 1);
	}
	return specs;
}

static roots_box *new_roots_box(lua_State *L)
{
	roots_box *box = lua_newuserdatauv(L, sizeof *box, 0);
	box->roots = NULL;
	luaL_setmetatable(L, ROOTS_TYPE);
	return box;
}

/* A failure to open: out of memory is raised, the rest is the world's. */
static int not_opened(lua_State *L, const lat_error *err)
{
	return err->kind == LAT_E_NOMEM ? lat_lua_raise(L, err) : lat_lua_nil_error(L, err);
}

/* workspace_roots{{path =, access = {"read", "write"}}, …} → roots | nil, message */
static int core_workspace_roots(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	size_t n;
	const lat_root_spec *specs = get_specs(L, 1, "workspace_roots", &n);
	roots_box *box = new_roots_box(L);
	lat_error err;
	box->roots = lat_roots_open(specs, n, &err);
	return box->roots ? 1 : not_opened(L, &err);
}

static int roots_gc(lua_State *L)
{
	roots_box *box = luaL_checkudata(L, 1, ROOTS_TYPE);
	lat_roots_free(box->roots);
	box->roots = NULL;
	return 0;
}

static void push_roots(lua_State *L, const lat_roots *roots)
{
	lua_createtable(L, (int)roots->n, 0);
	for (size_t i = 0; i < roots->n; i++) {
		const lat_root *root = &roots->root[i];
		lua_Integer k = 0;
		lua_createtable(L, 0, 2);
		lua_pushstring(L, root->path);
		lua_setfield(L, -2, "path");
		lua_createtable(L, 2, 0);
		if (root->access & LAT_ACCESS_READ) {
			lua_pushliteral(L, "read");
			lua_rawseti(L, -2, ++k);
		}
		if (root->access & LAT_ACCESS_WRITE) {
			lua_pushliteral(L, "write");
			lua_rawseti(L, -2, ++k);
		}
		lua_setfield(L, -2, "access");
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
}

/* roots:list() → {{path =, access =}, …}, paths absolute and without links */
static int roots_list(lua_State *L)
{
	const roots_box *box = luaL_checkudata(L, 1, ROOTS_TYPE);
	luaL_argcheck(L, box->roots, 1, "these roots are closed");
	push_roots(L, box->roots);
	return 1;
}

const lat_roots *lat_lua_opt_roots(lua_State *L, int idx)
{
	if (lua_isnoneornil(L, idx))
		return NULL;
	return ((roots_box *)luaL_checkudata(L, idx, ROOTS_TYPE))->roots;
}

/* ---- the workspace ---- */

typedef struct {
	lat_workspace *ws; /* NULL until it is made */
} workspace_box;

lat_workspace *lat_lua_check_workspace(lua_State *L, int idx)
{
	workspace_box *box = luaL_checkudata(L, idx, WORKSPACE_TYPE);
	luaL_argcheck(L, box->ws, idx, "this workspace is closed");
	return box->ws;
}

static lat_workspace *check_workspace(lua_State *L)
{
	return lat_lua_check_workspace(L, 1);
}

/* workspace{cwd =, roots = {{path =, access = {"read", "write"}}, …}, fallback = boolean?} → ws | nil, message.
 * With fallback, openat2 is never used. What a killed process left half written beneath the roots is removed. */
static int core_workspace(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	size_t len = 0;
	lat_workspace_options options = {
		.cwd = lat_lua_opt_string(L, 1, "workspace", "cwd", &len),
		.walk = lat_lua_opt_boolean(L, 1, "workspace", "fallback", false),
	};
	if (len == 0 || strlen(options.cwd) != len)
		return luaL_error(L, "workspace: cwd: expected a path without NUL bytes");
	if (lua_getfield(L, 1, "roots") != LUA_TTABLE)
		return luaL_error(L, "workspace: roots: expected a list, got %s", luaL_typename(L, -1));
	options.roots = get_specs(L, 2, "workspace: roots", &options.n_roots);
	workspace_box *box = lua_newuserdatauv(L, sizeof *box, 0);
	box->ws = NULL;
	luaL_setmetatable(L, WORKSPACE_TYPE);
	lat_error err;
	box->ws = lat_workspace_new(&options, &err);
	if (!box->ws)
		return not_opened(L, &err);
	lat_file_sweep(lat_workspace_roots(box->ws), SWEEP_MAX);
	return 1;
}

static int workspace_gc(lua_State *L)
{
	workspace_box *box = luaL_checkudata(L, 1, WORKSPACE_TYPE);
	lat_workspace_free(box->ws);
	box->ws = NULL;
	return 0;
}

/* ws:cwd() → string */
static int workspace_cwd(lua_State *L)
{
	lua_pushstring(L, lat_workspace_cwd(check_workspace(L)));
	return 1;
}

/* ws:roots() → {{path =, access =}, …} */
static int workspace_roots(lua_State *L)
{
	push_roots(L, lat_workspace_roots(check_workspace(L)));
	return 1;
}

/* ws:canonical(path, grants?) → string, denied: the one name of what the path means, absolute and without links;
 * denied: no root allows it, then the name is the path itself, absolute. nil for what can't be a path. */
static int workspace_canonical(lua_State *L)
{
	const lat_workspace *ws = check_workspace(L);
	size_t len;
	const char *path = luaL_checklstring(L, 2, &len);
	char out[LAT_PATH_MAX];
	int failure = lat_workspace_canonical(ws, lat_lua_opt_roots(L, 3), path, len, out);
	if (out[0])
		lua_pushstring(L, out);
	else
		lua_pushnil(L);
	lua_pushboolean(L, failure == EXDEV);
	return 2;
}

static const luaL_Reg WORKSPACE_METHODS[] = {
	{"cwd", workspace_cwd},        {"roots", workspace_roots}, {"canonical", workspace_canonical},
	{"start", lat_lua_start_tool}, {"__gc", workspace_gc},     {NULL, NULL},
};

static const luaL_Reg ROOTS_METHODS[] = {
	{"list", roots_list},
	{"__gc", roots_gc},
	{NULL, NULL},
};

static void new_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
	luaL_newmetatable(L, name);
	luaL_setfuncs(L, methods, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

void lat_lua_open_workspace(lua_State *L)
{
	new_type(L, ROOTS_TYPE, ROOTS_METHODS);
	new_type(L, WORKSPACE_TYPE, WORKSPACE_METHODS);
	lat_lua_setup_tool_calls(L);
	lua_pushcfunction(L, core_workspace_roots);
	lua_setfield(L, -2, "workspace_roots");
	lua_pushcfunction(L, core_workspace);
	lua_setfield(L, -2, "workspace");
}
