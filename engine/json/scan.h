/* Scanning string bodies, shared by reader and writer (private to engine/json). Pure; any thread. */
#ifndef LAT_JSON_SCAN_H
#define LAT_JSON_SCAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LAT_EACH_BYTE(b) (0x0101010101010101u * (uint64_t)(b))

static inline int lat_json_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The first byte at or behind p that isn't plain ASCII text: a quote, a backslash, a control byte, a byte
 * past 0x7f; or end. Eight bytes at a time: the subtractions set the top bit of a byte that is a quote, a
 * backslash or under 0x20; a borrow can only reach bytes behind such a one, so the first mark is right. */
static inline const char *lat_json_plain_end(const char *p, const char *end)
{
	while (end - p >= 8) {
		uint64_t w;
		memcpy(&w, p, 8);
		uint64_t quote = (w ^ LAT_EACH_BYTE('"')) - LAT_EACH_BYTE(1);
		uint64_t slash = (w ^ LAT_EACH_BYTE('\\')) - LAT_EACH_BYTE(1);
		uint64_t marks = (quote | slash | (w - LAT_EACH_BYTE(0x20)) | w) & LAT_EACH_BYTE(0x80);
		if (marks) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			return p + (__builtin_ctzll(marks) >> 3);
#else
			break;
#endif
		}
		p += 8;
	}
	while (p < end && lat_json_is_plain((unsigned char)*p))
		p++;
	return p;
}

static inline int lat_utf8_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* Bytes of the multi-byte character at p (*p > 0x7f), 0 if it isn't one by RFC 3629 section 4: no overlong
 * forms, no surrogates, nothing past U+10FFFF. */
static inline size_t lat_utf8_step(const char *p, const char *end)
{
	const unsigned char *s = (const unsigned char *)p;
	size_t left = (size_t)(end - p);
	if (s[0] < 0xe0)
		return s[0] >= 0xc2 && left >= 2 && lat_utf8_tail(s[1]) ? 2 : 0;
	if (s[0] < 0xf0) {
		if (left < 3 || !lat_utf8_tail(s[1]) || !lat_utf8_tail(s[2]))
			return 0;
		return (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ? 0 : 3;
	}
	if (s[0] > 0xf4 || left < 4 || !lat_utf8_tail(s[1]) || !lat_utf8_tail(s[2]) || !lat_utf8_tail(s[3]))
		return 0;
	return (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f) ? 0 : 4;
}

#endif
