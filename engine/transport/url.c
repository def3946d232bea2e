/* Origins and redirect targets, by libcurl's URL parser. Owns nothing between calls; any thread. */
#include "transport/url.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

static lat_status refuse(CURLUcode code, lat_error *err)
{
	if (code == CURLUE_OUT_OF_MEMORY)
		return lat_fail_nomem(err);
	return lat_fail(err, LAT_E_INVALID,
	                "the URL can't be used (%s): expected http:// or https:// with a host",
	                curl_url_strerror(code));
}

static CURLUcode fill(CURLU *u, lat_origin *origin)
{
	char *scheme = NULL, *host = NULL, *port = NULL;
	CURLUcode code = curl_url_get(u, CURLUPART_SCHEME, &scheme, 0);
	if (code == CURLUE_OK)
		code = curl_url_get(u, CURLUPART_HOST, &host, 0);
	if (code == CURLUE_OK)
		code = curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
	if (code == CURLUE_OK) {
		origin->secure = strcmp(scheme, "https") == 0;
		origin->port = (unsigned)strtoul(port, NULL, 10);
		size_t n = strlen(host);
		if (n >= sizeof origin->host || (!origin->secure && strcmp(scheme, "http") != 0))
			code = n >= sizeof origin->host ? CURLUE_BAD_HOSTNAME : CURLUE_UNSUPPORTED_SCHEME;
		for (size_t i = 0; code == CURLUE_OK && i <= n; i++)
			origin->host[i] = (char)tolower((unsigned char)host[i]);
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	return code;
}

lat_status lat_url_origin(const char *url, lat_origin *origin, lat_error *err)
{
	/* Without a scheme libcurl would guess one; a scheme that isn't ours is refused by fill. */
	CURLU *u = curl_url();
	if (!u)
		return lat_fail_nomem(err);
	CURLUcode code = curl_url_set(u, CURLUPART_URL, url, 0);
	if (code == CURLUE_OK)
		code = fill(u, origin);
	curl_url_cleanup(u);
	return code == CURLUE_OK ? LAT_OK : refuse(code, err);
}

bool lat_origin_equal(const lat_origin *a, const lat_origin *b)
{
	return a->secure == b->secure && a->port == b->port && strcmp(a->host, b->host) == 0;
}

lat_status lat_url_resolve(const char *base, const char *location, char **url, lat_error *err)
{
	CURLU *u = curl_url();
	if (!u)
		return lat_fail_nomem(err);
	char *whole = NULL;
	CURLUcode code = curl_url_set(u, CURLUPART_URL, base, 0);
	if (code == CURLUE_OK)
		code = curl_url_set(u, CURLUPART_URL, location, CURLU_URLENCODE);
	if (code == CURLUE_OK)
		code = curl_url_get(u, CURLUPART_URL, &whole, 0);
	curl_url_cleanup(u);
	if (code == CURLUE_OUT_OF_MEMORY)
		return lat_fail_nomem(err);
	if (code != CURLUE_OK)
		return lat_fail(err, LAT_E_IO, "the server redirects to a place that can't be used (%s)",
		                curl_url_strerror(code));
	*url = strdup(whole);
	curl_free(whole);
	return *url ? LAT_OK : lat_fail_nomem(err);
}
