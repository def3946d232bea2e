/* Whole streams: what breaks the protocol, what is taken all the same, errors inside, every cut and every
 * split. */
#include "messages_support.h"

static bool fails_with(const char *stream, lat_status kind, const char *part)
{
	lat_error err;
	lat_message *m = assemble(stream, strlen(stream), &err);
	bool as_it_should = !m && err.kind == kind && strstr(err.message, part);
	if (!as_it_should)
		printf("got %s: %d %s\n", m ? "a message" : "a failure", (int)err.kind, m ? "" : err.message);
	lat_message_free(m);
	return as_it_should;
}

/* ---- out of protocol ---- */

static void what_breaks_the_protocol_is_named(void)
{
	CHECK(fails_with(START TEXT_DELTA(0, "x") END("end_turn"), LAT_E_SYNTAX,
	                 "content block 0, which never started"));
	CHECK(fails_with(START BLOCK(0, EMPTY_TEXT) BLOCK(0, EMPTY_TEXT) END("end_turn"), LAT_E_SYNTAX,
	                 "content block 0 started twice"));
	CHECK(fails_with(START BLOCK(0, EMPTY_TEXT) START END("end_turn"), LAT_E_SYNTAX, "second message_start"));
	CHECK(fails_with(BLOCK(0, EMPTY_TEXT) END("end_turn"), LAT_E_SYNTAX, "doesn't begin with message_start"));
	CHECK(fails_with(END("end_turn"), LAT_E_SYNTAX, "doesn't begin with message_start"));
	CHECK(fails_with(START "data: {\"type\":\n\n" END("end_turn"), LAT_E_SYNTAX, "no JSON"));
	CHECK(fails_with(START "data: 7\n\n" END("end_turn"), LAT_E_SYNTAX, "no JSON object"));
	CHECK(fails_with(START EVENT("message_delta", "oops") END("end_turn"), LAT_E_SYNTAX, "no JSON"));
	CHECK(fails_with(START DELTA(-1, "{}") END("end_turn"), LAT_E_SYNTAX, "no index"));
	CHECK(fails_with(START BLOCK(true, EMPTY_TEXT) END("end_turn"), LAT_E_SYNTAX, "no index"));
	CHECK(fails_with(START BLOCK(0, "{}") END("end_turn"), LAT_E_SYNTAX, "without a type"));
	CHECK(fails_with(START BLOCK(0, "7") END("end_turn"), LAT_E_SYNTAX, "without a type"));
	CHECK(fails_with(START BLOCK(0, EMPTY_TEXT) DELTA(0, "{}") END("end_turn"), LAT_E_SYNTAX,
	                 "no delta with a type"));
	CHECK(fails_with(START BLOCK(0, EMPTY_TEXT) DELTA(0, "{\"type\":\"text_delta\",\"text\":1}")
	                     END("end_turn"),
	                 LAT_E_SYNTAX, "must be a string"));
	CHECK(fails_with(EVENT("message_start", "{\"type\":\"message_start\"}") END("end_turn"), LAT_E_SYNTAX,
	                 "no message"));
	CHECK(fails_with(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "cut"), LAT_E_IO, "before message_stop"));
	CHECK(fails_with("", LAT_E_IO, "before message_stop"));
}

static void what_real_endpoints_do_is_taken(void)
{
	CHECK(makes(START START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "x") STOP_BLOCK(0) STOP_BLOCK(5)
	                TEXT_DELTA(0, "y") END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"xy\"}"));
	CHECK(makes(
		"event: message_stop\ndata: {\"type\":\"message_start\",\"message\":{}}\n\nevent: message_stop\ndata: {}\n\n",
		""));
	CHECK(makes(EVENT("message_start", "{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"given\"}]}}")
	                EVENT("message_stop", "{}"),
	            "{\"type\":\"text\",\"text\":\"given\"}"));
	CHECK(makes(START END("end_turn") START TEXT_DELTA(4, "behind the end"), ""));
}

/* ---- errors in the stream ---- */

static const lat_reply_error *error_of(stream_reading *r, const char *stream)
{
	open_stream(r, 0);
	feed(r, stream, strlen(stream));
	CHECK(r->status == LAT_E_IO);
	const lat_reply_error *error = lat_assembly_error(r->assembly);
	CHECK(error != NULL);
	return error;
}

