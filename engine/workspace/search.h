/* lat_search: a regular expression over the lines of a text, or over the text as a whole.
 *
 *   lat_search    the compiled pattern: immutable, shared by threads
 *   lat_searcher  what one thread matches with
 *
 * The syntax is PCRE2's, the meaning that of text: characters are Unicode's where the text has any beyond ASCII;
 * bytes that are no UTF-8 match nothing but are no obstacle either. A line never matches across its end, whatever
 * the pattern says, unless the search is multiline.
 *
 * How it is quick: where the pattern needs a literal, only lines with that literal are looked at; else the pattern
 * runs over whole texts and what it finds is held against the line; a pattern for which that could miss a line
 * (lookarounds, atomic groups) runs line by line. */
#ifndef LAT_WORKSPACE_SEARCH_H
#define LAT_WORKSPACE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { LAT_SEARCH_MAX_PATTERN = 32 * 1024, LAT_SEARCH_MATCH_LIMIT = 2000000 };

typedef struct lat_search lat_search;
typedef struct lat_searcher lat_searcher;

typedef struct {
	bool case_insensitive;
	bool multiline; /* may span lines; "." matches a newline too */
} lat_search_options;

/* NULL: LAT_E_SYNTAX (with the offset and PCRE2's words), LAT_E_INVALID, LAT_E_LIMIT, LAT_E_NOMEM. */
lat_search *lat_search_new(const char *pattern, size_t len, const lat_search_options *options,
                           lat_error *err);
void lat_search_free(lat_search *s);

lat_searcher *lat_searcher_new(const lat_search *s); /* NULL: out of memory; s must outlive it */
void lat_searcher_free(lat_searcher *s);

typedef struct {
	size_t start, end; /* the line, or the lines that the match touches, without the last newline */
	size_t match;      /* where the match begins; somewhere in it */
} lat_hit;

typedef enum { LAT_HIT, LAT_NO_HIT, LAT_HIT_LIMIT /* it took too many steps */ } lat_hit_outcome;

void lat_searcher_begin(lat_searcher *s, const char *text, size_t len); /* the text is borrowed */
/* The next hit at or after `from`, the start of a line. */
lat_hit_outcome lat_searcher_next(lat_searcher *s, size_t from, lat_hit *hit);

#endif
