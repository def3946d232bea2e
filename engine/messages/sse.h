/* lat_sse: server-sent events (WHATWG HTML, section 9.2.6), fed in any chunking.
 *
 * Owns two buffers; the views that a callback gets live until it returns. Knows no socket and no JSON. Any one
 * thread at a time. */
#ifndef LAT_MESSAGES_SSE_H
#define LAT_MESSAGES_SSE_H

#include "base/buf.h"
#include "base/error.h"

/* One event: its type ("message" when none was named) and its data. Anything but LAT_OK ends the feeding. */
typedef lat_status (*lat_sse_event_fn)(void *ctx, const char *type, size_t type_len, const char *data,
                                       size_t len, lat_error *err);

typedef struct {
	lat_sse_event_fn on_event;
	void *ctx;
	size_t max_event_bytes; /* a longer line, or more data in one event, is LAT_E_LIMIT */
	/* private */
	lat_buf line; /* the start of a line whose end hasn't come yet */
	lat_buf data; /* data lines of the event so far, each with a "\n" behind it */
	lat_buf type;
	bool skip_lf;  /* the last byte was a CR: an LF now belongs to it */
	size_t at_bom; /* bytes of a byte order mark seen so far at the start; 4: past the start */
} lat_sse;

#define LAT_SSE_DEFAULT_EVENT_BYTES ((size_t)32 << 20)

void lat_sse_init(lat_sse *p, lat_sse_event_fn on_event, void *ctx, size_t max_event_bytes);
void lat_sse_free(lat_sse *p);
lat_status lat_sse_feed(lat_sse *p, const char *bytes, size_t n, lat_error *err);

#endif
