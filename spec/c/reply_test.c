/* What replies mean: statuses, headers, bodies of every make; what may be shown of them. */
#include "json_support.h"
#include "messages/http_date.h"
#include "messages/redact.h"
#include "messages/reply.h"

static const lat_secrets NONE = {NULL, 0};
static lat_reply_error error;

static void header(lat_reply_head *head, const char *name, const char *value)
{
	const int64_t now_ms = 784111777000; /* Sun, 06 Nov 1994 08:49:37 GMT */
	lat_reply_header(head, lat_span_str(name), lat_span_str(value), now_ms);
}

static const lat_reply_error *refused(int status, const char *body)
{
	lat_reply_head head = LAT_REPLY_HEAD_INIT(status);
	header(&head, "Content-Type", "application/json");
	lat_reply_refused(&head, lat_span_str(body), NONE, &error);
	return &error;
}

static bool is(const char *type, const char *message)
{
	bool same = strcmp(error.type, type) == 0 && strcmp(error.message, message) == 0;
	if (!same)
		printf("got %s: %s\n", error.type, error.message);
	return same;
}

/* ---- statuses and bodies ---- */

static void the_status_tells_whether_to_try_again(void)
{
	static const int AGAIN[] = {408, 409, 429, 500, 502, 503, 504, 529, 599},
					 NEVER[] = {301, 400, 401, 402, 403, 404, 413, 422};
	for (size_t i = 0; i < sizeof AGAIN / sizeof *AGAIN; i++)
		CHECK(refused(AGAIN[i], "")->retryable && error.status == AGAIN[i]);
	for (size_t i = 0; i < sizeof NEVER / sizeof *NEVER; i++)
		CHECK(!refused(NEVER[i], "")->retryable);
}

static void the_server_may_say_otherwise(void)
{
	lat_reply_head head = LAT_REPLY_HEAD_INIT(400);
	header(&head, "X-Should-Retry", "true");
	lat_reply_refused(&head, lat_span_str(""), NONE, &error);
	CHECK(error.retryable);
	head.status = 529;
	header(&head, "x-should-retry", "False");
	lat_reply_refused(&head, lat_span_str(""), NONE, &error);
	CHECK(!error.retryable);
}

static void bodies_of_every_make_are_read(void)
{
	refused(
		400,
		"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"max_tokens: required\"},\"request_id\":\"req_9\"}");
	CHECK(is("invalid_request_error", "max_tokens: required") && strcmp(error.request_id, "req_9") == 0 &&
	      error.kind == LAT_REPLY_API);
	refused(529, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}");
	CHECK(is("overloaded_error", "Overloaded"));
	refused(400, "{\"error\":{\"message\":\"no such model\",\"type\":null,\"code\":7}}");
	CHECK(is("invalid_request_error", "no such model"));
	refused(401, "{\"message\":\"who are you\"}");
	CHECK(is("authentication_error", "who are you"));
	refused(429, "{\"error\":\"slow down\"}");
	CHECK(is("rate_limit_error", "slow down"));
	refused(404, "{\"detail\":\"Not Found\"}");
	CHECK(is("not_found_error", "Not Found"));
	refused(500, "{\"error\":{\"type\":\"odd\"}}");
	CHECK(is("odd", "odd"));
}

static void other_bodies_are_shown_by_their_beginning(void)
{
	refused(503, "upstream connect error");
	CHECK(is(
		"api_error",
		"the service refused the request (HTTP status 503, content type application/json, body): upstream connect error"));
	refused(418, "");
	CHECK(is("invalid_request_error",
	         "the service refused the request (HTTP status 418, content type application/json, empty body)"));
	refused(500, "[1]");
	CHECK(strstr(error.message, "body): [1]"));
	char page[600];
	memset(page, 'x', sizeof page);
	memcpy(page, "<html>\n\x01\xff\xe2\x82", 11);
	lat_reply_head head = LAT_REPLY_HEAD_INIT(502);
	lat_reply_refused(&head, lat_span_of(page, sizeof page), NONE, &error);
	const char *shown = strstr(error.message, "content type none, body): ");
	CHECK(shown && strncmp(shown + 26, "<html>  \xef\xbf\xbd\xef\xbf\xbd", 14) == 0);
	CHECK(shown && strlen(shown + 26) <= 200 && strlen(shown + 26) > 190);
	CHECK(lat_utf8_valid_prefix(error.message, strlen(error.message)) == strlen(error.message));
}

