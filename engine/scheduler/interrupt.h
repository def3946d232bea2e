/* lat_interrupt: makes a thread of the engine's run a function now, in the middle of whatever it computes: a signal
 * to that thread, sent by another one or by its timer.
 *
 * For code that can't look at a flag by itself at a bearable price. The function runs as a signal handler: nothing
 * but what signal-safety(7) allows. The signal is a real-time one that nobody else had a handler for; system calls
 * are restarted where the kernel can. It is blocked in all threads but those between init and destroy. */
#ifndef LAT_SCHEDULER_INTERRUPT_H
#define LAT_SCHEDULER_INTERRUPT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct lat_interrupt lat_interrupt;
struct lat_interrupt {
	void (*handle)(lat_interrupt *self);
	/* private */
	timer_t timer;
};

/* For the calling thread, one at a time. False: no signal is free, or no timer is to be had. */
bool lat_interrupt_init(lat_interrupt *i, void (*handle)(lat_interrupt *));
void lat_interrupt_destroy(lat_interrupt *i); /* the same thread */

/* The same thread, also while it handles one: interrupts it when lat_now_ns() passes due_ns; INT64_MAX: not any more. */
void lat_interrupt_at(lat_interrupt *i, int64_t due_ns);
/* Any thread, while `thread` hasn't been joined: at once; nothing when that thread has no lat_interrupt. */
void lat_interrupt_send(pthread_t thread);

#endif
