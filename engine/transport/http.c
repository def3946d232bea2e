/* lat_http: the life of one transfer: its callbacks, its time limits, its redirects, its end.
 *
 * A transfer is owned by whoever started it and holds a handle of the pool while it runs. Loop thread
 * only. */
#include "transport/http.h"

#include <stdlib.h>
#include <string.h>

#include "transport/request.h"
#include "transport/url.h"

enum {
	NS_PER_MS = 1000000,
	BUFFER_BYTES = 16 * 1024, /* libcurl's for receiving and for sending, one each a transfer */
	LINGER_NS = 1000 * NS_PER_MS,
	LINGER_BYTES = 64 * 1024,
	CONNECT_CEILING_MS = 24 * 3600 * 1000 /* libcurl's own limit, out of the way of ours */
};

struct lat_http {
	lat_pool_job job; /* first */
	lat_pool *pool;
	lat_handle *handle; /* NULL when it is over */
	lat_http_sink sink;
	lat_request request;

	lat_timer timer; /* the nearest of the limits, looked at again when it fires */
	int64_t timeout_ns, idle_ns, connect_ns;
	int64_t start_ns, connect_start_ns, activity_ns;

	lat_buf head;
	int status; /* of the head that is coming or came */
	size_t received, max_reply;
	unsigned max_redirects, redirects;
	bool got_bytes, head_done, redirecting, paused, out_of_time, done;
	lat_error why; /* why a callback stopped it */
};

/* ---- the end ---- */

static void let_go(lat_http *http)
{
	if (!http->handle)
		return; /* and the pool may be gone */
	lat_timer_disarm(lat_pool_loop(http->pool), &http->timer);
	lat_request_unload(http->handle);
	lat_pool_give_back(http->handle);
	http->handle = NULL;
}

static void finish(lat_http *http, const lat_error *err)
{
	let_go(http);
	http->done = true;
	http->sink.done(http->sink.self, err);
}

static lat_status fail_reply_limit(lat_http *http)
{
	return lat_fail(&http->why, LAT_E_LIMIT, "the reply has more than %zu bytes", http->max_reply);
}

/* "host:port", for messages. */
static const char *place(const lat_http *http, char *out, size_t cap)
{
	lat_origin origin;
	lat_error ignored;
	if (lat_url_origin(http->request.url, &origin, &ignored) == LAT_OK)
		snprintf(out, cap, "%s:%u", origin.host, origin.port);
	else
		snprintf(out, cap, "the server");
	return out;
}

/* What libcurl's code means to the caller. */
static const lat_error *explain(lat_http *http, CURLcode code)
{
	char where[300];
	if (code == CURLE_OK && http->head_done)
		return NULL;
	if (code == CURLE_OK) { /* libcurl takes header fields that break off for the end of them */
		lat_fail(&http->why, LAT_E_IO, "request to %s failed: the reply was cut in its header fields",
		         place(http, where, sizeof where));
		return &http->why;
	}
	if (http->why.kind != LAT_OK)
		return &http->why;
	if (code == CURLE_OUT_OF_MEMORY) {
		lat_fail_nomem(&http->why);
		return &http->why;
	}
	const char *words = http->handle->error[0] ? http->handle->error : curl_easy_strerror(code);
	lat_fail(&http->why, code == CURLE_OPERATION_TIMEDOUT ? LAT_E_TIMEOUT : LAT_E_IO,
	         "request to %s failed: %s", place(http, where, sizeof where), words);
	return &http->why;
}

/* ---- time limits ---- */

static bool is_connecting(const lat_http *http)
{
	return http->job.phase == LAT_POOL_RESOLVING || http->job.phase == LAT_POOL_CONNECTING;
}

static int64_t nearest_limit(const lat_http *http)
{
	int64_t due = INT64_MAX / 2, limit = due;
	if (http->timeout_ns)
		due = http->start_ns + http->timeout_ns;
	if (is_connecting(http))
		limit = http->connect_start_ns + http->connect_ns;
	else if (http->job.phase == LAT_POOL_CONNECTED && http->idle_ns && !http->paused)
		limit = http->activity_ns + http->idle_ns;
	return limit < due ? limit : due;
}

/* Armed from start to end, if need be for a day that never comes: so moving it can't fail. */
static lat_status arm(lat_http *http, lat_error *err)
{
	return lat_timer_arm(lat_pool_loop(http->pool), &http->timer, nearest_limit(http), err);
}

static void fail_late(lat_http *http, int64_t now)
{
	char where[300];
	place(http, where, sizeof where);
	http->out_of_time = http->timeout_ns && now >= http->start_ns + http->timeout_ns;
	if (http->out_of_time)
		lat_fail(&http->why, LAT_E_TIMEOUT, "no complete reply from %s within %lld ms", where,
		         (long long)(http->timeout_ns / NS_PER_MS));
	else if (is_connecting(http))
		lat_fail(&http->why, LAT_E_TIMEOUT, "no connection to %s within %lld ms", where,
		         (long long)(http->connect_ns / NS_PER_MS));
	else
		lat_fail(&http->why, LAT_E_TIMEOUT, "%s was silent for %lld ms", where,
		         (long long)(http->idle_ns / NS_PER_MS));
	finish(http, &http->why);
}

