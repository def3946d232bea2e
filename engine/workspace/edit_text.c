/* lat_edit: see edit_text.h. Matching is done on texts in which every break is \n; as those are walked, the place in
 * the raw text goes along. */
#include "workspace/edit_text.h"

#include <stdint.h>
#include <string.h>

/* ---- breaks ---- */

static const char *find_crlf(const char *s, size_t n)
{
	return memmem(s, n, "\r\n", 2);
}

/* Appends s with each \r\n as \n. */
static void append_plain(lat_buf *out, const char *s, size_t n)
{
	for (const char *at; (at = find_crlf(s, n)) != NULL;) {
		size_t head = (size_t)(at - s);
		lat_buf_append(out, s, head);
		lat_buf_byte(out, '\n');
		s += head + 2;
		n -= head + 2;
	}
	lat_buf_append(out, s, n);
}

/* Appends s with each \n that isn't \r\n already as \r\n. */
static void append_crlf(lat_buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\n' && (i == 0 || s[i - 1] != '\r'))
			lat_buf_byte(out, '\r');
		lat_buf_byte(out, s[i]);
	}
}

static bool mostly_crlf(const char *s, size_t n)
{
	size_t crlf = 0, lf = 0;
	for (const char *at; n > 0 && (at = memchr(s, '\n', n)) != NULL;) {
		size_t head = (size_t)(at - s);
		if (head > 0 && s[head - 1] == '\r')
			crlf++;
		else
			lf++;
		s += head + 1;
		n -= head + 1;
	}
	return crlf > lf;
}

/* ---- replacing ---- */

typedef struct {
	const lat_edit *edit;
	lat_buf plain, old; /* text and old with plain breaks */
	const char *hay;    /* plain's bytes, or the text itself where it has no \r\n */
	size_t hay_len;
	bool crlf_file;
} work;

static size_t find(const work *w, size_t from)
{
	if (from > w->hay_len)
		return SIZE_MAX;
	const char *at = memmem(w->hay + from, w->hay_len - from, w->old.data, w->old.len);
	return at ? (size_t)(at - w->hay) : SIZE_MAX;
}

/* How many of the len raw bytes are the first n bytes of their plain text. */
static size_t raw_length(const char *raw, size_t len, size_t n)
{
	size_t at = 0;
	while (n > 0) {
		const char *end = memchr(raw + at, '\r', n);
		if (!end)
			return at + n;
		size_t head = (size_t)(end - raw) - at;
		at += head;
		n -= head;
		at += at + 1 < len && raw[at + 1] == '\n' ? 2 : 1;
		n--;
	}
	return at;
}

static void put(const work *w, const char *region, size_t n, lat_buf *out)
{
	const lat_edit *e = w->edit;
	const char *lf = memchr(region, '\n', n);
	bool crlf = lf ? lf > region && lf[-1] == '\r' : w->crlf_file;
	if (crlf)
		append_crlf(out, e->new, e->new_len);
	else if (find_crlf(e->old, e->old_len)) /* it takes the file for another kind */
		append_plain(out, e->new, e->new_len);
	else
		lat_buf_append(out, e->new, e->new_len);
}

static void replace(const work *w, lat_buf *out, lat_edit_result *r)
{
	const lat_edit *e = w->edit;
	bool same = w->hay == e->text;
	size_t hay = 0, raw = 0, begin = out->len; /* one place in both texts */
	bool first = true;
	for (size_t at; (at = find(w, hay)) != SIZE_MAX;) {
		size_t gap = same ? at - hay : raw_length(e->text + raw, e->len - raw, at - hay);
		lat_buf_append(out, e->text + raw, gap);
		raw += gap;
		size_t n = same ? w->old.len : raw_length(e->text + raw, e->len - raw, w->old.len);
		r->first = first ? out->len - begin : r->first;
		put(w, e->text + raw, n, out);
		r->last = first ? out->len - begin : r->last;
		first = false;
		raw += n;
		hay = at + w->old.len;
		if (!e->all)
			break;
	}
	lat_buf_append(out, e->text + raw, e->len - raw);
}

static size_t count(const work *w)
{
	size_t n = 0;
	bool all = w->edit->all;
	for (size_t at = 0; (all || n < LAT_EDIT_COUNTED) && (at = find(w, at)) != SIZE_MAX; n++)
		at += all ? w->old.len : 1;
	return n;
}

bool lat_edit_apply(const lat_edit *e, lat_buf *out, lat_edit_result *r)
{
	work w = {.edit = e, .plain = LAT_BUF_INIT, .old = LAT_BUF_INIT, .hay = e->text, .hay_len = e->len};
	*r = (lat_edit_result){.found = 0};
	append_plain(&w.old, e->old, e->old_len);
	if (find_crlf(e->text, e->len)) {
		append_plain(&w.plain, e->text, e->len);
		w.hay = w.plain.data;
		w.hay_len = w.plain.len;
		w.crlf_file = mostly_crlf(e->text, e->len);
	}
	bool ok = lat_buf_ok(&w.plain) && lat_buf_ok(&w.old);
	if (ok) {
		r->found = count(&w);
		if (r->found == 1 || (r->found > 0 && e->all))
			replace(&w, out, r);
	}
	lat_buf_free(&w.plain);
	lat_buf_free(&w.old);
	return ok && lat_buf_ok(out);
}
