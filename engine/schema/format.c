/* The table of formats, and the small ones. Constants only; pure; any thread. */
#include "schema/format.h"

#include <string.h>

#include "schema/format_parts.h"

/* RFC 6901: "/" and tokens in which "~" is only written as ~0 or ~1. */
bool lat_format_json_pointer(const char *s, size_t len)
{
	if (len && *s != '/')
		return false;
	for (size_t i = 0; i < len; i++)
		if (s[i] == '~' && (i + 1 == len || (s[i + 1] != '0' && s[i + 1] != '1')))
			return false;
	return true;
}

bool lat_format_relative_json_pointer(const char *s, size_t len)
{
	size_t n = 0;
	while (n < len && lat_is_digit(s[n]))
		n++;
	if (!n || (n > 1 && *s == '0'))
		return false;
	if (len - n == 1 && s[n] == '#')
		return true;
	return lat_format_json_pointer(s + n, len - n);
}

/* RFC 4122 section 3: any version and variant. */
bool lat_format_uuid(const char *s, size_t len)
{
	static const char SHAPE[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	if (len != sizeof SHAPE - 1)
		return false;
	for (size_t i = 0; i < len; i++)
		if (SHAPE[i] == 'x' ? !lat_is_hex(s[i]) : s[i] != '-')
			return false;
	return true;
}

const lat_format *lat_format_find(const char *name, size_t len)
{
	static const lat_format FORMATS[] = {
		{"date", lat_format_date, "date such as 2024-12-31 (RFC 3339)"},
		{"date-time", lat_format_date_time, "date and time such as 2024-12-31T23:59:59Z (RFC 3339)"},
		{"duration", lat_format_duration, "duration such as P1DT12H (RFC 3339 appendix A)"},
		{"email", lat_format_email, "e-mail address"},
		{"hostname", lat_format_hostname, "host name"},
		{"idn-email", lat_format_idn_email, "e-mail address, international characters allowed"},
		{"idn-hostname", lat_format_idn_hostname, "host name, international characters allowed"},
		{"ipv4", lat_format_ipv4, "IPv4 address"},
		{"ipv6", lat_format_ipv6, "IPv6 address"},
		{"iri", lat_format_iri, "absolute IRI"},
		{"iri-reference", lat_format_iri_reference, "IRI or relative IRI reference"},
		{"json-pointer", lat_format_json_pointer, "JSON pointer such as /a/0"},
		{"regex", NULL, "regular expression of ECMA-262"},
		{"relative-json-pointer", lat_format_relative_json_pointer, "relative JSON pointer such as 1/a"},
		{"time", lat_format_time, "time with offset such as 23:59:59Z (RFC 3339)"},
		{"uri", lat_format_uri, "absolute URI"},
		{"uri-reference", lat_format_uri_reference, "URI or relative URI reference"},
		{"uri-template", lat_format_uri_template, "URI template (RFC 6570)"},
		{"uuid", lat_format_uuid, "UUID"},
	};
	for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
		if (strlen(FORMATS[i].name) == len && memcmp(FORMATS[i].name, name, len) == 0)
			return &FORMATS[i];
	return NULL;
}
