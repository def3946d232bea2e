/* lat_exchange: one try of a model request, from the bytes of the history to a message or the reason why
 * not.
 *
 * Joins the transport and the reader. Loop thread only. An exchange is an op of the loop: it is notified
 * when an event waits, and when it is done. When many bytes wait for somebody to take events, the transfer
 * is paused, and the service with it. */
#ifndef LAT_EXCHANGE_EXCHANGE_H
#define LAT_EXCHANGE_EXCHANGE_H

#include "exchange/body.h"
#include "exchange/reader.h"
#include "scheduler/loop.h"
#include "transport/http.h"

typedef struct {
	lat_op op;
	/* private */
	lat_http *http;
	lat_body body;
	lat_reader reader;
	bool paused;
} lat_exchange;

typedef struct {
	const char *url;
	const lat_header *headers;
	size_t header_count;
	lat_span prefix, messages, suffix; /* see body.h; borrowed until the exchange is freed */
	lat_history *history;              /* NULL: messages; its bytes of now are held */
	bool cache_mark;
	bool events;
	lat_secrets secrets; /* borrowed likewise: they stay out of every message of an error */
	int64_t timeout_ns, idle_timeout_ns, connect_timeout_ns; /* as in lat_http_request */
	size_t max_request_bytes, max_reply_bytes;
} lat_exchange_request;

/* Makes it, at a place where it stays, and starts it. Fails for want of memory only (free it then, too);
 * what is wrong with the request comes out as a problem. */
lat_status lat_exchange_start(lat_exchange *exchange, lat_pool *pool, const lat_exchange_request *request,
                              lat_error *err);
void lat_exchange_free(lat_exchange *exchange);   /* ends it when it runs; all zero, or twice, is fine */
void lat_exchange_cancel(lat_exchange *exchange); /* ends it with an "abort", unless it is over */

/* The event that waits, NULL when none does; it stays until lat_exchange_next drops it. */
const lat_value *lat_exchange_event(const lat_exchange *exchange);
void lat_exchange_next(lat_exchange *exchange);

/* It is over, and no event waits: lat_reader_take and lat_reader_problem tell what came of it. */
bool lat_exchange_done(const lat_exchange *exchange);

#endif
