/* Bindings of the loop: core.turn, core.now_ms, core.wall_ms, core.timer.
 *
 * The loop is owned by a userdata in the registry, a timer by its own userdata; both are collected on the
 * thread of the lua_State, in whatever order. */
#include "lua_loop.h"

#include <math.h>
#include <time.h>

#include "lua_core.h"

enum { NS_PER_MS = 1000000, MS_PER_S = 1000, IDS_MAX = 256 };

#define LOOP_TYPE  "lattice.loop"
#define TIMER_TYPE "lattice.timer"

static const double LONGEST_MS = 1e12; /* some thirty years */

typedef struct {
	lat_loop *loop; /* NULL before it is made and after the state began to close */
	uint64_t ids[IDS_MAX];
	size_t taken,
		given; /* ids that came out of a turn, and how many of them Lua has: none is lost by a raise */
} loop_box;

static const char LOOP_KEY = 'k'; /* its address is the registry key */

static int loop_gc(lua_State *L)
{
	loop_box *box = luaL_checkudata(L, 1, LOOP_TYPE);
	lat_loop_free(box->loop);
	box->loop = NULL;
	return 0;
}

static loop_box *make_box(lua_State *L)
{
	loop_box *box = lua_newuserdatauv(L, sizeof *box, 0);
	*box = (loop_box){.loop = NULL};
	if (luaL_newmetatable(L, LOOP_TYPE)) {
		lua_pushcfunction(L, loop_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	lat_error err;
	box->loop = lat_loop_new(&err);
	if (!box->loop)
		lat_lua_raise(L, &err);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &LOOP_KEY);
	return box;
}

static loop_box *get_box(lua_State *L)
{
	luaL_checkstack(L, 4, NULL);
	lua_rawgetp(L, LUA_REGISTRYINDEX, &LOOP_KEY);
	loop_box *box = lua_touserdata(L, -1);
	lua_pop(L, 1);
	if (!box)
		return make_box(L);
	if (!box->loop)
		luaL_error(L, "this Lua state is closing: its loop is gone");
	return box;
}

/* In a finalizer the collector is stopped from inside, and refuses every order (since Lua 5.4.4). */
void lat_lua_refuse_in_finalizer(lua_State *L)
{
	if (lua_gc(L, LUA_GCCOUNT) < 0)
		luaL_error(L, "nothing that waits can be started in a finalizer (__gc)");
}

lat_loop *lat_lua_loop(lua_State *L)
{
	lat_lua_refuse_in_finalizer(L);
	return get_box(L)->loop;
}

int64_t lat_lua_check_ms(lua_State *L, int arg)
{
	lua_Number ms = luaL_checknumber(L, arg);
	luaL_argcheck(L, ms >= 0, arg, "expected milliseconds >= 0");
	return (int64_t)ceil((ms < LONGEST_MS ? ms : LONGEST_MS) * NS_PER_MS);
}

/* turn(timeout_ms or nil, ids) → n: fills ids[1..n] with the ids of ready ops */
static int core_turn(lua_State *L)
{
	int64_t timeout_ns = lua_isnoneornil(L, 1) ? -1 : lat_lua_check_ms(L, 1);
	luaL_checktype(L, 2, LUA_TTABLE);
	loop_box *box = get_box(L);
	if (box->given == box->taken) {
		lat_error err;
		box->given = box->taken = 0;
		if (lat_loop_turn(box->loop, timeout_ns, box->ids, IDS_MAX, &box->taken, &err) != LAT_OK)
			return lat_lua_raise(L, &err);
	}
	lua_Integer n = 0;
	while (box->given < box->taken) {
		lua_pushinteger(L, (lua_Integer)box->ids[box->given]);
		lua_rawseti(L, 2, ++n);
		box->given++;
	}
	lua_pushinteger(L, n);
	return 1;
}

/* now_ms() → number: a monotonic clock */
static int core_now_ms(lua_State *L)
{
	lua_pushnumber(L, (lua_Number)lat_now_ns() / NS_PER_MS);
	return 1;
}

/* wall_ms() → integer: milliseconds since 1970 */
static int core_wall_ms(lua_State *L)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	lua_pushinteger(L, (lua_Integer)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS);
	return 1;
}

/* ---- timers ---- */

typedef struct {
	lat_op op;
	lat_timer timer;
	bool over; /* fired or cancelled */
} timer_op;

static void fire(lat_timer *timer)
{
	timer_op *t = (timer_op *)((char *)timer - offsetof(timer_op, timer));
	t->over = true;
	lat_loop_notify(&t->op);
}

static int timer_id(lua_State *L)
{
	timer_op *t = luaL_checkudata(L, 1, TIMER_TYPE);
	lua_pushinteger(L, (lua_Integer)t->op.id);
	return 1;
}

static int timer_ready(lua_State *L)
{
	timer_op *t = luaL_checkudata(L, 1, TIMER_TYPE);
	lua_pushboolean(L, t->over);
	return 1;
}

/* Also __gc and __close. A cancelled timer is ready and sends no notice. */
static int timer_cancel(lua_State *L)
{
	timer_op *t = luaL_checkudata(L, 1, TIMER_TYPE);
	if (t->op.loop) {
		lat_timer_disarm(t->op.loop, &t->timer);
		lat_op_forget(&t->op);
	}
	t->over = true;
	return 0;
}

static const luaL_Reg TIMER_METHODS[] = {
	{"id", timer_id},       {"ready", timer_ready},    {"cancel", timer_cancel},
	{"__gc", timer_cancel}, {"__close", timer_cancel}, {NULL, NULL},
};

/* timer(ms) → op that is ready when that time has passed */
static int core_timer(lua_State *L)
{
	int64_t after_ns = lat_lua_check_ms(L, 1);
	lat_loop *loop = lat_lua_loop(L);
	timer_op *t = lua_newuserdatauv(L, sizeof *t, 0);
	*t = (timer_op){.timer = {.fire = fire}};
	luaL_setmetatable(L, TIMER_TYPE);
	lat_op_init(&t->op, loop);
	lat_error err;
	if (lat_timer_arm(loop, &t->timer, lat_now_ns() + after_ns, &err) != LAT_OK)
		return lat_lua_raise(L, &err);
	return 1;
}

/* clang-format off */
static const luaL_Reg FUNCTIONS[] = {
	{"turn", core_turn},
	{"now_ms", core_now_ms},
	{"wall_ms", core_wall_ms},
	{"timer", core_timer},
	{NULL, NULL},
};
/* clang-format on */

void lat_lua_open_loop(lua_State *L)
{
	luaL_newmetatable(L, TIMER_TYPE);
	luaL_setfuncs(L, TIMER_METHODS, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	luaL_setfuncs(L, FUNCTIONS, 0);
}
