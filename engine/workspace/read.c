/* Read: text with line numbers, images and PDF as blocks. The thread that runs the call.
 *
 * Text is streamed: whatever the size of the file, memory is the buffer and what is shown. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workspace/file.h"
#include "workspace/sniff.h"
#include "workspace/tool.h"

enum {
	CHUNK = 128 * 1024,
	DEFAULT_LINES = 2000,
	LINE_CHARS = 2000,          /* of a line, then it is cut */
	TEXT_MAX = 256 * 1024,      /* bytes of text in one result, then it ends with a line */
	IMAGE_MAX = 3932160,        /* bytes: 5 MB in base64, the API's bound on an image */
	IMAGE_SIDE_MAX = 8000,      /* pixels, likewise */
	PDF_MAX = 20 * 1024 * 1024, /* bytes: 27 MB in base64; a whole request may have 32 MB */
};

/* ---- text ---- */

typedef struct {
	lat_tool_call *call;
	int64_t line; /* the number of the one that is being read, from 1 */
	int64_t first, last;
	size_t chars;    /* of the line that is being shown */
	size_t left_out; /* bytes of it */
	bool in_line;    /* some of it was seen */
	bool open_end;   /* the last byte seen was no line end */
	bool full;       /* nothing more is shown */
	bool shortened;
} page;

typedef uint8_t lanes __attribute__((vector_size(16)));

/* Sixteen bytes at a time; a lane counts up to 255 before it is added up. */
static size_t count_newlines(const char *p, size_t n)
{
	const lanes newline = (lanes){0} + (uint8_t)'\n';
	size_t count = 0;
	while (n >= sizeof(lanes)) {
		lanes found = {0}, x;
		for (int i = 0; i < UINT8_MAX && n >= sizeof x; i++, p += sizeof x, n -= sizeof x) {
			memcpy(&x, p, sizeof x);
			found -= (lanes)(x == newline); /* -1 where it is so */
		}
		for (size_t i = 0; i < sizeof found; i++)
			count += found[i];
	}
	for (; n > 0; n--)
		count += *p++ == '\n';
	return count;
}

static void show(page *p, const char *s, size_t n)
{
	lat_buf *out = &p->call->result.text;
	if (!p->in_line) {
		lat_buf_printf(out, "%6lld\t", (long long)p->line);
		p->in_line = true;
		p->chars = p->left_out = 0;
		bool bom = p->line == 1 && n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0;
		s += bom ? 3 : 0;
		n -= bom ? 3 : 0;
	}
	size_t i = 0;
	for (; i < n; i++) {
		bool begins = ((unsigned char)s[i] & 0xc0) != 0x80;
		if (begins && p->chars == LINE_CHARS)
			break;
		p->chars += begins;
	}
	if (p->left_out == 0)
		lat_buf_append(out, s, i);
	else
		i = 0;
	p->left_out += n - i;
}

static void end_line(page *p)
{
	lat_buf *out = &p->call->result.text;
	if (p->left_out > 0) {
		lat_buf_printf(out, "… (%zu more bytes in this line)", p->left_out);
		p->shortened = true;
	} else if (p->chars > 0 && lat_buf_ok(out) && out->data[out->len - 1] == '\r') {
		out->len--;
	}
	lat_buf_byte(out, '\n');
	p->in_line = false;
	p->full = ++p->line > p->last || out->len > TEXT_MAX;
}

/* Takes the next bytes; returns how many it used: all, or fewer once the page is full. */
static size_t take(page *p, const char *s, size_t n)
{
	size_t at = 0;
	p->open_end = s[n - 1] != '\n';
	if (p->line < p->first) {
		int64_t lines = (int64_t)count_newlines(s, n);
		if (p->line + lines < p->first) {
			p->line += lines;
			return n;
		}
		for (; p->line < p->first; p->line++)
			at = (size_t)((const char *)memchr(s + at, '\n', n - at) - s) + 1;
	}
	while (at < n && !p->full) {
		const char *end = memchr(s + at, '\n', n - at);
		size_t len = end ? (size_t)(end - s) - at : n - at;
		show(p, s + at, len);
		if (end)
			end_line(p);
		at += len + (end != NULL);
	}
	return at;
}

/* 0 or an errno; *more: there is text behind the page. */
static int read_page(page *p, int fd, char *chunk, bool *more)
{
	*more = false;
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	for (off_t at = 0;;) {
		ssize_t n = lat_file_read_at(fd, chunk, CHUNK, at);
		if (n < 0)
			return errno;
		if (p->call->is_stopped(p->call))
			return ECANCELED;
		if (n == 0 || p->full) {
			*more = n > 0;
			break;
		}
		size_t used = take(p, chunk, (size_t)n);
		if (used < (size_t)n) {
			*more = true;
			break;
		}
		at += n;
	}
	if (p->in_line)
		end_line(p);
	return 0;
}

