/* Labels of internationalised names: RFC 5891 (IDNA 2008), 5892 (code points), 5893 (right to left), 3492
 * (Punycode). Pure; any thread. Whether a label is in normalisation form C isn't checked: that takes tables
 * of its own. */
#include "schema/format_parts.h"

#include <string.h>

uint32_t lat_utf8_at(const char *s, size_t len, size_t *n)
{
	const unsigned char *b = (const unsigned char *)s;
	size_t width = *b < 0x80 ? 1 : *b < 0xE0 ? 2 : *b < 0xF0 ? 3 : 4;
	uint32_t code = width == 1 ? *b : *b & (0xFFu >> (width + 1));
	*n = 1;
	if (*b < 0x80)
		return code;
	if (*b < 0xC2 || *b > 0xF4 || width > len)
		return UINT32_MAX;
	for (size_t i = 1; i < width; i++) {
		if ((b[i] & 0xC0) != 0x80)
			return UINT32_MAX;
		code = code << 6 | (b[i] & 0x3F);
	}
	*n = width;
	return code;
}

/* ---- code points ---- */

/* The bits of a code point that may stand in a label; UINT32_MAX for any other. */
static uint32_t bits_of(uint32_t code)
{
	size_t low = 0, high = lat_idn_range_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (lat_idn_ranges[middle].first <= code)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return UINT32_MAX;
	const lat_idn_range *r = &lat_idn_ranges[low - 1];
	if (code > (r->last_and_bits & 0x1FFFFF) ||
	    ((r->last_and_bits & LAT_IDN_STEP_2) && ((code - r->first) & 1)))
		return UINT32_MAX;
	return r->last_and_bits & ~(uint32_t)0x1FFFFF;
}

static unsigned bidi_of(uint32_t bits)
{
	return bits >> LAT_IDN_BIDI_SHIFT & 7;
}

static bool is_in(uint32_t code, uint32_t first, uint32_t last)
{
	return code >= first && code <= last;
}

static bool is_greek(uint32_t c)
{
	return is_in(c, 0x370, 0x3FF) || is_in(c, 0x1F00, 0x1FFF);
}

static bool is_hebrew(uint32_t c)
{
	return is_in(c, 0x591, 0x5F4);
}

static bool is_kana_or_han(uint32_t c)
{
	return is_in(c, 0x3041, 0x309F) || (is_in(c, 0x30A1, 0x30FF) && c != 0x30FB) || c == 0x3005 ||
	       c == 0x3007 || is_in(c, 0x3400, 0x4DBF) || is_in(c, 0x4E00, 0x9FFF) || is_in(c, 0x20000, 0x3134F);
}

/* Arabic and Syriac letters that join only to the one before them, or not at all; the rest join on both sides
 * (Unicode's ArabicShaping, for the scripts where ZWNJ is used). */
static bool joins_forward(uint32_t c)
{
	static const uint32_t RIGHT_ONLY[][2] = {{0x621, 0x625}, {0x627, 0x627}, {0x629, 0x629}, {0x62F, 0x632},
	                                         {0x648, 0x648}, {0x671, 0x677}, {0x688, 0x699}, {0x6C0, 0x6C0},
	                                         {0x6C3, 0x6CB}, {0x6CD, 0x6CD}, {0x6CF, 0x6CF}, {0x6D2, 0x6D5},
	                                         {0x6EE, 0x6EF}, {0x710, 0x710}, {0x715, 0x719}, {0x71E, 0x71E},
	                                         {0x728, 0x728}, {0x72A, 0x72A}, {0x72C, 0x72C}, {0x72F, 0x72F},
	                                         {0x74D, 0x74D}};
	for (size_t i = 0; i < sizeof RIGHT_ONLY / sizeof *RIGHT_ONLY; i++)
		if (is_in(c, RIGHT_ONLY[i][0], RIGHT_ONLY[i][1]))
			return false;
	return true;
}

static bool is_joining_letter(uint32_t c)
{
	return (is_in(c, 0x620, 0x64A) || is_in(c, 0x66E, 0x6D5) || is_in(c, 0x6EE, 0x6EF) ||
	        is_in(c, 0x6FA, 0x6FF) || is_in(c, 0x710, 0x72F) || is_in(c, 0x74D, 0x77F)) &&
	       c != 0x621 && c != 0x640 && c != 0x674 && c != 0x6D4;
}

