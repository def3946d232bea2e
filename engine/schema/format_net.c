/* Formats of names and addresses: ipv4, ipv6, hostname, e-mail, each also internationalised. Pure; any thread. */
#include "schema/format_parts.h"

#include <string.h>

enum { HOSTNAME_LONGEST = 253, LOCAL_PART_LONGEST = 64 };

/* RFC 2673 section 3.2, four decimal numbers without leading zeros. */
bool lat_format_ipv4(const char *s, size_t len)
{
	size_t at = 0;
	for (int part = 0; part < 4; part++) {
		int value = 0;
		if (part && (at == len || s[at++] != '.'))
			return false;
		size_t start = at;
		for (; at < len && lat_is_digit(s[at]) && at - start < 3; at++)
			value = value * 10 + (s[at] - '0');
		if (at == start || value > 255 || (s[start] == '0' && at - start > 1))
			return false;
	}
	return at == len;
}

/* RFC 4291 section 2.2. */
bool lat_format_ipv6(const char *s, size_t len)
{
	size_t at = 0;
	int groups = 0;
	bool gap = len >= 2 && s[0] == ':' && s[1] == ':';
	at = gap ? 2 : 0;
	while (at < len) {
		size_t start = at;
		while (at < len && lat_is_hex(s[at]))
			at++;
		if (at < len && s[at] == '.') { /* the last 32 bits as an IPv4 address */
			groups += 2;
			return lat_format_ipv4(s + start, len - start) && (gap ? groups < 8 : groups == 8);
		}
		if (at == start || at - start > 4 || ++groups > 8)
			return false;
		if (at == len)
			break;
		if (s[at++] != ':' || at == len)
			return false;
		if (s[at] == ':') {
			if (gap)
				return false;
			gap = true;
			at++;
		}
	}
	return gap ? groups < 8 : groups == 8;
}