static void a_good_status_with_another_body_is_broken(void)
{
	lat_reply_head head = LAT_REPLY_HEAD_INIT(200);
	header(&head, "content-type", "text/html; charset=utf-8");
	header(&head, "request-id", "req_1");
	lat_reply_broken(&head, lat_span_str("<html>Log in</html>"), "it is no message", false, NONE, &error);
	CHECK(is(
		"",
		"it is no message (HTTP status 200, content type text/html; charset=utf-8, body): <html>Log in</html>"));
	CHECK(error.kind == LAT_REPLY_BROKEN && error.status == 200 && !error.retryable &&
	      strcmp(error.request_id, "req_1") == 0);
	lat_reply_broken(&head, lat_span_str(""), "the body is empty", true, NONE, &error);
	CHECK(error.retryable && strstr(error.message, "the body is empty") &&
	      strstr(error.message, "empty body"));
	lat_reply_broken(&head,
	                 lat_span_str(
						 "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}"),
	                 "x", false, NONE, &error);
	CHECK(is("overloaded_error", "m") && error.status == 529 && error.retryable &&
	      error.kind == LAT_REPLY_API);
	lat_reply_broken(&head, lat_span_str("{\"message\":\"just a word\"}"), "it is no message", false, NONE,
	                 &error);
	CHECK(error.kind == LAT_REPLY_BROKEN);
}

static void what_the_transport_says_has_its_kind(void)
{
	lat_error cause;
	lat_fail(&cause, LAT_E_TIMEOUT, "silent for 5 s");
	lat_reply_from_transport(&cause, &error);
	CHECK(error.kind == LAT_REPLY_TIMEOUT && !error.retryable &&
	      strcmp(error.message, "silent for 5 s") == 0);
	lat_fail(&cause, LAT_E_ABORT, "x");
	lat_reply_from_transport(&cause, &error);
	CHECK(error.kind == LAT_REPLY_ABORT && !error.retryable);
	lat_fail(&cause, LAT_E_IO, "x");
	lat_reply_from_transport(&cause, &error);
	CHECK(error.kind == LAT_REPLY_IO && error.retryable && error.retry_after_ms == -1);
	lat_fail(&cause, LAT_E_LIMIT, "x");
	lat_reply_from_transport(&cause, &error);
	CHECK(error.kind == LAT_REPLY_IO && !error.retryable);
	CHECK(strcmp(lat_reply_kind_name(LAT_REPLY_BROKEN), "reply") == 0 &&
	      strcmp(lat_reply_kind_name(LAT_REPLY_IO), "io") == 0);
}

/* ---- headers ---- */

static int64_t wait_of(const char *name, const char *value)
{
	lat_reply_head head = LAT_REPLY_HEAD_INIT(429);
	header(&head, name, value);
	return head.retry_after_ms;
}

static void retry_after_is_seconds_or_a_date(void)
{
	CHECK(wait_of("Retry-After", "7") == 7000 && wait_of("retry-after", " 0.25 ") == 250 &&
	      wait_of("retry-after", "0") == 0);
	CHECK(wait_of("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT") == 10000);
	CHECK(wait_of("retry-after", "Sunday, 06-Nov-94 08:50:37 GMT") == 60000);
	CHECK(wait_of("retry-after", "Sun Nov  6 09:49:37 1994") == 3600000);
	CHECK(wait_of("retry-after", "Sun, 06 Nov 1994 08:49:27 GMT") == 0);
	CHECK(wait_of("retry-after", "") == -1 && wait_of("retry-after", "soon") == -1 &&
	      wait_of("retry-after", "-3") == -1);
	CHECK(wait_of("retry-after", "1e3") == -1 && wait_of("retry-after", ".") == -1 &&
	      wait_of("retry-after", "1.2.3") == -1);
	CHECK(wait_of("retry-after", "999999999999999999999999999999") > 0);
	CHECK(wait_of("retry-after-ms", "1500.2") == 1501 && wait_of("retry-after-ms", "x") == -1);
}

static void milliseconds_win_in_any_order(void)
{
	lat_reply_head head = LAT_REPLY_HEAD_INIT(429);
	header(&head, "retry-after-ms", "20");
	header(&head, "retry-after", "7");
	CHECK(head.retry_after_ms == 20);
	head = (lat_reply_head)LAT_REPLY_HEAD_INIT(429);
	header(&head, "retry-after", "7");
	header(&head, "retry-after-ms", "20");
	header(&head, "retry-after-ms", "never");
	CHECK(head.retry_after_ms == 20);
	lat_reply_refused(&head, lat_span_str(""), NONE, &error);
	CHECK(error.retry_after_ms == 20);
}

static bool reads_date(const char *text, int64_t seconds)
{
	int64_t got = -1;
	return lat_http_date(lat_span_str(text), 1700000000, &got) && got == seconds;
}

