/* lat_span: bytes that somebody else owns. */
#ifndef LAT_BASE_SPAN_H
#define LAT_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct {
	const char *s; /* not NUL-terminated; NULL: there is none, which is not the same as empty */
	size_t len;
} lat_span;

/* clang-format off */
#define LAT_SPAN(literal) {literal, sizeof(literal) - 1}
/* clang-format on */

static inline lat_span lat_span_of(const char *s, size_t len)
{
	return (lat_span){s, len};
}

static inline lat_span lat_span_str(const char *s)
{
	return (lat_span){s, strlen(s)};
}

static inline bool lat_span_is(lat_span a, const char *s)
{
	size_t len = strlen(s);
	return a.len == len && memcmp(a.s, s, len) == 0;
}

static inline bool lat_span_equal(lat_span a, lat_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.s, b.s, a.len) == 0);
}

#endif
