/* Number literals and numbers (private to engine/json). Pure; any thread; the locale doesn't matter. */
#ifndef LAT_JSON_NUMBER_H
#define LAT_JSON_NUMBER_H

#include "base/value.h"

/* Reads the literal at *at ('-' or a digit stands there). On success *at is behind it; on failure at the bad
 * byte and *why says what is wrong: LAT_E_SYNTAX, or LAT_E_LIMIT for a number past the range of a double. */
lat_status lat_json_read_number(const char **at, const char *end, lat_value *out, const char **why);

/* Writes m in decimal so that it ends before `end` (20 bytes of room are enough); returns its first digit. */
char *lat_json_put_digits(char *end, uint64_t m);

enum { LAT_JSON_DOUBLE_CHARS = 32 }; /* room for any double, and a NUL */

/* Shortest digits that read back as d, which must be finite; returns the length. */
size_t lat_json_format_double(char out[LAT_JSON_DOUBLE_CHARS], double d);

#endif
