/* lat_sse: bytes → server-sent events, by the WHATWG text (HTML, section 9.2.5 and 9.2.6).
 *
 * Bytes are fed in any pieces; events come out one by one, the same ones however the bytes were cut. An event
 * that lies whole in the piece at hand, with one data line, is views into that piece: nothing is copied.
 * Bytes that aren't UTF-8 are passed on as they are: what the data means is the reader's business.
 *
 * One owner at a time, any thread. The struct owns its buffers; lat_sse_free gives them back. */
#ifndef LAT_MESSAGES_SSE_H
#define LAT_MESSAGES_SSE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

typedef struct {
	lat_span name; /* the event field; "message" where there was none */
	lat_span data; /* data lines, joined by line feeds; never NULL, may be empty */
	lat_span id;   /* the last id that came, with this event or before */
} lat_sse_event;

typedef struct {
	int64_t retry_ms; /* what the last retry field said; -1: none came */
	/* private to sse.c */
	size_t max_bytes;
	lat_buf line;       /* a line whose end hasn't come yet */
	lat_buf name, data; /* of the event at hand, when they can't be views */
	lat_buf id;
	lat_span name_at, data_at; /* of the event at hand; {NULL, 0}: none yet */
	bool name_kept, data_kept; /* they are in the buffers, not in the piece */
	bool skip_lf;              /* a CR ended the last line: an LF now belongs to it */
	bool delivered;            /* the event at hand was given out */
	uint8_t bom;               /* how many bytes of a byte order mark were seen; BOM_BYTES: past it */
} lat_sse;

#define LAT_SSE_DEFAULT_BYTES ((size_t)16 << 20)

/* max_bytes bounds a line, and the data of an event; 0: LAT_SSE_DEFAULT_BYTES. */
void lat_sse_init(lat_sse *sse, size_t max_bytes);
void lat_sse_free(lat_sse *sse);

/* Takes the next event off *bytes, which is moved on. *found = false: *bytes is used up, feed the next piece.
 * Views in *event hold until the next call, as long as the piece itself stays.
 * LAT_E_LIMIT: a line or an event is too long; LAT_E_NOMEM. After a failure only lat_sse_free is allowed.
 * An event that has not ended when the stream ends is no event: there is nothing to call then. */
lat_status lat_sse_next(lat_sse *sse, lat_span *bytes, lat_sse_event *event, bool *found, lat_error *err);

#endif
