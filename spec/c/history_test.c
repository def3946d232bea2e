/* Histories: what is appended and refused, held bytes, going back, and saved sessions that must be mended. */
#include "messages_support.h"

static lat_error err;

static lat_history *new_history(void)
{
	lat_history *h = lat_history_new(&err);
	CHECK(h != NULL);
	return h;
}

static lat_status user(lat_history *h, const char *blocks)
{
	return lat_history_add_user(h, blocks, strlen(blocks), &err);
}

static lat_status assistant(lat_history *h, const char *content)
{
	lat_buf b = LAT_BUF_INIT;
	lat_buf_printf(&b, "{\"content\":[%s]}", content);
	lat_message *m = lat_message_from_json(b.data, b.len, &err);
	lat_buf_free(&b);
	lat_status status = m ? lat_history_add_assistant(h, m, &err) : err.kind;
	lat_message_free(m);
	return status;
}

static bool says(const lat_history *h, const char *expected)
{
	lat_buf b = LAT_BUF_INIT;
	lat_history_write(h, &b);
	bool same = strcmp(lat_buf_cstr(&b), expected) == 0;
	if (!same)
		printf("got      %s\nexpected %s\n", lat_buf_cstr(&b), expected);
	lat_buf_free(&b);
	return same;
}

#define USER(blocks)      "{\"role\":\"user\",\"content\":[" blocks "]}"
#define ASSISTANT(blocks) "{\"role\":\"assistant\",\"content\":[" blocks "]}"
#define TEXT(text)        "{\"type\":\"text\",\"text\":\"" text "\"}"
#define RESULT(id)        "{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":\"ok\"}"
#define ERROR_RESULT(id, text) \
	"{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":\"" text "\",\"is_error\":true}"
#define LOST "The call was interrupted: it has no result"

/* ---- adding ---- */

static void messages_are_joined_and_roles_alternate(void)
{
	lat_history *h = new_history();
	CHECK(says(h, "") && lat_history_count(h) == 0 && lat_history_len(h) == 0);
	CHECK(user(h, TEXT("a")) == LAT_OK && user(h, TEXT("b") " , " TEXT("c")) == LAT_OK);
	CHECK(says(h, USER(TEXT("a") "," TEXT("b") "," TEXT("c"))) && lat_history_count(h) == 1);
	CHECK(assistant(h, TEXT("d")) == LAT_OK && assistant(h, TEXT("e")) == LAT_OK);
	CHECK(user(h, TEXT("f")) == LAT_OK);
	CHECK(says(h, USER(TEXT("a") "," TEXT("b") "," TEXT("c")) "," ASSISTANT(TEXT("d") "," TEXT("e")) "," USER(
					  TEXT("f"))));
	CHECK(lat_history_count(h) == 3);
	lat_history_free(h);
}

static void a_message_without_blocks_is_not_stored(void)
{
	lat_history *h = new_history();
	CHECK(user(h, TEXT("a")) == LAT_OK && assistant(h, TEXT(" ")) == LAT_OK && user(h, TEXT("b")) == LAT_OK);
	CHECK(says(h, USER(TEXT("a") "," TEXT("b"))));
	lat_history_free(h);
}

static void blank_text_of_the_user_is_dropped(void)
{
	lat_history *h = new_history();
	CHECK(user(h, TEXT("") "," TEXT("a") "," TEXT("\\n")) == LAT_OK && says(h, USER(TEXT("a"))));
	CHECK(user(h, TEXT(" ")) == LAT_E_INVALID && strstr(err.message, "isn't blank"));
	CHECK(user(h, "") == LAT_E_INVALID && says(h, USER(TEXT("a"))));
	lat_history_free(h);
}

