/* Edit matching against a naive reference. An input is: flags, length of old, length of new, old, new, text; bytes are
 * mapped to few characters, so that matches and line ends are frequent. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workspace/edit_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text as tokens: each a byte, or a line break with how it was written. */
typedef struct {
	char *kind; /* '\n' for either break */
	size_t *start, *len;
	size_t n;
} tokens;

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static tokens split(const char *s, size_t n)
{
	tokens t = {must(malloc(n + 1)), must(malloc((n + 1) * sizeof(size_t))),
	            must(malloc((n + 1) * sizeof(size_t))), 0};
	for (size_t i = 0; i < n; i += t.len[t.n++]) {
		bool crlf = s[i] == '\r' && i + 1 < n && s[i + 1] == '\n';
		t.kind[t.n] = crlf ? '\n' : s[i];
		t.start[t.n] = i;
		t.len[t.n] = crlf ? 2 : 1;
	}
	return t;
}

static void free_tokens(tokens *t)
{
	free(t->kind);
	free(t->start);
	free(t->len);
}

static bool stands_at(const tokens *text, const tokens *old, size_t at)
{
	return at + old->n <= text->n && memcmp(text->kind + at, old->kind, old->n) == 0;
}

/* Puts `new` in with the breaks that belong there. */
static void put(const lat_edit *e, const tokens *text, size_t at, size_t n, bool crlf_file, bool old_has_crlf,
                lat_buf *out)
{
	bool crlf = crlf_file;
	for (size_t i = at; i < at + n; i++)
		if (text->kind[i] == '\n') {
			crlf = text->len[i] == 2;
			break;
		}
	tokens new = split(e->new, e->new_len);
	for (size_t i = 0; i < new.n; i++) {
		if (new.kind[i] == '\n')
			lat_buf_str(out, crlf || (new.len[i] == 2 && !old_has_crlf) ? "\r\n" : "\n");
		else
			lat_buf_byte(out, new.kind[i]);
	}
	free_tokens(&new);
}

static size_t reference(const lat_edit *e, lat_buf *out)
{
	tokens text = split(e->text, e->len), old = split(e->old, e->old_len);
	size_t found = 0, crlf = 0, lf = 0;
	bool old_has_crlf = false;
	for (size_t i = 0; i < text.n; i++) {
		crlf += text.kind[i] == '\n' && text.len[i] == 2;
		lf += text.kind[i] == '\n' && text.len[i] == 1;
	}
	for (size_t i = 0; i < old.n; i++)
		old_has_crlf |= old.len[i] == 2;
	for (size_t i = 0; i < text.n; i += e->all && stands_at(&text, &old, i) ? old.n : 1)
		found += stands_at(&text, &old, i);
	for (size_t i = 0; i < text.n && (found == 1 || (found > 0 && e->all));) {
		if (stands_at(&text, &old, i)) {
			put(e, &text, i, old.n, crlf > lf, old_has_crlf, out);
			i += old.n;
		} else {
			lat_buf_append(out, e->text + text.start[i], text.len[i]);
			i++;
		}
	}
	free_tokens(&text);
	free_tokens(&old);
	return found;
}

static char *map(const uint8_t *data, size_t n)
{
	static const char letters[] = "ab\n\r\n\n a\xc3";
	char *s = must(malloc(n + 1));
	for (size_t i = 0; i < n; i++)
		s[i] = letters[data[i] % (sizeof letters - 1)];
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 4)
		return 0;
	size_t rest = size - 3, old_len = 1 + data[1] % 8, new_len = data[2] % 8;
	if (old_len + new_len > rest)
		return 0;
	char *all = map(data + 3, rest);
	/* copies of their own size, so that a read past an end is seen */
	char *old = must(malloc(old_len)), *new = must(malloc(new_len + 1)), *text = must(malloc(rest + 1));
	lat_edit e = {text, rest - old_len - new_len, old, old_len, new, new_len, data[0] & 1};
	text = must(realloc(text, e.len ? e.len : 1));
	e.text = text;
	memcpy(old, all, old_len);
	memcpy(new, all + old_len, new_len);
	memcpy(text, all + old_len + new_len, e.len);
	lat_buf got = LAT_BUF_INIT, wanted = LAT_BUF_INIT, shown = LAT_BUF_INIT;
	lat_edit_result r;
	size_t found = reference(&e, &wanted);
	if (!lat_edit_apply(&e, &got, &r) ||
	    r.found != (e.all || found < LAT_EDIT_COUNTED ? found : LAT_EDIT_COUNTED))
		abort();
	if (got.len != wanted.len || (got.len && memcmp(got.data, wanted.data, got.len) != 0))
		abort();
	if (r.first > r.last || r.last > got.len)
		abort();
	lat_edit_nearest(&e, &shown);
	if (r.found == 1)
		lat_edit_show(got.data ? got.data : "", got.len, r.first, r.last, data[0] >> 1 & 3, &shown);
	lat_buf_free(&got);
	lat_buf_free(&wanted);
	lat_buf_free(&shown);
	free(all);
	free(old);
	free(new);
	free(text);
	return 0;
}
