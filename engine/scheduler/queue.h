/* lat_queue: the one queue between threads: first in, first out, bounded by the weight of what waits in it.
 *
 * Items are embedded in what is handed over; the queue owns none of them, it only links them. Weights are the
 * caller's unit: 1 for a job, bytes for a line. Every function may be called by any thread. Its lock is a leaf:
 * nothing else is locked while it is held. */
#ifndef LAT_SCHEDULER_QUEUE_H
#define LAT_SCHEDULER_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct lat_queue_item lat_queue_item;
struct lat_queue_item {
	lat_queue_item *prev, *next;
	size_t weight;
	bool queued;
};

typedef struct {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* an item came, or the queue was closed */
	lat_queue_item *first, *last;
	size_t weight, max_weight;
	bool closed;
} lat_queue;

bool lat_queue_init(lat_queue *q, size_t max_weight); /* false: no memory for its lock */
void lat_queue_destroy(lat_queue *q);                 /* when no thread uses it any more */

/* LAT_OK, LAT_E_LIMIT (it would be too heavy; never so for an empty queue) or LAT_E_CLOSED. Never waits. */
lat_status lat_queue_push(lat_queue *q, lat_queue_item *item, size_t weight);
lat_queue_item *lat_queue_pop(lat_queue *q); /* waits; NULL: closed and empty */
lat_queue_item *lat_queue_take_all(
	lat_queue *q); /* waits; the list (by next) of all that is there; NULL as above */
bool lat_queue_remove(lat_queue *q, lat_queue_item *item); /* false: it isn't in there any more */
void lat_queue_close(lat_queue *q); /* takes nothing more in; what is there can still be taken out */

#endif
