/* lat_loop: one thread's event loop: epoll, timers, and wake-ups from other threads.
 *
 * A loop belongs to the thread that made it (the thread of one lua_State); every function here is for that
 * thread alone, except lat_loop_post. Things that can be waited for embed a lat_op; when something has
 * happened to one (done, or more data), it is put on the loop's ready list once, and lat_loop_turn hands its
 * id to the caller. An op is a notice, not a result: the waiter asks the thing itself.
 *
 * A loop is held by its maker and by each op (lat_op_init holds, lat_op_forget lets go), so that ops may be
 * collected in any order, after the maker too.
 *
 * Lock order: the loop has one lock (`inbox`); nothing else is locked while it is held. */
#ifndef LAT_SCHEDULER_LOOP_H
#define LAT_SCHEDULER_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct lat_loop lat_loop;

/* ---- ops: what a coroutine can wait for ---- */
typedef struct lat_op lat_op;
struct lat_op {
	uint64_t id;    /* unique in its loop, never 0, never used again */
	lat_loop *loop; /* NULL once forgotten */
	/* private to loop.c */
	lat_op *ready_prev, *ready_next;   /* loop thread */
	lat_op *posted_prev, *posted_next; /* guarded by the inbox lock */
	bool queued;                       /* on the ready list */
	bool in_inbox;                     /* guarded by the inbox lock */
};

/* ---- timers ---- */
typedef struct lat_timer lat_timer;
struct lat_timer {
	int64_t due_ns; /* on lat_now_ns's clock */
	void (*fire)(lat_timer *self);
	/* private */
	size_t slot;    /* place in the heap + 1; 0: not armed */
	uint64_t order; /* of two timers due at once, the one armed first fires first */
};

/* ---- file descriptors ---- */
enum { LAT_READABLE = 1, LAT_WRITABLE = 2, LAT_HANGUP = 4 };
typedef struct lat_watch lat_watch;
struct lat_watch {
	int fd;
	void (*ready)(lat_watch *self, unsigned events);
	/* private */
	unsigned events; /* what epoll watches for */
	bool added;
};

lat_loop *lat_loop_new(lat_error *err); /* held once, by the caller */
void lat_loop_hold(lat_loop *loop);     /* for an owner of timers or watches that has no op */
void lat_loop_free(lat_loop *loop);     /* lets go; the last one frees, when every timer and watch is gone */

int64_t lat_now_ns(void); /* CLOCK_MONOTONIC */

void lat_op_init(lat_op *op, lat_loop *loop);
void lat_op_forget(
	lat_op *op); /* takes it off the lists; call before freeing the memory around it; twice is fine */
void lat_loop_notify(lat_op *op); /* loop thread: something happened to op */
void lat_loop_post(lat_op *op); /* any thread: the same; wakes the loop. op must not be forgotten meanwhile */

lat_status lat_timer_arm(lat_loop *loop, lat_timer *timer, int64_t due_ns, lat_error *err); /* re-arms too */
void lat_timer_disarm(lat_loop *loop, lat_timer *timer);

lat_status lat_watch_set(lat_loop *loop, lat_watch *watch, unsigned events,
                         lat_error *err); /* adds or changes */
void lat_watch_remove(lat_loop *loop, lat_watch *watch);

/* Waits until something happens or timeout_ns is over (-1: no limit, 0: only look), runs watches, then
 * timers, and writes up to cap ids of ready ops; *n says how many. Returns LAT_OK also when a signal ended
 * the wait early. When the thread was long away, all that came in meanwhile is read before a timer that is
 * late is fired. */
lat_status lat_loop_turn(lat_loop *loop, int64_t timeout_ns, uint64_t *ids, size_t cap, size_t *n,
                         lat_error *err);

/* Descriptor that is readable when a watch or a post waits (timers don't show): to sit in a host's own
 * poll. */
int lat_loop_fd(const lat_loop *loop);

#endif