static void finish_page(page *p, bool more, off_t size)
{
	lat_tool_call *call = p->call;
	lat_buf *out = &call->result.text;
	int64_t lines = p->line > p->first ? p->line - p->first : 0;
	if (out->len == 0 && size == 0) {
		lat_buf_str(out, "(the file is empty)");
	} else if (out->len == 0) {
		lat_tool_fail(call, "offset %lld is past the end: the file has %lld lines", (long long)p->first,
		              (long long)p->line - !p->open_end);
	} else if (more) {
		lat_buf_printf(out, "(the file goes on; read from offset %lld for more)", (long long)p->line);
	} else {
		out->len--; /* the end of the last line */
	}
	lat_tool_note_int(call, "bytes", (int64_t)size);
	lat_tool_note_int(call, "lines", lines);
	lat_tool_note_bool(call, "truncated", more || p->shortened);
}

static int read_text(lat_tool_call *call, int fd, off_t size)
{
	page p = {.call = call, .line = 1};
	p.first = lat_tool_integer(call, "offset", 1, 1, INT64_MAX / 4);
	p.last = p.first + lat_tool_integer(call, "limit", DEFAULT_LINES, 1, INT64_MAX / 4) - 1;
	char *chunk = malloc(CHUNK);
	if (!chunk)
		return ENOMEM;
	bool more;
	int failure = read_page(&p, fd, chunk, &more);
	free(chunk);
	if (failure == 0 && !lat_buf_ok(&call->result.text))
		return ENOMEM;
	if (failure == 0)
		finish_page(&p, more, size);
	return failure;
}

/* ---- blocks ---- */

static void read_block(lat_tool_call *call, int fd, const lat_place *place, const lat_sniffed *sniffed,
                       off_t size)
{
	bool image = sniffed->kind == LAT_SNIFF_IMAGE;
	size_t max = image ? IMAGE_MAX : PDF_MAX;
	if ((uint64_t)size > max) {
		lat_tool_fail(call, "%s is %s of %lld bytes, and at most %zu can be shown: make it smaller first",
		              place->path, image ? "an image" : "a PDF", (long long)size, max);
		return;
	}
	lat_buf bytes = LAT_BUF_INIT;
	uint32_t width = 0, height = 0;
	int failure = lat_file_read_all(fd, max, &bytes);
	if (failure)
		lat_tool_fail_errno(call, "read", place->path, strlen(place->path), LAT_ACCESS_READ, failure);
	else if (!lat_buf_ok(&bytes))
		lat_tool_fail_nomem(call);
	else if (image && !lat_sniff_size(sniffed->media_type, bytes.data, bytes.len, &width, &height))
		lat_tool_fail(call, "%s begins like an image (%s), but is broken", place->path, sniffed->media_type);
	else if (width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX)
		lat_tool_fail(
			call,
			"%s is an image of %u × %u pixels, and at most %d a side can be shown: make it smaller first",
			place->path, width, height, IMAGE_SIDE_MAX);
	if (!call->result.is_error) {
		call->result.block = image ? "image" : "document";
		call->result.media_type = sniffed->media_type;
		lat_base64_append(&call->result.data, bytes.data, bytes.len);
		lat_tool_note_int(call, "bytes", (int64_t)bytes.len);
		lat_tool_note_string(call, "media_type", sniffed->media_type, strlen(sniffed->media_type));
		lat_tool_note_bool(call, "truncated", false);
	}
	lat_buf_free(&bytes);
}

/* ---- the tool ---- */

static void note_seen(lat_tool_call *call, const lat_place *place, const struct stat *st)
{
	lat_file_key key;
	const lat_file_state state = lat_file_state_of(st);
	if (lat_place_key(place, &key) && lat_workspace_note(call->ws, &key, &state) != LAT_OK)
		lat_tool_fail_nomem(call);
}

static void read_file(lat_tool_call *call, const lat_place *place, int fd, const struct stat *st)
{
	char head[LAT_SNIFF_BYTES];
	ssize_t n = lat_file_read_at(fd, head, sizeof head, 0);
	const lat_sniffed sniffed = n >= 0 ? lat_sniff(head, (size_t)n) : (lat_sniffed){.kind = LAT_SNIFF_TEXT};
	int failure = n >= 0 ? 0 : errno;
	if (failure == 0 && sniffed.kind == LAT_SNIFF_TEXT)
		failure = read_text(call, fd, st->st_size);
	else if (failure == 0 && sniffed.kind == LAT_SNIFF_BINARY)
		lat_tool_fail(call, "can't show %s: it is %s", place->path, sniffed.what);
	else if (failure == 0)
		read_block(call, fd, place, &sniffed, st->st_size);
	if (failure == ECANCELED)
		lat_tool_fail(call, "stopped while reading");
	else if (failure)
		lat_tool_fail_errno(call, "read", place->path, strlen(place->path), LAT_ACCESS_READ, failure);
	if (!call->result.is_error)
		note_seen(call, place, st);
}

void lat_tool_read(lat_tool_call *call)
{
	lat_place place;
	if (!lat_tool_place(call, "file_path", NULL, "read", LAT_ACCESS_READ, 0, &place))
		return;
	struct stat st;
	int fd = lat_place_open_file(&place, &st);
	if (fd < 0) {
		lat_tool_fail_errno(call, "read", place.path, strlen(place.path), LAT_ACCESS_READ, errno);
	} else {
		read_file(call, &place, fd, &st);
		close(fd);
	}
	lat_place_close(&place);
}
