/* The writer: see write.h. It owns nothing, the caller's buffer holds all; pure; any thread.
 * A call that fails puts the buffer back to the length it had. */
#include "json/write.h"

#include <math.h>

#include "json/number.h"
#include "json/read.h"
#include "json/scan.h"

enum {
	CHUNK = 4096,    /* bytes of a string for which room is made at once */
	MOST_A_BYTE = 6, /* \u00XX */
	COPY_SLACK = 8,  /* lat_json_copy_plain writes that much too far */
};

/* The escape for a byte that isn't plain; control bytes without a letter get \u00XX (RFC 8259 section 7). */
static char *escape(char *q, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	static const char letter[0x20] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	*q++ = '\\';
	if (c >= 0x20 || letter[c]) {
		*q++ = c >= 0x20 ? (char)c : letter[c];
		return q;
	}
	*q++ = 'u';
	*q++ = '0';
	*q++ = '0';
	*q++ = hex[c >> 4];
	*q++ = hex[c & 0xf];
	return q;
}

static lat_status fail_utf8(lat_error *err, size_t offset)
{
	lat_fail(err, LAT_E_INVALID, "invalid UTF-8 at byte %zu of a string", offset + 1);
	if (err)
		err->offset = offset;
	return LAT_E_INVALID;
}

/* Escapes [p, stop) to q, and what of a character reaches past stop; returns where it ended, *q behind what
 * it wrote. A byte that begins no UTF-8 ends it before stop. */
static const char *escape_chunk(const char *p, const char *stop, const char *end, char **q)
{
	while ((p = lat_json_copy_plain(p, stop, q)) < stop) {
		if ((unsigned char)*p <= 0x7f) {
			*q = escape(*q, (unsigned char)*p++);
			continue;
		}
		size_t n = lat_utf8_step(p, end);
		if (n == 0)
			return p;
		for (; n > 0; n--)
			*(*q)++ = *p++;
	}
	return p;
}

/* What stands from p on of the string that starts at s. */
static lat_status append_escaped(lat_buf *b, const char *s, const char *p, const char *end, lat_error *err)
{
	while (p < end) {
		const char *stop = end - p > CHUNK ? p + CHUNK : end;
		if (!lat_buf_reserve(b, (size_t)(stop - p) * MOST_A_BYTE + COPY_SLACK))
			return LAT_OK; /* b says so */
		char *q = b->data + b->len;
		p = escape_chunk(p, stop, end, &q);
		b->len = (size_t)(q - b->data);
		if (p < stop)
			return fail_utf8(err, (size_t)(p - s));
	}
	return LAT_OK;
}

lat_status lat_json_write_escaped(lat_buf *b, const char *s, size_t len, lat_error *err)
{
	size_t before = b->len;
	lat_status status = append_escaped(b, s, s, s + len, err);
	if (status != LAT_OK)
		b->len = before;
	return status;
}

lat_status lat_json_write_string(lat_buf *b, const char *s, size_t len, lat_error *err)
{
	size_t before = b->len;
	if (!lat_buf_reserve(b, len + 2))
		return LAT_OK; /* b says so */
	size_t plain = (size_t)(lat_json_plain_end(s, s + len) - s);
	char *q = b->data + b->len;
	*q++ = '"';
	if (plain)
		memcpy(q, s, plain);
	b->len += 1 + plain;
	lat_status status = append_escaped(b, s, s + plain, s + len, err);
	if (status != LAT_OK)
		b->len = before;
	else
		lat_buf_byte(b, '"');
	return status;
}

void lat_json_write_int(lat_buf *b, int64_t i)
{
	char text[21];
	char *p = lat_json_put_digits(text + sizeof text, i < 0 ? 0 - (uint64_t)i : (uint64_t)i);
	if (i < 0)
		*--p = '-';
	lat_buf_append(b, p, (size_t)(text + sizeof text - p));
}

lat_status lat_json_write_double(lat_buf *b, double d, lat_error *err)
{
	if (isnan(d))
		return lat_fail(err, LAT_E_INVALID, "NaN has no JSON form");
	if (isinf(d))
		return lat_fail(err, LAT_E_INVALID, "infinity has no JSON form");
	char text[LAT_JSON_DOUBLE_CHARS];
	lat_buf_append(b, text, lat_json_format_double(text, d));
	return LAT_OK;
}

static lat_status write_at(lat_buf *b, const lat_value *v, unsigned depth, lat_error *err);

static lat_status write_items(lat_buf *b, const lat_value *v, unsigned depth, lat_error *err)
{
	if (depth == LAT_JSON_DEFAULT_DEPTH)
		return lat_fail(err, LAT_E_LIMIT, "nested deeper than %d levels", LAT_JSON_DEFAULT_DEPTH);
	bool object = v->type == LAT_OBJECT;
	lat_status status = LAT_OK;
	lat_buf_byte(b, object ? '{' : '[');
	for (size_t i = 0; i < v->len && status == LAT_OK; i++) {
		const lat_value *item = &v->u.items[object ? 2 * i : i];
		if (i > 0)
			lat_buf_byte(b, ',');
		if (object) {
			status = lat_json_write_string(b, item->u.s, item->len, err);
			lat_buf_byte(b, ':');
			item++;
		}
		if (status == LAT_OK)
			status = write_at(b, item, depth + 1, err);
	}
	lat_buf_byte(b, object ? '}' : ']');
	return status;
}

static lat_status write_at(lat_buf *b, const lat_value *v, unsigned depth, lat_error *err)
{
	switch (v->type) {
	case LAT_NULL:
		lat_buf_append(b, "null", 4);
		return LAT_OK;
	case LAT_FALSE:
		lat_buf_append(b, "false", 5);
		return LAT_OK;
	case LAT_TRUE:
		lat_buf_append(b, "true", 4);
		return LAT_OK;
	case LAT_INT:
		lat_json_write_int(b, v->u.i);
		return LAT_OK;
	case LAT_DOUBLE:
		return lat_json_write_double(b, v->u.d, err);
	case LAT_STRING:
		return lat_json_write_string(b, v->u.s, v->len, err);
	default:
		return write_items(b, v, depth, err); /* at most LAT_JSON_DEFAULT_DEPTH levels of recursion */
	}
}

lat_status lat_json_write_value(lat_buf *b, const lat_value *v, lat_error *err)
{
	size_t before = b->len;
	lat_status status = write_at(b, v, 0, err);
	if (status != LAT_OK)
		b->len = before;
	return status;
}

size_t lat_utf8_valid_prefix(const char *s, size_t len)
{
	const char *p = s, *end = s + len;
	while (p < end) {
		size_t n = (unsigned char)*p > 0x7f ? lat_utf8_step(p, end) : 1;
		if (n == 0)
			break;
		p += n;
	}
	return (size_t)(p - s);
}
