/* lat_clip: see clip.h. The tail's buffer is let grow to twice what counts, then moved down: O(1) a byte. */
#include "base/clip.h"

#include <string.h>

void lat_clip_init(lat_clip *c, size_t max)
{
	*c = (lat_clip){.max = max, .head = LAT_BUF_INIT, .tail = LAT_BUF_INIT};
}

void lat_clip_free(lat_clip *c)
{
	lat_buf_free(&c->head);
	lat_buf_free(&c->tail);
}

static size_t tail_max(const lat_clip *c)
{
	return c->max - c->max / 2;
}

static void forget_front(lat_buf *b, size_t keep)
{
	if (b->len <= keep)
		return;
	memmove(b->data, b->data + (b->len - keep), keep);
	b->len = keep;
}

static void append_tail(lat_clip *c, const char *data, size_t n)
{
	size_t keep = tail_max(c);
	if (n >= keep) {
		lat_buf_clear(&c->tail);
		data += n - keep;
		n = keep;
	} else if (c->tail.len + n > keep * 2) {
		forget_front(&c->tail, keep - n);
	}
	lat_buf_append(&c->tail, data, n);
}

void lat_clip_append(lat_clip *c, const void *data, size_t n)
{
	const char *at = data;
	size_t to_head = c->max / 2 - c->head.len;
	if (to_head > n)
		to_head = n;
	c->total += n;
	lat_buf_append(&c->head, at, to_head);
	if (n > to_head)
		append_tail(c, at + to_head, n - to_head);
}

bool lat_clip_ok(const lat_clip *c)
{
	return lat_buf_ok(&c->head) && lat_buf_ok(&c->tail);
}

bool lat_clip_truncated(const lat_clip *c)
{
	return c->total > c->max;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

/* n without a UTF-8 character that is cut at the end (RFC 3629: at most 4 bytes, the first says how many). */
static size_t whole_prefix(const char *s, size_t n)
{
	size_t back = 1;
	while (back < 4 && back < n && is_continuation(s[n - back]))
		back++;
	if (back > n)
		return n;
	unsigned char lead = (unsigned char)s[n - back];
	size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
	return length > back ? n - back : n;
}

void lat_clip_write(const lat_clip *c, lat_buf *out)
{
	if (!lat_clip_truncated(c)) {
		lat_buf_append(out, c->head.data, c->head.len);
		lat_buf_append(out, c->tail.data, c->tail.len);
		return;
	}
	size_t head = whole_prefix(c->head.data, c->head.len);
	size_t from = c->tail.len > tail_max(c) ? c->tail.len - tail_max(c) : 0;
	for (int i = 0; i < 3 && from < c->tail.len && is_continuation(c->tail.data[from]); i++)
		from++;
	size_t left_out = c->total - head - (c->tail.len - from);
	lat_buf_append(out, c->head.data, head);
	lat_buf_printf(out, "\n[... %zu bytes left out ...]\n", left_out);
	lat_buf_append(out, c->tail.data + from, c->tail.len - from);
}
