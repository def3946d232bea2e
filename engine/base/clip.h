/* lat_clip: the head and the tail of a stream of bytes, with bounded memory whatever flows through.
 *
 *   max 10:   [h e a d .]            first max/2 bytes
 *             [… t a i l]            the rest, of which only the last max - max/2 count
 *
 * Memory stays below 1.5 × max plus the growth of a lat_buf. Owns its bytes; one owner at a time, any thread. */
#ifndef LAT_BASE_CLIP_H
#define LAT_BASE_CLIP_H

#include "base/buf.h"

typedef struct {
	size_t max;
	size_t total; /* bytes that flowed through */
	lat_buf head, tail;
} lat_clip;

void lat_clip_init(lat_clip *c, size_t max);
void lat_clip_free(lat_clip *c);
void lat_clip_append(lat_clip *c, const void *data, size_t n); /* out of memory shows in lat_clip_ok */
bool lat_clip_ok(const lat_clip *c);
bool lat_clip_truncated(const lat_clip *c);

/* Appends what was kept to out; when truncated, with a line between head and tail that says how many bytes are
 * left out. The cut doesn't split a UTF-8 character. */
void lat_clip_write(const lat_clip *c, lat_buf *out);

#endif
