/* Stopping a worker handler from outside, in the thread of its state; see lua_worker_state.h.
 *
 * A running handler is stopped by a count hook that raises. A hook that is set all the time costs each instruction
 * a function call (measured: 4 times the time), so it is set when it is due: by an interrupt of the thread, that the
 * time limit, the signal and a cancellation send. It is set in the coroutine that runs, which `current` follows, as
 * lua.c does it for SIGINT. Where there are no interrupts, and under TSan (which holds signals back while a thread
 * computes), the hook is there from the start, and every coroutine inherits it. Once a handler has begun to stop, it
 * raises again at each instruction that a pcall lets run.
 *
 * What can't be stopped: a C function, until it returns, and a __gc metamethod, since Lua runs it without hooks. */
#include "lua_worker_state.h"

#include <lauxlib.h>
#include <stdio.h>

enum { NS_PER_MS = 1000000, LOOK_EVERY = 10000 /* instructions, without interrupts */ };

#ifdef __SANITIZE_THREAD__
static const bool MAY_INTERRUPT = false;
#else
static const bool MAY_INTERRUPT = true;
#endif

static lat_worker_state *state_of(lua_State *L) /* also of its coroutines: they inherit the extra space */
{
	return *(lat_worker_state **)lua_getextraspace(L);
}

static lat_worker_outcome why_stop(const lat_worker_state *w)
{
	const lat_worker_call *call = w->call;
	if (atomic_load_explicit(&call->job.cancelled, memory_order_relaxed))
		return LAT_WORKER_ABORT;
	bool signalled = call->signal && lat_flag_is_set(call->signal);
	if (!signalled && w->due_ns == INT64_MAX)
		return LAT_WORKER_OK;
	int64_t now = lat_now_ns();
	if (now >= w->due_ns)
		return LAT_WORKER_TIMEOUT;
	if (signalled && now - lat_flag_set_at_ns(call->signal) >= (int64_t)LAT_WORKER_GRACE_MS * NS_PER_MS)
		return LAT_WORKER_ABORT;
	return LAT_WORKER_OK;
}

static void push_stop_text(lua_State *L, const lat_worker_call *call, lat_worker_outcome stop)
{
	char text[64] = "aborted";
	if (stop == LAT_WORKER_TIMEOUT)
		snprintf(text, sizeof text, "timed out after %.14g ms", call->timeout_ms);
	lua_pushstring(L, text);
}

static void look_for_stop(lua_State *L, lua_Debug *ar);

static void hook_now(lua_State *L)
{
	lua_sethook(L, look_for_stop, LUA_MASKCOUNT, 1);
}

static void look_for_stop(lua_State *L, lua_Debug *ar)
{
	(void)ar;
	lat_worker_state *w = state_of(L);
	if (w->call && w->stop == LAT_WORKER_OK)
		w->stop = why_stop(w);
	if (w->call && w->stop != LAT_WORKER_OK) {
		hook_now(L);
		push_stop_text(L, w->call, w->stop);
		lua_error(L);
	}
	if (w->interruptible)
		lua_sethook(L, NULL, 0, 0); /* left over from a call that ended by itself */
}

/* Runs as a signal handler in the thread of the state. */
static void handle_interrupt(lat_interrupt *self)
{
	lat_worker_state *w = (lat_worker_state *)((char *)self - offsetof(lat_worker_state, interrupt));
	const lat_worker_call *call = w->call;
	if (!call)
		return;
	if (why_stop(w) != LAT_WORKER_OK) {
		w->due = true;
		hook_now(w->current);
		hook_now(w->L); /* if it isn't the same: for when it goes on */
		return;
	}
	int64_t next_ns = w->due_ns;
	if (call->signal && lat_flag_is_set(call->signal)) {
		int64_t grace_ns = lat_flag_set_at_ns(call->signal) + (int64_t)LAT_WORKER_GRACE_MS * NS_PER_MS;
		next_ns = grace_ns < next_ns ? grace_ns : next_ns;
	}
	lat_interrupt_at(self, next_ns);
}

static void wake_thread(lat_flag_watch *self)
{
	lat_interrupt_send(((lat_worker_state *)((char *)self - offsetof(lat_worker_state, watch)))->thread);
}

/* Whatever stops this call sends an interrupt from now on; what came before is seen here. */
void lat_worker_begin_stops(lat_worker_state *w, lat_worker_call *call)
{
	w->due = false;
	w->current = w->L;
	w->call = call;
	if (!w->interruptible)
		return;
	bool missed = call->signal && !lat_flag_add_watch(call->signal, &w->watch);
	lat_interrupt_at(&w->interrupt, w->due_ns);
	if (missed || atomic_load(&call->job.cancelled))
		lat_interrupt_send(w->thread);
}

