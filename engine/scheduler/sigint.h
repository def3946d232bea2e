/* lat_sigint: Ctrl-C as an op of a loop.
 *
 * Owns an eventfd and the process's disposition of SIGINT while it is armed. There is one at a time in a process.
 * The first SIGINT makes the op ready and gives the signal its default effect back, so that a second one ends a
 * program that no longer turns its loop; lat_sigint_rearm, once the first was handled, waits for the next.
 * All functions are for the loop's thread. */
#ifndef LAT_SCHEDULER_SIGINT_H
#define LAT_SCHEDULER_SIGINT_H

#include <signal.h>

#include "scheduler/loop.h"

typedef struct {
	lat_op op;
	bool fired;
	/* private */
	bool armed;
	lat_watch watch;
	struct sigaction before;
} lat_sigint;

/* LAT_E_INVALID when another one is armed in this process. */
lat_status lat_sigint_arm(lat_sigint *s, lat_loop *loop, lat_error *err);
lat_status lat_sigint_rearm(lat_sigint *s, lat_error *err);
void lat_sigint_disarm(lat_sigint *s); /* gives SIGINT its former disposition back; harmless twice */

#endif
