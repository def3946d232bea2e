/* lat_sse: see sse.h. Pure. An event that lies whole in the fed bytes, in one data line, is handed on without a
 * copy: the usual case of a model's stream. */
#include "messages/sse.h"

#include <string.h>

enum { PAST_START = 4 };

void lat_sse_init(lat_sse *p, lat_sse_event_fn on_event, void *ctx, size_t max_event_bytes)
{
	*p = (lat_sse){
		.on_event = on_event,
		.ctx = ctx,
		.max_event_bytes = max_event_bytes ? max_event_bytes : LAT_SSE_DEFAULT_EVENT_BYTES,
	};
}

void lat_sse_free(lat_sse *p)
{
	lat_buf_free(&p->line);
	lat_buf_free(&p->data);
	lat_buf_free(&p->type);
}

static lat_status too_long(const lat_sse *p, lat_error *err)
{
	return lat_fail(err, LAT_E_LIMIT, "a server-sent event is longer than %zu bytes", p->max_event_bytes);
}

/* A blank line: the event is whole. Without data there is none (the standard, "dispatch the event"). */
static lat_status dispatch(lat_sse *p, const char *only_line, size_t only_len, lat_error *err)
{
	const char *data = only_line;
	size_t len = only_len;
	if (!only_line) {
		if (p->data.len == 0) {
			lat_buf_clear(&p->type);
			return LAT_OK;
		}
		data = p->data.data;
		len = p->data.len - 1; /* without the last line feed */
	}
	const char *type = p->type.len ? p->type.data : "message";
	size_t type_len = p->type.len ? p->type.len : strlen("message");
	lat_status status = p->on_event(p->ctx, type, type_len, data, len, err);
	lat_buf_clear(&p->data);
	lat_buf_clear(&p->type);
	return status;
}

static bool field_is(const char *line, size_t name_len, const char *name)
{
	return name_len == strlen(name) && memcmp(line, name, name_len) == 0;
}

/* Where the value of a field begins: behind the colon and one space. */
static size_t value_start(const char *line, size_t len, size_t name_len)
{
	size_t at = name_len < len ? name_len + 1 : len;
	return at < len && line[at] == ' ' ? at + 1 : at;
}

static lat_status take_line(lat_sse *p, const char *line, size_t len, lat_error *err)
{
	if (len == 0)
		return dispatch(p, NULL, 0, err);
	const char *colon = memchr(line, ':', len);
	size_t name_len = colon ? (size_t)(colon - line) : len;
	size_t from = value_start(line, len, name_len);
	if (field_is(line, name_len, "data")) {
		if (p->data.len + (len - from) > p->max_event_bytes)
			return too_long(p, err);
		lat_buf_append(&p->data, line + from, len - from);
		lat_buf_byte(&p->data, '\n');
	} else if (field_is(line, name_len, "event")) {
		lat_buf_clear(&p->type);
		lat_buf_append(&p->type, line + from, len - from);
	} /* id and retry serve reconnection, which a model's reply has not; comments and unknown fields say nothing */
	return lat_buf_ok(&p->data) && lat_buf_ok(&p->type) ? LAT_OK : lat_fail_nomem(err);
}

/* The end of the line that begins at `from`; n when it isn't there. */
static size_t line_end(const char *bytes, size_t n, size_t from)
{
	const char *lf = memchr(bytes + from, '\n', n - from);
	size_t end = lf ? (size_t)(lf - bytes) : n;
	const char *cr = memchr(bytes + from, '\r', end - from);
	return cr ? (size_t)(cr - bytes) : end;
}

/* A whole event in sight, "data: …" and a blank line behind it: handed on in place. Returns the bytes taken. */
static size_t whole_event(lat_sse *p, const char *bytes, size_t n, size_t from, size_t end,
                          lat_status *status, lat_error *err)
{
	enum { PREFIX = 5 };
	if (p->data.len || end + 1 >= n || bytes[end] != '\n' || bytes[end + 1] != '\n')
		return 0;
	if (end - from < PREFIX || memcmp(bytes + from, "data:", PREFIX) != 0 || end - from > p->max_event_bytes)
		return 0;
	size_t value = value_start(bytes + from, end - from, PREFIX - 1);
	*status = dispatch(p, bytes + from + value, end - from - value, err);
	return end + 2 - from;
}

/* Passes over a byte order mark at the very start, however it is cut. */
static size_t skip_bom(lat_sse *p, const char *bytes, size_t n)
{
	static const char BOM[] = "\xEF\xBB\xBF";
	size_t i = 0;
	while (i < n && p->at_bom < PAST_START - 1 && bytes[i] == BOM[p->at_bom]) {
		i++;
		p->at_bom++;
	}
	if (i < n || p->at_bom == PAST_START - 1) {
		if (p->at_bom < PAST_START - 1) /* it was none: its bytes belong to the first line */
			lat_buf_append(&p->line, BOM, p->at_bom);
		p->at_bom = PAST_START;
	}
	return i;
}

/* A line whose start came before: put together in p->line. */
static lat_status joined_line(lat_sse *p, const char *bytes, size_t n, lat_error *err)
{
	lat_buf_append(&p->line, bytes, n);
	if (!lat_buf_ok(&p->line))
		return lat_fail_nomem(err);
	if (p->line.len > p->max_event_bytes)
		return too_long(p, err);
	return LAT_OK;
}

lat_status lat_sse_feed(lat_sse *p, const char *bytes, size_t n, lat_error *err)
{
	size_t at = p->at_bom == PAST_START ? 0 : skip_bom(p, bytes, n);
	lat_status status = LAT_OK;
	while (at < n && status == LAT_OK) {
		if (p->skip_lf && bytes[at] == '\n')
			at++;
		p->skip_lf = false;
		if (at == n)
			break;
		size_t end = line_end(bytes, n, at);
		if (p->line.len == 0 && end < n) {
			size_t taken = whole_event(p, bytes, n, at, end, &status, err);
			if (taken) {
				at += taken;
				continue;
			}
			status = take_line(p, bytes + at, end - at, err);
		} else {
			status = joined_line(p, bytes + at, end - at, err);
			if (status == LAT_OK && end < n) {
				status = take_line(p, p->line.data, p->line.len, err);
				lat_buf_clear(&p->line);
			}
		}
		if (end < n)
			p->skip_lf = bytes[end] == '\r';
		at = end < n ? end + 1 : n;
	}
	return status;
}