void lat_worker_end_stops(lat_worker_state *w)
{
	const lat_worker_call *call = w->call;
	w->call = NULL;
	if (!w->interruptible)
		return;
	lat_interrupt_at(&w->interrupt, INT64_MAX);
	if (call->signal)
		lat_flag_remove_watch(call->signal, &w->watch);
	lua_sethook(w->L, NULL, 0, 0);
}

/* ---- coroutines: the library's functions, with an eye on which one runs ---- */

/* Calls the function below its arguments, all that is on the stack, while co runs. */
static int call_in(lua_State *L, lua_State *co)
{
	lat_worker_state *w = state_of(L);
	lua_State *before = w->current;
	w->current = co;
	int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
	w->current = before;
	if (w->due)
		hook_now(L); /* the interrupt came while co was the one that runs */
	return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* coroutine.resume and coroutine.close: the original is upvalue 1 */
static int with_coroutine(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTHREAD);
	lua_State *co = lua_tothread(L, 1);
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	return call_in(L, co);
}

/* What coroutine.wrap returned: upvalue 1, its coroutine: upvalue 2 */
static int wrapped(lua_State *L)
{
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	return call_in(L, lua_tothread(L, lua_upvalueindex(2)));
}

/* coroutine.wrap: the original is upvalue 1; its coroutine is the upvalue of what it returns */
static int wrap(lua_State *L)
{
	lua_settop(L, 1);
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, 1, 1);
	if (!lua_getupvalue(L, 1, 1) || !lua_isthread(L, -1))
		return luaL_error(L, "this Lua's coroutine.wrap isn't the one that the engine knows");
	lua_pushcclosure(L, wrapped, 2);
	return 1;
}

/* ---- functions of the library that would get round a stop ---- */

static int refuse_exit(lua_State *L)
{
	return luaL_error(L, "os.exit can't be called in a worker: return or raise instead");
}

/* The message handler of a script's xpcall, upvalue 1. An error that the hook raises would call it within the hook,
 * where no hook can stop it. */
static int handle_unless_stopping(lua_State *L)
{
	if (state_of(L)->stop != LAT_WORKER_OK)
		return 1;
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, 1, 1);
	return 1;
}

static int xpcall_end(lua_State *L, int status, lua_KContext context)
{
	(void)status;
	(void)context;
	return lua_gettop(L);
}

/* xpcall, upvalue 1, with its message handler wrapped up */
static int stoppable_xpcall(lua_State *L)
{
	luaL_checkany(L, 2);
	lua_pushvalue(L, 2);
	lua_pushcclosure(L, handle_unless_stopping, 1);
	lua_replace(L, 2);
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, xpcall_end);
	return lua_gettop(L);
}

static void replace(lua_State *L, const char *name, lua_CFunction with) /* in the table on top */
{
	lua_getfield(L, -1, name);
	lua_pushcclosure(L, with, 1);
	lua_setfield(L, -2, name);
}

void lat_worker_guard_library(lua_State *L)
{
	lua_getglobal(L, "os");
	lua_pushcfunction(L, refuse_exit);
	lua_setfield(L, -2, "exit");
	lua_getglobal(L, "debug"); /* the hook is the engine's */
	lua_pushnil(L);
	lua_setfield(L, -2, "sethook");
	lua_pushglobaltable(L);
	replace(L, "xpcall", stoppable_xpcall);
	lua_getglobal(L, "coroutine");
	if (state_of(L)->interruptible) {
		replace(L, "resume", with_coroutine);
		replace(L, "close", with_coroutine);
		replace(L, "wrap", wrap);
	}
	lua_pop(L, 4);
}

/* ---- life ---- */

void lat_worker_init_stops(lat_worker_state *w)
{
	w->thread = pthread_self();
	w->watch.wake = wake_thread;
	w->interruptible = MAY_INTERRUPT && lat_interrupt_init(&w->interrupt, handle_interrupt);
}

void lat_worker_free_stops(lat_worker_state *w)
{
	if (w->interruptible)
		lat_interrupt_destroy(&w->interrupt);
}

void lat_worker_adopt(lat_worker_state *w)
{
	*(lat_worker_state **)lua_getextraspace(w->L) = w;
	if (!w->interruptible)
		lua_sethook(w->L, look_for_stop, LUA_MASKCOUNT, LOOK_EVERY);
}