/* ---- host names ---- */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Letters, digits and hyphens, none at the ends (RFC 1123 section 2.1). */
static bool is_ldh(const char *s, size_t len)
{
	if (!len || len > LAT_LABEL_LONGEST || s[0] == '-' || s[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!lat_is_alpha(s[i]) && !lat_is_digit(s[i]) && s[i] != '-')
			return false;
	return true;
}

/* "xn--" and the Punycode of a valid U-label (RFC 5890 section 2.3.2.1). */
static bool is_a_label(const char *s, size_t len, uint32_t *label, size_t *count, bool *rtl)
{
	char rest[LAT_LABEL_LONGEST];
	if (len < 5 || len > LAT_LABEL_LONGEST)
		return false;
	for (size_t i = 4; i < len; i++)
		rest[i - 4] = lower(s[i]);
	*count = lat_punycode_decode(rest, len - 4, label);
	bool ascii = true;
	for (size_t i = 0; i < *count; i++)
		ascii = ascii && label[i] < 0x80;
	return *count && !ascii && lat_idn_label(label, *count, rtl);
}

static bool has_ace_prefix(const char *s, size_t len)
{
	return len >= 4 && lower(s[0]) == 'x' && lower(s[1]) == 'n' && s[2] == '-' && s[3] == '-';
}

static bool is_host_label(const char *s, size_t len)
{
	uint32_t label[LAT_LABEL_LONGEST];
	size_t count;
	bool rtl;
	if (!has_ace_prefix(s, len))
		return is_ldh(s, len);
	return is_ldh(s, len) && is_a_label(s, len, label, &count, &rtl);
}

bool lat_format_hostname(const char *s, size_t len)
{
	if (!len || len > HOSTNAME_LONGEST)
		return false;
	for (size_t start = 0, at = 0; at <= len; at++) {
		if (at < len && s[at] != '.')
			continue;
		if (!is_host_label(s + start, at - start))
			return false;
		start = at + 1;
	}
	return true;
}

/* Dots of RFC 3490 section 3.1. */
static bool is_idn_dot(uint32_t code)
{
	return code == '.' || code == 0x3002 || code == 0xFF0E || code == 0xFF61;
}

/* The label at s: its code points, and its length with the dot behind it. */
static size_t split_label(const char *s, size_t len, uint32_t *label, size_t *count, bool *dot)
{
	size_t at = 0, n;
	*count = 0;
	for (*dot = false; at < len && !*dot; at += n) {
		uint32_t code = lat_utf8_at(s + at, len - at, &n);
		*dot = is_idn_dot(code);
		if (*dot)
			continue;
		if (code == UINT32_MAX || *count == LAT_LABEL_LONGEST)
			return 0;
		label[(*count)++] = code;
	}
	return at;
}

typedef struct {
	uint32_t label[LAT_LABEL_LONGEST];
	size_t count;
	size_t octets; /* in the form that goes over the wire */
	bool rtl;
} idn_label;

static bool check_idn_label(idn_label *l)
{
	char text[LAT_LABEL_LONGEST];
	bool ascii = true;
	for (size_t i = 0; i < l->count; i++)
		ascii = ascii && l->label[i] < 0x80;
	l->rtl = false;
	if (!ascii) {
		l->octets = 4 + lat_punycode_length(l->label, l->count);
		return l->octets <= LAT_LABEL_LONGEST && lat_idn_label(l->label, l->count, &l->rtl);
	}
	for (size_t i = 0; i < l->count; i++)
		text[i] = (char)l->label[i];
	l->octets = l->count;
	if (!is_ldh(text, l->count))
		return false;
	return !has_ace_prefix(text, l->count) || is_a_label(text, l->octets, l->label, &l->count, &l->rtl);
}

/* One pass over the labels; with bidi, all of them must hold to RFC 5893. */
static bool check_idn_name(const char *s, size_t len, bool bidi, bool *rtl)
{
	size_t octets = 0;
	bool dot = true;
	for (size_t at = 0; dot;) {
		idn_label l;
		size_t n = split_label(s + at, len - at, l.label, &l.count, &dot);
		if (!n || !l.count || !check_idn_label(&l) || (bidi && !lat_idn_bidi(l.label, l.count)))
			return false;
		*rtl = *rtl || l.rtl;
		octets += l.octets + dot;
		at += n;
	}
	return octets <= HOSTNAME_LONGEST;
}

bool lat_format_idn_hostname(const char *s, size_t len)
{
	bool rtl = false;
	return len && check_idn_name(s, len, false, &rtl) && (!rtl || check_idn_name(s, len, true, &rtl));
}

/* ---- e-mail (RFC 5321 section 4.1.2, RFC 6531 section 3.3) ---- */

static bool is_atext(const char *s, size_t len, bool utf8, size_t *n)
{
	*n = 1;
	if ((unsigned char)*s >= 0x80)
		return utf8 && lat_utf8_at(s, len, n) != UINT32_MAX;
	return lat_is_alpha(*s) || lat_is_digit(*s) || (*s && strchr("!#$%&'*+-/=?^_`{|}~", *s));
}

/* Atoms with single dots between them. Returns the length up to the "@", 0 when it isn't one. */
static size_t dot_string(const char *s, size_t len, bool utf8)
{
	size_t at = 0, n;
	bool atom = false;
	for (; at < len && s[at] != '@'; at += n) {
		n = 1;
		if (s[at] == '.' ? !atom : !is_atext(s + at, len - at, utf8, &n))
			return 0;
		atom = s[at] != '.';
	}
	return atom ? at : 0;
}

static size_t quoted_string(const char *s, size_t len, bool utf8)
{
	size_t at = 1, n;
	for (; at < len && s[at] != '"'; at += n) {
		n = 1;
		if ((unsigned char)s[at] >= 0x80) {
			if (!utf8 || lat_utf8_at(s + at, len - at, &n) == UINT32_MAX)
				return 0;
			continue;
		}
		if (s[at] == '\\')
			at++;
		if (at >= len || s[at] < 0x20 || s[at] == 0x7F)
			return 0;
	}
	return at < len ? at + 1 : 0;
}

static bool is_address_literal(const char *s, size_t len)
{
	if (len < 2 || s[len - 1] != ']')
		return false;
	if (len > 7 && strncmp(s, "[IPv6:", 6) == 0)
		return lat_format_ipv6(s + 6, len - 7);
	return lat_format_ipv4(s + 1, len - 2);
}

/* Labels of letters, digits, hyphens and any UTF-8 beyond ASCII: RFC 6531 asks no more of them. */
static bool is_utf8_domain(const char *s, size_t len)
{
	size_t label = 0, n;
	for (size_t at = 0; at < len; at += n) {
		uint32_t code = lat_utf8_at(s + at, len - at, &n);
		bool hyphen = code == '-', last = at + 1 == len || s[at + 1] == '.';
		if (code == '.' ? label == 0 : code == UINT32_MAX)
			return false;
		if (code != '.' && code < 0x80 && !lat_is_alpha(s[at]) && !lat_is_digit(s[at]) &&
		    (!hyphen || label == 0 || last))
			return false;
		label = code == '.' ? 0 : label + 1;
	}
	return label > 0;
}

static bool is_email(const char *s, size_t len, bool utf8)
{
	if (!len)
		return false;
	size_t local = *s == '"' ? quoted_string(s, len, utf8) : dot_string(s, len, utf8);
	if (!local || local > LOCAL_PART_LONGEST || local >= len || s[local] != '@')
		return false;
	s += local + 1;
	len -= local + 1;
	if (len && *s == '[')
		return is_address_literal(s, len);
	return utf8 ? is_utf8_domain(s, len) : lat_format_hostname(s, len);
}

bool lat_format_email(const char *s, size_t len)
{
	return is_email(s, len, false);
}

bool lat_format_idn_email(const char *s, size_t len)
{
	return is_email(s, len, true);
}