static void calls_need_their_results_in_order(void)
{
	lat_history *h = new_history();
	lat_span id, name;
	user(h, TEXT("a"));
	CHECK(assistant(h, TOOL("1", "{}") "," TEXT("between") "," TOOL("2", "{}")) == LAT_OK);
	CHECK(lat_history_open_calls(h) == 2);
	lat_history_open_call(h, 1, &id, &name);
	CHECK(lat_span_is(id, "2") && lat_span_is(name, "f"));
	CHECK(user(h, TEXT("b")) == LAT_E_INVALID && strstr(err.message, "the call 1 needs its tool_result"));
	CHECK(user(h, RESULT("1")) == LAT_E_INVALID && strstr(err.message, "the call 2 needs its tool_result"));
	CHECK(user(h, RESULT("2") "," RESULT("1")) == LAT_E_INVALID &&
	      strstr(err.message, "must be that of 1, not of 2"));
	CHECK(user(h, RESULT("1") "," TEXT("b") "," RESULT("2")) == LAT_E_INVALID &&
	      strstr(err.message, "before all others"));
	CHECK(user(h, RESULT("1") "," RESULT("2") "," RESULT("2")) == LAT_E_INVALID &&
	      strstr(err.message, "no open call"));
	CHECK(assistant(h, TEXT("c")) == LAT_E_INVALID && lat_history_open_calls(h) == 2);
	CHECK(user(h, RESULT("1") "," RESULT("2") "," TEXT("b")) == LAT_OK && lat_history_open_calls(h) == 0);
	CHECK(user(h, RESULT("1")) == LAT_E_INVALID);
	CHECK(says(h, USER(TEXT("a")) "," ASSISTANT(TOOL("1", "{}") "," TEXT(
					  "between") "," TOOL("2", "{}")) "," USER(RESULT("1") "," RESULT("2") "," TEXT("b"))));
	lat_history_free(h);
}

static void what_is_no_block_is_refused(void)
{
	lat_history *h = new_history();
	CHECK(assistant(h, TEXT("a")) == LAT_E_INVALID && strstr(err.message, "must be the user's"));
	CHECK(user(h, "{\"type\":\"text\",") == LAT_E_SYNTAX);
	CHECK(user(h, "],[") == LAT_E_SYNTAX);
	CHECK(user(h, "7") == LAT_E_INVALID && user(h, "{\"text\":\"x\"}") == LAT_E_INVALID);
	CHECK(user(h, "{\"type\":\"tool_result\"}") == LAT_E_INVALID);
	CHECK(lat_history_count(h) == 0 && says(h, ""));
	lat_history_free(h);
}

static void open_calls_can_be_closed(void)
{
	lat_history *h = new_history();
	user(h, TEXT("a"));
	CHECK(lat_history_close_calls(h, "over", 4, &err) == LAT_OK && lat_history_count(h) == 1);
	assistant(h, TOOL("1", "{}") "," TOOL("1\\n", "{}"));
	CHECK(lat_history_close_calls(h, " ", 1, &err) == LAT_E_INVALID);
	CHECK(lat_history_close_calls(h, "\xff!", 2, &err) == LAT_E_INVALID && lat_history_open_calls(h) == 2);
	CHECK(lat_history_close_calls(h, "\"over\"", 6, &err) == LAT_OK && lat_history_open_calls(h) == 0);
	CHECK(says(h, USER(TEXT("a")) "," ASSISTANT(TOOL("1", "{}") "," TOOL("1\\n", "{}")) "," USER(
					  ERROR_RESULT("1", "\\\"over\\\"") "," ERROR_RESULT("1\\n", "\\\"over\\\""))));
	CHECK(user(h, TEXT("b")) == LAT_OK && lat_history_count(h) == 3);
	lat_history_free(h);
}

/* ---- going back, held bytes, the mark ---- */

static void going_back_opens_the_calls_of_the_last_message(void)
{
	lat_history *h = new_history();
	lat_span id, name;
	user(h, TEXT("a"));
	assistant(h, TEXT("x") "," TOOL("1", "{}"));
	user(h, RESULT("1"));
	assistant(h, TEXT("b"));
	CHECK(lat_history_truncate(h, 9, &err) == LAT_OK && lat_history_count(h) == 4);
	CHECK(lat_history_truncate(h, 2, &err) == LAT_OK && lat_history_count(h) == 2);
	CHECK(lat_history_open_calls(h) == 1);
	lat_history_open_call(h, 0, &id, &name);
	CHECK(lat_span_is(id, "1") && lat_span_is(name, "f"));
	CHECK(says(h, USER(TEXT("a")) "," ASSISTANT(TEXT("x") "," TOOL("1", "{}"))));
	CHECK(user(h, RESULT("1") "," TEXT("c")) == LAT_OK);
	CHECK(lat_history_truncate(h, 1, &err) == LAT_OK && says(h, USER(TEXT("a"))) &&
	      lat_history_open_calls(h) == 0);
	CHECK(user(h, TEXT("d")) == LAT_OK && says(h, USER(TEXT("a") "," TEXT("d"))));
	CHECK(lat_history_truncate(h, 0, &err) == LAT_OK && says(h, "") &&
	      assistant(h, TEXT("e")) == LAT_E_INVALID);
	lat_history_free(h);
}

