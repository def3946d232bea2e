/* See surrogates.h. Owns nothing; pure; any thread. Works on the text of any event that couldn't be read,
 * JSON or not: it only looks at backslashes and quotes. */
#include "messages/surrogates.h"

enum { ESCAPE_BYTES = 6 };

/* The code unit that is written at p, 0 when there is none. */
static unsigned unit_at(const char *p, const char *end)
{
	unsigned unit = 0;
	if (end - p < ESCAPE_BYTES || p[0] != '\\' || p[1] != 'u')
		return 0;
	for (int i = 2; i < ESCAPE_BYTES; i++) {
		static const char digits[] = "0123456789abcdef";
		char c = p[i] >= 'A' && p[i] <= 'F' ? (char)(p[i] - 'A' + 'a') : p[i];
		const char *digit = memchr(digits, c, sizeof digits - 1);
		if (!digit)
			return 0;
		unit = unit << 4 | (unsigned)(digit - digits);
	}
	return unit;
}

static bool is_high(unsigned unit)
{
	return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(unsigned unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

/* p: at half a pair. begins: it is the first of its string. */
static void mend(lat_buf *out, const char *p, const char *end, bool begins, unsigned *high)
{
	unsigned unit = unit_at(p, end);
	bool ends = p + ESCAPE_BYTES < end && p[ESCAPE_BYTES] == '"';
	if (is_low(unit) && begins && *high) {
		lat_buf_printf(out, "\\u%04x\\u%04x", *high, unit);
		*high = 0;
	} else if (is_high(unit) && ends) {
		*high = unit;
	} else {
		lat_buf_str(out, "\\ufffd");
	}
}

bool lat_mend_surrogates(lat_buf *out, lat_span text, unsigned *high)
{
	const char *p = text.s, *end = text.s + text.len, *copied = p;
	while (p < end) {
		const char *slash = memchr(p, '\\', (size_t)(end - p));
		if (!slash || end - slash < 2)
			break;
		unsigned unit = unit_at(slash, end);
		bool pair = is_high(unit) && is_low(unit_at(slash + ESCAPE_BYTES, end));
		bool half = !pair && (is_high(unit) || is_low(unit));
		if (half) {
			lat_buf_append(out, copied, (size_t)(slash - copied));
			mend(out, slash, end, slash > text.s && slash[-1] == '"', high);
			copied = slash + ESCAPE_BYTES;
		}
		p = slash + (pair ? 2 * ESCAPE_BYTES : half ? ESCAPE_BYTES : 2);
	}
	if (copied == text.s)
		return false;
	lat_buf_append(out, copied, (size_t)(end - copied));
	return true;
}
