/* One file of a Grep: see grep_file.h. Belongs to one thread.
 *
 * A file is read window by window. Lines are searched when their end is in the window; what follows, and the lines
 * before it that may still be shown as context, move to its front before more is read:
 *
 *   [ printed │ context │ searched, no hit │ begun line …… room ]
 *             shown     ^ kept_from                 ^ searched */
#include "workspace/grep_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
	lat_grep_reader *r;
	int fd;
	const char *path;
	size_t path_len;
	lat_buf *out;
	lat_grep_stats *stats;
	size_t len;      /* bytes in the window */
	size_t searched; /* up to here; the start of a line */
	size_t shown;    /* up to here; the start of a line */
	uint64_t line;   /* number of the line at `counted` */
	size_t counted;
	size_t after; /* lines of context still to be shown */
	size_t hits;
	size_t size; /* as fstat said */
	bool at_end, is_first;
	bool shown_any, has_gap; /* has_gap: lines that weren't shown have left the window since */
} file_state;

bool lat_grep_reader_init(lat_grep_reader *r, const lat_grep_options *options)
{
	*r = (lat_grep_reader){.options = options, .searcher = lat_searcher_new(options->search)};
	r->window = malloc(LAT_GREP_WINDOW);
	r->cap = LAT_GREP_WINDOW;
	if (r->searcher && r->window)
		return true;
	lat_grep_reader_free(r);
	return false;
}

void lat_grep_reader_free(lat_grep_reader *r)
{
	lat_searcher_free(r->searcher);
	free(r->window);
	*r = (lat_grep_reader){.searcher = NULL};
}

/* ---- showing lines ---- */

static size_t line_end(const file_state *f, size_t at)
{
	const char *newline = at < f->len ? memchr(f->r->window + at, '\n', f->len - at) : NULL;
	return newline ? (size_t)(newline - f->r->window) : f->len;
}

static void count_to(file_state *f, size_t at)
{
	const char *text = f->r->window;
	uint64_t n = 0;
	for (size_t i = f->counted; i < at; i++)
		n += text[i] == '\n';
	f->line += n;
	f->counted = at;
}

static bool continues_character(char byte)
{
	return ((unsigned char)byte & 0xC0) == 0x80;
}

/* A long line is shown around the place of the match. */
static void append_line(lat_buf *out, const char *line, size_t len, size_t match)
{
	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (len <= LAT_GREP_MAX_LINE) {
		lat_buf_append(out, line, len);
		return;
	}
	size_t start = match > LAT_GREP_MAX_LINE / 4 ? match - LAT_GREP_MAX_LINE / 4 : 0;
	if (len - start < LAT_GREP_MAX_LINE)
		start = len - LAT_GREP_MAX_LINE;
	size_t end = start + LAT_GREP_MAX_LINE;
	while (start < match && continues_character(line[start]))
		start++;
	while (end > start && end < len && continues_character(line[end]))
		end--;
	lat_buf_str(out, start > 0 ? "…" : "");
	lat_buf_append(out, line + start, end - start);
	lat_buf_printf(out, "… [a line of %zu bytes]", len);
}

/* Shows the lines from..to, which are whole ones. */
static void show(file_state *f, size_t from, size_t to, char mark, size_t match)
{
	while (from < to) {
		size_t end = line_end(f, from);
		count_to(f, from);
		lat_buf_append(f->out, f->path, f->path_len);
		lat_buf_printf(f->out, "%c%llu%c", mark, (unsigned long long)f->line, mark);
		append_line(f->out, f->r->window + from, end - from, match > from ? match - from : 0);
		lat_buf_byte(f->out, '\n');
		from = end + 1;
	}
	f->shown = from;
	f->shown_any = true;
	f->has_gap = false;
}

/* The start of the line `lines` before the one at `at`, but not before `least`. */
static size_t lines_before(const file_state *f, size_t at, size_t lines, size_t least)
{
	while (lines-- > 0 && at > least) {
		const char *newline = at - least > 1 ? memrchr(f->r->window + least, '\n', at - 1 - least) : NULL;
		at = newline ? (size_t)(newline - f->r->window) + 1 : least;
	}
	return at;
}

/* What is still owed of the context after a hit, up to `to`. */
static void show_after(file_state *f, size_t to)
{
	size_t from = f->shown, end = from;
	while (f->after > 0 && end < to) {
		end = line_end(f, end) + 1;
		f->after--;
	}
	if (end > from)
		show(f, from, end < to ? end : to, '-', 0);
}

static void show_hit(file_state *f, const lat_hit *hit)
{
	size_t context = f->r->options->context;
	show_after(f, hit->start);
	size_t from = lines_before(f, hit->start, context, f->shown);
	if (context > 0 && (from > f->shown || f->has_gap || !f->shown_any))
		lat_buf_str(f->out,
		            "--\n"); /* the one before the first group is taken off where all is put together */
	if (from < hit->start)
		show(f, from, hit->start, '-', 0);
	show(f, hit->start, hit->end + 1, ':', hit->match);
	f->after = context;
}