static void held_bytes_stay_as_they_are(void)
{
	lat_history *h = new_history();
	char seen[512], again[512];
	user(h, TEXT("a"));
	assistant(h, TEXT("b"));
	user(h, TEXT("c"));
	size_t len = lat_history_len(h);
	lat_history_bytes *held = lat_history_hold(h);
	lat_history_read(held, 0, seen, len);
	user(h, TEXT("more"));
	for (int i = 0; i < 200; i++) {
		assistant(h, TEXT("grows"));
		user(h, TEXT("and grows"));
	}
	lat_history_read(held, 0, again, len);
	CHECK(memcmp(seen, again, len) == 0);
	CHECK(lat_history_truncate(h, 1, &err) == LAT_OK && assistant(h, TEXT("otherwise")) == LAT_OK);
	lat_history_read(held, 0, again, len);
	CHECK(memcmp(seen, again, len) == 0);
	CHECK(says(h, USER(TEXT("a")) "," ASSISTANT(TEXT("otherwise"))));
	lat_history_free(h);
	memset(again, 0, sizeof again);
	lat_history_read(held, 5, again, len - 5);
	CHECK(memcmp(seen + 5, again, len - 5) == 0);
	lat_history_release(held);
}

static bool marked_as(const lat_history *h, const char *expected)
{
	static const char MARK[] = ",\"cache_control\":{}";
	lat_buf b = LAT_BUF_INIT;
	size_t at = 0;
	bool can = lat_history_cache_mark(h, &at);
	char *bytes = malloc(lat_history_len(h) + 1);
	lat_history_bytes *held = lat_history_hold((lat_history *)h);
	lat_history_read(held, 0, bytes, lat_history_len(h));
	lat_history_release(held);
	if (can) {
		lat_buf_append(&b, bytes, at);
		lat_buf_str(&b, MARK);
		lat_buf_append(&b, bytes + at, lat_history_len(h) - at);
		lat_buf_str(&b, LAT_HISTORY_CLOSE);
	}
	bool same = strcmp(lat_buf_cstr(&b), expected) == 0;
	free(bytes);
	lat_buf_free(&b);
	return same;
}

static void the_last_block_can_be_marked_for_the_cache(void)
{
	lat_history *h = new_history();
	CHECK(marked_as(h, ""));
	user(h, TEXT("a") " \n");
	CHECK(marked_as(h, USER("{\"type\":\"text\",\"text\":\"a\",\"cache_control\":{}}")));
	user(h, "{\"type\":\"text\",\"text\":\"a\",\"cache_control\":{}}");
	CHECK(marked_as(h, ""));
	assistant(h, "{\"type\":\"thinking\",\"thinking\":\"x\",\"signature\":\"y\"}");
	CHECK(marked_as(h, ""));
	lat_history_truncate(h, 0, &err);
	user(h, "{\"type\":\"x\"}");
	assistant(h, "{\"type\":\"y\"}");
	lat_history_truncate(h, 1, &err);
	CHECK(marked_as(h, USER("{\"type\":\"x\",\"cache_control\":{}}")));
	lat_history_free(h);
}

/* ---- saved sessions ---- */

static bool mends(const char *messages, const char *expected)
{
	lat_history *h = lat_history_from_json(messages, strlen(messages), &err);
	lat_buf b = LAT_BUF_INIT;
	if (h)
		lat_history_write(h, &b);
	else
		lat_buf_printf(&b, "%s: %s", err.path, err.message);
	bool same = strcmp(lat_buf_cstr(&b), expected) == 0 && (!h || lat_history_open_calls(h) == 0);
	if (!same)
		printf("got      %s\nexpected %s\n", lat_buf_cstr(&b), expected);
	lat_history_free(h);
	lat_buf_free(&b);
	return same;
}

#define CALLED USER(TEXT("q")) "," ASSISTANT(TOOL("1", "{}") "," TOOL("2", "{}"))

