/* Replies and their errors; see reply.h. Owns nothing beyond a call; pure; any thread.
 *
 * Bodies of errors are read leniently: a failure to understand one, or to get memory for it, leaves the
 * body's beginning as the message, never less. */
#include "messages/reply.h"

#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "messages/http_date.h"
#include "messages/redact.h"
#include "json/read.h"

enum { EXCERPT_BYTES = 200, NUMBER_MAX_BYTES = 31, MS_A_SECOND = 1000 };

const char *lat_reply_kind_name(lat_reply_kind kind)
{
	static const char *const NAMES[] = {
		[LAT_REPLY_API] = "api",     [LAT_REPLY_BROKEN] = "reply", [LAT_REPLY_TIMEOUT] = "timeout",
		[LAT_REPLY_ABORT] = "abort", [LAT_REPLY_IO] = "io",
	};
	return NAMES[kind];
}

bool lat_reply_retryable(int status)
{
	return status == 408 || status == 409 || status == 429 || status >= 500;
}

/* Messages API, "Errors" */
static const struct {
	const char *type;
	int status;
} TYPES[] = {
	{"overloaded_error", 529}, {"rate_limit_error", 429},      {"api_error", 500},
	{"timeout_error", 504},    {"invalid_request_error", 400}, {"authentication_error", 401},
	{"permission_error", 403}, {"not_found_error", 404},       {"request_too_large", 413},
	{"billing_error", 402},
};

static int status_of_type(const char *type)
{
	for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
		if (strcmp(TYPES[i].type, type) == 0)
			return TYPES[i].status;
	return 500;
}

static const char *type_of_status(int status)
{
	for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
		if (TYPES[i].status == status)
			return TYPES[i].type;
	if (status == 408)
		return "timeout_error";
	return status >= 400 && status < 500 ? "invalid_request_error" : "api_error";
}

/* ---- headers ---- */

static bool is_name(lat_span name, const char *expected)
{
	return name.len == strlen(expected) && strncasecmp(name.s, expected, name.len) == 0;
}

