/* The event stream parser, by the WHATWG text: fields, line ends, marks; the same events in every cutting. */
#include "json_support.h"
#include "messages/sse.h"

/* ---- what came, as a text: "name|data|id;" for each event, then the failure ---- */

static void note(lat_buf *out, const lat_sse_event *e)
{
	lat_buf_append(out, e->name.s, e->name.len);
	lat_buf_byte(out, '|');
	lat_buf_append(out, e->data.s, e->data.len);
	lat_buf_byte(out, '|');
	lat_buf_append(out, e->id.s, e->id.len);
	lat_buf_byte(out, ';');
}

static lat_status feed(lat_sse *sse, const char *bytes, size_t n, lat_buf *out)
{
	char *piece = malloc(n ? n : 1); /* of exactly its size, and gone when it has been fed */
	memcpy(piece, bytes, n);
	lat_span left = lat_span_of(piece, n);
	bool found = true;
	lat_status status = LAT_OK;
	while (found && status == LAT_OK) {
		lat_sse_event event;
		lat_error err;
		status = lat_sse_next(sse, &left, &event, &found, &err);
		if (status == LAT_OK && found)
			note(out, &event);
		else if (status != LAT_OK)
			lat_buf_printf(out, "failed: %s", err.message);
	}
	free(piece);
	return status;
}

enum { WHOLE, BYTES, RANDOM, TWO }; /* ways of cutting */

static char *events_of(const char *bytes, size_t n, int way, size_t at, size_t max_bytes)
{
	lat_sse sse;
	lat_buf out = LAT_BUF_INIT;
	lat_sse_init(&sse, max_bytes);
	lat_status status = LAT_OK;
	for (size_t from = 0, len; from < n && status == LAT_OK; from += len) {
		len = n - from;
		if (way == BYTES)
			len = 1;
		else if (way == RANDOM)
			len = 1 + random_below((unsigned)(len < 12 ? len : 12));
		else if (way == TWO && from == 0 && at > 0)
			len = at;
		status = feed(&sse, bytes + from, len, &out);
	}
	lat_sse_free(&sse);
	lat_buf_cstr(&out);
	return out.data;
}

static bool gives_n(const char *bytes, size_t n, const char *expected, size_t max_bytes)
{
	bool all = true;
	for (size_t round = 0; round < n + 20; round++) {
		int way = round < n ? TWO : round < n + 19 ? RANDOM : BYTES;
		char *got = events_of(bytes, n, way, round, max_bytes);
		if (strcmp(got, expected) != 0) {
			printf("cut %d at %zu: got \"%s\", expected \"%s\"\n", way, round, got, expected);
			all = false;
		}
		free(got);
	}
	return all;
}

static bool gives(const char *bytes, const char *expected)
{
	return gives_n(bytes, strlen(bytes), expected, 0);
}

/* ---- the text's own examples and rules ---- */

static void an_event_is_its_fields_up_to_an_empty_line(void)
{
	CHECK(gives("data: one\n\n", "message|one|;"));
	CHECK(gives("event: add\ndata: 1\n\nevent: remove\ndata: 2\n\n", "add|1|;remove|2|;"));
	CHECK(gives("data: first\nevent: a\nevent: b\n\n", "b|first|;"));
	CHECK(gives("event: a\nevent:\ndata: x\n\n", "message|x|;"));
	CHECK(gives("data: no end", ""));
	CHECK(gives("data: no end\n", ""));
	CHECK(gives("", ""));
	CHECK(gives("\n\n\n", ""));
}

static void data_lines_are_joined_by_line_feeds(void)
{
	CHECK(gives("data: YHOO\ndata: +2\ndata: 10\n\n", "message|YHOO\n+2\n10|;"));
	CHECK(gives("data\n\ndata\ndata\n\ndata:", "message||;message|\n|;"));
	CHECK(gives("data:\ndata: x\ndata:\n\n", "message|\nx\n|;"));
	CHECK(gives("data:test\n\ndata: test\n\n", "message|test|;message|test|;"));
	CHECK(gives("data:  two spaces\n\n", "message| two spaces|;"));
	CHECK(gives("data: a:b: c\n\n", "message|a:b: c|;"));
}

static void without_data_there_is_no_event(void)
{
	CHECK(gives("event: ping\n\ndata: x\n\n", "message|x|;"));
	CHECK(gives(": comment\n\n:\n\ndata: x\n\n", "message|x|;"));
	CHECK(gives("id: 7\n\ndata: x\n\n", "message|x|7;"));
}

static void unknown_fields_and_comments_are_ignored(void)
{
	CHECK(gives(": keep-alive\ndata: x\nfoo: bar\nDATA: y\n data: z\nfoo\n: data: w\n\n", "message|x|;"));
}

static void ids_stay_until_the_next(void)
{
	CHECK(gives("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", "message|a|1;message|b|1;message|c|;"));
	static const char WITH_NUL[] = "id: 1\ndata: a\n\nid: 2\0x\ndata: b\n\n";
	CHECK(gives_n(WITH_NUL, sizeof WITH_NUL - 1, "message|a|1;message|b|1;", 0));
}

static int64_t retry_of(const char *bytes)
{
	lat_sse sse;
	lat_buf out = LAT_BUF_INIT;
	lat_sse_init(&sse, 0);
	feed(&sse, bytes, strlen(bytes), &out);
	int64_t ms = sse.retry_ms;
	lat_sse_free(&sse);
	lat_buf_free(&out);
	return ms;
}

