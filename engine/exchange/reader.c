/* lat_reader: what to make of the bytes of a reply. Pure; one owner at a time; see reader.h. */
#include "exchange/reader.h"

#include <string.h>

lat_status lat_reader_init(lat_reader *r, bool events, lat_secrets secrets, lat_error *err)
{
	*r = (lat_reader){.wants_events = events, .secrets = secrets, .head = LAT_REPLY_HEAD_INIT(0)};
	lat_sse_init(&r->sse, 0);
	r->assembly = lat_assembly_new(err);
	return r->assembly ? LAT_OK : LAT_E_NOMEM;
}

void lat_reader_free(lat_reader *r)
{
	lat_sse_free(&r->sse);
	lat_assembly_free(r->assembly);
	lat_message_free(r->message);
	lat_buf_free(&r->now);
	lat_buf_free(&r->next);
	r->assembly = NULL;
	r->message = NULL;
	r->event = NULL;
}

/* ---- the end ---- */

static void settle_problem(lat_reader *r)
{
	if (!r->problem.request_id[0])
		memcpy(r->problem.request_id, r->head.request_id, sizeof r->problem.request_id);
	lat_reply_redact(&r->problem, r->secrets);
	r->has_problem = r->over = true;
}

static void settle_cause(lat_reader *r, const lat_error *cause)
{
	lat_reply_from_transport(cause, &r->problem);
	if (cause->kind == LAT_E_TIMEOUT && !r->out_of_time)
		r->problem.retryable = true; /* silence, or no connection: another try may find a better way */
	settle_problem(r);
}

static lat_span body_so_far(const lat_reader *r)
{
	if (r->form == LAT_FORM_STREAM)
		return lat_span_of(r->start, r->start_len);
	return r->now.len ? lat_span_of(r->now.data, r->now.len) : lat_span_str("");
}

static void settle_broken(lat_reader *r, const char *problem, bool cut)
{
	lat_reply_broken(&r->head, body_so_far(r), problem, cut, r->secrets, &r->problem);
	settle_problem(r);
}

/* A stream that can't go on: an error event, what is no stream, or a limit. */
static void settle_stream(lat_reader *r, const lat_error *err)
{
	const lat_reply_error *said = lat_assembly_error(r->assembly);
	if (said) {
		r->problem = *said;
		settle_problem(r);
	} else if (err->kind == LAT_E_NOMEM || err->kind == LAT_E_LIMIT) {
		settle_cause(r, err);
	} else {
		settle_broken(r, err->message, true);
	}
}

static void settle_whole(lat_reader *r)
{
	lat_error err;
	r->message = lat_message_from_json(r->now.data, r->now.len, &err);
	if (r->message)
		r->over = true;
	else if (err.kind == LAT_E_NOMEM || err.kind == LAT_E_LIMIT)
		settle_cause(r, &err);
	else
		settle_broken(r, err.message, err.kind == LAT_E_SYNTAX);
}

/* All bytes are there, and looked at. */
static void conclude(lat_reader *r)
{
	bool answered = r->cause.kind == LAT_OK || r->cause.kind == LAT_E_IO || r->cause.kind == LAT_E_LIMIT;
	if (r->form == LAT_FORM_FAILURE && answered) {
		lat_reply_refused(&r->head, body_so_far(r), r->secrets, &r->problem);
		settle_problem(r);
	} else if (r->cause.kind != LAT_OK) {
		settle_cause(r, &r->cause);
	} else if (r->form == LAT_FORM_STREAM) {
		settle_broken(r, "the stream was cut before message_stop", true);
	} else if (r->form == LAT_FORM_WHOLE) {
		settle_whole(r);
	} else if (r->now.len == 0) {
		settle_broken(r, "the body is empty", false);
	} else {
		settle_broken(r, "it is neither a message nor a stream of events", false);
	}
}

/* ---- streams ---- */

/* Takes one event off *bytes; false when there is none, or no use in going on. */
static bool take_event(lat_reader *r, lat_span *bytes)
{
	lat_sse_event event;
	lat_error err;
	bool found = false;
	const lat_value *parsed = NULL;
	lat_status status = lat_sse_next(&r->sse, bytes, &event, &found, &err);
	if (status == LAT_OK && found)
		status = lat_assembly_event(r->assembly, &event, &parsed, &err);
	if (status != LAT_OK) {
		settle_stream(r, &err);
		return false;
	}
	if (r->wants_events && parsed)
		r->event = parsed;
	r->over = lat_assembly_done(r->assembly);
	return found && !r->over;
}

static bool bring_next(lat_reader *r)
{
	lat_buf used_up = r->now;
	r->now = r->next;
	r->next = used_up;
	r->used = 0;
	lat_buf_clear(&r->next);
	return r->now.len > 0;
}

/* Up to the next event that somebody will take, or all there is. */
static void read_waiting(lat_reader *r)
{
	while (r->form == LAT_FORM_STREAM && !r->event && !r->over) {
		if (r->used == r->now.len && !bring_next(r))
			break;
		lat_span left = lat_span_of(r->now.data + r->used, r->now.len - r->used);
		take_event(r, &left);
		r->used = r->now.len - left.len;
	}
	if (!r->over && !r->event && r->ended)
		conclude(r);
}