/* ---- the window ---- */

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Moves what is still needed to the front; more room where that fills the window. False: there is none. */
static bool make_room(file_state *f, lat_status *status)
{
	lat_grep_reader *r = f->r;
	size_t keep = lines_before(f, f->searched, r->options->context, min_size(f->shown, f->searched));
	f->has_gap = f->has_gap || keep > f->shown;
	if (r->options->mode == LAT_GREP_CONTENT)
		count_to(f, keep);
	memmove(r->window, r->window + keep, f->len - keep);
	f->len -= keep;
	f->searched -= keep;
	f->shown = 0;
	f->counted = 0;
	if (f->len < r->cap)
		return true;
	if (r->cap >= LAT_GREP_MAX_WINDOW)
		return false;
	char *window = realloc(r->window, 2 * r->cap);
	if (!window) {
		*status = LAT_E_NOMEM;
		return false;
	}
	r->window = window;
	r->cap *= 2;
	return true;
}

/* Fills the window as far as the file goes. False: the file can't be read. */
static bool fill(file_state *f)
{
	while (f->len < f->r->cap) {
		ssize_t n = read(f->fd, f->r->window + f->len, f->r->cap - f->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			f->at_end = true;
			return n == 0;
		}
		f->len += (size_t)n;
		if (f->is_first && f->len == f->size) { /* likely all: files seldom grow meanwhile */
			f->at_end = true;
			return true;
		}
	}
	return true;
}

static size_t whole_lines(const file_state *f)
{
	if (f->at_end)
		return f->len;
	const char *newline = memrchr(f->r->window + f->searched, '\n', f->len - f->searched);
	return newline ? (size_t)(newline - f->r->window) + 1 : f->searched;
}

static bool is_enough(const file_state *f)
{
	const lat_grep_options *options = f->r->options;
	if (options->mode == LAT_GREP_FILES)
		return f->hits > 0;
	if (options->mode != LAT_GREP_CONTENT)
		return false;
	return f->out->len > options->max_bytes || (options->max_lines && f->hits > options->max_lines);
}

/* Searches the whole lines up to `end`. */
static lat_hit_outcome search_window(file_state *f, size_t end)
{
	lat_searcher *s = f->r->searcher;
	size_t base = f->searched;
	const char *text = f->r->window + base;
	lat_searcher_begin(s, text, end - base);
	lat_hit hit;
	lat_hit_outcome outcome = LAT_NO_HIT;
	for (size_t at = 0; !is_enough(f); at = hit.end + 1) {
		outcome = lat_searcher_next(s, at, &hit);
		if (outcome != LAT_HIT)
			break;
		f->hits++;
		if (f->r->options->mode == LAT_GREP_CONTENT) {
			lat_hit in_window = {hit.start + base, hit.end + base, hit.match + base};
			show_hit(f, &in_window);
		}
	}
	f->searched = end;
	if (f->after > 0)
		show_after(f, end);
	return outcome;
}

static bool is_binary(const file_state *f)
{
	return memchr(f->r->window, '\0', min_size(f->len, LAT_GREP_BINARY_LOOK)) != NULL;
}

static void skip_bom(file_state *f)
{
	if (f->len >= 3 && memcmp(f->r->window, "\xEF\xBB\xBF", 3) == 0)
		f->searched = f->shown = f->counted = 3;
}

/* ---- a file ---- */

/* Window after window. LAT_HIT_LIMIT: a line, or a text for a multiline search, is too large as well. */
static lat_hit_outcome search_all(file_state *f, lat_status *status)
{
	for (;;) {
		size_t end = whole_lines(f);
		bool whole = !f->r->options->whole_files || f->at_end;
		if (whole && end > f->searched) {
			lat_hit_outcome outcome = search_window(f, end);
			if (outcome == LAT_HIT_LIMIT || is_enough(f))
				return outcome;
		}
		if (f->at_end)
			return LAT_NO_HIT;
		if (!make_room(f, status))
			return LAT_HIT_LIMIT;
		f->is_first = false;
		if (!fill(f)) {
			f->stats->unreadable++;
			return LAT_NO_HIT;
		}
	}
}

static void report(file_state *f)
{
	if (f->hits == 0)
		return;
	f->stats->files_hit++;
	f->stats->lines_hit += f->hits;
	if (f->r->options->mode == LAT_GREP_CONTENT)
		return;
	lat_buf_append(f->out, f->path, f->path_len);
	if (f->r->options->mode == LAT_GREP_COUNT)
		lat_buf_printf(f->out, ":%zu", f->hits);
	lat_buf_byte(f->out, '\n');
}

lat_status lat_grep_file(lat_grep_reader *r, int fd, const char *path, size_t path_len, lat_buf *out,
                         lat_grep_stats *stats)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		stats->unreadable++;
		return LAT_OK;
	}
	file_state f = {
		.r = r, .fd = fd, .path = path, .path_len = path_len, .out = out, .stats = stats, .line = 1};
	f.size = (size_t)st.st_size;
	f.is_first = true;
	if (!fill(&f)) {
		stats->unreadable++;
		return LAT_OK;
	}
	if (is_binary(&f)) {
		stats->binary++;
		return LAT_OK;
	}
	skip_bom(&f);
	stats->files++;
	lat_status status = LAT_OK;
	if (search_all(&f, &status) == LAT_HIT_LIMIT && status == LAT_OK)
		stats->too_hard++;
	report(&f);
	return status == LAT_OK && !lat_buf_ok(out) ? LAT_E_NOMEM : status;
}
