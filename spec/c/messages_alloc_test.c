/* Streams, messages and histories with each allocation failed in turn, alone or with all behind it: the
 * outcome is "not enough memory" or the right one, a history is as before or changed whole, and nothing
 * leaks (the leak check of a sanitizer looks at the end). malloc, calloc and realloc come here by the
 * linker's --wrap. */
#include "messages_support.h"

static struct {
	bool armed, onward, hit;
	long left; /* allocations until one fails */
} memory;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static bool fails(void)
{
	if (!memory.armed || memory.left-- > 0)
		return false;
	bool failing = memory.onward || !memory.hit;
	memory.hit = true;
	return failing;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

/* ---- what is tried: each returns LAT_OK or the failure, and leaves nothing behind ---- */

static lat_error err;

static const char STREAM[] = START BLOCK(0, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
	DELTA(0, "{\"type\":\"thinking_delta\",\"thinking\":\"Hm\"}") DELTA(
		0, "{\"type\":\"signature_delta\",\"signature\":\"c2ln\"}")
		BLOCK(1, "{\"type\":\"text\",\"text\":\"\",\"citations\":[1]}") TEXT_DELTA(
			1,
			"Gr\xc3\xbc\\ud83d") TEXT_DELTA(1,
                                            "\\ude00") DELTA(1,
                                                             "{\"type\":\"citations_delta\",\"citation\":2}")
			BLOCK(2, TOOL("1", "{}")) INPUT_DELTA(2, "{\\\"a\\\":") INPUT_DELTA(
				2, "\\\"\\\\u0041\\\"}") BLOCK(3, TOOL("1", "{}")) INPUT_DELTA(3, "{\\\"cut")
				BLOCK(4, "{\"type\":\"tool_use\",\"name\":\"?\"}") "id: 1\ndata: {\"type\":\ndata: \"news\"}\n\n" END(
					"tool_use");

static lat_status read_stream(void)
{
	stream_reading r;
	open_stream(&r, 0);
	for (size_t from = 0, len = 0; r.status == LAT_OK && from < sizeof STREAM - 1; from += len) {
		len = sizeof STREAM - 1 - from < 301 ? sizeof STREAM - 1 - from : 301;
		feed(&r, STREAM + from, len);
	}
	lat_message *m = close_stream(&r);
	if (!m) {
		CHECK(r.err.kind == r.status && r.err.message[0]);
		return r.status;
	}
	CHECK(m->count == 5 && m->blocks[2].complete && !m->blocks[3].complete);
	CHECK(m->blocks[0].type.len == 8 && m->usage.output_tokens == 9);
	lat_message_free(m);
	return LAT_OK;
}

static lat_message *read_body(void)
{
	static const char BODY[] =
		"{\"id\":\"msg_1\",\"model\":\"m\",\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":1,\"\\u006futput_tokens\":2},\"content\":["
		"{\"type\":\"text\",\"text\":\"a\"}," TOOL("1", "{\"a\":[1,{}]}") "," TOOL("1", "null") "," TOOL(
			"2", "{}") "," TOOL("3", "{}") "]}";
	return lat_message_from_json(BODY, sizeof BODY - 1, &err);
}

static lat_status body_and_back(void)
{
	lat_message *m = read_body();
	if (!m)
		return err.kind;
	lat_buf b = LAT_BUF_INIT;
	lat_message_write(m, &b);
	lat_status status = lat_buf_ok(&b) ? LAT_OK : LAT_E_NOMEM;
	lat_buf_free(&b);
	lat_message_free(m);
	return status;
}

static size_t written_len;

/* Steps that are all or nothing: what is there after a failure is what was there before. */
static lat_status step(const lat_history *h, lat_status status, size_t len_before, size_t count_before,
                       size_t open_before)
{
	if (status != LAT_OK)
		CHECK(lat_history_len(h) == len_before && lat_history_count(h) == count_before &&
		      lat_history_open_calls(h) == open_before);
	return status;
}

#define STEP(call)                                                                             \
	(len = lat_history_len(h), count = lat_history_count(h), open = lat_history_open_calls(h), \
	 step(h, call, len, count, open))

static lat_status converse_in(lat_history *h, const lat_message *m)
{
	static const char USER_TEXT[] = "{\"type\":\"text\",\"text\":\"a\\n\"}";
	lat_status status = LAT_OK;
	size_t len, count, open;
	for (int i = 0; i < 12 && status == LAT_OK; i++) {
		status = STEP(lat_history_add_user(h, USER_TEXT, sizeof USER_TEXT - 1, &err));
		if (status == LAT_OK)
			status = STEP(lat_history_add_assistant(h, m, &err));
		if (status == LAT_OK)
			status = STEP(lat_history_close_calls(h, "over", 4, &err));
	}
	if (status != LAT_OK)
		return status;
	lat_history_bytes *held = lat_history_hold(h);
	status = STEP(lat_history_truncate(h, 2, &err));
	lat_history_release(held);
	CHECK(status != LAT_OK || (lat_history_count(h) == 2 && lat_history_open_calls(h) == 4));
	return status;
}

static lat_status converse(void)
{
	lat_message *m = read_body();
	lat_history *h = m ? lat_history_new(&err) : NULL;
	lat_status status = h ? converse_in(h, m) : err.kind;
	lat_history_free(h);
	lat_message_free(m);
	return status;
}

static lat_status load_session(void)
{
	static const char SESSION[] =
		"[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":[" TOOL("1", "{}") "," TOOL(
			"1",
			"{}") "," TOOL("2",
	                       "{}") "]},"
								 "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"content\":[{\"type\":\"text\",\"text\":\"\"}]},"
								 "{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"is_error\":true},{\"type\":\"text\",\"text\":\"t\"}]},"
								 "{\"role\":\"assistant\",\"content\":[" TOOL(
									 "1", "{}") "]},{\"role\":\"user\",\"content\":\"r\"}]";
	lat_history *h = lat_history_from_json(SESSION, sizeof SESSION - 1, &err);
	if (!h)
		return err.kind;
	written_len = written_len ? written_len : lat_history_len(h);
	CHECK(lat_history_len(h) == written_len && lat_history_count(h) == 5 && lat_history_open_calls(h) == 0);
	lat_history_free(h);
	return LAT_OK;
}

/* An error is told with no memory at all, if by the body's beginning only. */
static lat_status tell_error(void)
{
	static const char BODY[] = "{\"error\":{\"type\":\"overloaded_error\",\"message\":\"Over\\u006coaded\"}}";
	const lat_secrets none = {NULL, 0};
	lat_reply_head head = LAT_REPLY_HEAD_INIT(529);
	lat_reply_error error;
	lat_reply_refused(&head, lat_span_of(BODY, sizeof BODY - 1), none, &error);
	CHECK(error.status == 529 && error.retryable && strcmp(error.type, "overloaded_error") == 0);
	return strcmp(error.message, "Overloaded") == 0 ? LAT_OK : LAT_E_NOMEM;
}

static void try_each(const char *name, lat_status (*what)(void), bool onward, long at_least)
{
	lat_status status = LAT_E_NOMEM;
	long n = 0;
	for (; n < 10000 && (status == LAT_E_NOMEM || memory.hit); n++) {
		memory.armed = true;
		memory.onward = onward;
		memory.hit = false;
		memory.left = n;
		status = what();
		memory.armed = false;
		if (status != LAT_OK && status != LAT_E_NOMEM)
			printf("%s, %ld: %d %s\n", name, n, (int)status, err.message);
		CHECK(status == LAT_OK || status == LAT_E_NOMEM);
		CHECK(status == LAT_OK || memory.hit);
	}
	CHECK(status == LAT_OK && n > at_least);
	printf("%s: %ld allocations\n", name, n - 1);
}

int main(void)
{
	for (int onward = 0; onward < 2; onward++) {
		try_each("a stream", read_stream, onward, 30);
		try_each("a body", body_and_back, onward, 5);
		try_each("a conversation", converse, onward, 30);
		try_each("a saved session", load_session, onward, 15);
		try_each("an error", tell_error, onward, 1);
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
