/* Header fields: those of a request checked and built, those of a reply looked up.
 *
 * Pure but for libcurl's list type; any thread. */
#ifndef LAT_TRANSPORT_HEADERS_H
#define LAT_TRANSPORT_HEADERS_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct {
	const char *name, *value; /* borrowed; need no NUL behind them */
	size_t name_len, value_len;
	bool secret; /* never sent to another origin; names that look like secrets are so anyway */
} lat_header;

/* A request's headers as libcurl takes them. */
typedef struct {
	struct curl_slist *list;        /* the public ones first */
	struct curl_slist *last_public; /* NULL: all are secret, or it isn't known which are */
} lat_header_list;

typedef enum {
	LAT_HEADERS_HAVE_BODY = 1,  /* a content type that libcurl would invent is held back */
	LAT_HEADERS_MAY_TRAVEL = 2, /* a redirect may take them elsewhere: secrets must be known */
} lat_header_flags;

/* Checks all (RFC 9110 section 5: a name is a token, a value has no control characters; so nobody can
 * smuggle a line) and builds the list: on failure nothing is left to free. LAT_E_INVALID names the header,
 * never its value. */
lat_status lat_header_list_build(lat_header_list *out, const lat_header *headers, size_t n, unsigned flags,
                                 lat_error *err);
void lat_header_list_free(lat_header_list *list);
void lat_header_list_drop_secrets(lat_header_list *list);

bool lat_token_ok(const char *s, size_t n); /* a token of RFC 9110: a header's name, a method */

/* ---- a reply's head ---- */

typedef struct {
	int status;
	const char *fields; /* "Name: value\r\n…" as it came */
	size_t len;
} lat_head;

/* The first field of that name (any case), without blanks around it; NULL when there is none. */
const char *lat_head_get(const lat_head *head, const char *name, size_t *len);

/* Steps through the fields: *at starts at 0; false at the end. */
bool lat_head_next(const lat_head *head, size_t *at, lat_header *field);

#endif
