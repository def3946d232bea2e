/* Dates as HTTP writes them (RFC 9110 section 5.6.7). Pure; any thread. */
#ifndef LAT_MESSAGES_HTTP_DATE_H
#define LAT_MESSAGES_HTTP_DATE_H

#include <stdint.h>

#include "base/span.h"

/* Seconds since 1970 of an IMF-fixdate, an RFC 850 date or an asctime date; false when it is none of them.
 * A year of two digits that would lie more than 50 years ahead of now_s is one of the past. */
bool lat_http_date(lat_span text, int64_t now_s, int64_t *seconds);

#endif
