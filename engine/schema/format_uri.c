/* Formats of RFC 3986, 3987 and 6570: uri, iri, their references, uri-template. Pure; any thread. */
#include "schema/format_parts.h"

#include <string.h>

#define SUB_DELIMS "!$&'()*+,;="

/* Which characters a part takes, beyond unreserved ones and percent triplets. */
typedef struct {
	const char *extra;
	bool international; /* ucschar of RFC 3987 */
	bool private_use;   /* and iprivate */
} charset;

static bool is_ucschar(uint32_t c)
{
	if (c < 0x10000)
		return (c >= 0xA0 && c <= 0xD7FF) || (c >= 0xF900 && c <= 0xFDCF) || (c >= 0xFDF0 && c <= 0xFFEF);
	return (c & 0xFFFF) <= 0xFFFD && c < 0xF0000 && (c < 0xE0000 || c >= 0xE1000);
}

static bool is_private(uint32_t c)
{
	return (c >= 0xE000 && c <= 0xF8FF) || (c >= 0xF0000 && (c & 0xFFFF) <= 0xFFFD);
}

/* The bytes of one allowed character at s; 0 when it isn't allowed. */
static size_t one_char(const char *s, size_t len, const charset *set)
{
	size_t n;
	if ((unsigned char)*s >= 0x80) {
		uint32_t c = lat_utf8_at(s, len, &n);
		if (!set->international || c == UINT32_MAX)
			return 0;
		return is_ucschar(c) || (set->private_use && is_private(c)) ? n : 0;
	}
	if (*s == '%')
		return len >= 3 && lat_is_hex(s[1]) && lat_is_hex(s[2]) ? 3 : 0;
	if (lat_is_alpha(*s) || lat_is_digit(*s) || (*s && (strchr("-._~", *s) || strchr(set->extra, *s))))
		return 1;
	return 0;
}

static bool all_chars(const char *s, size_t len, const charset *set)
{
	for (size_t at = 0, n; at < len; at += n) {
		n = one_char(s + at, len - at, set);
		if (!n)
			return false;
	}
	return true;
}

/* "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" ) */
static bool is_ip_future(const char *s, size_t len)
{
	static const charset REST = {SUB_DELIMS ":", false, false};
	size_t at = 1;
	if (len < 4 || (*s | 0x20) != 'v')
		return false;
	while (at < len && lat_is_hex(s[at]))
		at++;
	return at > 1 && at + 1 < len && s[at] == '.' && !memchr(s, '%', len) &&
	       all_chars(s + at + 1, len - at - 1, &REST);
}

static bool is_port(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!lat_is_digit(s[i]))
			return false;
	return true;
}

static bool is_host_and_port(const char *s, size_t len, bool iri)
{
	const charset name = {SUB_DELIMS, iri, false};
	const char *end = s + len, *close = len && *s == '[' ? memchr(s, ']', len) : NULL;
	if (len && *s == '[') {
		if (!close)
			return false;
		size_t inner = (size_t)(close - s) - 1;
		if (!lat_format_ipv6(s + 1, inner) && !is_ip_future(s + 1, inner))
			return false;
		s = close + 1;
		return s == end || (*s == ':' && is_port(s + 1, (size_t)(end - s) - 1));
	}
	const char *colon = len ? memchr(s, ':', len) : NULL;
	if (colon && !is_port(colon + 1, (size_t)(end - colon) - 1))
		return false;
	return all_chars(s, (size_t)((colon ? colon : end) - s), &name);
}

static bool is_authority(const char *s, size_t len, bool iri)
{
	const charset user = {SUB_DELIMS ":", iri, false};
	const char *at = len ? memchr(s, '@', len) : NULL;
	if (!at)
		return is_host_and_port(s, len, iri);
	size_t before = (size_t)(at - s);
	return all_chars(s, before, &user) && is_host_and_port(at + 1, len - before - 1, iri);
}

/* The bytes before the first of `stops`. */
static size_t span(const char *s, size_t len, const char *stops)
{
	size_t n = 0;
	while (n < len && (!s[n] || !strchr(stops, s[n])))
		n++;
	return n;
}

