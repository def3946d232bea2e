/* Walks a text that is known to be JSON, without building anything; see raw.h. Owns nothing; pure; any
 * thread. */
#include "json/raw.h"

#include "json/scan.h"

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

/* p: behind the opening quote. Returns the place of the closing one. */
static const char *string_end(const char *p, const char *end)
{
	while (p < end && *p != '"') {
		if (*p == '\\')
			p += end - p > 1 ? 2 : 1;
		else if (lat_json_is_plain((unsigned char)*p))
			p = lat_json_plain_end(p, end);
		else
			p++;
	}
	return p;
}

/* p: at the first byte of a value. Returns the place behind it. */
static const char *value_end(const char *p, const char *end)
{
	size_t depth = 0;
	while (p < end) {
		char c = *p++;
		if (c == '"') {
			p = string_end(p, end);
			p += p < end;
		} else if (c == '{' || c == '[') {
			depth++;
			continue;
		} else if (c == '}' || c == ']') {
			depth -= depth > 0;
		} else if (depth == 0) {
			while (p < end && !memchr(",]} \n\r\t", *p, 7))
				p++;
		}
		if (depth == 0)
			break;
	}
	return p;
}

lat_json_raw lat_json_raw_open(lat_span container)
{
	const char *end = container.s + container.len, *p = skip_space(container.s, end);
	if (p == end || (*p != '{' && *p != '['))
		return (lat_json_raw){end, end, false};
	return (lat_json_raw){p, end, *p == '{'};
}

/* p: at the opening quote. Takes the key and its colon. */
static const char *take_key(const char *p, const char *end, lat_span *key)
{
	p += p < end;
	const char *behind = string_end(p, end);
	*key = lat_span_of(p, (size_t)(behind - p));
	behind = skip_space(behind + (behind < end), end);
	return skip_space(behind + (behind < end), end);
}

bool lat_json_raw_next(lat_json_raw *walk, lat_span *key, lat_span *value)
{
	/* at the opening bracket, then at what stands behind each value */
	const char *end = walk->end, *p = skip_space(walk->at, end);
	if (p == end || (*p != '{' && *p != '[' && *p != ','))
		return false;
	p = skip_space(p + 1, end);
	if (p == end || *p == ']' || *p == '}')
		return false;
	*key = lat_span_of(NULL, 0);
	if (walk->object)
		p = take_key(p, end, key);
	walk->at = value_end(p, end);
	*value = lat_span_of(p, (size_t)(walk->at - p));
	return true;
}

/* The character that \uXXXX at p stands for, when it is ASCII; else NUL. */
static char ascii_escape(const char *p, const char *end)
{
	static const char digits[] = "0123456789abcdef";
	if (end - p < 6 || memcmp(p, "\\u00", 4) != 0)
		return '\0';
	const char *high = memchr(digits, p[4], 8), *low = memchr(digits, p[5] | 0x20, 16);
	return high && low ? (char)((high - digits) << 4 | (low - digits)) : '\0';
}

bool lat_json_raw_key_is(lat_span key, const char *name)
{
	const char *p = key.s, *end = key.s + key.len;
	if (!p)
		return false;
	if (!memchr(p, '\\', key.len))
		return lat_span_is(key, name);
	for (; p < end && *name; name++) {
		char c = *p == '\\' ? ascii_escape(p, end) : *p;
		if (c != *name)
			return false;
		p += *p == '\\' ? 6 : 1;
	}
	return p == end && *name == '\0';
}

lat_span lat_json_raw_get(lat_span object, const char *name)
{
	lat_span found = {NULL, 0}, key, value;
	lat_json_raw walk = lat_json_raw_open(object);
	while (lat_json_raw_next(&walk, &key, &value))
		if (lat_json_raw_key_is(key, name))
			found = value;
	return found;
}
