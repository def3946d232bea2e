/* Regular expressions of ECMA-262 (with the u flag, as JSON Schema recommends), run by PCRE2.
 *
 * lat_patterns owns the compiled patterns of one schema and frees them all at once; a lat_pattern is
 * immutable and may be matched by many threads, each with a lat_matcher of its own.
 * What isn't supported is an error at compile time that says so: lookbehind without a fixed length,
 * code points written as lone surrogates, the v flag's set notation. */
#ifndef LAT_SCHEMA_PATTERN_H
#define LAT_SCHEMA_PATTERN_H

#include "base/value.h"

enum {
	LAT_PATTERN_MATCH_LIMIT = 1000000,     /* PCRE2's count of backtracking points */
	LAT_PATTERN_DEPTH_LIMIT = 100000,      /* and how many of them may be open at once */
	LAT_PATTERN_HEAP_LIMIT_KIB = 16 * 1024 /* memory for those */
};

typedef struct lat_patterns lat_patterns;
typedef struct lat_pattern lat_pattern;

lat_patterns *lat_patterns_new(void); /* NULL when out of memory */
void lat_patterns_free(lat_patterns *p);

/* Compiles source, or finds the same source compiled before. */
lat_status lat_patterns_add(lat_patterns *p, const char *source, size_t len, lat_pattern **out,
                            lat_error *err);

const char *lat_pattern_source(const lat_pattern *p, size_t *len);

/* What one validation needs for matching; zero it, and it lives and dies with the arena. */
typedef struct {
	lat_arena *arena;
	void *data; /* pcre2_match_data */
} lat_matcher;

typedef enum {
	LAT_MATCH_NO,
	LAT_MATCH_YES,
	LAT_MATCH_LIMIT, /* gave up: too much backtracking */
	LAT_MATCH_UTF8,  /* the subject isn't valid UTF-8 */
	LAT_MATCH_NOMEM
} lat_match;

lat_match lat_pattern_match(const lat_pattern *p, lat_matcher *m, const char *subject, size_t len);

/* Whether source is a regular expression of ECMA-262 at all (format "regex"): yes, no or LAT_MATCH_NOMEM. */
lat_match lat_pattern_judge(const char *source, size_t len);

#endif