static void error_events_stand_for_a_status(void)
{
	static const struct {
		const char *type;
		int status;
		bool retryable;
	} CASES[] = {
		{"overloaded_error", 529, true},
		{"rate_limit_error", 429, true},
		{"api_error", 500, true},
		{"timeout_error", 504, true},
		{"invalid_request_error", 400, false},
		{"authentication_error", 401, false},
		{"permission_error", 403, false},
		{"not_found_error", 404, false},
		{"request_too_large", 413, false},
		{"never_heard_of", 500, true},
	};
	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
		char stream[2048];
		stream_reading r;
		snprintf(
			stream, sizeof stream,
			"%sevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":\"Oh\"},\"request_id\":\"req_1\"}\n\n",
			START BLOCK(0, EMPTY_TEXT), CASES[i].type);
		const lat_reply_error *error = error_of(&r, stream);
		CHECK(error->status == CASES[i].status && error->retryable == CASES[i].retryable);
		CHECK(strcmp(error->type, CASES[i].type) == 0 && strcmp(error->message, "Oh") == 0);
		CHECK(strcmp(error->request_id, "req_1") == 0 && error->kind == LAT_REPLY_API);
		feed(&r, END("end_turn"), strlen(END("end_turn")));
		CHECK(close_stream(&r) == NULL);
	}
}

static void errors_of_another_make_are_errors(void)
{
	static const char *const STREAMS[] = {
		"event: error\ndata: Oh\n\n",
		"event: error\ndata: \"Oh\"\n\n",
		"event: error\ndata: {\"message\":\"Oh\"}\n\n",
		"data: {\"error\":{\"message\":\"Oh\"}}\n\n",
		"data: {\"error\":\"Oh\"}\n\n",
		START "data: {\"type\":\"error\",\"message\":\"Oh\"}\n\n",
	};
	for (size_t i = 0; i < sizeof STREAMS / sizeof *STREAMS; i++) {
		stream_reading r;
		const lat_reply_error *error = error_of(&r, STREAMS[i]);
		CHECK(error && error->status == 500 && error->retryable && strstr(error->message, "Oh"));
		close_stream(&r);
	}
}

/* ---- what the taker of events gets ---- */

static void each_event_is_handed_over_as_a_tree(void)
{
	lat_error err;
	lat_assembly *a = lat_assembly_new(&err);
	const lat_value *v;
	lat_sse_event e = {.name = lat_span_str("news"),
	                   .data = lat_span_str("{\"type\":\"news\",\"n\":1}"),
	                   .id = lat_span_str("")};
	CHECK(lat_assembly_event(a, &e, &v, &err) == LAT_OK && v && lat_value_get(v, "n")->u.i == 1);
	e.data = lat_span_str("no JSON");
	CHECK(lat_assembly_event(a, &e, &v, &err) == LAT_OK && !v);
	e.data = lat_span_str("[1]");
	CHECK(lat_assembly_event(a, &e, &v, &err) == LAT_OK && !v);
	e.name = lat_span_str("error");
	e.data = lat_span_str("{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"m\"}}");
	CHECK(lat_assembly_event(a, &e, &v, &err) == LAT_E_IO && v && lat_value_get(v, "error"));
	CHECK(lat_assembly_event(a, &e, &v, &err) == LAT_E_IO && !v);
	lat_assembly_free(a);
}

/* ---- properties of whole streams ---- */

