/* Any stream to a message, any text as a body, any text as a saved session. Whatever comes of them:
 *   a message's JSON is valid, is read again, and is then written the same, with the same calls;
 *   a history made of it, with its calls closed, keeps the rules of history.h and can be loaded again as it is;
 *   a session that can be loaded keeps the rules, too. */
#include <stdio.h>
#include <stdlib.h>

#include "messages/assemble.h"
#include "messages/history.h"
#include "json/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "fuzz_messages: not so: %s\n", what);
		abort();
	}
}

/* ---- histories ---- */

/* Results of a message against the calls of the one before. Returns how many calls it makes itself. */
static void check_results(const lat_value *content, const lat_value *before)
{
	size_t k = 0;
	for (size_t i = 0; before && i < before->len; i++) {
		const lat_value *call = &before->u.items[i];
		if (!lat_value_is_string(lat_value_get(call, "type"), "tool_use"))
			continue;
		const lat_value *result = k < content->len ? &content->u.items[k++] : NULL;
		const lat_value *id = lat_value_get(call, "id");
		demand(lat_value_is_string(lat_value_get(result, "type"), "tool_result"), "a call has a result");
		demand(id && id->type == LAT_STRING && lat_value_equal(id, lat_value_get(result, "tool_use_id")),
		       "of its id, in order");
	}
	for (; k < content->len; k++)
		demand(!lat_value_is_string(lat_value_get(&content->u.items[k], "type"), "tool_result"),
		       "a result has a call");
}

static void check_rules(const lat_value *messages)
{
	const lat_value *before = NULL;
	for (size_t i = 0; i < messages->len; i++) {
		const lat_value *m = &messages->u.items[i], *content = lat_value_get(m, "content");
		demand(m->len == 2 && lat_value_is_string(lat_value_get(m, "role"), i % 2 ? "assistant" : "user"),
		       "roles alternate");
		demand(content && content->type == LAT_ARRAY && content->len > 0, "a message has content");
		for (size_t k = 0; k < content->len; k++) {
			const lat_value *text = lat_value_get(&content->u.items[k], "text"),
							*type = lat_value_get(&content->u.items[k], "type");
			demand(type && type->type == LAT_STRING, "a block has a type");
			demand(!lat_value_is_string(type, "text") || (text && text->type == LAT_STRING && text->len > 0),
			       "text is not empty");
			demand(!lat_value_is_string(type, "tool_use") ||
			           (i % 2 && lat_value_get(&content->u.items[k], "input")->type == LAT_OBJECT),
			       "calls are the assistant's, and have an input");
		}
		if (i % 2 == 0)
			check_results(content, before);
		before = i % 2 ? content : NULL;
	}
}

static void write_array(const lat_history *h, lat_buf *out)
{
	lat_buf_byte(out, '[');
	lat_history_write(h, out);
	lat_buf_byte(out, ']');
}

static void check_history(const lat_history *h)
{
	lat_buf text = LAT_BUF_INIT, again = LAT_BUF_INIT;
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	write_array(h, &text);
	demand(lat_json_read(&arena, text.data, text.len, NULL, &v, NULL) == LAT_OK, "a history is JSON");
	check_rules(&v);
	lat_arena_free(&arena);
	lat_history *loaded = lat_history_from_json(text.data, text.len, NULL);
	demand(loaded != NULL, "a history can be loaded");
	write_array(loaded, &again);
	demand(text.len == again.len && memcmp(text.data, again.data, text.len) == 0, "and is the same then");
	lat_history_free(loaded);
	lat_buf_free(&text);
	lat_buf_free(&again);
}

static void check_in_history(const lat_message *m)
{
	static const char WORDS[] = "{\"type\":\"text\",\"text\":\"go\"}";
	lat_history *h = lat_history_new(NULL);
	size_t calls = 0;
	demand(lat_history_add_user(h, WORDS, sizeof WORDS - 1, NULL) == LAT_OK, "words are added");
	demand(lat_history_add_assistant(h, m, NULL) == LAT_OK, "any message is added");
	for (size_t i = 0; i < m->count; i++)
		calls += m->blocks[i].is_call;
	demand(lat_history_open_calls(h) == calls, "its calls are open");
	demand(lat_history_close_calls(h, "over", 4, NULL) == LAT_OK, "they can be closed");
	demand(lat_history_add_user(h, WORDS, sizeof WORDS - 1, NULL) == LAT_OK, "and the user speaks again");
	check_history(h);
	demand(lat_history_truncate(h, 2, NULL) == LAT_OK, "it can go back");
	demand(m->count == 0 || lat_history_open_calls(h) == calls, "to open calls");
	lat_history_free(h);
}

/* ---- messages ---- */

static void check_message(const lat_message *m)
{
	lat_buf text = LAT_BUF_INIT, again = LAT_BUF_INIT;
	lat_message_write(m, &text);
	lat_message *read = lat_message_from_json(text.data, text.len, NULL);
	demand(read != NULL, "a message is read again");
	lat_message_write(read, &again);
	demand(text.len == again.len && memcmp(text.data, again.data, text.len) == 0, "and written the same");
	demand(read->count == m->count, "with as many blocks");
	for (size_t i = 0; i < m->count; i++)
		demand(read->blocks[i].is_call == m->blocks[i].is_call &&
		           (!m->blocks[i].is_call || lat_span_equal(read->blocks[i].id, m->blocks[i].id)),
		       "with the same calls");
	lat_message_free(read);
	lat_buf_free(&text);
	lat_buf_free(&again);
	check_in_history(m);
}

static void try_stream(const char *bytes, size_t n)
{
	lat_sse sse;
	lat_span left = lat_span_of(bytes, n);
	lat_assembly *a = lat_assembly_new(NULL);
	lat_status status = LAT_OK;
	lat_sse_init(&sse, 0);
	for (bool found = true; found && status == LAT_OK;) {
		lat_sse_event event;
		const lat_value *parsed;
		status = lat_sse_next(&sse, &left, &event, &found, NULL);
		if (status == LAT_OK && found)
			status = lat_assembly_event(a, &event, &parsed, NULL);
	}
	lat_message *m = lat_assembly_take(a, NULL);
	demand(!m || (status == LAT_OK && lat_assembly_done(a)), "only a whole stream makes a message");
	if (m)
		check_message(m);
	lat_message_free(m);
	lat_assembly_free(a);
	lat_sse_free(&sse);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const char *bytes = (const char *)data + 1;
	if (data[0] % 3 == 0) {
		try_stream(bytes, size - 1);
	} else if (data[0] % 3 == 1) {
		lat_message *m = lat_message_from_json(bytes, size - 1, NULL);
		if (m)
			check_message(m);
		lat_message_free(m);
	} else {
		lat_history *h = lat_history_from_json(bytes, size - 1, NULL);
		if (h)
			check_history(h);
		lat_history_free(h);
	}
	return 0;
}
