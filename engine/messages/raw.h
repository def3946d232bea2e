/* Raw slices of JSON: where a member or an item stands in a text, so that it can be echoed byte for byte.
 *
 * Only for text that lat_json_read has accepted: the walk trusts it and checks nothing. Owns nothing; views point
 * into the text. Any thread. */
#ifndef LAT_MESSAGES_RAW_H
#define LAT_MESSAGES_RAW_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
	const char *s;
	size_t len;
} lat_slice;

typedef struct {
	const char *at, *end;
} lat_raw_walk;

/* Begins to walk the members of an object, or the items of an array; a walk over anything else is empty. */
lat_raw_walk lat_raw_begin(lat_slice container);
bool lat_raw_next_member(lat_raw_walk *walk, lat_slice *key, lat_slice *value); /* key: with its quotes */
bool lat_raw_next_item(lat_raw_walk *walk, lat_slice *value);

/* The last member of that plain name (no escapes in it); false when there is none. */
bool lat_raw_member(lat_slice object, const char *name, lat_slice *value);

/* Whether a quoted key is that plain name. */
bool lat_raw_key_is(lat_slice key, const char *name);

bool lat_slice_is(lat_slice slice, const char *text);

#endif
