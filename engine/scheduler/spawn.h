/* lat_spawn: starts a program with pipes at its standard descriptors. The caller owns the descriptors and the
 * child that come out. Any thread: nothing runs between fork and exec that isn't safe among threads. */
#ifndef LAT_SCHEDULER_SPAWN_H
#define LAT_SCHEDULER_SPAWN_H

#include "scheduler/process.h"

typedef struct {
	pid_t pid; /* leader of a session and process group of its own */
	int in;    /* write end, non-blocking, close-on-exec; -1: its input is empty */
	int out
		[2]; /* read ends of stdout and stderr, likewise; out[1] is -1 when stderr goes the way of stdout */
	int report; /* read end of its descriptor 3, likewise; -1: it has none */
} lat_spawned;

lat_status lat_spawn(const lat_process_options *options, lat_spawned *child, lat_error *err);

#endif