/* ---- contextual rules (RFC 5892 appendix A) ---- */

static bool is_mark(uint32_t code)
{
	uint32_t bits = bits_of(code);
	return bits != UINT32_MAX && (bits & LAT_IDN_MARK);
}

/* A.1: between letters that would join. */
static bool breaks_a_join(const uint32_t *l, size_t count, size_t i)
{
	size_t before = i, after = i + 1;
	while (before > 0 && is_mark(l[before - 1]))
		before--;
	while (after < count && is_mark(l[after]))
		after++;
	return before > 0 && after < count && is_joining_letter(l[before - 1]) && joins_forward(l[before - 1]) &&
	       is_joining_letter(l[after]);
}

static bool follows_virama(const uint32_t *l, size_t i)
{
	uint32_t bits = i > 0 ? bits_of(l[i - 1]) : UINT32_MAX;
	return bits != UINT32_MAX && (bits & LAT_IDN_VIRAMA);
}

static bool has_any(const uint32_t *l, size_t count, uint32_t first, uint32_t last)
{
	for (size_t i = 0; i < count; i++)
		if (is_in(l[i], first, last))
			return true;
	return false;
}

static bool has_kana_or_han(const uint32_t *l, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_kana_or_han(l[i]))
			return true;
	return false;
}

static bool fits_context(const uint32_t *l, size_t count, size_t i)
{
	switch (l[i]) {
	case 0x200C:
		return follows_virama(l, i) || breaks_a_join(l, count, i);
	case 0x200D:
		return follows_virama(l, i);
	case 0xB7:
		return i > 0 && i + 1 < count && l[i - 1] == 'l' && l[i + 1] == 'l';
	case 0x375:
		return i + 1 < count && is_greek(l[i + 1]);
	case 0x5F3:
	case 0x5F4:
		return i > 0 && is_hebrew(l[i - 1]);
	case 0x30FB:
		return has_kana_or_han(l, count);
	default:
		if (is_in(l[i], 0x660, 0x669))
			return !has_any(l, count, 0x6F0, 0x6F9);
		return !is_in(l[i], 0x6F0, 0x6F9) || !has_any(l, count, 0x660, 0x669);
	}
}

bool lat_idn_label(const uint32_t *label, size_t count, bool *rtl)
{
	*rtl = false;
	if (!count || label[0] == '-' || label[count - 1] == '-' || is_mark(label[0]) ||
	    (count >= 4 && label[2] == '-' && label[3] == '-'))
		return false;
	for (size_t i = 0; i < count; i++) {
		uint32_t bits = bits_of(label[i]);
		if (bits == UINT32_MAX || !fits_context(label, count, i))
			return false;
		*rtl = *rtl || bidi_of(bits) == LAT_BIDI_R || bidi_of(bits) == LAT_BIDI_AN;
	}
	return true;
}

/* Section 2: the six conditions, with R standing for AL too. */
bool lat_idn_bidi(const uint32_t *label, size_t count)
{
	unsigned first = bidi_of(bits_of(label[0])), last = first, seen = 0;
	bool rtl = first == LAT_BIDI_R;
	if (!rtl && first != LAT_BIDI_L)
		return false;
	for (size_t i = 0; i < count; i++) {
		unsigned bidi = bidi_of(bits_of(label[i]));
		seen |= 1u << bidi;
		last = bidi == LAT_BIDI_NSM ? last : bidi;
	}
	if (!rtl)
		return !(seen & (1u << LAT_BIDI_R | 1u << LAT_BIDI_AN)) &&
		       (last == LAT_BIDI_L || last == LAT_BIDI_EN);
	bool both = (seen & 1u << LAT_BIDI_EN) && (seen & 1u << LAT_BIDI_AN);
	return !(seen & 1u << LAT_BIDI_L) && !both &&
	       (last == LAT_BIDI_R || last == LAT_BIDI_EN || last == LAT_BIDI_AN);
}

/* ---- Punycode (RFC 3492 sections 5 and 6) ---- */

