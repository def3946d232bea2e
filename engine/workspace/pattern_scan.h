/* What can be said of a regular expression without compiling it. Pure; any thread. */
#ifndef LAT_WORKSPACE_PATTERN_SCAN_H
#define LAT_WORKSPACE_PATTERN_SCAN_H

#include <stdbool.h>
#include <stddef.h>

enum { LAT_SCAN_LITERAL_MAX = 128 };

typedef struct {
	char literal[LAT_SCAN_LITERAL_MAX]; /* every match has these bytes in it */
	size_t literal_len;                 /* 0: none known */
	bool is_literal;                    /* the pattern is this literal and nothing else */
	bool is_plain; /* what it finds in a line it finds there in the whole text too: no lookaround, no atomic
	                  * group, nothing that knows the text's ends */
	bool is_ascii; /* no byte beyond ASCII in it */
	bool has_newline; /* it asks for a newline outside of a set */
} lat_pattern_scan;

/* Understands a subset of PCRE2's syntax and says the least where it meets anything else. */
void lat_pattern_scan_run(const char *pattern, size_t len, bool case_insensitive, lat_pattern_scan *scan);

#endif