static void a_good_session_stays_as_it_is(void)
{
	CHECK(mends("[" CALLED "," USER(RESULT("1") "," RESULT("2") "," TEXT("t")) "]",
	            CALLED "," USER(RESULT("1") "," RESULT("2") "," TEXT("t"))));
	CHECK(mends("[]", "") && mends(" [ ] ", ""));
	CHECK(mends(
		"[{\"role\":\"user\",\"content\":\"h\\u0069\",\"id\":7}, {\"content\":\"yo\",\"role\":\"assistant\",\"model\":\"m\"}]",
		USER(TEXT("h\\u0069")) "," ASSISTANT(TEXT("yo"))));
}

static void calls_without_results_get_one(void)
{
	CHECK(mends("[" CALLED "]", CALLED "," USER(ERROR_RESULT("1", LOST) "," ERROR_RESULT("2", LOST))));
	CHECK(mends("[" CALLED "," USER(RESULT("2") "," TEXT("t")) "]",
	            CALLED "," USER(ERROR_RESULT("1", LOST) "," RESULT("2") "," TEXT("t"))));
	CHECK(mends("[" CALLED "," USER(TEXT("t")) "]",
	            CALLED "," USER(ERROR_RESULT("1", LOST) "," ERROR_RESULT("2", LOST) "," TEXT("t"))));
	CHECK(mends("[" CALLED "," USER(TEXT("t") "," RESULT("2") "," RESULT("1")) "]",
	            CALLED "," USER(RESULT("1") "," RESULT("2") "," TEXT("t"))));
	CHECK(mends("[" CALLED "," USER(RESULT("9")) "," ASSISTANT(TEXT("x")) "]", CALLED
	            "," USER(ERROR_RESULT("1", LOST) "," ERROR_RESULT("2", LOST)) "," ASSISTANT(TEXT("x"))));
	CHECK(mends("[" CALLED
	            "," USER(TEXT("t")) "," ASSISTANT(TEXT("x")) "," USER(RESULT("1") "," TEXT("u")) "]",
	            CALLED "," USER(ERROR_RESULT("1", LOST) "," ERROR_RESULT("2", LOST) "," TEXT(
					"t")) "," ASSISTANT(TEXT("x")) "," USER(TEXT("u"))));
}

static void results_without_calls_are_dropped(void)
{
	CHECK(mends("[" USER(RESULT("1") "," TEXT("q")) "]", USER(TEXT("q"))));
	CHECK(mends("[" USER(RESULT("1")) "]", ""));
	CHECK(
		mends("[" USER(TEXT("q")) "," ASSISTANT(TEXT("a")) "," USER(RESULT("1")) "," ASSISTANT(TEXT("b")) "]",
	          USER(TEXT("q")) "," ASSISTANT(TEXT("a") "," TEXT("b"))));
	CHECK(mends("[" CALLED "," USER(RESULT("1") "," RESULT("1") "," RESULT("2")) "]",
	            CALLED "," USER(RESULT("1") "," RESULT("2"))));
	CHECK(mends("[" USER(TEXT("q") "," TOOL("1", "{}")) "," ASSISTANT(RESULT("1") "," TEXT("a")) "]",
	            USER(TEXT("q")) "," ASSISTANT(TEXT("a"))));
}

static void neighbours_of_one_role_are_one_message(void)
{
	CHECK(mends(
		"[" USER(TEXT("q")) "," USER(TEXT("r")) "," ASSISTANT(TEXT("a")) "," ASSISTANT(TOOL(
			"1",
			"{}")) "," ASSISTANT(TOOL("2",
	                                  "{}")) "," USER(RESULT("1")) "," USER(RESULT("2")) "," USER(TEXT("t")) "]",
		USER(TEXT("q") "," TEXT("r")) "," ASSISTANT(TEXT("a") "," TOOL("1", "{}") "," TOOL(
			"2", "{}")) "," USER(RESULT("1") "," RESULT("2") "," TEXT("t"))));
	CHECK(mends("[" USER(TEXT("q")) "," ASSISTANT(TEXT("a")) "," USER(TEXT("")) "," ASSISTANT(
					TOOL("1", "{}")) "," ASSISTANT(TEXT("b")) "," USER(RESULT("1")) "]",
	            USER(TEXT("q")) "," ASSISTANT(TEXT("a") "," TOOL("1", "{}") "," TEXT("b")) "," USER(
					RESULT("1"))));
}

