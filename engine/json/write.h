/* Writing JSON text into a lat_buf. Pure; any thread; out of memory shows in the buffer (lat_buf_ok). */
#ifndef LAT_JSON_WRITE_H
#define LAT_JSON_WRITE_H

#include "base/buf.h"
#include "base/value.h"

/* A quoted string; LAT_E_INVALID (offset of the bad byte) when s isn't UTF-8: then nothing was appended. */
lat_status lat_json_write_string(lat_buf *b, const char *s, size_t len, lat_error *err);
void lat_json_write_int(lat_buf *b, int64_t i);
/* Shortest digits that read back as the same double, "." or "e" always there; LAT_E_INVALID for NaN and
 * infinities. */
lat_status lat_json_write_double(lat_buf *b, double d, lat_error *err);
/* A whole tree, members in their stored order. LAT_E_INVALID as above, LAT_E_LIMIT past
 * LAT_JSON_DEFAULT_DEPTH levels: then nothing was appended. */
lat_status lat_json_write_value(lat_buf *b, const lat_value *v, lat_error *err);
/* Only the inside of a quoted string (no quotes): for strings that arrive in pieces. Pieces must be whole
 * UTF-8. */
lat_status lat_json_write_escaped(lat_buf *b, const char *s, size_t len, lat_error *err);

/* Length of the valid UTF-8 prefix of s; == len when all of it is valid. */
size_t lat_utf8_valid_prefix(const char *s, size_t len);

#endif
