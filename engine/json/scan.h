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

/* Marks (top bits) the bytes of w that aren't plain ASCII text: a quote, a backslash, a control byte, a byte
 * past 0x7f. The subtractions set the top bit of a byte that is one of the first three; a borrow can only
 * reach bytes behind such a one, so the first mark is right. */
static inline uint64_t lat_json_marks(uint64_t w)
{
	uint64_t quote = (w ^ LAT_EACH_BYTE('"')) - LAT_EACH_BYTE(1);
	uint64_t slash = (w ^ LAT_EACH_BYTE('\\')) - LAT_EACH_BYTE(1);
	return (quote | slash | (w - LAT_EACH_BYTE(0x20)) | w) & LAT_EACH_BYTE(0x80);
}

/* The place of the first mark in memory. */
static inline size_t lat_json_first_mark(uint64_t marks)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (size_t)__builtin_ctzll(marks) >> 3;
#else
#error "the first byte of a word must be its lowest"
#endif
}

/* The first byte at or behind p that isn't plain, or end. Eight bytes at a time. */
static inline const char *lat_json_plain_end(const char *p, const char *end)
{
	for (uint64_t w, marks; end - p >= 8; p += 8) {
		memcpy(&w, p, 8);
		if ((marks = lat_json_marks(w)))
			return p + lat_json_first_mark(marks);
	}
	while (p < end && lat_json_is_plain((unsigned char)*p))
		p++;
	return p;
}

/* The same, and copies what it passes to *q, where 8 bytes more than that must be writable. */
static inline const char *lat_json_copy_plain(const char *p, const char *end, char **q)
{
	for (uint64_t w, marks; end - p >= 8; p += 8, *q += 8) {
		memcpy(&w, p, 8);
		memcpy(*q, &w, 8);
		if ((marks = lat_json_marks(w))) {
			size_t n = lat_json_first_mark(marks);
			*q += n;
			return p + n;
		}
	}
	while (p < end && lat_json_is_plain((unsigned char)*p))
		*(*q)++ = *p++;
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