/* Bytes only note the time; here it is seen whether a limit is really over. */
static void time_is_up(lat_timer *timer)
{
	lat_http *http = (lat_http *)((char *)timer - offsetof(lat_http, timer));
	int64_t now = lat_now_ns();
	if (now >= nearest_limit(http))
		fail_late(http, now);
	else
		arm(http, NULL); /* can't fail: its place in the heap has just become free */
}

/* ---- libcurl's callbacks: `user` is the handle ---- */

static lat_http *of(void *user)
{
	return (lat_http *)((lat_handle *)user)->job;
}

static void on_moved(lat_pool_job *job)
{
	lat_http *http = (lat_http *)job;
	http->activity_ns = lat_pool_time_ns(http->pool);
	if (job->phase == LAT_POOL_CONNECTED)
		http->connect_start_ns = 0; /* should it be found dead, another is tried */
	else if (!http->connect_start_ns)
		http->connect_start_ns = http->activity_ns; /* looking up the name is part of connecting */
	arm(http, NULL);
}

static size_t on_read(char *dst, size_t size, size_t n, void *user)
{
	lat_http *http = of(user);
	http->activity_ns = lat_pool_time_ns(http->pool);
	return lat_request_read(&http->request, dst, size * n);
}

static int on_seek(void *user, curl_off_t offset, int origin)
{
	bool ok = origin == SEEK_SET && offset >= 0 && lat_request_seek(&of(user)->request, (size_t)offset);
	return ok ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static bool is_redirect(int status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void head_complete(lat_http *http)
{
	enum { FIRST_FINAL_STATUS = 200 };
	if (http->status < FIRST_FINAL_STATUS)
		return; /* 100 Continue, 103 Early Hints: the real one follows */
	lat_head head = {http->status, http->head.data, http->head.len};
	size_t len;
	http->head_done = true;
	http->redirecting =
		http->max_redirects > 0 && is_redirect(http->status) && lat_head_get(&head, "location", &len);
	if (!http->redirecting && http->sink.head)
		http->sink.head(http->sink.self, &head);
}

/* One line of the head at a time, status line first, an empty one last; trailers come after the head is
 * done. */
static size_t on_header(char *line, size_t size, size_t n, void *user)
{
	lat_http *http = of(user);
	n *= size;
	http->activity_ns = lat_pool_time_ns(http->pool);
	http->got_bytes = true;
	if (http->head_done)
		return n;
	if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) {
		long status = 0;
		curl_easy_getinfo(http->handle->curl, CURLINFO_RESPONSE_CODE, &status);
		http->status = (int)status;
		lat_buf_clear(&http->head);
		return n;
	}
	if (n == 0 || line[0] == '\r' || line[0] == '\n') {
		head_complete(http);
		return n;
	}
	lat_buf_append(&http->head, line, n);
	if (lat_buf_ok(&http->head) && http->head.len <= LAT_HTTP_HEAD_MAX)
		return n;
	if (!lat_buf_ok(&http->head))
		lat_fail_nomem(&http->why);
	else
		lat_fail(&http->why, LAT_E_LIMIT, "the reply's header fields have more than %d bytes",
		         LAT_HTTP_HEAD_MAX);
	return 0;
}

static size_t on_data(char *bytes, size_t size, size_t n, void *user)
{
	lat_http *http = of(user);
	n *= size;
	http->activity_ns = lat_pool_time_ns(http->pool);
	http->got_bytes = true;
	if (n > SIZE_MAX - http->received || (http->max_reply && http->received + n > http->max_reply)) {
		fail_reply_limit(http);
		return 0;
	}
	http->received += n;
	if (http->redirecting || n == 0)
		return n;
	switch (http->sink.data(http->sink.self, bytes, n)) {
	case LAT_HTTP_MORE:
		return n;
	case LAT_HTTP_PAUSE:
		http->paused = true;
		curl_easy_pause(http->handle->curl, CURLPAUSE_RECV);
		return n;
	default:
		lat_fail(&http->why, LAT_E_ABORT, "stopped by the reader");
		return 0;
	}
}

/* ---- starting, following ---- */

static lat_status start_hop(lat_http *http, lat_error *err)
{
	lat_status status = lat_request_load(&http->request, http->handle, err);
	if (status != LAT_OK)
		return status;
	http->connect_start_ns = 0;
	http->head_done = http->redirecting = false;
	http->received = 0;
	lat_buf_clear(&http->head);
	status = arm(http, err);
	return status == LAT_OK ? lat_pool_start(http->handle, err) : status;
}

static lat_status follow(lat_http *http)
{
	if (http->redirects++ == http->max_redirects)
		return lat_fail(&http->why, LAT_E_LIMIT, "the server redirected more than %u times",
		                http->max_redirects);
	lat_head head = {http->status, http->head.data, http->head.len};
	size_t len = 0;
	const char *value = lat_head_get(&head, "location", &len);
	char *location = value ? strndup(value, len) : NULL;
	if (!location)
		return lat_fail_nomem(&http->why);
	lat_status status = lat_request_redirect(&http->request, http->status, location, &http->why);
	free(location);
	if (status != LAT_OK)
		return status;
	lat_request_unload(http->handle);
	return start_hop(http, &http->why);
}

static void on_done(lat_pool_job *job, CURLcode code)
{
	lat_http *http = (lat_http *)job;
	if (code == CURLE_OK && http->redirecting) {
		if (follow(http) != LAT_OK)
			finish(http, &http->why);
		return;
	}
	finish(http, explain(http, code));
}

/* Where the curl tool looks for trusted certificates, in its order. */
static bool set_trust(CURL *curl)
{
	const char *bundle = getenv("CURL_CA_BUNDLE"), *folder = NULL;
	if (!bundle || !*bundle) {
		bundle = getenv("SSL_CERT_FILE");
		folder = getenv("SSL_CERT_DIR");
	}
	bool ok = true;
	if (bundle && *bundle)
		ok = curl_easy_setopt(curl, CURLOPT_CAINFO, bundle) == CURLE_OK &&
		     curl_easy_setopt(curl, CURLOPT_PROXY_CAINFO, bundle) == CURLE_OK;
	if (ok && folder && *folder)
		ok = curl_easy_setopt(curl, CURLOPT_CAPATH, folder) == CURLE_OK &&
		     curl_easy_setopt(curl, CURLOPT_PROXY_CAPATH, folder) == CURLE_OK;
	return ok;
}

static bool set_callbacks(lat_handle *handle)
{
	CURL *curl = handle->curl;
	return curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_READDATA, handle) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_SEEKDATA, handle) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_HEADERDATA, handle) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_WRITEDATA, handle) == CURLE_OK;
}

