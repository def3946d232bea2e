/* What an Edit shows: the lines around a change, and those that are most like what wasn't found (see edit_text.h).
 * Pure; any thread. */
#include <string.h>

#include "workspace/edit_text.h"

enum {
	NEAR_LINES = 8,             /* of old that are compared, and shown at most */
	NEAR_SEARCHED = 200 * 1000, /* lines of the file that are looked at */
	NEAR_LEAST = 60,            /* percent of likeness: less is no help */
	SHOWN_LINE = 300,           /* bytes of a line */
	SHOWN_LINES = 60,
};

typedef struct {
	const char *s;
	size_t n;
} span;

/* Takes the next line off text, without its break. */
static span next_line(span *text)
{
	const char *end = memchr(text->s, '\n', text->n);
	span line = {text->s, end ? (size_t)(end - text->s) : text->n};
	size_t used = line.n + (end != NULL);
	text->s += used;
	text->n -= used;
	if (line.n > 0 && line.s[line.n - 1] == '\r')
		line.n--;
	return line;
}

static void append_line(lat_buf *out, size_t number, span line)
{
	bool cut = line.n > SHOWN_LINE;
	lat_buf_printf(out, "%6zu\t", number);
	lat_buf_append(out, line.s, cut ? SHOWN_LINE : line.n);
	lat_buf_str(out, cut ? "…\n" : "\n");
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static span trim(span line)
{
	while (line.n > 0 && is_blank(line.s[0])) {
		line.s++;
		line.n--;
	}
	while (line.n > 0 && is_blank(line.s[line.n - 1]))
		line.n--;
	return line;
}

/* 0 to 100: the share of both lines that is a common beginning and a common end. */
static unsigned likeness(span a, span b)
{
	a = trim(a);
	b = trim(b);
	size_t most = a.n < b.n ? a.n : b.n, head = 0, tail = 0;
	if (a.n + b.n == 0)
		return 100;
	while (head < most && a.s[head] == b.s[head])
		head++;
	while (tail < most - head && a.s[a.n - 1 - tail] == b.s[b.n - 1 - tail])
		tail++;
	return (unsigned)(200 * (head + tail) / (a.n + b.n));
}

/* The first lines of old that say something. */
static size_t wanted_lines(const lat_edit *edit, span wanted[NEAR_LINES])
{
	span old = {edit->old, edit->old_len};
	size_t n = 0;
	while (old.n > 0 && n < NEAR_LINES) {
		span line = next_line(&old);
		if (n > 0 || trim(line).n > 0)
			wanted[n++] = line;
	}
	return n;
}

static unsigned score(span text, const span *wanted, size_t n)
{
	unsigned sum = 0;
	for (size_t i = 0; i < n && text.n > 0; i++)
		sum += likeness(next_line(&text), wanted[i]);
	return sum;
}

void lat_edit_nearest(const lat_edit *edit, lat_buf *out)
{
	span wanted[NEAR_LINES], text = {edit->text, edit->len}, best = {NULL, 0};
	size_t n = wanted_lines(edit, wanted), best_number = 0, number = 1;
	unsigned best_score = 0;
	for (; n > 0 && text.n > 0 && number < NEAR_SEARCHED; number++) {
		unsigned now = score(text, wanted, n);
		if (now > best_score) {
			best_score = now;
			best = text;
			best_number = number;
		}
		next_line(&text);
	}
	if (n == 0 || best_score < NEAR_LEAST * n)
		return;
	bool blanks = best_score == 100 * n;
	lat_buf_str(out, blanks ? "The nearest lines differ from it in blanks or line breaks alone:\n"
	                        : "The nearest lines are:\n");
	for (size_t i = 0; i < n && best.n > 0; i++)
		append_line(out, best_number + i, next_line(&best));
}

static size_t line_start(const char *text, size_t at)
{
	const char *lf = at > 0 ? memrchr(text, '\n', at) : NULL;
	return lf ? (size_t)(lf - text) + 1 : 0;
}

void lat_edit_show(const char *text, size_t len, size_t first, size_t last, int around, lat_buf *out)
{
	size_t begin = line_start(text, first), number = 1, shown = 0;
	for (int i = 0; i < around && begin > 0; i++)
		begin = line_start(text, begin - 1);
	for (const char *p = text; (p = memchr(p, '\n', begin - (size_t)(p - text))) != NULL; p++)
		number++;
	span rest = {text + begin, len - begin};
	for (int left = around; rest.n > 0 && shown < SHOWN_LINES; shown++) {
		if ((size_t)(rest.s - text) > last && left-- == 0)
			return;
		append_line(out, number + shown, next_line(&rest));
	}
}
