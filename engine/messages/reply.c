/* lat_problem: see reply.h. Pure. */
#include "messages/reply.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/value.h"
#include "json/read.h"
#include "json/write.h"

enum { SHOWN_BYTES = 200, SHORTEST_SECRET = 4, LONGEST_WAIT_S = 365 * 24 * 3600, MS_PER_S = 1000 };

void lat_problem_init(lat_problem *p)
{
	*p = (lat_problem){.kind = "api", .retry_after_ms = -1};
}

void lat_problem_free(lat_problem *p)
{
	lat_buf_free(&p->type);
	lat_buf_free(&p->message);
	lat_buf_free(&p->request_id);
}

bool lat_status_is_retryable(int status)
{
	return status == 408 || status == 409 || status == 429 || status >= 500;
}

/* ---- what the types mean ---- */

static const struct {
	int status;
	const char *type;
} KNOWN[] = {
	{400, "invalid_request_error"}, {401, "authentication_error"}, {402, "billing_error"},
	{403, "permission_error"},      {404, "not_found_error"},      {408, "timeout_error"},
	{413, "request_too_large"},     {429, "rate_limit_error"},     {500, "api_error"},
	{504, "timeout_error"},         {529, "overloaded_error"},
};
enum { N_KNOWN = sizeof KNOWN / sizeof *KNOWN };

static const char *type_of_status(int status)
{
	for (size_t i = 0; i < N_KNOWN; i++)
		if (KNOWN[i].status == status)
			return KNOWN[i].type;
	return status >= 500 ? "api_error" : "http_error";
}

/* Inside a stream there is no status line: the type stands for one. */
static int status_of_type(const lat_buf *type)
{
	for (size_t i = N_KNOWN; i-- > 0;)
		if (lat_slice_is((lat_slice){type->data, type->len}, KNOWN[i].type))
			return KNOWN[i].status;
	return 500;
}

/* ---- waiting ---- */

static bool read_number(lat_slice s, double *out)
{
	double whole = 0, scale = 0;
	while (s.len && s.s[s.len - 1] == ' ')
		s.len--;
	for (size_t i = 0; i < s.len; i++) {
		if (s.s[i] == '.' && scale == 0) {
			scale = 1;
		} else if (s.s[i] >= '0' && s.s[i] <= '9') {
			whole = whole * 10 + (s.s[i] - '0');
			scale *= 10;
		} else {
			return false;
		}
	}
	if (s.len == 0)
		return false;
	*out = scale > 0 ? whole / scale : whole;
	return true;
}

/* An IMF-fixdate, "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7); -1 when it is none. */
static int64_t read_http_date(lat_slice s)
{
	static const char MONTHS[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	char text[32], month[4], zone[4];
	struct tm tm = {0};
	if (s.len < 29 || s.len >= sizeof text)
		return -1;
	memcpy(text, s.s, s.len);
	text[s.len] = '\0';
	int fields = sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d %3s", &tm.tm_mday, month, &tm.tm_year,
	                    &tm.tm_hour, &tm.tm_min, &tm.tm_sec, zone);
	const char *at = fields == 7 ? strstr(MONTHS, month) : NULL;
	if (!at || strlen(month) != 3 || (at - MONTHS) % 3 != 0 || strcmp(zone, "GMT") != 0)
		return -1;
	tm.tm_mon = (int)(at - MONTHS) / 3;
	tm.tm_year -= 1900;
	return (int64_t)timegm(&tm);
}

static int64_t bounded_ms(double ms)
{
	const double longest = (double)LONGEST_WAIT_S * MS_PER_S;
	return (int64_t)(ms < longest ? ms : longest);
}

int64_t lat_retry_after_ms(const lat_reply_head *head)
{
	double number;
	if (read_number(head->retry_after_ms, &number))
		return bounded_ms(number);
	if (read_number(head->retry_after, &number))
		return bounded_ms(number * MS_PER_S);
	int64_t date = read_http_date(head->retry_after);
	if (date < 0)
		return -1;
	return date > head->now_s ? bounded_ms((double)(date - head->now_s) * MS_PER_S) : 0;
}

/* ---- texts ---- */

/* Bytes of anybody's as text: cut, control bytes and bad UTF-8 shown as "?". */
static void append_printable(lat_buf *out, lat_slice bytes, size_t most)
{
	size_t n = bytes.len < most ? bytes.len : most;
	for (size_t at = 0; at < n;) {
		size_t good = lat_utf8_valid_prefix(bytes.s + at, n - at);
		for (size_t i = at; i < at + good; i++) {
			char c = bytes.s[i];
			bool is_space = c == '\n' || c == '\r' || c == '\t';
			bool is_control = (unsigned char)c < 0x20 || c == 0x7F;
			lat_buf_byte(out, is_space ? ' ' : is_control ? '?' : c);
		}
		at += good;
		if (at < n) {
			if (bytes.len > n && n - at < 4)
				break; /* a character cut by the limit */
			lat_buf_byte(out, '?');
			at++;
		}
	}
}

