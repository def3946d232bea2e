/* lat_crew: one function on a few threads at once, for the time of a call. Any thread may call. */
#ifndef LAT_WORKSPACE_CREW_H
#define LAT_WORKSPACE_CREW_H

#include <stddef.h>

enum { LAT_CREW_MAX = 8 };

size_t lat_crew_size(
	void); /* threads worth having: the cores that this process may use, LAT_CREW_MAX at most */

/* Runs work(arg) on this thread and on up to `threads - 1` others; returns when all have ended. Where threads
 * can't be started there are fewer of them: work must not count on any but this one. */
void lat_crew_run(size_t threads, void (*work)(void *arg), void *arg);

#endif
