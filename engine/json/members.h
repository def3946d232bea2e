/* Duplicate keys (private to engine/json). */
#ifndef LAT_JSON_MEMBERS_H
#define LAT_JSON_MEMBERS_H

#include "base/value.h"

/* members: 2 * *count values, key, value, key, value … Of equal keys the last value stays, in the first one's
 * place; *count becomes the number that is left. LAT_E_NOMEM: nothing was changed. */
lat_status lat_json_drop_duplicates(lat_value *members, size_t *count);

#endif
