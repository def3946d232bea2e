/* What the tests of messages share: a stream's bytes, fed in pieces, to the text of what comes of them. */
#ifndef LAT_SPEC_MESSAGES_SUPPORT_H
#define LAT_SPEC_MESSAGES_SUPPORT_H

#include "json_support.h"
#include "messages/assemble.h"
#include "messages/history.h"

/* One reply being read. */
typedef struct {
	lat_sse sse;
	lat_assembly *assembly;
	lat_status status;
	lat_error err;
} stream_reading;

__attribute__((unused)) static void open_stream(stream_reading *r, size_t max_bytes)
{
	lat_sse_init(&r->sse, max_bytes);
	r->assembly = lat_assembly_new(&r->err);
	r->status = r->assembly ? LAT_OK : LAT_E_NOMEM;
}

/* The piece is copied to memory of exactly its size, which is given back at once: a sanitizer sees views
 * that outlive it. */
__attribute__((unused)) static void feed(stream_reading *r, const char *bytes, size_t n)
{
	char *piece = malloc(n ? n : 1);
	if (!piece) {
		r->status = lat_fail_nomem(&r->err);
		return;
	}
	memcpy(piece, bytes, n);
	lat_span left = lat_span_of(piece, n);
	bool found = true;
	while (r->status == LAT_OK && found) {
		lat_sse_event event;
		const lat_value *parsed;
		r->status = lat_sse_next(&r->sse, &left, &event, &found, &r->err);
		if (r->status == LAT_OK && found)
			r->status = lat_assembly_event(r->assembly, &event, &parsed, &r->err);
	}
	free(piece);
}

/* The whole message, or NULL and r->err. */
__attribute__((unused)) static lat_message *close_stream(stream_reading *r)
{
	lat_message *m = NULL;
	if (r->status == LAT_OK) {
		m = lat_assembly_take(r->assembly, &r->err);
		r->status = m ? LAT_OK : r->err.kind;
	}
	lat_assembly_free(r->assembly);
	lat_sse_free(&r->sse);
	return m;
}

__attribute__((unused)) static lat_message *assemble(const char *bytes, size_t n, lat_error *err)
{
	stream_reading r;
	open_stream(&r, 0);
	feed(&r, bytes, n);
	lat_message *m = close_stream(&r);
	*err = r.err;
	return m;
}

/* Everything that a message says: its JSON and its calls. To be freed. */
__attribute__((unused)) static char *text_of(const lat_message *m)
{
	lat_buf b = LAT_BUF_INIT;
	lat_message_write(m, &b);
	for (size_t i = 0; i < m->count; i++) {
		const lat_block *k = &m->blocks[i];
		if (k->is_call)
			lat_buf_printf(&b, "\n%.*s %.*s %.*s %s %.*s", (int)k->id.len, k->id.s, (int)k->name.len,
			               k->name.s, (int)k->input.len, k->input.s, k->complete ? "whole" : "cut",
			               (int)k->problem.len, k->problem.s ? k->problem.s : "");
	}
	lat_buf_cstr(&b);
	return b.data;
}

/* The content of the message that a stream makes; or "failed: why". To be freed. */
__attribute__((unused)) static char *content_of(const char *stream)
{
	lat_error err;
	lat_buf b = LAT_BUF_INIT;
	lat_message *m = assemble(stream, strlen(stream), &err);
	if (m)
		lat_buf_append(&b, m->content.data, m->content.len);
	else
		lat_buf_printf(&b, "failed: %s", err.message);
	lat_message_free(m);
	lat_buf_cstr(&b);
	return b.data;
}

__attribute__((unused)) static bool makes(const char *stream, const char *expected)
{
	char *got = content_of(stream);
	bool same = strcmp(got, expected) == 0;
	if (!same)
		printf("got      %s\nexpected %s\n", got, expected);
	free(got);
	return same;
}

#define TOOL(id, input) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"f\",\"input\":" input "}"

#define EVENT(name, data) "event: " name "\ndata: " data "\n\n"
#define START                                                                                                    \
	EVENT(                                                                                                       \
		"message_start",                                                                                         \
		"{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\"," \
		"\"model\":\"m-1\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}")
#define BLOCK(index, block)      \
	EVENT("content_block_start", \
	      "{\"type\":\"content_block_start\",\"index\":" #index ",\"content_block\":" block "}")
#define DELTA(index, delta)      \
	EVENT("content_block_delta", \
	      "{\"type\":\"content_block_delta\",\"index\":" #index ",\"delta\":" delta "}")
#define TEXT_DELTA(index, text)  DELTA(index, "{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define INPUT_DELTA(index, text) DELTA(index, "{\"type\":\"input_json_delta\",\"partial_json\":\"" text "\"}")
#define STOP_BLOCK(index) \
	EVENT("content_block_stop", "{\"type\":\"content_block_stop\",\"index\":" #index "}")
#define END(reason)                                                                                        \
	EVENT("message_delta",                                                                                 \
	      "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason "\",\"stop_sequence\":null}," \
	      "\"usage\":{\"output_tokens\":9}}")                                                              \
	EVENT("message_stop", "{\"type\":\"message_stop\"}")
#define EMPTY_TEXT "{\"type\":\"text\",\"text\":\"\"}"

#endif
