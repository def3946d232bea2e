/* Where values stand in a text that lat_json_read took: for bytes that must be passed on as they came.
 *
 * On any other text the answers mean nothing (but nothing outside of it is read). Owns nothing; pure; any
 * thread. */
#ifndef LAT_JSON_RAW_H
#define LAT_JSON_RAW_H

#include "base/span.h"

/* A walk through the members of an object or the items of an array. */
typedef struct {
	const char *at, *end;
	bool object;
} lat_json_raw;

/* Of any other value there is nothing to walk through. */
lat_json_raw lat_json_raw_open(lat_span container);

/* False at the end. `key` is the inside of the quotes as it is written, {NULL, 0} in an array. */
bool lat_json_raw_next(lat_json_raw *walk, lat_span *key, lat_span *value);

/* Whether a key, as it is written, says `name` (plain ASCII). */
bool lat_json_raw_key_is(lat_span key, const char *name);

/* The value of member `name`, the last one if it stands more than once; {NULL, 0} if it isn't there. */
lat_span lat_json_raw_get(lat_span object, const char *name);

#endif
