/* Inside the transport: putting a request into a handle. Loop thread only. */
#ifndef LAT_TRANSPORT_REQUEST_H
#define LAT_TRANSPORT_REQUEST_H

#include "base/buf.h"
#include "transport/http.h"

enum { LAT_METHOD_MAX = 31 };

/* What a transfer keeps of its request to send it, again where needed. Owned by the transfer. */
typedef struct {
	char *url;
	char method[LAT_METHOD_MAX + 1];
	lat_header_list headers;
	bool has_body;
	lat_http_source body;
	size_t sent;
} lat_request;

/* known_url: one that was found good before, or NULL. */
lat_status lat_request_make(lat_request *out, const lat_http_request *request, const char *known_url,
                            lat_error *err);
void lat_request_free(lat_request *request);

/* Sets the handle up for it. The request must stay in place until lat_request_unload. */
lat_status lat_request_load(lat_request *request, lat_handle *handle, lat_error *err);
void lat_request_unload(lat_handle *handle);

/* Turns it into what a redirect with this status to `location` asks for (RFC 9110 section 15.4); secrets stay
 * behind when that is another origin. */
lat_status lat_request_redirect(lat_request *request, int status, const char *location, lat_error *err);

/* libcurl's read and seek callbacks, for a body that isn't joined. */
size_t lat_request_read(lat_request *request, char *dst, size_t n);
bool lat_request_seek(lat_request *request, size_t offset);
bool lat_request_is_read(const lat_request *request); /* the body's source isn't needed any more */

#endif