/* What is the same for every request. Certificates are verified by default, and nothing here turns that
 * off. */
static bool set_up(lat_handle *handle)
{
	CURL *curl = handle->curl;
	return curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip") == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, (long)BUFFER_BYTES) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_CEILING_MS) == CURLE_OK &&
	       set_callbacks(handle) && set_trust(curl);
}

lat_pool *lat_http_pool_new(lat_loop *loop, lat_error *err)
{
	return lat_pool_new(loop, set_up, err);
}

static int64_t bounded(int64_t ns)
{
	const int64_t longest = INT64_MAX / 4; /* so that "now + limit" can't overflow */
	return ns < longest ? ns : longest;
}

lat_http *lat_http_start(lat_pool *pool, const lat_http_request *request, const lat_http_sink *sink,
                         lat_error *err)
{
	lat_http *http = calloc(1, sizeof *http);
	if (!http) {
		lat_fail_nomem(err);
		return NULL;
	}
	http->pool = pool;
	http->sink = *sink;
	http->job.done = on_done;
	http->job.moved = on_moved;
	http->timer.fire = time_is_up;
	http->timeout_ns = bounded(request->timeout_ns);
	http->idle_ns = bounded(request->idle_timeout_ns);
	http->connect_ns =
		bounded(request->connect_timeout_ns ? request->connect_timeout_ns : LAT_HTTP_CONNECT_NS);
	http->max_reply = request->max_reply_bytes;
	http->max_redirects = request->max_redirects;
	http->start_ns = lat_now_ns();
	http->handle = lat_pool_borrow(pool, &http->job, err);
	if (http->handle && lat_request_make(&http->request, request, http->handle->url, err) == LAT_OK &&
	    start_hop(http, err) == LAT_OK)
		return http;
	lat_http_free(http);
	return NULL;
}

void lat_http_free(lat_http *http)
{
	if (!http)
		return;
	let_go(http);
	lat_request_free(&http->request);
	lat_buf_free(&http->head);
	free(http);
}

static lat_http_verdict ignore_data(void *self, const char *bytes, size_t n)
{
	(void)self;
	(void)bytes;
	(void)n;
	return LAT_HTTP_MORE;
}

static void free_when_done(void *self, const lat_error *err)
{
	(void)err;
	lat_http_free(self);
}

void lat_http_linger(lat_http *http)
{
	if (!http || http->done || !lat_request_is_read(&http->request)) {
		lat_http_free(http);
		return;
	}
	http->sink = (lat_http_sink){NULL, ignore_data, free_when_done, http};
	http->timeout_ns = lat_now_ns() - http->start_ns + LINGER_NS;
	http->max_reply = http->received + LINGER_BYTES;
	arm(http, NULL);
	if (http->paused)
		lat_http_resume(http);
	lat_pool_forsake(http->handle);
}

void lat_http_resume(lat_http *http)
{
	if (!http->paused || http->done)
		return;
	http->paused = false;
	lat_pool_note_time(http->pool);
	http->activity_ns = lat_pool_time_ns(http->pool);
	arm(http, NULL);
	curl_easy_pause(http->handle->curl, CURLPAUSE_CONT);
}

bool lat_http_out_of_time(const lat_http *http)
{
	return http->out_of_time;
}

bool lat_http_got_bytes(const lat_http *http)
{
	return http->got_bytes;
}
