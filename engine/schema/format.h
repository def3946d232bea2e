/* The formats of draft 2020-12 (validation section 7.3), each a function over bytes. Pure; any thread. */
#ifndef LAT_SCHEMA_FORMAT_H
#define LAT_SCHEMA_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
	const char *name;
	bool (*check)(const char *s, size_t len); /* NULL: "regex", which lat_pattern_judge knows */
	const char *expected;                     /* "date of RFC 3339 (2024-12-31)" */
} lat_format;

/* NULL for a name that the draft doesn't define: then nothing is asserted. */
const lat_format *lat_format_find(const char *name, size_t len);

#endif
