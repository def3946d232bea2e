/* Worker handlers, what both of their sides share (private to lua_worker*.c).
 *
 *   lua_worker.c, script's thread                     lua_worker_run.c, pool thread
 *   definition (counted) ── call: input parcel ─────► the thread's own lua_State: loads the definition once,
 *   op:result() ◄────────── output parcel, done ───── unpacks, runs, packs
 *
 * A call is one owner's at a time: the op's, from its submission the pool thread's, then the op's again. */
#ifndef LAT_LUA_WORKER_H
#define LAT_LUA_WORKER_H

#include <lua.h>

#include "scheduler/flag.h"
#include "scheduler/parcel.h"
#include "scheduler/threads.h"

enum { LAT_WORKER_GRACE_MS = 100 }; /* from the signal to the stop: for handlers that look at ctx.signal */

typedef enum { LAT_UPVALUE_DATA, LAT_UPVALUE_GLOBALS, LAT_UPVALUE_SELF } lat_upvalue_kind;

/* Written while it is defined, then only read, by many threads; counted. */
typedef struct {
	atomic_size_t holds;
	atomic_bool retired; /* nobody can call it any more: threads may forget what they loaded */
	lat_buf module;      /* its name, NUL-terminated; empty: there is bytecode */
	lat_buf bytecode;
	lat_buf upvalue_kinds; /* a byte each */
	lat_parcel upvalues;   /* the data ones, in order */
	lat_buf path, cpath;   /* package.path and cpath of the script, NUL-terminated */
} lat_worker_def;

typedef enum {
	LAT_WORKER_OK,
	LAT_WORKER_ERROR, /* it raised, or couldn't be loaded, or its result can't cross */
	LAT_WORKER_ABORT, /* stopped, or never begun */
	LAT_WORKER_TIMEOUT,
	LAT_WORKER_MEMORY
} lat_worker_outcome;

typedef struct {
	lat_job job; /* first */
	lat_worker_def *def;
	lat_flag *signal;      /* ctx.signal, or NULL */
	lua_Number timeout_ms; /* 0: none */
	lat_parcel input;      /* the two arguments */
	lat_worker_outcome outcome;
	lat_parcel output; /* OK: the returned values; else the value that was raised, when there is one */
	lat_buf traceback;
} lat_worker_call;

void lat_worker_def_free(lat_worker_def *def); /* lets go */
void lat_worker_run(lat_job *job, lat_thread_slot *thread);
void lat_worker_drop(lat_job *job);

#endif
