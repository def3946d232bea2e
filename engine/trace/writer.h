/* lat_trace_writer: appends lines to a file from a thread of its own, so that a slow or full disk never holds a run.
 *
 *   any thread                              writer thread
 *   lat_trace_write ──► bounded queue ────► whole lines, one write a batch, rotation by size
 *        │ full: dropped, counted                │ fails: these lines are dropped, the first error is remembered,
 *        ▼                                       ▼ the next lines are tried again
 *     false                                   status
 *
 *   path ─► path.1 ─► path.2 … path.<keep> ─► gone
 *
 * Waiting lines take at most max_queue_bytes twice: once queued, once being written. A line that was cut by a full
 * disk or a crash is ended by a newline before the next one, so that what follows can be read.
 *
 * The maker owns it. Every function but free may be called by any thread. What is queued is written when it is
 * closed, and at exit. Lock: its own, a leaf like the queue's. */
#ifndef LAT_TRACE_WRITER_H
#define LAT_TRACE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/at_exit.h"

typedef struct lat_trace_writer lat_trace_writer;

enum { LAT_TRACE_DEFAULT_QUEUE = 8 << 20, LAT_TRACE_MAX_KEEP = 1000 };

typedef struct {
	const char *path;       /* copied; made with mode 0600 when it isn't there */
	uint64_t max_bytes;     /* of a file, before it is rotated; 0: never */
	unsigned keep;          /* rotated files, at most LAT_TRACE_MAX_KEEP; 0: what is rotated is gone */
	size_t max_queue_bytes; /* 0: LAT_TRACE_DEFAULT_QUEUE */
} lat_trace_options;

typedef struct {
	uint64_t written, dropped; /* lines */
	char error[256];           /* the first one, "" when there was none */
} lat_trace_status;

lat_trace_writer *lat_trace_writer_new(const lat_trace_options *options, lat_at_exit *at_exit,
                                       lat_error *err);
bool lat_trace_write(lat_trace_writer *w, const char *line, size_t len); /* never waits for the disk */
/* Waits until all lines that were queued before are written or dropped; false when the time was over first. */
bool lat_trace_flush(lat_trace_writer *w, int64_t timeout_ns);
lat_trace_status lat_trace_status_of(lat_trace_writer *w);
void lat_trace_writer_close(
	lat_trace_writer *w); /* writes what is queued, joins the thread; later lines are dropped */
void lat_trace_writer_free(lat_trace_writer *w); /* closes */

#endif
