/* The reader of replies: forms, errors, events taken one by one, and that no cutting of the bytes changes
 * anything. */
#include "exchange/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int passed, failed;

static void check(bool ok, const char *what, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("reader_test.c:%d: not so: %s\n", line, what);
}

#define CHECK(condition) check(condition, #condition, __LINE__)

#define SECRET "sk-very-secret"

static const lat_span SECRETS[] = {{SECRET, sizeof SECRET - 1}};

static const char STREAM[] =
	"event: message_start\n"
	"data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"role\":\"assistant\",\"model\":\"m\","
	"\"content\":[],\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n"
	"event: content_block_start\n"
	"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	"event: ping\ndata: {\"type\":\"ping\"}\n\n"
	": a comment\n"
	"event: content_block_delta\n"
	"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hel\"}}\n\n"
	"event: content_block_delta\n"
	"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"lo\"}}\n\n"
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
	"event: message_delta\n"
	"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n"
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

static const char WHOLE[] =
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\","
	"\"content\":[{\"type\":\"text\",\"text\":\"hello\"}],\"stop_reason\":\"end_turn\","
	"\"usage\":{\"input_tokens\":3,\"output_tokens\":5}}";

enum { EVENTS_IN_STREAM = 8 };

/* ---- driving a reader ---- */

typedef struct {
	const char *type; /* content type; NULL: none */
	int status;
	bool events;
	size_t piece; /* bytes fed at once; 0: random */
	const lat_error *cause;
	bool out_of_time;
	unsigned *seed;
} feed_options;

typedef struct {
	lat_reader reader;
	int events;
} fed;

static void take_events(fed *f)
{
	while (lat_reader_event(&f->reader)) {
		CHECK(lat_value_get(lat_reader_event(&f->reader), "type") != NULL);
		f->events++;
		lat_reader_next(&f->reader);
	}
}

static void feed(fed *f, const char *bytes, size_t n, feed_options o)
{
	char fields[200] = "Request-Id: req_1\r\n";
	*f = (fed){.events = 0};
	CHECK(lat_reader_init(&f->reader, o.events, (lat_secrets){SECRETS, 1}, NULL) == LAT_OK);
	if (o.type)
		snprintf(fields, sizeof fields, "Request-Id: req_1\r\nContent-Type: %s\r\n", o.type);
	const lat_head head = {o.status ? o.status : 200, fields, strlen(fields)};
	lat_reader_head(&f->reader, &head, 0);
	for (size_t at = 0, take; at < n; at += take) {
		take = o.piece ? o.piece : 1 + (size_t)rand_r(o.seed) % 40;
		take = take < n - at ? take : n - at;
		char *copy = malloc(take); /* so that a view past the piece is seen by a sanitizer */
		if (!copy)
			abort();
		memcpy(copy, bytes + at, take);
		lat_reader_bytes(&f->reader, copy, take);
		free(copy);
		if (o.events && rand() % 2)
			take_events(f);
	}
	lat_reader_end(&f->reader, o.cause, o.out_of_time);
	take_events(f);
}

static bool is_hello(fed *f)
{
	lat_message *message = lat_reader_over(&f->reader) ? lat_reader_take(&f->reader) : NULL;
	lat_buf json = LAT_BUF_INIT;
	if (message)
		lat_message_write(message, &json);
	bool same = strstr(lat_buf_cstr(&json), "\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]") &&
	            strstr(lat_buf_cstr(&json), "\"end_turn\"") && message->usage.output_tokens == 5 &&
	            message->usage.input_tokens == 3;
	lat_buf_free(&json);
	lat_message_free(message);
	CHECK(lat_reader_take(&f->reader) == NULL);
	return same && !lat_reader_problem(&f->reader);
}

static void check_hello(const char *bytes, size_t n, feed_options o)
{
	fed f;
	feed(&f, bytes, n, o);
	CHECK(is_hello(&f));
	lat_reader_free(&f.reader);
}

static void check_problem_n(const char *bytes, size_t n, feed_options o, lat_reply_kind kind, bool retryable,
                            const char *words)
{
	fed f;
	feed(&f, bytes, n, o);
	const lat_reply_error *problem = lat_reader_over(&f.reader) ? lat_reader_problem(&f.reader) : NULL;
	CHECK(problem && problem->kind == kind && problem->retryable == retryable);
	CHECK(problem && strstr(problem->message, words) && !strstr(problem->message, SECRET));
	if (problem &&
	    (!strstr(problem->message, words) || problem->kind != kind || problem->retryable != retryable))
		printf("  for \"%s\" it says (%s, %d): %s\n", words, lat_reply_kind_name(problem->kind),
		       problem->retryable, problem->message);
	CHECK(lat_reader_take(&f.reader) == NULL);
	lat_reader_free(&f.reader);
}

static void check_problem(const char *bytes, feed_options o, lat_reply_kind kind, bool retryable,
                          const char *words)
{
	check_problem_n(bytes, strlen(bytes), o, kind, retryable, words);
	o.piece = 1;
	check_problem_n(bytes, strlen(bytes), o, kind, retryable, words);
}

/* ---- the tests ---- */

static void the_form_is_found_by_type_and_first_bytes(void)
{
	const char *const types[] = {"text/event-stream; charset=utf-8", "application/json", "text/plain", NULL};
	for (int i = 0; i < 4; i++)
		for (size_t piece = 1; piece < 4000; piece = piece < 12 ? piece + 1 : 4000) {
			feed_options o = {.type = types[i], .piece = piece};
			check_hello(STREAM, sizeof STREAM - 1, o);
			check_hello(WHOLE, sizeof WHOLE - 1, o);
			o.events = true;
			check_hello(STREAM, sizeof STREAM - 1, o);
			check_hello(WHOLE, sizeof WHOLE - 1, o);
		}
	static const char blanks[] = "\n \n{\"content\":\"hello\",\"stop_reason\":\"end_turn\","
								 "\"usage\":{\"input_tokens\":3,\"output_tokens\":5}}";
	check_hello(blanks, sizeof blanks - 1, (feed_options){.piece = 1});
}

static void no_cutting_changes_the_message_or_the_events(void)
{
	unsigned seed = (unsigned)rand();
	for (size_t at = 1; at < sizeof STREAM - 1; at++) {
		fed f;
		feed(&f, STREAM, sizeof STREAM - 1, (feed_options){.events = true, .piece = at});
		CHECK(f.events == EVENTS_IN_STREAM);
		CHECK(is_hello(&f));
		lat_reader_free(&f.reader);
	}
	for (int i = 0; i < 300; i++) {
		fed f;
		feed(&f, STREAM, sizeof STREAM - 1, (feed_options){.events = true, .seed = &seed});
		CHECK(f.events == EVENTS_IN_STREAM);
		CHECK(is_hello(&f));
		lat_reader_free(&f.reader);
	}
}

static void a_stream_cut_at_any_byte_is_a_problem_worth_another_try(void)
{
	static const lat_error cause = {.kind = LAT_E_IO, .message = "connection reset, " SECRET};
	for (size_t n = 1; n < sizeof STREAM - 2; n++) {
		feed_options o = {.type = "text/event-stream", .piece = 50, .events = n % 2};
		check_problem_n(STREAM, n, o, LAT_REPLY_BROKEN, true, "cut before message_stop");
		o.cause = &cause;
		check_problem_n(STREAM, n, o, LAT_REPLY_IO, true, "connection reset");
	}
	/* a transfer that fails behind message_stop doesn't matter any more */
	fed f;
	feed(&f, STREAM, sizeof STREAM - 1, (feed_options){.piece = 9, .cause = &cause});
	CHECK(is_hello(&f));
	lat_reader_free(&f.reader);
}

static void a_json_body_cut_at_any_byte_is_a_problem(void)
{
	for (size_t n = 1; n < sizeof WHOLE - 1; n++)
		check_problem_n(WHOLE, n, (feed_options){.type = "application/json", .piece = 50}, LAT_REPLY_BROKEN,
		                true, "application/json");
}

static void what_is_no_message_is_shown(void)
{
	feed_options html = {.type = "text/html", .piece = 100};
	check_problem("<html>Welcome to the hotel " SECRET "</html>", html, LAT_REPLY_BROKEN, false,
	              "<html>Welcome");
	check_problem("<html>", html, LAT_REPLY_BROKEN, false, "text/html");
	check_problem("", html, LAT_REPLY_BROKEN, false, "empty");
	check_problem("", (feed_options){.type = "text/event-stream"}, LAT_REPLY_BROKEN, false, "empty");
	check_problem("dat", (feed_options){.piece = 100}, LAT_REPLY_BROKEN, false, "dat");
	check_problem("{\"ok\":true}", (feed_options){.type = "application/json", .piece = 100}, LAT_REPLY_BROKEN,
	              false, "{\"ok\":true}");
	check_problem("data: <html>\n\n", (feed_options){.type = "text/event-stream", .piece = 100},
	              LAT_REPLY_BROKEN, true, "<html>");
}

static void errors_of_the_service_come_out_as_such(void)
{
	static const char overloaded[] =
		"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Busy " SECRET "\"}}";
	check_problem(overloaded, (feed_options){.status = 529, .type = "application/json", .piece = 100},
	              LAT_REPLY_API, true, "Busy");
	check_problem(overloaded, (feed_options){.status = 400, .piece = 100}, LAT_REPLY_API, false, "Busy");
	check_problem("no", (feed_options){.status = 307, .piece = 100}, LAT_REPLY_API, false, "no");
	char event[300];
	snprintf(event, sizeof event, "event: error\ndata: %s\n\n", overloaded);
	check_problem(event, (feed_options){.type = "text/event-stream", .piece = 100}, LAT_REPLY_API, true,
	              "Busy");
	fed f;
	feed(&f, event, strlen(event), (feed_options){.piece = 100, .events = true});
	CHECK(f.events == 0 && strcmp(lat_reader_problem(&f.reader)->request_id, "req_1") == 0);
	lat_reader_free(&f.reader);
	/* a body that broke off doesn't hide the status; a time limit does */
	static const lat_error io = {.kind = LAT_E_IO, .message = "reset"};
	static const lat_error late = {.kind = LAT_E_TIMEOUT, .message = "silent"};
	check_problem("{\"type\":\"err", (feed_options){.status = 500, .piece = 100, .cause = &io}, LAT_REPLY_API,
	              true, "");
	check_problem("{", (feed_options){.status = 500, .piece = 100, .cause = &late}, LAT_REPLY_TIMEOUT, true,
	              "silent");
	check_problem("{", (feed_options){.piece = 100, .cause = &late, .out_of_time = true}, LAT_REPLY_TIMEOUT,
	              false, "silent");
	static const lat_error limit = {.kind = LAT_E_LIMIT, .message = "more than 5 bytes"};
	check_problem("{", (feed_options){.piece = 100, .cause = &limit}, LAT_REPLY_IO, false,
	              "more than 5 bytes");
}

static void an_abort_voids_what_waits(void)
{
	static const lat_error abort_cause = {.kind = LAT_E_ABORT, .message = "cancelled"};
	lat_reader r;
	CHECK(lat_reader_init(&r, true, (lat_secrets){NULL, 0}, NULL) == LAT_OK);
	lat_reader_head(&r, &(lat_head){200, "", 0}, 0);
	lat_reader_bytes(&r, STREAM, sizeof STREAM - 1);
	CHECK(lat_reader_event(&r) && lat_reader_waiting(&r) > 0 && !lat_reader_over(&r));
	lat_reader_end(&r, &abort_cause, false);
	CHECK(!lat_reader_event(&r) && lat_reader_over(&r) && lat_reader_problem(&r)->kind == LAT_REPLY_ABORT);
	lat_reader_free(&r);
}

static void bodies_that_are_no_message_are_not_hoarded(void)
{
	enum { N = 3000000 };
	char *junk = malloc(N);
	if (!junk)
		abort();
	memset(junk, 'x', N);
	for (int status = 200; status <= 500; status += 300) {
		fed f;
		feed(&f, junk, N, (feed_options){.status = status, .piece = 16384});
		CHECK(lat_reader_problem(&f.reader) && f.reader.now.cap <= 2 * LAT_REPLY_BODY_BYTES);
		lat_reader_free(&f.reader);
	}
	memset(junk, ' ', N);
	fed f;
	feed(&f, junk, N, (feed_options){.piece = 16384});
	CHECK(lat_reader_problem(&f.reader) && f.reader.now.cap <= 2 * LAT_REPLY_BODY_BYTES);
	lat_reader_free(&f.reader);
	free(junk);
}

int main(void)
{
	const char *given = getenv("SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)getpid();
	printf("reader_test: SEED=%u\n", seed);
	srand(seed);
	the_form_is_found_by_type_and_first_bytes();
	no_cutting_changes_the_message_or_the_events();
	a_stream_cut_at_any_byte_is_a_problem_worth_another_try();
	a_json_body_cut_at_any_byte_is_a_problem();
	what_is_no_message_is_shown();
	errors_of_the_service_come_out_as_such();
	an_abort_voids_what_waits();
	bodies_that_are_no_message_are_not_hoarded();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
