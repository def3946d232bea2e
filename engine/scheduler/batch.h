/* lat_batch: which calls of a tool batch may start now.
 *
 * Each call has a read set and a write set of resources. A call waits for the earlier calls that it conflicts
 * with: write/write, write/read, read/write. "*" is everything; empty sets conflict with nothing. Names are
 * compared byte by byte (paths by convention canonical): "a" and "a/b" are two resources.
 *
 * Modes are sets, there is no other switch: safe = reads "*", unsafe = writes "*", all = empty sets,
 * sequential = each writes "*".
 *
 * The plan is a graph of calls and gates, made once by lat_batch_seal; each node counts what it waits for:
 *
 *   0 writes a ──────────────► 3 reads a        calls   [0 1 2 3 4 5]  waits for, state
 *   1 writes b ──┐                │             edges   linked lists   node -> the nodes that wait for it
 *                ▼ (gate)         │             ready   bitset         lowest set bit = next call to start
 *   2 reads *  ◄─┘ also from 0    │
 *      └───────► 4 writes c       │             resource table (only while sealing), name ->
 *                    │            │               last writer, readers since
 *                    └─► 5 ◄──────┘
 *                   writes *  (a barrier: what follows it only needs to wait for it)
 *
 * A gate is a node that no call belongs to: "all these writers are done" (for "reads *") or "all these readers
 * of * are done" (for writers). With gates and barriers there are at most 2 edges a set entry and 8 a call.
 * Edges that follow from others are left out: whoever waits for a waiter waits for both.
 *
 * Owns its memory; one owner at a time, any thread; no lock. */
#ifndef LAT_SCHEDULER_BATCH_H
#define LAT_SCHEDULER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct lat_batch lat_batch;

#define LAT_BATCH_NONE SIZE_MAX
enum { LAT_BATCH_MAX_CALLS = 1 << 20, LAT_BATCH_MAX_NAMES = 1 << 26 };

/* n calls, numbered from 0; at most max_concurrency (>= 1) run at once. NULL when out of memory or out of range. */
lat_batch *lat_batch_new(size_t n, size_t max_concurrency, lat_error *err);
void lat_batch_free(lat_batch *b);

/* Before sealing, in any order, i < n. The name is copied; the name "*" means everything. */
lat_status lat_batch_read(lat_batch *b, size_t i, const char *name, size_t len, lat_error *err);
lat_status lat_batch_write(lat_batch *b, size_t i, const char *name, size_t len, lat_error *err);
void lat_batch_read_all(lat_batch *b, size_t i);
void lat_batch_write_all(lat_batch *b, size_t i);

lat_status lat_batch_seal(lat_batch *b,
                          lat_error *err); /* computes the edges; on failure nothing has changed */
bool lat_batch_sealed(const lat_batch *b);

/* After sealing. */
size_t lat_batch_next(lat_batch *b);         /* starts the first call that may start, or LAT_BATCH_NONE */
bool lat_batch_done(lat_batch *b, size_t i); /* call i has ended; false: it isn't running */
void lat_batch_stop(lat_batch *b);           /* nothing starts any more; running calls still report done */

size_t lat_batch_count(const lat_batch *b); /* n */
size_t lat_batch_running(const lat_batch *b);
size_t lat_batch_pending(const lat_batch *b); /* not started yet (and after a stop: that never will) */

#endif
