/* The checks behind the table of formats. Each is pure: bytes in, verdict out; any thread. */
#ifndef LAT_SCHEMA_FORMAT_PARTS_H
#define LAT_SCHEMA_FORMAT_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool lat_format_date(const char *s, size_t len);
bool lat_format_time(const char *s, size_t len);
bool lat_format_date_time(const char *s, size_t len);
bool lat_format_duration(const char *s, size_t len);

bool lat_format_ipv4(const char *s, size_t len);
bool lat_format_ipv6(const char *s, size_t len);
bool lat_format_hostname(const char *s, size_t len);
bool lat_format_idn_hostname(const char *s, size_t len);
bool lat_format_email(const char *s, size_t len);
bool lat_format_idn_email(const char *s, size_t len);

bool lat_format_uri(const char *s, size_t len);
bool lat_format_uri_reference(const char *s, size_t len);
bool lat_format_iri(const char *s, size_t len);
bool lat_format_iri_reference(const char *s, size_t len);
bool lat_format_uri_template(const char *s, size_t len);

bool lat_format_json_pointer(const char *s, size_t len);
bool lat_format_relative_json_pointer(const char *s, size_t len);
bool lat_format_uuid(const char *s, size_t len);

/* ---- shared ---- */

static inline bool lat_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool lat_is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool lat_is_hex(char c)
{
	return lat_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The code point at s and its length in *n; UINT32_MAX where the bytes aren't UTF-8. len > 0. */
uint32_t lat_utf8_at(const char *s, size_t len, size_t *n);

/* ---- internationalised labels (format_idn.c) ---- */

enum { LAT_LABEL_LONGEST = 63 }; /* code points; more don't fit into 63 octets of any form */

/* A U-label of RFC 5891 section 4.2 (without the normalisation check). *rtl: has right-to-left characters. */
bool lat_idn_label(const uint32_t *label, size_t count, bool *rtl);
/* Section 4 of RFC 5893, for every label of a name that has right-to-left characters. */
bool lat_idn_bidi(const uint32_t *label, size_t count);
/* What stands behind "xn--", decoded (RFC 3492); 0 when it isn't Punycode, or not the shortest form. */
size_t lat_punycode_decode(const char *s, size_t len, uint32_t *out);
/* Octets of the Punycode of a label. */
size_t lat_punycode_length(const uint32_t *label, size_t count);

/* What a code point may do in a label: a row of the table in idn_table.c. */
enum {
	LAT_IDN_STEP_2 = 1 << 21, /* every second code point of the range */
	LAT_IDN_MARK = 1 << 22,
	LAT_IDN_VIRAMA = 1 << 23,
	LAT_IDN_BIDI_SHIFT = 24
};
enum { LAT_BIDI_L, LAT_BIDI_R, LAT_BIDI_AN, LAT_BIDI_EN, LAT_BIDI_NSM, LAT_BIDI_ON };

typedef struct {
	uint32_t first, last_and_bits; /* last: the low 21 bits */
} lat_idn_range;

extern const lat_idn_range lat_idn_ranges[];
extern const size_t lat_idn_range_count;

#endif
