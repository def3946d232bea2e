/* Checking, building and reading header fields. Owns nothing but the list it hands out; any thread. */
#include "transport/headers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- checks ---- */

static bool is_token_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool lat_token_ok(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_token_char((unsigned char)s[i]))
			return false;
	return n > 0;
}

static bool named(const lat_header *h, const char *name)
{
	return strlen(name) == h->name_len && strncasecmp(h->name, name, h->name_len) == 0;
}

/* These frame the message: with two opinions about its length, a request can be smuggled (RFC 9112 section
 * 11.2). */
static bool is_framing(const lat_header *h)
{
	static const char *const names[] = {"content-length", "transfer-encoding", "expect", "te", "trailer",
	                                    "upgrade"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (named(h, names[i]))
			return true;
	return false;
}

static bool looks_secret(const lat_header *h)
{
	static const char *const parts[] = {"auth",   "key",        "token",   "secret",
	                                    "cookie", "credential", "session", "password"};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		size_t n = strlen(parts[i]);
		for (size_t at = 0; at + n <= h->name_len; at++)
			if (strncasecmp(h->name + at, parts[i], n) == 0)
				return true;
	}
	return false;
}

static lat_status check_value(const lat_header *h, lat_error *err)
{
	for (size_t i = 0; i < h->value_len; i++) {
		unsigned char c = (unsigned char)h->value[i];
		if ((c >= 0x20 && c != 0x7f) || c == '\t')
			continue;
		const char *what = c == '\n' || c == '\r' ? "a line end" : c ? "a control character" : "a NUL byte";
		return lat_fail(err, LAT_E_INVALID, "the value of header %.*s has %s at byte %zu: remove it",
		                (int)h->name_len, h->name, what, i + 1);
	}
	return LAT_OK;
}

static lat_status check(const lat_header *h, lat_error *err)
{
	if (!lat_token_ok(h->name, h->name_len))
		return lat_fail(
			err, LAT_E_INVALID,
			"a header's name must be a token (letters, digits and !#$%%&'*+-.^_`|~), of one character "
			"or more");
	if (is_framing(h))
		return lat_fail(err, LAT_E_INVALID, "header %.*s is set by the transport: leave it out",
		                (int)h->name_len, h->name);
	return check_value(h, err);
}

/* ---- building ---- */

/* Appends a line that becomes the list's own; takes it in any case. */
static bool append(struct curl_slist **list, struct curl_slist **last, const char *line)
{
	/* libcurl's list is walked to its end at each append: hand it a list of one, and link that. */
	struct curl_slist *node = curl_slist_append(NULL, line);
	if (!node)
		return false;
	if (*last)
		(*last)->next = node;
	else
		*list = node;
	*last = node;
	return true;
}

static bool append_header(struct curl_slist **list, struct curl_slist **last, const lat_header *h)
{
	char small[512], *line = small;
	if (h->name_len + h->value_len + sizeof ": " > sizeof small)
		line = malloc(h->name_len + h->value_len + sizeof ": ");
	if (!line)
		return false;
	size_t at = h->name_len;
	memcpy(line, h->name, at);
	line[at++] = h->value_len ? ':' : ';'; /* "Name;" is libcurl's spelling of an empty value */
	if (h->value_len) {
		line[at++] = ' ';
		memcpy(line + at, h->value, h->value_len);
		at += h->value_len;
	}
	line[at] = '\0';
	bool ok = append(list, last, line);
	if (line != small)
		free(line);
	return ok;
}

static bool build(lat_header_list *out, const lat_header *headers, size_t n, unsigned flags)
{
	struct curl_slist *last = NULL;
	bool has_type = false, apart = flags & LAT_HEADERS_MAY_TRAVEL;
	for (size_t i = 0; i < n; i++) {
		bool later = apart && (headers[i].secret || looks_secret(&headers[i]));
		has_type = has_type || named(&headers[i], "content-type");
		if (!later && !append_header(&out->list, &last, &headers[i]))
			return false;
	}
	/* An empty line takes a header out: bodies go without waiting for "100 Continue", and have no invented
	 * type. */
	if ((flags & LAT_HEADERS_HAVE_BODY) &&
	    (!append(&out->list, &last, "Expect:") || (!has_type && !append(&out->list, &last, "Content-Type:"))))
		return false;
	if (!apart)
		return true;
	out->last_public = last;
	for (size_t i = 0; i < n; i++)
		if ((headers[i].secret || looks_secret(&headers[i])) &&
		    !append_header(&out->list, &last, &headers[i]))
			return false;
	return true;
}

lat_status lat_header_list_build(lat_header_list *out, const lat_header *headers, size_t n, unsigned flags,
                                 lat_error *err)
{
	*out = (lat_header_list){NULL, NULL};
	for (size_t i = 0; i < n; i++) {
		lat_status status = check(&headers[i], err);
		if (status != LAT_OK)
			return status;
	}
	if (build(out, headers, n, flags))
		return LAT_OK;
	lat_header_list_free(out);
	return lat_fail_nomem(err);
}

void lat_header_list_free(lat_header_list *list)
{
	curl_slist_free_all(list->list);
	*list = (lat_header_list){NULL, NULL};
}

void lat_header_list_drop_secrets(lat_header_list *list)
{
	if (!list->last_public) {
		lat_header_list_free(list);
		return;
	}
	curl_slist_free_all(list->last_public->next);
	list->last_public->next = NULL;
}

/* ---- reading ---- */

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool lat_head_next(const lat_head *head, size_t *at, lat_header *field)
{
	while (*at < head->len) {
		const char *line = head->fields + *at;
		const char *end = memchr(line, '\n', head->len - *at);
		end = end ? end : head->fields + head->len;
		*at = (size_t)(end - head->fields) + 1;
		const char *colon = memchr(line, ':', (size_t)(end - line));
		if (!colon || colon == line || blank(*line))
			continue; /* not a field, or the folded rest of one */
		const char *value = colon + 1;
		while (value < end && blank(*value))
			value++;
		while (end > value && blank(end[-1]))
			end--;
		*field = (lat_header){line, value, (size_t)(colon - line), (size_t)(end - value), false};
		return true;
	}
	return false;
}

const char *lat_head_get(const lat_head *head, const char *name, size_t *len)
{
	lat_header field;
	for (size_t at = 0; lat_head_next(head, &at, &field);)
		if (named(&field, name)) {
			*len = field.value_len;
			return field.value;
		}
	return NULL;
}