static size_t scheme_length(const char *s, size_t len)
{
	size_t n = 0;
	if (!len || !lat_is_alpha(*s))
		return 0;
	while (n < len && (lat_is_alpha(s[n]) || lat_is_digit(s[n]) || s[n] == '+' || s[n] == '-' || s[n] == '.'))
		n++;
	return n < len && s[n] == ':' ? n : 0;
}

/* [ "//" authority ] path [ "?" query ] [ "#" fragment ]; without a scheme the first segment has no colon. */
static bool is_rest(const char *s, size_t len, bool has_scheme, bool iri)
{
	const charset path = {SUB_DELIMS ":@/", iri, false};
	const charset query = {SUB_DELIMS ":@/?", iri, true}, fragment = {SUB_DELIMS ":@/?", iri, false};
	bool authority = len >= 2 && s[0] == '/' && s[1] == '/';
	if (authority) {
		size_t n = span(s + 2, len - 2, "/?#");
		if (!is_authority(s + 2, n, iri))
			return false;
		s += n + 2;
		len -= n + 2;
	}
	size_t n = span(s, len, "?#");
	if (!all_chars(s, n, &path) || (!has_scheme && !authority && memchr(s, ':', span(s, n, "/"))))
		return false;
	s += n;
	len -= n;
	if (len && *s == '?') {
		n = span(s + 1, len - 1, "#");
		if (!all_chars(s + 1, n, &query))
			return false;
		s += n + 1;
		len -= n + 1;
	}
	return !len || all_chars(s + 1, len - 1, &fragment);
}

static bool is_absolute(const char *s, size_t len, bool iri)
{
	size_t scheme = scheme_length(s, len);
	return scheme && is_rest(s + scheme + 1, len - scheme - 1, true, iri);
}

bool lat_format_uri(const char *s, size_t len)
{
	return is_absolute(s, len, false);
}

bool lat_format_iri(const char *s, size_t len)
{
	return is_absolute(s, len, true);
}

bool lat_format_uri_reference(const char *s, size_t len)
{
	return is_absolute(s, len, false) || is_rest(s, len, false, false);
}

bool lat_format_iri_reference(const char *s, size_t len)
{
	return is_absolute(s, len, true) || is_rest(s, len, false, true);
}

/* ---- templates (RFC 6570 section 2, with erratum 6937: an apostrophe is a literal) ---- */

/* varname [ ":" 1 to 9999 / "*" ] */
static bool is_varspec(const char *s, size_t len)
{
	size_t name = span(s, len, ":*");
	bool after_dot = true;
	for (size_t at = 0; at < name; at++) {
		bool triplet = s[at] == '%' && name - at >= 3 && lat_is_hex(s[at + 1]) && lat_is_hex(s[at + 2]);
		if (s[at] == '.' ? after_dot
		                 : !triplet && !lat_is_alpha(s[at]) && !lat_is_digit(s[at]) && s[at] != '_')
			return false;
		after_dot = s[at] == '.';
		at += triplet ? 2 : 0;
	}
	if (after_dot || name == len)
		return !after_dot;
	if (s[name] == '*')
		return name + 1 == len;
	size_t digits = len - name - 1;
	return digits >= 1 && digits <= 4 && s[name + 1] != '0' && is_port(s + name + 1, digits);
}

static bool is_expression(const char *s, size_t len)
{
	if (len && *s && strchr("+#./;?&=,!@|", *s)) {
		s++;
		len--;
	}
	for (;;) {
		size_t n = span(s, len, ",");
		if (!is_varspec(s, n))
			return false;
		if (n == len)
			return true;
		s += n + 1;
		len -= n + 1;
	}
}

bool lat_format_uri_template(const char *s, size_t len)
{
	static const charset LITERAL = {"!#$&'()*+,/:;=?@[]", true, true};
	for (size_t at = 0, n; at < len; at += n) {
		if (s[at] == '{') {
			const char *close = memchr(s + at, '}', len - at);
			n = close ? (size_t)(close - s) - at + 1 : 0;
			if (!close || !is_expression(s + at + 1, n - 2))
				return false;
		} else {
			n = one_char(s + at, len - at, &LITERAL);
			if (!n)
				return false;
		}
	}
	return true;
}