static void dates_are_those_of_http(void)
{
	int64_t got;
	CHECK(reads_date("Thu, 01 Jan 1970 00:00:00 GMT", 0));
	CHECK(reads_date("Thu, 29 Feb 2024 23:59:60 GMT", 1709251200));
	CHECK(reads_date("Fri, 31 Dec 1999 23:59:59 GMT", 946684799));
	CHECK(reads_date("Wed, 31 Dec 1969 23:59:59 GMT", -1));
	CHECK(reads_date("Tuesday, 19-Jan-38 03:14:08 GMT", 2147483648));
	CHECK(reads_date("Wednesday, 01-Jan-97 00:00:00 GMT", 852076800)); /* 2097 would be 74 years ahead */
	static const char *const NONE_OF_THEM[] = {
		"Thu, 01 Foo 1970 00:00:00 GMT", "Thu, 00 Jan 1970 00:00:00 GMT",   "Thu, 01 Jan 1970 24:00:00 GMT",
		"Thu, 01 Jan 1970 00:00:00 CET", "Thu, 01 Jan 1970 00:00:00 GMT+1", "01 Jan 1970",
		"Thu, 01 Jan 1970 -1:00:00 GMT"};
	for (size_t i = 0; i < sizeof NONE_OF_THEM / sizeof *NONE_OF_THEM; i++)
		CHECK(!lat_http_date(lat_span_str(NONE_OF_THEM[i]), 0, &got));
}

static void content_types_have_parameters_and_any_case(void)
{
	lat_reply_head head = LAT_REPLY_HEAD_INIT(200);
	header(&head, "CONTENT-TYPE", "Text/Event-Stream;charset=utf-8");
	CHECK(lat_reply_is_stream(&head) && !lat_reply_is_json(&head));
	header(&head, "content-type", "text/event-streams");
	CHECK(!lat_reply_is_stream(&head));
	header(&head, "content-type", "application/problem+json; x");
	CHECK(lat_reply_is_json(&head));
	header(&head, "content-type", "application/json");
	CHECK(lat_reply_is_json(&head));
	header(&head, "content-type", "");
	CHECK(!lat_reply_is_json(&head) && !lat_reply_is_stream(&head));
}

/* ---- secrets ---- */

static bool redacts(const char *text, size_t room, const char *expected)
{
	static const lat_span SECRETS[] = {LAT_SPAN("sk-secret"), LAT_SPAN("sk-secret-longer"), LAT_SPAN("tiny"),
	                                   LAT_SPAN("")};
	char out[256];
	lat_redact(out, room, lat_span_str(text), SECRETS, 4);
	if (strcmp(out, expected) != 0)
		printf("got %s\n", out);
	return strcmp(out, expected) == 0;
}

static void secrets_are_not_shown(void)
{
	CHECK(redacts("a sk-secret b sk-secret-longer c tiny", 256, "a [redacted] b [redacted] c tiny"));
	CHECK(redacts("sk-secretsk-secret", 256, "[redacted][redacted]"));
	CHECK(redacts("cut at sk-secr", 256, "cut at [redacted]"));
	CHECK(redacts("cut at sk-", 256, "cut at sk-"));
	CHECK(redacts("12345sk-secret67", 10, "12345"));
	CHECK(redacts("\xc3\xa9\xc3\xa9\xc3\xa9", 6, "\xc3\xa9\xc3\xa9"));
	CHECK(redacts("a\tb\r\nc\x7f\xc2\x85\xe2\x80\xa8.", 256, "a b  c   ."));
}

static void no_cut_leaves_a_part_of_a_secret(void)
{
	const lat_span secret = LAT_SPAN("sk-ant-0123456789");
	const lat_secrets secrets = {&secret, 1};
	lat_reply_head head = LAT_REPLY_HEAD_INIT(400);
	for (size_t before = 0; before < 1200; before++) {
		lat_buf body = LAT_BUF_INIT;
		bool json = before % 2;
		lat_buf_str(&body, json ? "{\"error\":{\"message\":\"" : "");
		for (size_t i = 0; i < before; i++)
			lat_buf_byte(&body, '.');
		lat_buf_append(&body, secret.s, secret.len);
		lat_buf_str(&body, json ? "\"}}" : "...");
		lat_reply_refused(&head, lat_span_of(body.data, body.len), secrets, &error);
		CHECK(!strstr(error.message, "sk-ant"));
		lat_buf_free(&body);
	}
}

int main(void)
{
	the_status_tells_whether_to_try_again();
	the_server_may_say_otherwise();
	bodies_of_every_make_are_read();
	other_bodies_are_shown_by_their_beginning();
	a_good_status_with_another_body_is_broken();
	what_the_transport_says_has_its_kind();
	retry_after_is_seconds_or_a_date();
	milliseconds_win_in_any_order();
	dates_are_those_of_http();
	content_types_have_parameters_and_any_case();
	secrets_are_not_shown();
	no_cut_leaves_a_part_of_a_secret();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
