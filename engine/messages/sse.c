/* The event stream parser; see sse.h. Pure; one owner at a time, any thread; lat_sse_free frees what it
 * keeps.
 *
 * The state between two pieces is: a part of a line (`line`), and the fields of an event that has begun.
 * While a piece is worked on, fields are views into it; before it is given back they are copied (`keep`). */
#include "messages/sse.h"

#include <string.h>

enum { BOM_BYTES = 3 };
static const char BOM[BOM_BYTES] = "\xef\xbb\xbf";
static const char DEFAULT_NAME[] = "message";

void lat_sse_init(lat_sse *sse, size_t max_bytes)
{
	*sse = (lat_sse){.retry_ms = -1, .max_bytes = max_bytes ? max_bytes : LAT_SSE_DEFAULT_BYTES};
}

void lat_sse_free(lat_sse *sse)
{
	lat_buf_free(&sse->line);
	lat_buf_free(&sse->name);
	lat_buf_free(&sse->data);
	lat_buf_free(&sse->id);
}

static lat_status too_long(const lat_sse *sse, lat_error *err)
{
	return lat_fail(err, LAT_E_LIMIT, "an event of the stream is longer than %zu bytes", sse->max_bytes);
}

/* ---- lines ---- */

#define EACH_BYTE(c) (0x0101010101010101u * (uint64_t)(unsigned char)(c))

/* The first CR or LF at or behind p, or end; eight bytes at a time. One pass for both, so that a stream of
 * bare CRs doesn't cost a search for LFs at each line. A borrow in the subtractions only reaches bytes behind
 * one that is marked rightly, so the first mark is right. */
static const char *line_end(const char *p, const char *end)
{
	while (end - p >= 8) {
		uint64_t w;
		memcpy(&w, p, 8);
		uint64_t lf = w ^ EACH_BYTE('\n'), cr = w ^ EACH_BYTE('\r');
		uint64_t marks = ((lf - EACH_BYTE(1)) & ~lf) | ((cr - EACH_BYTE(1)) & ~cr);
		marks &= EACH_BYTE(0x80);
		if (marks) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			return p + (__builtin_ctzll(marks) >> 3);
#else
			break;
#endif
		}
		p += 8;
	}
	while (p < end && *p != '\n' && *p != '\r')
		p++;
	return p;
}

/* Swallows a byte order mark at the start of the stream; a part of one that turns out to be none is text. */
static void skip_bom(lat_sse *sse, lat_span *bytes)
{
	while (bytes->len > 0 && sse->bom < BOM_BYTES) {
		if (*bytes->s != BOM[sse->bom]) {
			lat_buf_append(&sse->line, BOM, sse->bom);
			sse->bom = BOM_BYTES;
			return;
		}
		sse->bom++;
		bytes->s++;
		bytes->len--;
	}
}

/* Takes one whole line, without its end. *kept: it is in sse->line, to be cleared when it has been read. */
static bool take_line(lat_sse *sse, lat_span *bytes, lat_span *line, bool *kept)
{
	if (sse->skip_lf && bytes->len > 0) {
		sse->skip_lf = false;
		if (*bytes->s == '\n') {
			bytes->s++;
			bytes->len--;
		}
	}
	const char *end = bytes->s + bytes->len, *stop = line_end(bytes->s, end);
	*line = lat_span_of(bytes->s, (size_t)(stop - bytes->s));
	*kept = sse->line.len > 0 || stop == end;
	if (*kept) {
		lat_buf_append(&sse->line, line->s, line->len);
		*line = lat_span_of(sse->line.data, sse->line.len);
	}
	if (stop == end) {
		*bytes = lat_span_of(end, 0);
		return false;
	}
	sse->skip_lf = *stop == '\r';
	*bytes = lat_span_of(stop + 1, (size_t)(end - stop - 1));
	return true;
}

/* ---- fields ---- */

static void keep(lat_buf *into, lat_span *at, bool *kept)
{
	if (at->s && !*kept) {
		lat_buf_clear(into);
		lat_buf_append(into, at->s, at->len);
		*kept = true;
	}
}

/* A field's value: a view when its line is one. */
static void set_field(lat_buf *into, lat_span *at, bool *kept, lat_span value, bool value_passes)
{
	*at = value;
	*kept = false;
	if (value_passes)
		keep(into, at, kept);
}

