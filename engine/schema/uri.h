/* References of RFC 3986, as far as "$id" and "$ref" need them. Pure; results live in the caller's arena. */
#ifndef LAT_SCHEMA_URI_H
#define LAT_SCHEMA_URI_H

#include "base/value.h"

/* Resolves reference against base (section 5.2; an empty base leaves the reference as it is). *uri has no
 * fragment; *fragment is percent-decoded, NULL when there was none. False when out of memory. */
bool lat_uri_resolve(lat_arena *arena, const char *base, const char *reference, size_t len, char **uri,
                     char **fragment, size_t *fragment_len);

#endif