static void take_stream(lat_reader *r, const char *bytes, size_t n)
{
	size_t room = sizeof r->start - r->start_len;
	size_t kept = n < room ? n : room;
	memcpy(r->start + r->start_len, bytes, kept);
	r->start_len += kept;
	lat_span piece = lat_span_of(bytes, n);
	if (!r->wants_events) {
		while (take_event(r, &piece)) {
		}
		return;
	}
	lat_buf_append(&r->next, bytes, n);
	if (!r->event)
		read_waiting(r);
}

/* ---- which form ---- */

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static lat_span without_blanks(const lat_buf *b)
{
	if (b->len == 0)
		return lat_span_str("");
	const char *at = b->data, *end = b->data + b->len;
	if (b->len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	while (at < end && blank(*at))
		at++;
	return lat_span_of(at, (size_t)(end - at));
}

/* Whether text is the beginning of a stream; *sure = false: it may be, and is too short to tell. */
static bool begins_stream(lat_span text, bool *sure)
{
	static const char *const marks[] = {":", "event:", "data:", "id:", "retry:"};
	*sure = true;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		size_t n = strlen(marks[i]);
		if (memcmp(text.s, marks[i], text.len < n ? text.len : n) != 0)
			continue;
		*sure = text.len >= n;
		return true;
	}
	return false;
}

/* Looks at what came so far; `ended`: more won't come. */
static lat_reply_form find_form(const lat_reader *r, bool ended)
{
	lat_span text = without_blanks(&r->now);
	if (text.len == 0 || (text.len < 3 && text.s[0] == '\xef' && !ended))
		return LAT_FORM_UNKNOWN;
	if (text.s[0] == '{')
		return LAT_FORM_WHOLE;
	if (lat_reply_is_stream(&r->head))
		return LAT_FORM_STREAM;
	bool sure;
	if (begins_stream(text, &sure))
		return sure ? LAT_FORM_STREAM : ended ? LAT_FORM_OTHER : LAT_FORM_UNKNOWN;
	return lat_reply_is_json(&r->head) ? LAT_FORM_WHOLE : LAT_FORM_OTHER;
}

static void look_at_form(lat_reader *r, bool ended)
{
	r->form = find_form(r, ended);
	if (r->form == LAT_FORM_UNKNOWN && without_blanks(&r->now).len == 0)
		lat_buf_clear(&r->now); /* or a reply of blanks would be looked through again and again */
	if (r->form != LAT_FORM_STREAM)
		return;
	lat_buf first = r->now;
	r->now = (lat_buf)LAT_BUF_INIT;
	take_stream(r, first.data, first.len);
	lat_buf_free(&first);
}

/* ---- what comes in ---- */

void lat_reader_head(lat_reader *r, const lat_head *head, int64_t now_ms)
{
	enum { OK = 200, OK_END = 300 };
	lat_header field;
	r->head = (lat_reply_head)LAT_REPLY_HEAD_INIT(head->status);
	for (size_t at = 0; lat_head_next(head, &at, &field);)
		lat_reply_header(&r->head, lat_span_of(field.name, field.name_len),
		                 lat_span_of(field.value, field.value_len), now_ms);
	if (head->status < OK || head->status >= OK_END)
		r->form = LAT_FORM_FAILURE;
}

void lat_reader_bytes(lat_reader *r, const char *bytes, size_t n)
{
	if (r->over || n == 0)
		return;
	if (r->form == LAT_FORM_STREAM) {
		take_stream(r, bytes, n);
	} else {
		bool bounded = r->form == LAT_FORM_FAILURE || r->form == LAT_FORM_OTHER;
		size_t room = bounded ? LAT_REPLY_BODY_BYTES - r->now.len : n;
		lat_buf_append(&r->now, bytes, n < room ? n : room);
		if (r->form == LAT_FORM_UNKNOWN && lat_buf_ok(&r->now))
			look_at_form(r, false);
	}
	if (!r->over && !(lat_buf_ok(&r->now) && lat_buf_ok(&r->next))) {
		lat_error err;
		lat_fail_nomem(&err);
		settle_cause(r, &err);
	}
}

void lat_reader_end(lat_reader *r, const lat_error *cause, bool out_of_time)
{
	if (r->over || r->ended)
		return;
	r->ended = true;
	r->out_of_time = out_of_time;
	if (cause)
		r->cause = *cause;
	if (cause && cause->kind == LAT_E_ABORT) {
		r->event = NULL;
		settle_cause(r, cause);
		return;
	}
	if (r->form == LAT_FORM_UNKNOWN && !cause)
		look_at_form(r, true);
	if (!r->over && !r->event)
		read_waiting(r);
}

/* ---- what is to be had ---- */

size_t lat_reader_waiting(const lat_reader *r)
{
	return r->wants_events && r->form == LAT_FORM_STREAM ? r->now.len - r->used + r->next.len : 0;
}

const lat_value *lat_reader_event(const lat_reader *r)
{
	return r->event;
}

void lat_reader_next(lat_reader *r)
{
	if (!r->event)
		return;
	r->event = NULL;
	read_waiting(r);
}

bool lat_reader_over(const lat_reader *r)
{
	return r->over;
}

lat_message *lat_reader_take(lat_reader *r)
{
	if (!r->over || r->has_problem)
		return NULL;
	lat_error err;
	lat_message *message = r->message ? r->message : lat_assembly_take(r->assembly, &err);
	r->message = NULL;
	r->event = NULL;
	return message;
}

const lat_reply_error *lat_reader_problem(const lat_reader *r)
{
	return r->has_problem ? &r->problem : NULL;
}