static void blank_text_goes_at_every_level(void)
{
	CHECK(mends("[" USER(TEXT("")) "," USER(TEXT("q") "," TEXT(" ")) "," ASSISTANT(TEXT("")) "," USER(
					TEXT("r")) "]",
	            USER(TEXT("q") "," TEXT("r"))));
	CHECK(mends("[{\"role\":\"user\",\"content\":\"\"},{\"role\":\"user\",\"content\":\"q\"}]",
	            USER(TEXT("q"))));
	CHECK(mends(
		"[" CALLED "," USER("{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"content\":[" TEXT("") "," TEXT(
			"x") "]},"
	             "{\"type\":\"tool_result\",\"is_error\":true,\"tool_use_id\":\"2\",\"content\":[" TEXT(
					 "") "]}") "]",
		CALLED "," USER("{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"content\":[" TEXT(
			"x") "]},"
	             "{\"type\":\"tool_result\",\"is_error\":true,\"tool_use_id\":\"2\",\"content\":\"(no content)\"}")));
}

static void what_stands_before_the_first_user_message_goes(void)
{
	CHECK(mends("[" ASSISTANT(TOOL("1", "{}")) "," USER(RESULT("1") "," TEXT("q")) "]", USER(TEXT("q"))));
	CHECK(mends("[" ASSISTANT(TEXT("a")) "]", ""));
}

/* Of two calls with one id, in one message or in two, the second gets a fresh one, and so does its result. */
static void ids_that_stand_twice_become_two(void)
{
	static const char ONCE[] = "[" USER(TEXT("q")) "," ASSISTANT(
		TOOL("1", "{}") "," TOOL("1", "{}")) "," USER(RESULT("1") "," RESULT("1")) "]";
	static const char TWICE[] =
		"[" USER(TEXT("q")) "," ASSISTANT(TOOL("1", "{}")) "," USER(RESULT("1")) "," ASSISTANT(
			TOOL("1", "{}")) "," USER(RESULT("1")) "," ASSISTANT(TOOL("1", "{}")) "," USER(RESULT("1")) "]";
	const char *const sessions[] = {ONCE, TWICE};
	for (int s = 0; s < 2; s++) {
		lat_history *h = lat_history_from_json(sessions[s], strlen(sessions[s]), &err);
		lat_buf b = LAT_BUF_INIT;
		lat_history_write(h, &b);
		const char *at = lat_buf_cstr(&b);
		for (int call = 0; call < 2 + s; call++) {
			char id[40] = "", result[80];
			at = strstr(at, "\"tool_use\",\"id\":\"");
			CHECK(at && sscanf(at, "\"tool_use\",\"id\":\"%39[^\"]", id) == 1);
			CHECK((strcmp(id, "1") == 0) == (call == 0));
			snprintf(result, sizeof result, "\"tool_use_id\":\"%s\"", id);
			const char *found = strstr(at, result);
			CHECK(found && !strstr(found + 1, result));
			at++;
		}
		lat_buf_free(&b);
		lat_history_free(h);
	}
}

static void each_of_two_results_with_one_id_is_used_once(void)
{
	static const char SESSION[] =
		"[" USER(TEXT("q")) "," ASSISTANT(TOOL("1", "{}") "," TOOL("1", "{}")) "," USER(
			RESULT("1") ",{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"content\":\"second\"}") "]";
	lat_history *h = lat_history_from_json(SESSION, sizeof SESSION - 1, &err);
	lat_buf b = LAT_BUF_INIT;
	lat_history_write(h, &b);
	const char *first = strstr(lat_buf_cstr(&b), "\"content\":\"ok\""),
			   *second = strstr(b.data, "\"content\":\"second\"");
	CHECK(first && second && first < second && !strstr(first + 1, "\"content\":\"ok\""));
	lat_buf_free(&b);
	lat_history_free(h);
}

static void what_is_no_session_says_where(void)
{
	CHECK(mends("{}", ": expected an array of messages"));
	CHECK(mends("[" USER(TEXT("q")) ",{\"role\":\"system\",\"content\":\"x\"}]",
	            "1.role: expected \"user\" or \"assistant\""));
	CHECK(mends("[{\"role\":\"user\"}]", "0.content: expected a string or an array of content blocks"));
	CHECK(mends("[7]", "0.role: expected \"user\" or \"assistant\""));
	CHECK(mends("[" USER(TEXT("q") ",{\"text\":1}") "]",
	            "0.content.1: a content block must be an object with a type"));
}

/* ---- a property: whatever is saved, what is loaded is a valid history, and stays as it is when it is
 * loaded again ---- */

