/* lat_buf: see buf.h for ownership. Growth doubles, so appending n bytes costs O(n). */
#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 128 };

void lat_buf_free(lat_buf *b)
{
	free(b->data);
	*b = (lat_buf)LAT_BUF_INIT;
}

void lat_buf_clear(lat_buf *b)
{
	b->len = 0;
	b->failed = false;
}

bool lat_buf_reserve(lat_buf *b, size_t n)
{
	if (b->failed)
		return false;
	if (b->cap - b->len >= n)
		return true;
	size_t cap = b->cap ? b->cap : FIRST_CAP;
	while (cap - b->len < n) {
		if (cap > SIZE_MAX / 2) {
			b->failed = true;
			return false;
		}
		cap *= 2;
	}
	char *data = realloc(b->data, cap);
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

void lat_buf_append(lat_buf *b, const void *data, size_t n)
{
	if (n == 0 || !lat_buf_reserve(b, n))
		return;
	memcpy(b->data + b->len, data, n);
	b->len += n;
}

void lat_buf_byte(lat_buf *b, char c)
{
	if (!lat_buf_reserve(b, 1))
		return;
	b->data[b->len++] = c;
}

void lat_buf_str(lat_buf *b, const char *s)
{
	lat_buf_append(b, s, strlen(s));
}

void lat_buf_printf(lat_buf *b, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	va_list again;
	va_copy(again, args);
	int n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n >= 0 && lat_buf_reserve(b, (size_t)n + 1)) {
		vsnprintf(b->data + b->len, (size_t)n + 1, format, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

const char *lat_buf_cstr(lat_buf *b)
{
	if (!lat_buf_reserve(b, 1))
		return "";
	b->data[b->len] = '\0';
	return b->data;
}

char *lat_buf_take(lat_buf *b, size_t *len)
{
	if (b->failed) {
		lat_buf_free(b);
		return NULL;
	}
	char *data = b->data;
	if (len)
		*len = b->len;
	*b = (lat_buf)LAT_BUF_INIT;
	return data;
}
