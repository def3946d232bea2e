/* Bindings of private folders and of what the kernel can do: core.private_folder, core.features. A userdata
 * owns its folder, which is removed when it is collected. On the thread of the lua_State. */
#include <string.h>

#include "lua_core.h"
#include "lua_http.h"
#include "workspace/features.h"
#include "workspace/folder.h"
#include "workspace/landlock.h"
#include "workspace/workspace.h"

#define FOLDER_TYPE "lattice.private_folder"

typedef struct {
	lat_folder *folder; /* NULL before it is made and after it was removed */
} folder_box;

/* private_folder{path = string?, keep = boolean?} → folder | nil, message */
static int core_private_folder(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	size_t len = 0;
	const char *path = lat_lua_opt_string(L, 1, "private_folder", "path", &len);
	bool keep = lat_lua_opt_boolean(L, 1, "private_folder", "keep", false);
	if (path && (len == 0 || strlen(path) != len))
		return luaL_error(L, "private_folder: path: expected a path without NUL bytes");
	folder_box *box = lua_newuserdatauv(L, sizeof *box, 0);
	box->folder = NULL;
	luaL_setmetatable(L, FOLDER_TYPE);
	lat_error err;
	box->folder = path ? lat_folder_at(path, keep, &err) : lat_folder_make(keep, &err);
	if (box->folder)
		return 1;
	return err.kind == LAT_E_NOMEM ? lat_lua_raise(L, &err) : lat_lua_nil_error(L, &err);
}

static lat_folder *check_folder(lua_State *L)
{
	folder_box *box = luaL_checkudata(L, 1, FOLDER_TYPE);
	luaL_argcheck(L, box->folder, 1, "this folder is gone");
	return box->folder;
}

/* folder:path() → string */
static int folder_path(lua_State *L)
{
	lua_pushstring(L, lat_folder_path(check_folder(L)));
	return 1;
}

/* folder:is_kept() → boolean */
static int folder_is_kept(lua_State *L)
{
	lua_pushboolean(L, lat_folder_is_kept(check_folder(L)));
	return 1;
}

/* folder:remove(): unless it is kept. Twice is fine. */
static int folder_remove(lua_State *L)
{
	folder_box *box = luaL_checkudata(L, 1, FOLDER_TYPE);
	lat_folder_free(box->folder);
	box->folder = NULL;
	return 0;
}

/* features() → {openat2 = boolean, landlock = ABI version or false, pcre2_jit = boolean} */
static int core_features(lua_State *L)
{
	int landlock = lat_landlock_abi();
	lua_createtable(L, 0, 3);
	lua_pushboolean(L, lat_workspace_has_openat2());
	lua_setfield(L, -2, "openat2");
	if (landlock)
		lua_pushinteger(L, landlock);
	else
		lua_pushboolean(L, false);
	lua_setfield(L, -2, "landlock");
	lua_pushboolean(L, lat_features_pcre2_jit());
	lua_setfield(L, -2, "pcre2_jit");
	return 1;
}

static const luaL_Reg METHODS[] = {
	{"path", folder_path},   {"is_kept", folder_is_kept}, {"remove", folder_remove},
	{"__gc", folder_remove}, {"__close", folder_remove},  {NULL, NULL},
};

void lat_lua_open_folder(lua_State *L)
{
	luaL_newmetatable(L, FOLDER_TYPE);
	luaL_setfuncs(L, METHODS, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, core_private_folder);
	lua_setfield(L, -2, "private_folder");
	lua_pushcfunction(L, core_features);
	lua_setfield(L, -2, "features");
}
