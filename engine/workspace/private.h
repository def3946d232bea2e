/* What the files of lat_workspace share (private to engine/workspace). */
#ifndef LAT_WORKSPACE_PRIVATE_H
#define LAT_WORKSPACE_PRIVATE_H

#include <pthread.h>

#include "workspace/workspace.h"

/* What was read, by folder and name: a hash table that grows to SEEN_MAX and then forgets the oldest half. */
typedef struct {
	struct lat_seen_entry *entries;
	size_t n, cap; /* cap: a power of two, or 0 */
	uint64_t clock;
} lat_seen;

void lat_seen_free(lat_seen *seen);

struct lat_workspace {
	atomic_size_t holds;
	char *cwd;
	lat_roots *roots;
	bool walk;
	pthread_mutex_t lock; /* guards seen; a leaf */
	lat_seen seen;
};

#endif
