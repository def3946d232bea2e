/* URLs of requests: what is accepted, where one goes, and whether two go to the same place.
 *
 * Pure but for libcurl's own parser, so that what is judged here is what is requested later. Any thread. */
#ifndef LAT_TRANSPORT_URL_H
#define LAT_TRANSPORT_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Scheme, host and port (RFC 6454): what a secret may be sent to. */
typedef struct {
	bool secure; /* https */
	unsigned port;
	char host[256]; /* lower case; a name of DNS has 253 characters at most */
} lat_origin;

/* LAT_E_INVALID unless the bytes are an http or https URL with a host. No message repeats the URL: it may
 * hold a password. */
lat_status lat_url_origin(const char *url, lat_origin *origin, lat_error *err);

bool lat_origin_equal(const lat_origin *a, const lat_origin *b);

/* `location` as seen from `base` (RFC 3986 section 5): *url is the caller's to free. */
lat_status lat_url_resolve(const char *base, const char *location, char **url, lat_error *err);

#endif
