/* lat_glob: a pattern of file names, matched without backtracking: time is pattern × text, whatever the pattern.
 *
 *   *      any bytes but "/"                  **     as a whole path component: any components, none too
 *   ?      one byte but "/"                   […]    one of a set: a-z, [!…] or [^…] for none of it, [:alpha:]
 *   {a,b}  one of these (tools only)          \x     x itself
 *
 * Pure: bytes in, a verdict out. A compiled pattern is immutable: any number of threads may match with it. */
#ifndef LAT_WORKSPACE_GLOB_H
#define LAT_WORKSPACE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { LAT_GLOB_MAX_BYTES = 4096, LAT_GLOB_MAX_BRACES = 32 };

typedef enum {
	LAT_GLOB_GIT, /* a line of .gitignore: no braces; what is malformed matches nothing */
	LAT_GLOB_TOOL /* what a model writes: braces; what is malformed is an error */
} lat_glob_style;

typedef struct lat_glob lat_glob;

/* NULL: out of memory, malformed (LAT_E_SYNTAX), or longer than the limits above (LAT_E_LIMIT). */
lat_glob *lat_glob_new(const char *pattern, size_t len, lat_glob_style style, lat_error *err);
void lat_glob_free(lat_glob *g);
bool lat_glob_match(const lat_glob *g, const char *text, size_t len); /* the whole text */

#endif