static lat_span trimmed(lat_span s)
{
	while (s.len > 0 && (*s.s == ' ' || *s.s == '\t'))
		s = lat_span_of(s.s + 1, s.len - 1);
	while (s.len > 0 && (s.s[s.len - 1] == ' ' || s.s[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* A decimal number without sign and exponent, times factor, rounded up; -1 if it is none. */
static int64_t decimal_ms(lat_span s, double factor)
{
	double number = 0, digit = 1;
	bool fraction = false, any = false;
	if (s.len > NUMBER_MAX_BYTES)
		return -1;
	for (size_t i = 0; i < s.len; i++) {
		bool is_digit = s.s[i] >= '0' && s.s[i] <= '9';
		if (!is_digit && (s.s[i] != '.' || fraction))
			return -1;
		if (!is_digit)
			fraction = true;
		else if (fraction)
			number += (s.s[i] - '0') * (digit /= 10);
		else
			number = number * 10 + (s.s[i] - '0');
		any = any || is_digit;
	}
	double ms = ceil(number * factor);
	if (!any)
		return -1;
	return ms < 0x1p53 ? (int64_t)ms : (int64_t)1 << 53;
}

/* Seconds or a date (RFC 9110 section 10.2.3). A date that has passed: now. */
static int64_t retry_after_ms(lat_span value, int64_t now_ms)
{
	int64_t ms = decimal_ms(value, MS_A_SECOND), date;
	if (ms >= 0 || !lat_http_date(value, now_ms / MS_A_SECOND, &date))
		return ms;
	ms = date * MS_A_SECOND - now_ms;
	return ms > 0 ? ms : 0;
}

static void set_retry_after(lat_reply_head *head, int64_t ms, bool exact)
{
	if (ms < 0 || (head->retry_after_exact && !exact))
		return;
	head->retry_after_ms = ms;
	head->retry_after_exact = exact;
}

static void set_text(char *out, size_t room, lat_span value)
{
	lat_redact(out, room, value, NULL, 0);
}

void lat_reply_header(lat_reply_head *head, lat_span name, lat_span value, int64_t now_ms)
{
	value = trimmed(value);
	if (is_name(name, "content-type"))
		set_text(head->content_type, sizeof head->content_type, value);
	else if (is_name(name, "request-id") || (is_name(name, "x-request-id") && !head->request_id[0]))
		set_text(head->request_id, sizeof head->request_id, value);
	else if (is_name(name, "x-should-retry"))
		head->should_retry = is_name(value, "true") ? 1 : is_name(value, "false") ? -1 : 0;
	else if (is_name(name, "retry-after-ms"))
		set_retry_after(head, decimal_ms(value, 1), true);
	else if (is_name(name, "retry-after"))
		set_retry_after(head, retry_after_ms(value, now_ms), false);
}

/* The media type without its parameters, in any case. */
static lat_span media_type(const lat_reply_head *head)
{
	return lat_span_of(head->content_type, strcspn(head->content_type, "; \t"));
}

bool lat_reply_is_stream(const lat_reply_head *head)
{
	return is_name(media_type(head), "text/event-stream");
}

bool lat_reply_is_json(const lat_reply_head *head)
{
	lat_span type = media_type(head);
	return is_name(type, "application/json") ||
	       (type.len > 5 && strncasecmp(type.s + type.len - 5, "+json", 5) == 0);
}

/* ---- error objects ---- */

static bool take_string(char *out, size_t room, const lat_value *v)
{
	if (!v || v->type != LAT_STRING || v->len == 0)
		return false;
	lat_redact(out, room, lat_span_of(v->u.s, v->len), NULL, 0);
	return true;
}

/* Where a message may stand: {"error":{"message"}}, {"error":"…"}, {"message"}, {"detail"}, {"msg"}. */
static bool take_message(const lat_value *v, lat_reply_error *out)
{
	static const char *const PLACES[] = {"message", "detail", "msg", "error_msg"};
	const lat_value *error = lat_value_get(v, "error");
	if (take_string(out->message, sizeof out->message, error))
		return true;
	const lat_value *holders[] = {error, v};
	for (size_t h = 0; h < 2; h++)
		for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++)
			if (take_string(out->message, sizeof out->message, lat_value_get(holders[h], PLACES[i])))
				return true;
	return false;
}

bool lat_reply_from_value(const lat_value *v, int status, lat_reply_error *out)
{
	const lat_value *error = lat_value_get(v, "error");
	lat_reply_error found = {.kind = LAT_REPLY_API, .retry_after_ms = -1};
	bool has_type = error && error->type == LAT_OBJECT &&
	                take_string(found.type, sizeof found.type, lat_value_get(error, "type"));
	bool has_message = take_message(v, &found);
	bool is_error = (error && error->type != LAT_NULL) ||
	                lat_value_is_string(lat_value_get(v, "type"), "error") || status != 0;
	if (!is_error || !(has_type || has_message))
		return false;
	found.status = status ? status : status_of_type(found.type);
	if (!has_type)
		snprintf(found.type, sizeof found.type, "%s", type_of_status(found.status));
	if (!has_message)
		snprintf(found.message, sizeof found.message, "%s", found.type);
	take_string(found.request_id, sizeof found.request_id, lat_value_get(v, "request_id"));
	found.retryable = lat_reply_retryable(found.status);
	*out = found;
	return true;
}

static bool read_error_object(lat_span body, int status, lat_reply_error *out)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	bool found = lat_json_read(&arena, body.s, body.len, NULL, &v, NULL) == LAT_OK &&
	             lat_reply_from_value(&v, status, out);
	lat_arena_free(&arena);
	return found;
}

/* ---- replies ---- */

static void add_head(lat_reply_error *out, const lat_reply_head *head)
{
	if (head->request_id[0])
		snprintf(out->request_id, sizeof out->request_id, "%s", head->request_id);
	out->retry_after_ms = head->retry_after_ms;
	if (head->should_retry != 0)
		out->retryable = head->should_retry > 0;
}

/* Secrets go before the body is cut: half of one would not be recognised any more. */
static void describe(const lat_reply_head *head, lat_span body, const char *problem, lat_secrets secrets,
                     lat_reply_error *out)
{
	char start[EXCERPT_BYTES + 1];
	lat_redact(start, sizeof start, body, secrets.list, secrets.count);
	snprintf(out->message, sizeof out->message, "%.400s (HTTP status %d, content type %s, %s%s", problem,
	         head->status, head->content_type[0] ? head->content_type : "none",
	         body.len ? "body): " : "empty body)", start);
}

void lat_reply_refused(const lat_reply_head *head, lat_span body, lat_secrets secrets, lat_reply_error *out)
{
	if (!read_error_object(body, head->status, out)) {
		*out = (lat_reply_error){.kind = LAT_REPLY_API, .status = head->status};
		out->retryable = lat_reply_retryable(head->status);
		snprintf(out->type, sizeof out->type, "%s", type_of_status(head->status));
		describe(head, body, "the service refused the request", secrets, out);
	}
	add_head(out, head);
	lat_reply_redact(out, secrets);
}

void lat_reply_broken(const lat_reply_head *head, lat_span body, const char *problem, bool broke_off,
                      lat_secrets secrets, lat_reply_error *out)
{
	if (!read_error_object(body, 0, out)) {
		*out = (lat_reply_error){.kind = LAT_REPLY_BROKEN, .status = head->status, .retryable = broke_off};
		describe(head, body, problem, secrets, out);
	}
	add_head(out, head);
	lat_reply_redact(out, secrets);
}

void lat_reply_from_transport(const lat_error *cause, lat_reply_error *out)
{
	*out =
		(lat_reply_error){.kind = LAT_REPLY_IO, .retry_after_ms = -1, .retryable = cause->kind == LAT_E_IO};
	if (cause->kind == LAT_E_TIMEOUT)
		out->kind = LAT_REPLY_TIMEOUT;
	else if (cause->kind == LAT_E_ABORT)
		out->kind = LAT_REPLY_ABORT;
	set_text(out->message, sizeof out->message, lat_span_str(cause->message));
}

static void redact_string(char *s, size_t room, lat_secrets secrets)
{
	char clean[sizeof((lat_reply_error *)0)->message];
	lat_redact(clean, room, lat_span_str(s), secrets.list, secrets.count);
	memcpy(s, clean, strlen(clean) + 1);
}

void lat_reply_redact(lat_reply_error *error, lat_secrets secrets)
{
	redact_string(error->type, sizeof error->type, secrets);
	redact_string(error->message, sizeof error->message, secrets);
	redact_string(error->request_id, sizeof error->request_id, secrets);
}