enum { BASE = 36, T_MIN = 1, T_MAX = 26, SKEW = 38, DAMP = 700, FIRST_BIAS = 72, FIRST_CODE = 128 };

static uint32_t adapt(uint32_t delta, uint32_t points, bool first)
{
	uint32_t k = 0;
	delta = first ? delta / DAMP : delta / 2;
	delta += delta / points;
	for (; delta > (BASE - T_MIN) * T_MAX / 2; k += BASE)
		delta /= BASE - T_MIN;
	return k + (BASE - T_MIN + 1) * delta / (delta + SKEW);
}

static uint32_t threshold(uint32_t k, uint32_t bias)
{
	if (k <= bias)
		return T_MIN;
	return k >= bias + T_MAX ? T_MAX : k - bias;
}

static int digit_of(char c)
{
	if (c >= 'a' && c <= 'z')
		return c - 'a';
	return lat_is_digit(c) ? c - '0' + 26 : -1;
}

/* A number of variable length at s[*at]; false when it is none, or too large. */
static bool read_number(const char *s, size_t len, size_t *at, uint32_t bias, uint32_t *value)
{
	uint64_t sum = 0, weight = 1;
	for (uint32_t k = BASE;; k += BASE) {
		int digit = *at < len ? digit_of(s[(*at)++]) : -1;
		if (digit < 0)
			return false;
		sum += (uint64_t)digit * weight;
		if (sum > INT32_MAX)
			return false;
		uint32_t t = threshold(k, bias);
		if ((uint32_t)digit < t)
			break;
		weight *= BASE - t;
		if (weight > INT32_MAX)
			return false;
	}
	*value = (uint32_t)sum;
	return true;
}

static size_t number_length(uint32_t value, uint32_t bias)
{
	size_t n = 1;
	for (uint32_t k = BASE;; k += BASE, n++) {
		uint32_t t = threshold(k, bias);
		if (value < t)
			return n;
		value = (value - t) / (BASE - t);
	}
}

size_t lat_punycode_decode(const char *s, size_t len, uint32_t *out)
{
	size_t basic = len, at = 0, count = 0;
	while (basic > 0 && s[basic - 1] != '-')
		basic--;
	for (size_t i = 0; basic && i < basic - 1; i++)
		out[count++] = (unsigned char)s[i];
	if (basic == 1) /* a delimiter without anything before it is never written */
		return 0;
	at = basic;
	uint32_t code = FIRST_CODE, index = 0, bias = FIRST_BIAS;
	while (at < len) {
		uint32_t delta;
		if (count == LAT_LABEL_LONGEST || !read_number(s, len, &at, bias, &delta))
			return 0;
		uint32_t points = (uint32_t)count + 1;
		uint64_t sum = (uint64_t)index + delta;
		bias = adapt(delta, points, index == 0 && code == FIRST_CODE && count + 1 == (basic ? basic : 1));
		if (sum / points > 0x10FFFF - code)
			return 0;
		code += (uint32_t)(sum / points);
		index = (uint32_t)(sum % points);
		memmove(out + index + 1, out + index, (count - index) * sizeof *out);
		out[index++] = code;
		count++;
	}
	return count;
}

size_t lat_punycode_length(const uint32_t *label, size_t count)
{
	size_t handled = 0, octets = 0;
	for (size_t i = 0; i < count; i++)
		octets += label[i] < 0x80;
	handled = octets;
	size_t basic = handled;
	octets += basic > 0;
	uint32_t code = FIRST_CODE, bias = FIRST_BIAS, delta = 0;
	while (handled < count) {
		uint32_t next = UINT32_MAX;
		for (size_t i = 0; i < count; i++)
			if (label[i] >= code && label[i] < next)
				next = label[i];
		delta += (next - code) * ((uint32_t)handled + 1);
		code = next;
		for (size_t i = 0; i < count; i++) {
			delta += label[i] < code;
			if (label[i] != code)
				continue;
			octets += number_length(delta, bias);
			bias = adapt(delta, (uint32_t)handled + 1, handled == basic);
			delta = 0;
			handled++;
		}
		delta++;
		code++;
	}
	return octets;
}
