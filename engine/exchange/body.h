/* The body of a model request as a source: prefix, messages, suffix, without joining copies.
 *
 *     prefix | history[0, mark) | cache mark | history[mark, end) | its close | suffix
 *     prefix | messages | suffix
 *
 * Borrows prefix, messages and suffix, which must stay until lat_body_free; owns its hold on the history's
 * bytes. */
#ifndef LAT_EXCHANGE_BODY_H
#define LAT_EXCHANGE_BODY_H

#include "base/span.h"
#include "messages/history.h"
#include "transport/http.h"

enum { LAT_BODY_PARTS = 6 };

typedef struct {
	lat_span parts[LAT_BODY_PARTS]; /* s NULL: the history's bytes, beginning with those of no earlier part */
	lat_history_bytes *held;
	size_t size;
} lat_body;

/* history NULL: `messages` stand there as they are. cache_mark: the end of the history is marked as the
 * end of what the service may cache. */
lat_status lat_body_make(lat_body *body, lat_span prefix, lat_history *history, lat_span messages,
                         lat_span suffix, bool cache_mark, lat_error *err);
void lat_body_free(lat_body *body);

lat_http_source lat_body_source(lat_body *body);

#endif
