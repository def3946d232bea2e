/* lat_exchange: a transfer whose reply goes to a reader. See exchange.h for who owns what. Loop thread
 * only. */
#include "exchange/exchange.h"

#include <time.h>

enum {
	MS_PER_S = 1000,
	NS_PER_MS = 1000000,
	WAITING_HIGH_BYTES = 256 * 1024, /* more may not wait for a taker of events */
	WAITING_LOW_BYTES = 64 * 1024
};

static int64_t wall_clock_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * MS_PER_S + t.tv_nsec / NS_PER_MS;
}

static bool has_news(const lat_exchange *x)
{
	return lat_reader_event(&x->reader) || lat_reader_over(&x->reader);
}

/* ---- the sink ---- */

static void take_head(void *self, const lat_head *head)
{
	lat_exchange *x = self;
	lat_reader_head(&x->reader, head, wall_clock_ms());
}

static lat_http_verdict take_data(void *self, const char *bytes, size_t n)
{
	lat_exchange *x = self;
	bool had_news = has_news(x);
	lat_reader_bytes(&x->reader, bytes, n);
	if (!had_news && has_news(x))
		lat_loop_notify(&x->op);
	if (lat_reader_problem(&x->reader))
		return LAT_HTTP_STOP;
	x->paused = lat_reader_waiting(&x->reader) > WAITING_HIGH_BYTES;
	return x->paused ? LAT_HTTP_PAUSE : LAT_HTTP_MORE;
}

static void transfer_done(void *self, const lat_error *err)
{
	lat_exchange *x = self;
	bool had_news = has_news(x);
	lat_reader_end(&x->reader, err, err && err->kind == LAT_E_TIMEOUT && lat_http_out_of_time(x->http));
	if (!had_news && has_news(x))
		lat_loop_notify(&x->op);
}

/* ---- life ---- */

static lat_status start_transfer(lat_exchange *x, lat_pool *pool, const lat_exchange_request *r,
                                 lat_error *err)
{
	const lat_http_source source = lat_body_source(&x->body);
	const lat_http_request request = {
		.url = r->url,
		.headers = r->headers,
		.header_count = r->header_count,
		.body = &source,
		.timeout_ns = r->timeout_ns,
		.idle_timeout_ns = r->idle_timeout_ns,
		.connect_timeout_ns = r->connect_timeout_ns,
		.max_request_bytes = r->max_request_bytes,
		.max_reply_bytes = r->max_reply_bytes,
		.max_redirects = 0, /* a redirect would carry the conversation somewhere else */
	};
	const lat_http_sink sink = {take_head, take_data, transfer_done, x};
	x->http = lat_http_start(pool, &request, &sink, err);
	return x->http ? LAT_OK : err->kind;
}

lat_status lat_exchange_start(lat_exchange *x, lat_pool *pool, const lat_exchange_request *r, lat_error *err)
{
	*x = (lat_exchange){.http = NULL};
	lat_op_init(&x->op, lat_pool_loop(pool));
	lat_status status = lat_reader_init(&x->reader, r->events, r->secrets, err);
	if (status == LAT_OK)
		status = lat_body_make(&x->body, r->prefix, r->history, r->messages, r->suffix, r->cache_mark, err);
	if (status == LAT_OK)
		status = start_transfer(x, pool, r, err);
	if (status == LAT_OK || status == LAT_E_NOMEM)
		return status;
	lat_reader_end(&x->reader, err, false);
	lat_loop_notify(&x->op);
	return LAT_OK;
}

/* Once the message is whole, the formal end of the reply needn't be waited for. */
static void drop_transfer(lat_exchange *x)
{
	if (lat_reader_over(&x->reader) && !lat_reader_problem(&x->reader))
		lat_http_linger(x->http);
	else
		lat_http_free(x->http);
	x->http = NULL;
}

void lat_exchange_free(lat_exchange *x)
{
	drop_transfer(x);
	lat_op_forget(&x->op);
	lat_body_free(&x->body);
	lat_reader_free(&x->reader);
}

void lat_exchange_cancel(lat_exchange *x)
{
	lat_error cause;
	drop_transfer(x);
	lat_fail(&cause, LAT_E_ABORT, "the request was cancelled");
	lat_reader_end(&x->reader, &cause, false);
	lat_op_forget(&x->op);
	lat_body_free(&x->body);
}

/* ---- events ---- */

const lat_value *lat_exchange_event(const lat_exchange *x)
{
	return lat_reader_event(&x->reader);
}

void lat_exchange_next(lat_exchange *x)
{
	lat_reader_next(&x->reader);
	if (!x->paused || lat_reader_waiting(&x->reader) > WAITING_LOW_BYTES)
		return;
	x->paused = false;
	if (x->http)
		lat_http_resume(x->http);
}

bool lat_exchange_done(const lat_exchange *x)
{
	return lat_reader_over(&x->reader) && !lat_reader_event(&x->reader);
}