static const char *const STREAMS[] = {
	START BLOCK(0, EMPTY_TEXT) EVENT("ping", "{\"type\": \"ping\"}") TEXT_DELTA(0, "Gr\xc3\xbc\xc3\x9f")
		TEXT_DELTA(0, " \\ud83d\\ude00 \xf0\x9f\x98\x80\\n") STOP_BLOCK(0) END("end_turn"),
	START BLOCK(0, TOOL("toolu_1", "{}")) INPUT_DELTA(0, "") INPUT_DELTA(0, "{\\\"a\\\":\\\"\\\\")
		INPUT_DELTA(0, "ud83d\\\\ude0") INPUT_DELTA(0, "0\\\",\\\"n\\\":16180655")
			INPUT_DELTA(0, "07111835497}") STOP_BLOCK(0) BLOCK(1, TOOL("toolu_1", "{\"whole\":true}"))
				STOP_BLOCK(1) END("tool_use"),
	START BLOCK(0, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
		DELTA(0, "{\"type\":\"thinking_delta\",\"thinking\":\"Hm\"}")
			DELTA(0, "{\"type\":\"signature_delta\",\"signature\":\"c2ln\"}") STOP_BLOCK(0)
				BLOCK(1, "{\"type\":\"redacted_thinking\",\"data\":\"ZGF0YQ==\"}") STOP_BLOCK(1)
					BLOCK(2, "{\"type\":\"hologram\",\"x\": 1}") STOP_BLOCK(2) BLOCK(3, EMPTY_TEXT)
						DELTA(3, "{\"type\":\"citations_delta\",\"citation\":{\"k\":1}}")
							TEXT_DELTA(3, "cited") STOP_BLOCK(3) END("end_turn"),
	START BLOCK(1, EMPTY_TEXT) BLOCK(0, TOOL("t", "{}")) INPUT_DELTA(0, "{\\\"cut") TEXT_DELTA(1, "between")
		STOP_BLOCK(1) END("max_tokens"),
	"\xef\xbb\xbf: hello\r\n\r\nevent: message_start\r\ndata: {\"type\":\"message_start\",\r\ndata: \"message\":{\"id\":\"m\"}}\r\n\r\n"
	"id: 1\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n",
	"data: {\"type\":\"message_start\",\"message\":{}}\r\rdata: {\"type\":\"content_block_start\",\"index\":0,\rdata: \"content_block\":"
	"{\"type\":\"text\",\"text\":\"x\"}}\r\rretry: 5\rdata: {\"type\":\"message_stop\"}\r\r",
};
enum { STREAM_COUNT = sizeof STREAMS / sizeof *STREAMS };

/* Where message_stop has been seen whole: behind the line end of the empty line that delivers it; of CR LF
 * the CR does. */
static size_t end_of(const char *stream)
{
	const char *p = strstr(stream, "{\"type\":\"message_stop\"}") + strlen("{\"type\":\"message_stop\"}");
	p += *p == '\r' && p[1] == '\n' ? 2 : 1;
	return (size_t)(p + 1 - stream);
}

static void streams_split_anywhere_make_the_same_message(void)
{
	for (size_t s = 0; s < STREAM_COUNT; s++) {
		size_t n = strlen(STREAMS[s]);
		lat_error err;
		lat_message *whole = assemble(STREAMS[s], n, &err);
		char *expected = text_of(whole);
		int more = rounds(300);
		for (size_t round = 0; round < n + (size_t)more + 1; round++) {
			stream_reading r;
			open_stream(&r, 0);
			for (size_t from = 0, len; from < n; from += len) {
				len = n - from;
				if (round < n && from == 0 && round > 0)
					len = round;
				else if (round >= n + (size_t)more)
					len = 1;
				else if (round >= n)
					len = 1 + random_below((unsigned)(len < 40 ? len : 40));
				feed(&r, STREAMS[s] + from, len);
			}
			lat_message *m = close_stream(&r);
			char *got = m ? text_of(m) : NULL;
			CHECK(got && strcmp(got, expected) == 0);
			free(got);
			lat_message_free(m);
		}
		free(expected);
		lat_message_free(whole);
	}
}

static void a_stream_cut_before_its_end_makes_no_message(void)
{
	for (size_t s = 0; s < STREAM_COUNT; s++) {
		for (size_t n = 0; n <= strlen(STREAMS[s]); n++) {
			lat_error err;
			lat_message *m = assemble(STREAMS[s], n, &err);
			CHECK((m != NULL) == (n >= end_of(STREAMS[s])));
			CHECK(m || err.kind == LAT_E_IO);
			lat_message_free(m);
		}
	}
}

static void a_message_is_read_again_as_it_was_written(void)
{
	for (size_t s = 0; s < STREAM_COUNT; s++) {
		lat_error err;
		lat_message *m = assemble(STREAMS[s], strlen(STREAMS[s]), &err);
		lat_buf first = LAT_BUF_INIT, second = LAT_BUF_INIT;
		lat_message_write(m, &first);
		lat_message *again = lat_message_from_json(first.data, first.len, &err);
		CHECK(again != NULL);
		lat_message_write(again, &second);
		CHECK(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
		lat_message_free(m);
		lat_message_free(again);
		lat_buf_free(&first);
		lat_buf_free(&second);
	}
}

int main(void)
{
	seed_random();
	what_breaks_the_protocol_is_named();
	what_real_endpoints_do_is_taken();
	error_events_stand_for_a_status();
	errors_of_another_make_are_errors();
	each_event_is_handed_over_as_a_tree();
	streams_split_anywhere_make_the_same_message();
	a_stream_cut_before_its_end_makes_no_message();
	a_message_is_read_again_as_it_was_written();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