static void add_data(lat_sse *sse, lat_span value, bool value_passes)
{
	if (!sse->data_at.s) {
		set_field(&sse->data, &sse->data_at, &sse->data_kept, value, value_passes);
		return;
	}
	keep(&sse->data, &sse->data_at, &sse->data_kept);
	lat_buf_byte(&sse->data, '\n');
	lat_buf_append(&sse->data, value.s, value.len);
}

static void set_id(lat_sse *sse, lat_span value)
{
	if (value.len > 0 && memchr(value.s, '\0', value.len))
		return;
	lat_buf_clear(&sse->id);
	lat_buf_append(&sse->id, value.s, value.len);
}

static void set_retry(lat_sse *sse, lat_span value)
{
	int64_t ms = 0;
	for (size_t i = 0; i < value.len; i++) {
		if (value.s[i] < '0' || value.s[i] > '9')
			return;
		if (ms < INT64_MAX / 20)
			ms = ms * 10 + (value.s[i] - '0');
	}
	if (value.len > 0)
		sse->retry_ms = ms;
}

static void take_field(lat_sse *sse, lat_span line, bool passes)
{
	const char *colon = memchr(line.s, ':', line.len);
	lat_span field = {line.s, colon ? (size_t)(colon - line.s) : line.len};
	lat_span value = {line.s + line.len, 0};
	if (colon) {
		const char *from = colon + 1, *end = line.s + line.len;
		from += from < end && *from == ' ';
		value = lat_span_of(from, (size_t)(end - from));
	}
	if (lat_span_is(field, "data"))
		add_data(sse, value, passes);
	else if (lat_span_is(field, "event"))
		set_field(&sse->name, &sse->name_at, &sse->name_kept, value, passes);
	else if (lat_span_is(field, "id"))
		set_id(sse, value);
	else if (lat_span_is(field, "retry"))
		set_retry(sse, value);
}

/* ---- events ---- */

static bool buffers_ok(const lat_sse *sse)
{
	return lat_buf_ok(&sse->line) && lat_buf_ok(&sse->name) && lat_buf_ok(&sse->data) && lat_buf_ok(&sse->id);
}

static lat_status check(const lat_sse *sse, lat_error *err)
{
	if ((sse->data_kept ? sse->data.len : sse->data_at.len) > sse->max_bytes)
		return too_long(sse, err);
	return buffers_ok(sse) ? LAT_OK : lat_fail_nomem(err);
}

static void forget_event(lat_sse *sse)
{
	sse->name_at = sse->data_at = lat_span_of(NULL, 0);
	sse->name_kept = sse->data_kept = false;
	sse->delivered = false;
}

/* An empty line ends the event. One without a data line is none (9.2.6, "dispatch the event"). */
static bool deliver(lat_sse *sse, lat_sse_event *event)
{
	if (!sse->data_at.s) {
		forget_event(sse);
		return false;
	}
	event->data = sse->data_kept ? lat_span_of(sse->data.data, sse->data.len) : sse->data_at;
	event->name = sse->name_kept ? lat_span_of(sse->name.data, sse->name.len) : sse->name_at;
	if (event->name.len == 0)
		event->name = lat_span_of(DEFAULT_NAME, sizeof DEFAULT_NAME - 1);
	event->id = lat_span_of(sse->id.len > 0 ? sse->id.data : "", sse->id.len);
	if (!event->data.s) /* kept, but empty */
		event->data = lat_span_of("", 0);
	sse->delivered = true;
	return true;
}

lat_status lat_sse_next(lat_sse *sse, lat_span *bytes, lat_sse_event *event, bool *found, lat_error *err)
{
	*found = false;
	if (sse->delivered)
		forget_event(sse);
	skip_bom(sse, bytes);
	while (bytes->len > 0 && !*found) {
		lat_span line;
		bool kept;
		bool whole = take_line(sse, bytes, &line, &kept);
		if (line.len > sse->max_bytes)
			return too_long(sse, err);
		if (kept && !lat_buf_ok(&sse->line))
			return lat_fail_nomem(err);
		if (!whole)
			break;
		if (line.len == 0)
			*found = deliver(sse, event);
		else if (line.s[0] != ':')
			take_field(sse, line, kept);
		if (kept)
			lat_buf_clear(&sse->line);
		lat_status status = check(sse, err);
		if (status != LAT_OK)
			return status;
	}
	if (!*found) {
		keep(&sse->name, &sse->name_at, &sse->name_kept);
		keep(&sse->data, &sse->data_at, &sse->data_kept);
	}
	return check(sse, err);
}