static void set_text(lat_buf *out, const char *text)
{
	lat_buf_clear(out);
	lat_buf_str(out, text);
}

static bool take_string(lat_buf *out, const lat_value *v)
{
	if (!v || v->type != LAT_STRING || v->len == 0)
		return false;
	lat_buf_clear(out);
	lat_buf_append(out, v->u.s, v->len);
	return true;
}

/* {"error":{"type","message"}}, {"error":"text"}, {"message":"text"}, {"detail":"text"}: whoever wrote it. */
static bool take_error_object(lat_problem *p, const lat_value *v)
{
	const lat_value *error = lat_value_get(v, "error");
	if (error && error->type == LAT_OBJECT) {
		if (!take_string(&p->type, lat_value_get(error, "type")))
			take_string(&p->type, lat_value_get(error, "code"));
		return take_string(&p->message, lat_value_get(error, "message"));
	}
	return take_string(&p->message, error) || take_string(&p->message, lat_value_get(v, "message")) ||
	       take_string(&p->message, lat_value_get(v, "detail"));
}

static void set_head(lat_problem *p, int status, const lat_reply_head *head)
{
	p->status = status;
	p->retry_after_ms = lat_retry_after_ms(head);
	lat_buf_clear(&p->request_id);
	append_printable(&p->request_id, head->request_id, SHOWN_BYTES);
}

static lat_status checked(const lat_problem *p, lat_error *err)
{
	bool ok = lat_buf_ok(&p->type) && lat_buf_ok(&p->message) && lat_buf_ok(&p->request_id);
	return ok ? LAT_OK : lat_fail_nomem(err);
}

static void describe_body(lat_problem *p, const lat_reply_head *head, lat_slice body)
{
	lat_buf_str(&p->message, " (content type ");
	if (head->content_type.len)
		append_printable(&p->message, head->content_type, SHOWN_BYTES);
	else
		lat_buf_str(&p->message, "not given");
	lat_buf_str(&p->message, body.len ? "): " : ")");
	append_printable(&p->message, body, SHOWN_BYTES);
}

lat_status lat_problem_of_status(lat_problem *p, int status, const lat_reply_head *head, lat_slice body,
                                 lat_error *err)
{
	p->kind = "api";
	set_head(p, status, head);
	set_text(&p->type, type_of_status(status));
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	bool told = lat_json_read(&arena, body.s, body.len, NULL, &v, NULL) == LAT_OK && take_error_object(p, &v);
	lat_arena_free(&arena);
	if (!told) {
		lat_buf_clear(&p->message);
		lat_buf_printf(&p->message, "HTTP status %d", status);
		describe_body(p, head, body);
	}
	p->retryable = lat_status_is_retryable(status);
	if (lat_slice_is(head->should_retry, "true"))
		p->retryable = true;
	else if (lat_slice_is(head->should_retry, "false"))
		p->retryable = false;
	return checked(p, err);
}

lat_status lat_problem_of_body(lat_problem *p, int status, const lat_reply_head *head, lat_slice body,
                               const char *what, bool retryable, lat_error *err)
{
	p->kind = "reply";
	set_head(p, status, head);
	set_text(&p->type, "invalid_reply");
	lat_buf_clear(&p->message);
	lat_buf_printf(&p->message, "the reply with status %d is not a message: %s", status, what);
	describe_body(p, head, body);
	p->retryable = retryable;
	return checked(p, err);
}

lat_status lat_problem_of_event(lat_problem *p, lat_slice error, const lat_reply_head *head, lat_error *err)
{
	p->kind = "api";
	set_head(p, 500, head);
	set_text(&p->type, "api_error");
	set_text(&p->message, "the stream ended with an error event");
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	if (lat_json_read(&arena, error.s, error.len, NULL, &v, NULL) == LAT_OK) {
		take_string(&p->message, &v);
		take_string(&p->message, lat_value_get(&v, "message"));
		take_string(&p->type, lat_value_get(&v, "type"));
	}
	lat_arena_free(&arena);
	p->status = status_of_type(&p->type);
	p->retryable = lat_status_is_retryable(p->status);
	return checked(p, err);
}

/* ---- secrets ---- */

static void redact_one(lat_buf *text, lat_slice secret)
{
	static const char MASK[] = "[redacted]";
	char *found = text->len ? memmem(text->data, text->len, secret.s, secret.len) : NULL;
	if (!found)
		return;
	lat_buf out = LAT_BUF_INIT;
	const char *at = text->data, *end = text->data + text->len;
	while (found) {
		lat_buf_append(&out, at, (size_t)(found - at));
		lat_buf_str(&out, MASK);
		at = found + secret.len;
		found = memmem(at, (size_t)(end - at), secret.s, secret.len);
	}
	lat_buf_append(&out, at, (size_t)(end - at));
	lat_buf_free(text);
	*text = out;
}

void lat_redact(lat_buf *text, const lat_slice *secrets)
{
	for (; secrets && secrets->len; secrets++)
		if (secrets->len >= SHORTEST_SECRET)
			redact_one(text, *secrets);
}