static void random_message(lat_buf *b)
{
	static const char *const BLOCKS[] = {
		TEXT("a"),
		TEXT(""),
		TOOL("1", "{}"),
		TOOL("2", "null"),
		TOOL("", "{}"),
		RESULT("1"),
		RESULT("2"),
		RESULT(""),
		RESULT("9"),
		"{\"type\":\"x\"}",
		"{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"is_error\":true,\"content\":null}"};
	lat_buf_str(b, random_below(2) ? "{\"role\":\"user\",\"content\":["
	                               : "{\"role\":\"assistant\",\"content\":[");
	for (unsigned n = random_below(4), i = 0; i < n; i++) {
		lat_buf_str(b, i > 0 ? "," : "");
		lat_buf_str(b, BLOCKS[random_below(sizeof BLOCKS / sizeof *BLOCKS)]);
	}
	lat_buf_str(b, "]}");
}

/* The rules of history.h, checked on the tree. */
static bool is_valid(const lat_value *messages)
{
	const lat_value *calls[64];
	size_t open = 0;
	for (size_t i = 0; i < messages->len; i++) {
		const lat_value *m = &messages->u.items[i], *content = lat_value_get(m, "content");
		size_t answered = 0, asked = 0;
		if (!lat_value_is_string(lat_value_get(m, "role"), i % 2 ? "assistant" : "user") || content->len == 0)
			return false;
		for (size_t k = 0; k < content->len; k++) {
			const lat_value *block = &content->u.items[k], *type = lat_value_get(block, "type");
			if (lat_value_is_string(type, "tool_result") &&
			    (answered == open || answered != k ||
			     !lat_value_equal(calls[answered++], lat_value_get(block, "tool_use_id"))))
				return false;
			if (lat_value_is_string(type, "tool_use") && (asked == 64 || i % 2 == 0))
				return false;
			if (lat_value_is_string(type, "tool_use"))
				calls[asked++] = lat_value_get(block, "id");
		}
		if (answered != open)
			return false;
		open = asked;
	}
	return open == 0;
}

static void any_session_becomes_a_valid_history(void)
{
	for (int i = 0; i < rounds(3000); i++) {
		lat_buf saved = LAT_BUF_INIT, once = LAT_BUF_INIT, twice = LAT_BUF_INIT;
		lat_buf_byte(&saved, '[');
		for (unsigned n = random_below(8), k = 0; k < n; k++) {
			lat_buf_str(&saved, k > 0 ? "," : "");
			random_message(&saved);
		}
		lat_buf_byte(&saved, ']');
		lat_history *h = lat_history_from_json(saved.data, saved.len, &err);
		CHECK(h != NULL);
		lat_buf_byte(&once, '[');
		lat_history_write(h, &once);
		lat_buf_byte(&once, ']');
		reading r = read_n(once.data, once.len);
		bool valid = r.status == LAT_OK && is_valid(&r.value);
		if (!valid)
			printf("from %s\nto   %s\n", lat_buf_cstr(&saved), lat_buf_cstr(&once));
		CHECK(valid);
		done(&r);
		lat_history *again = lat_history_from_json(once.data, once.len, &err);
		lat_buf_byte(&twice, '[');
		lat_history_write(again, &twice);
		lat_buf_byte(&twice, ']');
		CHECK(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
		lat_history_free(h);
		lat_history_free(again);
		lat_buf_free(&saved);
		lat_buf_free(&once);
		lat_buf_free(&twice);
	}
}

int main(void)
{
	seed_random();
	messages_are_joined_and_roles_alternate();
	a_message_without_blocks_is_not_stored();
	blank_text_of_the_user_is_dropped();
	calls_need_their_results_in_order();
	what_is_no_block_is_refused();
	open_calls_can_be_closed();
	going_back_opens_the_calls_of_the_last_message();
	held_bytes_stay_as_they_are();
	the_last_block_can_be_marked_for_the_cache();
	a_good_session_stays_as_it_is();
	calls_without_results_get_one();
	results_without_calls_are_dropped();
	neighbours_of_one_role_are_one_message();
	blank_text_goes_at_every_level();
	what_stands_before_the_first_user_message_goes();
	ids_that_stand_twice_become_two();
	each_of_two_results_with_one_id_is_used_once();
	what_is_no_session_says_where();
	any_session_becomes_a_valid_history();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
