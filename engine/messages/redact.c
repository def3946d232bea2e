/* See redact.h. Owns nothing; pure; any thread. */
#include "messages/redact.h"

#include "json/write.h"

static const lat_span REDACTED = LAT_SPAN("[redacted]"), REPLACEMENT = LAT_SPAN("\xef\xbf\xbd");

/* Bytes of the longest secret that begins at s, 0 if none does. At the text's end the beginning of one is
 * enough: the text may have been cut there. */
static size_t secret_len(const char *s, size_t left, const lat_span *secrets, size_t count)
{
	size_t longest = 0;
	for (size_t i = 0; i < count; i++) {
		size_t len = secrets[i].len < left ? secrets[i].len : left;
		bool counts = secrets[i].len >= LAT_SECRET_MIN_BYTES && len >= LAT_SECRET_MIN_BYTES && len > longest;
		if (counts && memcmp(s, secrets[i].s, len) == 0)
			longest = len;
	}
	return longest;
}

static size_t character_len(const char *s, size_t left)
{
	size_t len = 1;
	while (len < 4 && len < left && ((unsigned char)s[len] & 0xc0) == 0x80)
		len++;
	return lat_utf8_valid_prefix(s, len) == len ? len : 0;
}

/* C1 controls and the line separators are no better than C0. */
static bool is_control(const char *s, size_t len)
{
	const unsigned char *c = (const unsigned char *)s;
	return c[0] < 0x20 || c[0] == 0x7f || (len == 2 && c[0] == 0xc2 && c[1] < 0xa0) ||
	       (len == 3 && c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9));
}

size_t lat_redact(char *out, size_t room, lat_span text, const lat_span *secrets, size_t count)
{
	size_t used = 0, len = 0;
	while (used < text.len) {
		const char *s = text.s + used;
		size_t step = secret_len(s, text.len - used, secrets, count);
		lat_span shown = REDACTED;
		if (step == 0) {
			step = character_len(s, text.len - used);
			shown = step == 0             ? REPLACEMENT
			        : is_control(s, step) ? lat_span_of(" ", 1)
			                              : lat_span_of(s, step);
			step += step == 0;
		}
		if (shown.len >= room - len)
			break;
		memcpy(out + len, shown.s, shown.len);
		len += shown.len;
		used += step;
	}
	out[len] = '\0';
	return used;
}
