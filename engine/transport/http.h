/* lat_http: one HTTP request and its reply.
 *
 * Runs on the loop's thread. The body is read from a source and the reply goes to a sink, piece by piece,
 * in whatever pieces the network makes; neither is ever held whole by the transport. Sink functions are
 * called inside libcurl: they may note things and notify ops, and must not call lat_http or Lua. `done` is
 * the exception: it is called once, last, outside libcurl, never inside lat_http_start; it may free the
 * transfer.
 *
 * No error message holds a header's value, or anything of the URL but host and port. */
#ifndef LAT_TRANSPORT_HTTP_H
#define LAT_TRANSPORT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "transport/headers.h"
#include "transport/pool.h"

typedef struct lat_http lat_http;

/* A body that can be read again from any place: a connection found dead, or a redirect, sends it twice. */
typedef struct {
	size_t size;
	void (*read)(void *self, size_t offset, char *dst, size_t n); /* offset + n <= size */
	void *self;
} lat_http_source;

typedef enum {
	LAT_HTTP_MORE,
	LAT_HTTP_PAUSE, /* these bytes are taken, no more until lat_http_resume */
	LAT_HTTP_STOP   /* fails the transfer as LAT_E_ABORT */
} lat_http_verdict;

typedef struct {
	void (*head)(void *self, const lat_head *head);                    /* valid during the call only */
	lat_http_verdict (*data)(void *self, const char *bytes, size_t n); /* decoded, n > 0 */
	void (*done)(void *self, const lat_error *err);                    /* NULL: the whole reply came */
	void *self;
} lat_http_sink;

typedef struct {
	const char *method; /* NULL: POST with a body, else GET */
	const char *url;
	const lat_header *headers;
	size_t header_count;
	const lat_http_source *body; /* NULL: none; what it points into must stay until done */
	int64_t timeout_ns;          /* the whole exchange, redirects and all; 0: no limit */
	int64_t idle_timeout_ns;     /* no byte either way for so long; 0: no limit */
	int64_t connect_timeout_ns;  /* until the connection stands, TLS and all; 0: LAT_HTTP_CONNECT_NS */
	size_t max_request_bytes;    /* of the body; 0: no limit */
	size_t max_reply_bytes;      /* of the decoded body; 0: no limit */
	unsigned max_redirects;      /* 0: a redirect is a reply like any other */
} lat_http_request;

#define LAT_HTTP_CONNECT_NS 30000000000
enum { LAT_HTTP_HEAD_MAX = 128 * 1024 }; /* bytes of a reply's header fields */

/* The pool that lat_http_start takes. */
lat_pool *lat_http_pool_new(lat_loop *loop, lat_error *err);

/* NULL and an error when it can't start: LAT_E_INVALID for a bad URL, method or header (nothing was sent). */
lat_http *lat_http_start(lat_pool *pool, const lat_http_request *request, const lat_http_sink *sink,
                         lat_error *err);
/* Stops it if it runs, without another call to the sink. NULL is fine. */
void lat_http_free(lat_http *http);

/* Frees it like lat_http_free, but lets the last bytes of a reply come in first, for a while, so that the
 * connection can be used again: for a reader who has what he wants before the reply has formally ended. */
void lat_http_linger(lat_http *http);

void lat_http_resume(lat_http *http);            /* after LAT_HTTP_PAUSE; not inside a sink's function */
bool lat_http_out_of_time(const lat_http *http); /* failed since timeout_ns was over */
bool lat_http_got_bytes(const lat_http *http);   /* some of a reply came: the server has seen the request */

#endif
