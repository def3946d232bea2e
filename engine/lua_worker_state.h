/* The Lua state of a pool thread that runs worker handlers (private to lua_worker_run.c and lua_worker_stop.c).
 * Everything here is for that thread alone. */
#ifndef LAT_LUA_WORKER_STATE_H
#define LAT_LUA_WORKER_STATE_H

#include "lua_worker.h"
#include "scheduler/interrupt.h"

typedef struct {
	lat_worker_def *def;
	int function; /* its reference in the registry */
} lat_worker_loaded;

typedef struct {
	lua_State *L; /* NULL: none now; its extra space, and its coroutines', points to this struct */
	lat_worker_loaded *loaded;
	size_t n_loaded, loaded_cap;
	int64_t due_ns;          /* of the call; INT64_MAX: no time limit */
	lat_worker_outcome stop; /* why it is being stopped; LAT_WORKER_OK: it isn't */
	lat_flag_watch watch;    /* of the call's signal */
	pthread_t thread;
	bool interruptible;
	lat_interrupt interrupt;
	/* what the interrupt's handler looks at too */
	lat_worker_call *volatile call; /* while a handler runs */
	lua_State *volatile current;    /* the coroutine that runs */
	volatile bool due;              /* it is time to stop */
} lat_worker_state;

void lat_worker_init_stops(lat_worker_state *w); /* of a new struct, before its first Lua state */
void lat_worker_free_stops(lat_worker_state *w);
void lat_worker_adopt(lat_worker_state *w);  /* of a new Lua state, before anything runs in it */
void lat_worker_guard_library(lua_State *L); /* in the state: after the libraries were opened */

/* Around a handler: between them it is stopped when its time is over (due_ns), its signal is set or its job
 * cancelled; `stop` then says why. */
void lat_worker_begin_stops(lat_worker_state *w, lat_worker_call *call);
void lat_worker_end_stops(lat_worker_state *w);

#endif
