/* A request of the transport: checked, kept, and put into curl handles. Loop thread only; see request.h. */
#include "transport/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "transport/url.h"

enum {
	JOINED_MAX = 64 * 1024 - 1, /* libcurl sends header fields and body in one call up to here */
	SEE_OTHER = 303,
	MOVED = 301,
	FOUND = 302
};

void lat_request_free(lat_request *request)
{
	free(request->url);
	lat_header_list_free(&request->headers);
	*request = (lat_request){.url = NULL};
}

static lat_status check_method(const char *method, lat_error *err)
{
	size_t n = strlen(method);
	if (!lat_token_ok(method, n) || n > LAT_METHOD_MAX)
		return lat_fail(err, LAT_E_INVALID, "the method must be a token like GET or POST");
	if (strcasecmp(method, "CONNECT") == 0)
		return lat_fail(err, LAT_E_INVALID,
		                "the method CONNECT is for proxies: the transport uses it by itself");
	return LAT_OK;
}

lat_status lat_request_make(lat_request *out, const lat_http_request *request, const char *known_url,
                            lat_error *err)
{
	const lat_http_source *body = request->body;
	const char *method = request->method ? request->method : body ? "POST" : "GET";
	unsigned flags =
		(body ? LAT_HEADERS_HAVE_BODY : 0) | (request->max_redirects ? LAT_HEADERS_MAY_TRAVEL : 0);
	*out = (lat_request){.has_body = body != NULL};
	lat_origin origin;
	lat_status status = check_method(method, err);
	if (status == LAT_OK && body && strcmp(method, "HEAD") == 0)
		status = lat_fail(err, LAT_E_INVALID, "a HEAD request has no body");
	if (status == LAT_OK && (!known_url || strcmp(request->url, known_url) != 0))
		status = lat_url_origin(request->url, &origin, err);
	if (status == LAT_OK && body && request->max_request_bytes && body->size > request->max_request_bytes)
		status = lat_fail(err, LAT_E_LIMIT, "the request's body has %zu bytes, and %zu are allowed",
		                  body->size, request->max_request_bytes);
	if (status == LAT_OK)
		status = lat_header_list_build(&out->headers, request->headers, request->header_count, flags, err);
	if (status != LAT_OK)
		return status;
	strcpy(out->method, method);
	if (body)
		out->body = *body;
	out->url = strdup(request->url);
	if (out->url)
		return LAT_OK;
	lat_request_free(out);
	return lat_fail_nomem(err);
}

/* ---- into a handle ---- */

static bool load_body(lat_request *r, lat_handle *handle)
{
	CURL *curl = handle->curl;
	lat_buf *b = &handle->joined;
	r->sent = 0;
	const char *joined = NULL;
	if (r->body.size <= JOINED_MAX) {
		lat_buf_clear(b);
		if (!lat_buf_reserve(b, r->body.size + 1))
			return false;
		if (r->body.size)
			r->body.read(r->body.self, 0, b->data, r->body.size);
		joined = b->data;
	}
	return curl_easy_setopt(curl, CURLOPT_POST, 1L) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.size) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_POSTFIELDS, joined) == CURLE_OK;
}

static bool load_method(lat_request *r, lat_handle *handle)
{
	bool ok = true;
	const char *usual = "POST";
	if (r->has_body) {
		ok = load_body(r, handle);
	} else if (strcmp(r->method, "HEAD") == 0) {
		usual = "HEAD";
		ok = curl_easy_setopt(handle->curl, CURLOPT_NOBODY, 1L) == CURLE_OK;
	} else {
		usual = "GET";
		ok = curl_easy_setopt(handle->curl, CURLOPT_HTTPGET, 1L) == CURLE_OK;
	}
	if (!ok || strcmp(r->method, usual) == 0)
		return ok;
	handle->custom_method = true;
	return curl_easy_setopt(handle->curl, CURLOPT_CUSTOMREQUEST, r->method) == CURLE_OK;
}

static bool load_url(lat_request *r, lat_handle *handle)
{
	if (handle->url && strcmp(handle->url, r->url) == 0)
		return true;
	free(handle->url);
	handle->url = strdup(r->url);
	/* A request waits for a connection that may carry many only where there are such: HTTP/2 comes with
	 * TLS. */
	long waits = strncasecmp(r->url, "https:", 6) == 0;
	if (handle->url && curl_easy_setopt(handle->curl, CURLOPT_URL, handle->url) == CURLE_OK &&
	    curl_easy_setopt(handle->curl, CURLOPT_PIPEWAIT, waits) == CURLE_OK)
		return true;
	free(handle->url); /* what libcurl has now isn't known */
	handle->url = NULL;
	return false;
}

lat_status lat_request_load(lat_request *r, lat_handle *handle, lat_error *err)
{
	bool ok = load_url(r, handle) &&
	          curl_easy_setopt(handle->curl, CURLOPT_HTTPHEADER, r->headers.list) == CURLE_OK &&
	          load_method(r, handle);
	return ok ? LAT_OK : lat_fail_nomem(err);
}

void lat_request_unload(lat_handle *handle)
{
	curl_easy_setopt(handle->curl, CURLOPT_HTTPHEADER, NULL);
	curl_easy_setopt(handle->curl, CURLOPT_POSTFIELDS, NULL);
	if (handle->custom_method)
		curl_easy_setopt(handle->curl, CURLOPT_CUSTOMREQUEST, NULL);
	handle->custom_method = false;
}

size_t lat_request_read(lat_request *r, char *dst, size_t n)
{
	size_t left = r->body.size - r->sent;
	n = n < left ? n : left;
	if (n)
		r->body.read(r->body.self, r->sent, dst, n);
	r->sent += n;
	return n;
}

bool lat_request_seek(lat_request *r, size_t offset)
{
	if (offset > r->body.size)
		return false;
	r->sent = offset;
	return true;
}

bool lat_request_is_read(const lat_request *r)
{
	return !r->has_body || r->body.size <= JOINED_MAX || r->sent == r->body.size;
}

/* ---- redirects ---- */

static bool becomes_get(const lat_request *r, int status)
{
	if (status == SEE_OTHER)
		return strcmp(r->method, "HEAD") != 0;
	return (status == MOVED || status == FOUND) && strcmp(r->method, "POST") == 0;
}

lat_status lat_request_redirect(lat_request *r, int status, const char *location, lat_error *err)
{
	char *url = NULL;
	lat_origin from, to;
	lat_status failed = lat_url_resolve(r->url, location, &url, err);
	if (failed == LAT_OK)
		failed = lat_url_origin(r->url, &from, err);
	if (failed == LAT_OK)
		failed = lat_url_origin(url, &to, err);
	if (failed != LAT_OK) {
		free(url);
		return failed == LAT_E_INVALID
		           ? lat_fail(err, LAT_E_IO, "the server redirects to what isn't http or https")
		           : failed;
	}
	free(r->url);
	r->url = url;
	if (!lat_origin_equal(&from, &to))
		lat_header_list_drop_secrets(&r->headers);
	if (becomes_get(r, status)) {
		r->has_body = false;
		strcpy(r->method, "GET");
	}
	return LAT_OK;
}
