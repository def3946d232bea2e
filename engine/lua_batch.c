/* Bindings of the batch plan: core.batch. The plan is owned by its userdata. */
#include "lua_core.h"
#include "scheduler/batch.h"

#define BATCH_TYPE "lattice.batch"

typedef struct {
	lat_batch *plan; /* NULL until it is made */
} batch_box;

typedef lat_status (*add_name)(lat_batch *b, size_t i, const char *name, size_t len, lat_error *err);

static lat_batch *check_batch(lua_State *L)
{
	batch_box *box = luaL_checkudata(L, 1, BATCH_TYPE);
	luaL_argcheck(L, box->plan, 1, "this batch is closed");
	return box->plan;
}

/* Also __close. */
static int batch_gc(lua_State *L)
{
	batch_box *box = luaL_checkudata(L, 1, BATCH_TYPE);
	lat_batch_free(box->plan);
	box->plan = NULL;
	return 0;
}

/* batch(n, max_concurrency) → plan of n calls, numbered from 1, of which at most max_concurrency run at once */
static int core_batch(lua_State *L)
{
	lua_Integer n = luaL_checkinteger(L, 1);
	lua_Integer max = luaL_checkinteger(L, 2);
	luaL_argcheck(L, n >= 0 && n <= LAT_BATCH_MAX_CALLS, 1, "expected 0 to 1048576 calls");
	luaL_argcheck(L, max >= 1, 2, "expected a positive integer");
	batch_box *box = lua_newuserdatauv(L, sizeof *box, 0);
	box->plan = NULL;
	luaL_setmetatable(L, BATCH_TYPE);
	lat_error err;
	box->plan = lat_batch_new((size_t)n, (size_t)max, &err);
	if (!box->plan)
		return lat_lua_raise(L, &err);
	return 1;
}

static size_t check_call(lua_State *L, const lat_batch *plan, int arg)
{
	lua_Integer i = luaL_checkinteger(L, arg);
	luaL_argcheck(L, i >= 1 && (lua_Unsigned)i <= lat_batch_count(plan), arg, "there is no such call");
	return (size_t)i - 1;
}

static void add_one(lua_State *L, lat_batch *plan, size_t i, int idx, add_name add)
{
	size_t len;
	const char *name = lua_tolstring(L, idx, &len);
	lat_error err;
	if (add(plan, i, name, len, &err) != LAT_OK)
		lat_lua_raise(L, &err);
}

static void add_list(lua_State *L, lat_batch *plan, size_t i, add_name add)
{
	lua_Integer n = luaL_len(L, 3);
	for (lua_Integer k = 1; k <= n; k++) {
		if (lua_geti(L, 3, k) != LUA_TSTRING)
			luaL_error(L, "bad resource #%I: expected a string, got %s", (LUAI_UACINT)k,
			           luaL_typename(L, -1));
		add_one(L, plan, i, -1, add);
		lua_pop(L, 1);
	}
}

static int add_set(lua_State *L, add_name add)
{
	lat_batch *plan = check_batch(L);
	size_t i = check_call(L, plan, 2);
	if (lat_batch_sealed(plan))
		return luaL_error(L,
		                  "the batch has begun: declare what calls read and write before the first next()");
	if (lua_type(L, 3) == LUA_TSTRING && lua_rawlen(L, 3) == 1 && *lua_tostring(L, 3) == '*') {
		add_one(L, plan, i, 3, add);
	} else {
		luaL_argcheck(L, lua_type(L, 3) == LUA_TTABLE, 3, "expected a list of strings or \"*\"");
		add_list(L, plan, i, add);
	}
	return 0;
}

/* b:reads(i, list or "*"): call i reads these resources; adds to what was said before */
static int batch_reads(lua_State *L)
{
	return add_set(L, lat_batch_read);
}

/* b:writes(i, list or "*") */
static int batch_writes(lua_State *L)
{
	return add_set(L, lat_batch_write);
}

/* b:next() → number of a call that starts now, or nil: none may start */
static int batch_next(lua_State *L)
{
	lat_batch *plan = check_batch(L);
	lat_error err;
	if (!lat_batch_sealed(plan) && lat_batch_seal(plan, &err) != LAT_OK)
		return lat_lua_raise(L, &err);
	size_t i = lat_batch_next(plan);
	if (i == LAT_BATCH_NONE)
		lua_pushnil(L);
	else
		lua_pushinteger(L, (lua_Integer)i + 1);
	return 1;
}

/* b:done(i): call i, which next() started, has ended */
static int batch_done(lua_State *L)
{
	lat_batch *plan = check_batch(L);
	size_t i = check_call(L, plan, 2);
	luaL_argcheck(L, lat_batch_done(plan, i), 2, "this call isn't running");
	return 0;
}

/* b:stop(): nothing starts any more */
static int batch_stop(lua_State *L)
{
	lat_batch_stop(check_batch(L));
	return 0;
}

static int batch_running(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)lat_batch_running(check_batch(L)));
	return 1;
}

/* b:pending() → calls that haven't started */
static int batch_pending(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)lat_batch_pending(check_batch(L)));
	return 1;
}

static const luaL_Reg METHODS[] = {
	{"reads", batch_reads},     {"writes", batch_writes},
	{"next", batch_next},       {"done", batch_done},
	{"stop", batch_stop},       {"running", batch_running},
	{"pending", batch_pending}, {"__gc", batch_gc},
	{"__close", batch_gc},      {NULL, NULL},
};

void lat_lua_open_batch(lua_State *L)
{
	luaL_newmetatable(L, BATCH_TYPE);
	luaL_setfuncs(L, METHODS, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, core_batch);
	lua_setfield(L, -2, "batch");
}