static void retry_takes_digits_only(void)
{
	CHECK(retry_of("retry: 1500\n") == 1500);
	CHECK(retry_of("retry: 1500\nretry: soon\nretry: -1\nretry:\nretry: 1.5\n") == 1500);
	CHECK(retry_of("data: x\n\n") == -1);
	CHECK(retry_of("retry: 99999999999999999999999999\n") > 0);
}

static void lines_end_with_lf_cr_or_both(void)
{
	CHECK(gives("data: a\r\rdata: b\r\r", "message|a|;message|b|;"));
	CHECK(gives("data: a\r\n\r\ndata: b\r\n\r\n", "message|a|;message|b|;"));
	CHECK(gives("event: e\rdata: a\ndata: b\r\n\rdata: c\n\r\n", "e|a\nb|;message|c|;"));
	CHECK(gives("data: a\n\rdata: b\r\r\n", "message|a|;message|b|;"));
}

static void a_byte_order_mark_at_the_start_is_no_text(void)
{
	CHECK(gives("\xef\xbb\xbf"
	            "data: x\n\n",
	            "message|x|;"));
	CHECK(gives("\xef\xbb\xbf\xef\xbb\xbf"
	            "data: x\n\ndata: y\n\n",
	            "message|y|;"));
	CHECK(gives("data: x\n\n\xef\xbb\xbf"
	            "data: y\n\ndata: z\n\n",
	            "message|x|;message|z|;"));
	CHECK(gives("\xef\xbb"
	            "data: x\n\ndata: y\n\n",
	            "message|y|;"));
	CHECK(gives("\xef\n"
	            "data: y\n\n",
	            "message|y|;"));
	CHECK(gives("\xef\xbb\xbf", ""));
}

static void any_byte_may_stand_in_data(void)
{
	CHECK(gives("data: \xff\xc3\x28 \xe2\x80\xa8 \x01\n\n", "message|\xff\xc3\x28 \xe2\x80\xa8 \x01|;"));
	lat_sse sse;
	lat_sse_init(&sse, 0);
	lat_span bytes = lat_span_of("data: a\0b\n\n", 11);
	lat_sse_event event;
	bool found;
	CHECK(lat_sse_next(&sse, &bytes, &event, &found, NULL) == LAT_OK && found);
	CHECK(event.data.len == 3 && memcmp(event.data.s, "a\0b", 3) == 0);
	lat_sse_free(&sse);
}

static void lines_and_events_are_bounded_however_they_are_cut(void)
{
	const char *failure = "failed: an event of the stream is longer than 10 bytes";
	CHECK(gives_n("data: 1234\n\n", 12, "message|1234|;", 10));
	CHECK(gives_n("data: 12345\n\n", 13, failure, 10));
	CHECK(gives_n("data: 12345", 11, failure, 10));
	CHECK(gives_n(":2345678901\n\n", 13, failure, 10));
	CHECK(gives_n("data: 1234\ndata: 5678\n\n", 23, "message|1234\n5678|;", 10));
	CHECK(gives_n("data: 1234\ndata: 5678\ndata:\n\n", 29, "message|1234\n5678\n|;", 10));
	CHECK(gives_n("data: 1234\ndata: 5678\ndata:\ndata:\n\n", 35, failure, 10));
}

static void an_event_in_one_piece_is_not_copied(void)
{
	static const char BYTES_OF_ONE[] = "event: e\ndata: whole\n\n";
	lat_sse sse;
	lat_sse_init(&sse, 0);
	lat_span bytes = lat_span_of(BYTES_OF_ONE, sizeof BYTES_OF_ONE - 1);
	lat_sse_event event;
	bool found;
	CHECK(lat_sse_next(&sse, &bytes, &event, &found, NULL) == LAT_OK && found);
	CHECK(event.data.s == BYTES_OF_ONE + 15 && event.name.s == BYTES_OF_ONE + 7 && bytes.len == 0);
	lat_sse_free(&sse);
}

/* ---- a property: random streams of awkward bytes ---- */

static void random_streams_are_the_same_in_every_cutting(void)
{
	static const char *const PARTS[] = {"data",         "event",      "id",   ":",
	                                    ": ",           " ",          "\n",   "\r",
	                                    "\r\n",         "\n\n",       "x",    "data: y\n",
	                                    "\xef\xbb\xbf", "retry: 1\n", "\r\r", "event: e\r\n"};
	for (int i = 0; i < rounds(2000); i++) {
		lat_buf b = LAT_BUF_INIT;
		for (unsigned k = random_below(24); k > 0; k--)
			lat_buf_str(&b, PARTS[random_below(sizeof PARTS / sizeof *PARTS)]);
		lat_buf_cstr(&b);
		size_t max_bytes = random_below(2) ? 0 : 1 + random_below(20);
		char *whole = events_of(b.data, b.len, WHOLE, 0, max_bytes);
		CHECK(gives_n(b.data, b.len, whole, max_bytes));
		free(whole);
		lat_buf_free(&b);
	}
}

int main(void)
{
	seed_random();
	an_event_is_its_fields_up_to_an_empty_line();
	data_lines_are_joined_by_line_feeds();
	without_data_there_is_no_event();
	unknown_fields_and_comments_are_ignored();
	ids_stay_until_the_next();
	retry_takes_digits_only();
	lines_end_with_lf_cr_or_both();
	a_byte_order_mark_at_the_start_is_no_text();
	any_byte_may_stand_in_data();
	lines_and_events_are_bounded_however_they_are_cut();
	an_event_in_one_piece_is_not_copied();
	random_streams_are_the_same_in_every_cutting();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
