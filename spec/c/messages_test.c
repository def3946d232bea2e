/* Streams and bodies to messages: what is kept, joined, dropped, put right. */
#include "messages_support.h"

/* ---- blocks ---- */

static void text_is_joined(void)
{
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "Hel") TEXT_DELTA(0, "lo \\\"\\u00e9\\n")
	                STOP_BLOCK(0) END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"Hello \\\"\xc3\xa9\\n\"}"));
	CHECK(makes(START BLOCK(0, "{\"type\":\"text\",\"text\":\"So\"}") TEXT_DELTA(0, " it goes") STOP_BLOCK(0)
	                END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"So it goes\"}"));
	CHECK(makes(START BLOCK(0, "{\"text\":\"whole\", \"type\":\"text\",\"citations\":null}") STOP_BLOCK(0)
	                END("end_turn"),
	            "{\"text\":\"whole\", \"type\":\"text\",\"citations\":null}"));
}

/* A server that cuts between UTF-16 code units, and escapes what it cut. */
static void halves_of_surrogate_pairs_are_joined(void)
{
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "a\\ud83d") TEXT_DELTA(0, "\\uDE00b")
	                END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"a\xf0\x9f\x98\x80"
	            "b\"}"));
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "\\ud83d") TEXT_DELTA(0, "\\ude00\\ud83d")
	                TEXT_DELTA(0, "\\ude01") END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"\xf0\x9f\x98\x80\xf0\x9f\x98\x81\"}"));
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "\\ud83dx \\ude00y \\\\ud83d") END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"\xef\xbf\xbdx \xef\xbf\xbdy \\\\ud83d\"}"));
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "x\\ud83d") TEXT_DELTA(0, "y") END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"xy\"}"));
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "x\\ud83d") EVENT("ping", "{}")
	                TEXT_DELTA(0, "\\ude00") TEXT_DELTA(0, "\\ude00") END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"x\xf0\x9f\x98\x80\xef\xbf\xbd\"}"));
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "x\\ud83d") TEXT_DELTA(0, "y")
	                TEXT_DELTA(0, "\\ude00") END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"xy\xef\xbf\xbd\"}"));
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "\\ude00") END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"\xef\xbf\xbd\"}"));
	CHECK(makes(START BLOCK(0, TOOL("a", "{}")) INPUT_DELTA(0, "{\\\"a\\\":\\\"\\ud83d")
	                INPUT_DELTA(0, "\\ude00\\\"}") END("tool_use"),
	            TOOL("a", "{\"a\":\"\xf0\x9f\x98\x80\"}")));
}

static void blank_text_is_dropped_and_the_order_kept(void)
{
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) STOP_BLOCK(0) BLOCK(1, TOOL("a", "{}")) STOP_BLOCK(1)
	                BLOCK(2, EMPTY_TEXT) TEXT_DELTA(2, " \\n\\u00a0\\u3000") STOP_BLOCK(2)
	                    BLOCK(3, EMPTY_TEXT) TEXT_DELTA(3, "x") STOP_BLOCK(3) END("tool_use"),
	            TOOL("a", "{}") ",{\"type\":\"text\",\"text\":\"x\"}"));
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "") STOP_BLOCK(0) END("end_turn"), ""));
	CHECK(makes(START BLOCK(0, "{\"type\":\"text\",\"text\":null}") STOP_BLOCK(0) END("end_turn"), ""));
	CHECK(makes(START BLOCK(0, "{\"type\":\"text\"}") TEXT_DELTA(0, "late") END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"late\"}"));
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, " ") TEXT_DELTA(0, "x") TEXT_DELTA(0, " ")
	                END("end_turn"),
	            "{\"type\":\"text\",\"text\":\" x \"}"));
	CHECK(makes(START END("end_turn"), ""));
}

static void thinking_keeps_its_signature(void)
{
	CHECK(makes(START BLOCK(0, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
	                DELTA(0, "{\"type\":\"thinking_delta\",\"thinking\":\"Hm\"}")
	                    DELTA(0, "{\"type\":\"thinking_delta\",\"thinking\":\".\"}")
	                        DELTA(0, "{\"type\":\"signature_delta\",\"signature\":\"EqQB/+=\"}") STOP_BLOCK(0)
	                            END("end_turn"),
	            "{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"EqQB/+=\"}"));
	CHECK(makes(START BLOCK(0, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"sig\\/1\"}")
	                END("end_turn"),
	            "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"sig\\/1\"}"));
	CHECK(makes(START BLOCK(0, "{\"type\":\"redacted_thinking\", \"data\":\"a\\/b\\u0041==\"}")
	                DELTA(0, "{\"type\":\"text_delta\",\"text\":\"x\"}") END("end_turn"),
	            "{\"type\":\"redacted_thinking\", \"data\":\"a\\/b\\u0041==\"}"));
}

/* A text goes on where its start ended; a signature is one thing, so pieces of one replace it. */
static void a_signature_of_the_start_is_replaced(void)
{
	CHECK(makes(START BLOCK(0, "{\"type\":\"thinking\",\"thinking\":\"H\",\"signature\":\"old\"}")
	                DELTA(0, "{\"type\":\"thinking_delta\",\"thinking\":\"m\"}")
	                    DELTA(0, "{\"type\":\"signature_delta\",\"signature\":\"new\"}") END("end_turn"),
	            "{\"type\":\"thinking\",\"thinking\":\"Hm\",\"signature\":\"new\"}"));
}

static void unknown_blocks_and_deltas_and_events_pass(void)
{
	CHECK(makes(START BLOCK(0, "{\"type\":\"hologram\", \"n\":1.50e1 ,\"x\":[ ]}")
	                DELTA(0, "{\"type\":\"beam_delta\",\"beam\":1}") EVENT("news", "{\"type\":\"news\"}")
	                    EVENT("ping", "{\"type\": \"ping\"}") STOP_BLOCK(0) END("end_turn"),
	            "{\"type\":\"hologram\", \"n\":1.50e1 ,\"x\":[ ]}"));
	CHECK(makes(START BLOCK(0, "{\"type\":\"hologram\"}") TEXT_DELTA(0, "t") INPUT_DELTA(0, "[1")
	                INPUT_DELTA(0, "]") END("end_turn"),
	            "{\"type\":\"hologram\",\"text\":\"t\",\"input\":[1]}"));
	CHECK(makes(START BLOCK(0, "{\"type\":\"compaction\",\"content\":null}")
	                DELTA(0, "{\"type\":\"compaction_delta\",\"content\":\"sum\"}") END("end_turn"),
	            "{\"type\":\"compaction\",\"content\":\"sum\"}"));
	CHECK(makes(START BLOCK(0, TOOL("a", "{}")) TEXT_DELTA(0, "not of a call") END("tool_use"),
	            TOOL("a", "{}")));
	CHECK(makes("event: keepalive\ndata: 12:00\n\ndata:\n\n" START
	            "data: [DONE]\n\n" END("end_turn") "data: [DONE]\n\ndata: {\n\n",
	            ""));
}

static void citations_are_kept_byte_for_byte(void)
{
	CHECK(makes(START BLOCK(0, "{\"type\":\"text\",\"text\":\"\",\"citations\":[]}") TEXT_DELTA(0, "x")
	                DELTA(0, "{\"type\":\"citations_delta\",\"citation\":{\"n\": 1.0 }}")
	                    DELTA(0, "{\"type\":\"citations_delta\",\"citation\":[\"\\u0041\"]}") STOP_BLOCK(0)
	                        END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"x\",\"citations\":[{\"n\": 1.0 },[\"\\u0041\"]]}"));
	CHECK(makes(START BLOCK(0, "{\"type\":\"text\",\"text\":\"x\",\"citations\":[1]}")
	                DELTA(0, "{\"type\":\"citations_delta\",\"citation\":2}") END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"x\",\"citations\":[1,2]}"));
}

static void blocks_are_put_in_order_of_their_index(void)
{
	CHECK(makes(
		START BLOCK(2, EMPTY_TEXT) BLOCK(0, EMPTY_TEXT) TEXT_DELTA(2, "c") TEXT_DELTA(0, "a")
			BLOCK(1, EMPTY_TEXT) TEXT_DELTA(2, "C") TEXT_DELTA(1, "b") TEXT_DELTA(0, "A") STOP_BLOCK(1)
				STOP_BLOCK(0) STOP_BLOCK(2) END("end_turn"),
		"{\"type\":\"text\",\"text\":\"aA\"},{\"type\":\"text\",\"text\":\"b\"},{\"type\":\"text\",\"text\":\"cC\"}"));
	CHECK(makes(START BLOCK(9007199254740993, EMPTY_TEXT) TEXT_DELTA(9007199254740993, "far") END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"far\"}"));
	CHECK(makes(START BLOCK(0, EMPTY_TEXT) TEXT_DELTA(0, "a") STOP_BLOCK(0) BLOCK(0, EMPTY_TEXT)
	                TEXT_DELTA(0, "b") END("end_turn"),
	            "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}"));
}

/* ---- calls ---- */

static const char *call_of(const char *stream, bool *complete)
{
	static char input[512];
	lat_error err;
	lat_message *m = assemble(stream, strlen(stream), &err);
	bool is_call = m && m->count == 1 && m->blocks[0].is_call;
	snprintf(input, sizeof input, "%.*s", is_call ? (int)m->blocks[0].input.len : 0,
	         is_call ? m->blocks[0].input.s : "");
	*complete = is_call && m->blocks[0].complete;
	CHECK(is_call && m->blocks[0].complete == !m->blocks[0].problem.s);
	lat_message_free(m);
	return input;
}

static bool has_input(const char *stream, const char *expected, bool complete)
{
	bool got;
	const char *input = call_of(stream, &got);
	if (strcmp(input, expected) != 0 || got != complete)
		printf("got %s, %s\n", input, got ? "whole" : "cut");
	return strcmp(input, expected) == 0 && got == complete;
}

static void input_may_stand_whole_at_the_start(void)
{
	CHECK(has_input(START BLOCK(0, TOOL("a", "{\"path\":\"a\"}")) STOP_BLOCK(0) END("tool_use"),
	                "{\"path\":\"a\"}", true));
	CHECK(has_input(START BLOCK(0, TOOL("a", "{\"path\":\"a\"}")) INPUT_DELTA(0, "") STOP_BLOCK(0)
	                    END("tool_use"),
	                "{\"path\":\"a\"}", true));
	CHECK(has_input(START BLOCK(0, TOOL("a", "{}")) STOP_BLOCK(0) END("tool_use"), "{}", true));
	CHECK(has_input(START BLOCK(0, TOOL("a", "{}")) INPUT_DELTA(0, "") INPUT_DELTA(0, "") END("tool_use"),
	                "{}", true));
	CHECK(has_input(START BLOCK(0, TOOL("a", "{\"path\":\"a\"}")) INPUT_DELTA(0, "")
	                    INPUT_DELTA(0, "{\\\"p\\\":") INPUT_DELTA(0, "1}") END("tool_use"),
	                "{\"p\":1}", true));
	CHECK(has_input(START BLOCK(0, TOOL("a", "null")) END("tool_use"), "{}", true));
	CHECK(has_input(START BLOCK(0, TOOL("a", "[]")) END("tool_use"), "{}", true));
	CHECK(has_input(START BLOCK(0, "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\"}") END("tool_use"),
	                "{}", true));
	CHECK(makes(START BLOCK(0, "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\"}") END("tool_use"),
	            TOOL("a", "{}")));
	CHECK(has_input(START BLOCK(0, TOOL("a", "{}"))
	                    DELTA(0, "{\"type\":\"input_json_delta\",\"partial_json\":null}")
	                        DELTA(0, "{\"type\":\"input_json_delta\"}") END("tool_use"),
	                "{}", true));
}

static void input_that_is_no_object_goes_back_empty(void)
{
	CHECK(has_input(START BLOCK(0, TOOL("a", "{}")) INPUT_DELTA(0, "{\\\"a\\\":\\\"b") STOP_BLOCK(0)
	                    END("max_tokens"),
	                "{\"a\":\"b", false));
	CHECK(makes(START BLOCK(0, TOOL("a", "{}")) INPUT_DELTA(0, "{\\\"a\\\":\\\"b") STOP_BLOCK(0)
	                END("max_tokens"),
	            TOOL("a", "{}")));
	CHECK(
		makes(START BLOCK(0, TOOL("a", "{\"x\":1}")) INPUT_DELTA(0, "{") END("max_tokens"), TOOL("a", "{}")));
	CHECK(has_input(START BLOCK(0, TOOL("a", "{}")) INPUT_DELTA(0, "[1,2]") END("tool_use"), "[1,2]", true));
	CHECK(makes(START BLOCK(0, TOOL("a", "{}")) INPUT_DELTA(0, "[1,2]") END("tool_use"), TOOL("a", "{}")));
	CHECK(has_input(START BLOCK(0, TOOL("a", "\"s\"")) END("tool_use"), "\"s\"", true));
	CHECK(makes(START BLOCK(0, TOOL("a", "\"s\"")) END("tool_use"), TOOL("a", "{}")));
	CHECK(has_input(START BLOCK(0, TOOL("a", "{}")) INPUT_DELTA(0, "{\\\"a\\\":1}}") END("tool_use"),
	                "{\"a\":1}}", false));
}

/* The pieces of an input are joined first and read then: cut anywhere, also inside what is one character. */
static void input_cut_anywhere_is_the_same(void)
{
	static const char JSON_TEXT[] =
		"{\"a\":\"x\\u00e9\\ud83d\\ude00\\\\\\\"\\n\",\"b\":-12.5e-3,\"c\":1618065507111835497,\"d\":[true,null]}";
	for (size_t at = 1; at + 1 < sizeof JSON_TEXT - 1; at++) {
		lat_buf s = LAT_BUF_INIT;
		lat_buf_str(&s, START BLOCK(0, TOOL("a", "{}")));
		size_t cuts[] = {0, at, sizeof JSON_TEXT - 1};
		for (int i = 0; i < 2; i++) {
			lat_buf_str(
				&s,
				"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":");
			lat_json_write_string(&s, JSON_TEXT + cuts[i], cuts[i + 1] - cuts[i], NULL);
			lat_buf_str(&s, "}}\n\n");
		}
		lat_buf_str(&s, END("tool_use"));
		CHECK(has_input(lat_buf_cstr(&s), JSON_TEXT, true));
		lat_buf_free(&s);
	}
}

static void each_call_has_an_id_of_its_own(void)
{
	lat_error err;
	static const char STREAM[] = START BLOCK(0, TOOL("same", "{\"n\":1}")) BLOCK(1, TOOL("same", "{\"n\":1}"))
		BLOCK(2, TOOL("", "{}")) BLOCK(3, "{\"type\":\"tool_use\",\"name\":\"f\",\"input\":{}}")
			BLOCK(4, "{\"type\":\"tool_use\",\"id\":7,\"name\":\"f\",\"input\":{}}")
				BLOCK(5, "{\"type\":\"server_tool_use\",\"id\":\"same\",\"name\":\"s\",\"input\":{}}")
					END("tool_use");
	lat_message *m = assemble(STREAM, sizeof STREAM - 1, &err);
	CHECK(m && m->count == 6);
	CHECK(lat_span_is(m->blocks[0].id, "same") && !m->blocks[5].is_call);
	for (size_t i = 0; i < 5; i++) {
		char shown[64];
		lat_span block = lat_message_block(m, i), id = m->blocks[i].id;
		snprintf(shown, sizeof shown, "\"id\":\"%.*s\"", (int)id.len, id.s);
		CHECK(id.len > 0 && memmem(block.s, block.len, shown, strlen(shown)));
		for (size_t k = 0; k < i; k++)
			CHECK(!lat_span_equal(id, m->blocks[k].id));
	}
	CHECK(memmem(lat_message_block(m, 5).s, m->blocks[5].len, "\"id\":\"same\"", 11));
	lat_message_free(m);
}

static void names_go_back_as_the_wire_takes_them(void)
{
	CHECK(makes(START BLOCK(0, "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"a.b \\u00e9\",\"input\":{}}")
	                END("tool_use"),
	            "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"a_b___\",\"input\":{}}"));
	CHECK(makes(START BLOCK(0, "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"\",\"input\":{}}")
	                END("tool_use"),
	            "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"unknown_tool\",\"input\":{}}"));
	CHECK(makes(START BLOCK(0, "{\"type\":\"tool_use\",\"id\":\"a\"}") END("tool_use"),
	            "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"unknown_tool\",\"input\":{}}"));
	lat_error err;
	lat_buf s = LAT_BUF_INIT;
	lat_buf_str(
		&s, START
		"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"");
	for (int i = 0; i < 100; i++)
		lat_buf_byte(&s, 'n');
	lat_buf_str(&s, "\",\"input\":{}}}\n\n" END("tool_use"));
	lat_message *m = assemble(s.data, s.len, &err);
	CHECK(m && m->blocks[0].name.len == 100);
	lat_span name =
		lat_span_of(lat_message_block(m, 0).s + strlen("{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\""),
	                65);
	CHECK(name.s[63] == 'n' && name.s[64] == '"');
	lat_message_free(m);
	lat_buf_free(&s);
}

/* ---- the head ---- */

static void usage_of_the_end_overrides_that_of_the_start(void)
{
	lat_error err;
	static const char STREAM[] =
		"data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"m\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1,"
		"\"cache_read_input_tokens\":3,\"service_tier\":\"standard\"}}}\n\n"
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"stop_sequence\",\"stop_sequence\":\"END\"},\"usage\":{\"input_tokens\":null,"
		"\"output_tokens\":9,\"server_tool_use\":{\"web_search_requests\":1}}}\n\n"
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null},\"usage\":{\"output_tokens\":12,\"cache_creation_input_tokens\":2}}\n\n"
		"data: {\"type\":\"message_stop\"}\n\n";
	lat_message *m = assemble(STREAM, sizeof STREAM - 1, &err);
	CHECK(m != NULL);
	CHECK(m->usage.input_tokens == 7 && m->usage.output_tokens == 12);
	CHECK(m->usage.cache_read_input_tokens == 3 && m->usage.cache_creation_input_tokens == 2);
	CHECK(lat_span_is(m->stop_reason, "stop_sequence") && lat_span_is(m->stop_sequence, "END"));
	CHECK(lat_span_is(m->provider_response_id, "msg_1") && lat_span_is(m->model, "m"));
	CHECK(lat_span_is(
		lat_span_of(m->usage_json.data, m->usage_json.len),
		"{\"input_tokens\":7,\"output_tokens\":12,\"cache_read_input_tokens\":3,\"service_tier\":\"standard\","
		"\"server_tool_use\":{\"web_search_requests\":1},\"cache_creation_input_tokens\":2}"));
	lat_message_free(m);
}

/* ---- whole bodies ---- */

static bool reads_as(const char *json, const char *expected)
{
	lat_error err;
	lat_message *m = lat_message_from_json(json, strlen(json), &err);
	lat_buf b = LAT_BUF_INIT;
	if (m)
		lat_buf_append(&b, m->content.data, m->content.len);
	else
		lat_buf_printf(&b, "%s: %s", err.path, err.message);
	bool same = strcmp(lat_buf_cstr(&b), expected) == 0;
	if (!same)
		printf("got %s\n", lat_buf_cstr(&b));
	lat_message_free(m);
	lat_buf_free(&b);
	return same;
}

static void a_body_is_kept_byte_for_byte(void)
{
	CHECK(reads_as(
		"{\"content\":[ {\"type\" : \"x\\u0041\", \"n\":1.0}\n,{\"type\":\"text\",\"text\":\"\"} ,{\"type\":\"text\",\"text\":\"\\u0061\"}]}",
		"{\"type\" : \"x\\u0041\", \"n\":1.0},{\"type\":\"text\",\"text\":\"\\u0061\"}"));
	CHECK(reads_as("{\"role\":\"assistant\",\"content\":\"a\\u0062\"}",
	               "{\"type\":\"text\",\"text\":\"a\\u0062\"}"));
	CHECK(reads_as("{\"content\":\" \\n\"}", ""));
	CHECK(reads_as("{\"content\":1,\"c\\u006fntent\":[]}", ""));
	CHECK(reads_as("{\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"inp\\u0075t\":null}]}",
	               "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"inp\\u0075t\":{}}"));
}

static void a_body_that_is_no_message_says_where(void)
{
	CHECK(reads_as("{\"role\":\"user\",\"content\":[]}", "role: expected \"assistant\""));
	CHECK(reads_as("{}", "content: expected a string or an array of content blocks"));
	CHECK(reads_as("{\"content\":{}}", "content: expected a string or an array of content blocks"));
	CHECK(reads_as("{\"content\":[{\"type\":\"text\",\"text\":\"x\"},{\"text\":\"x\"}]}",
	               "content.1: a content block needs a type, a string"));
	CHECK(reads_as("{\"content\":[\"x\"]}", "content.0: a content block must be an object"));
	CHECK(reads_as("[]", ": a message must be an object"));
	lat_error err;
	CHECK(!lat_message_from_json("{\"content\":[", 12, &err) && err.kind == LAT_E_SYNTAX);
}

int main(void)
{
	text_is_joined();
	halves_of_surrogate_pairs_are_joined();
	blank_text_is_dropped_and_the_order_kept();
	thinking_keeps_its_signature();
	a_signature_of_the_start_is_replaced();
	unknown_blocks_and_deltas_and_events_pass();
	citations_are_kept_byte_for_byte();
	blocks_are_put_in_order_of_their_index();
	input_may_stand_whole_at_the_start();
	input_that_is_no_object_goes_back_empty();
	input_cut_anywhere_is_the_same();
	each_call_has_an_id_of_its_own();
	names_go_back_as_the_wire_takes_them();
	usage_of_the_end_overrides_that_of_the_start();
	a_body_is_kept_byte_for_byte();
	a_body_that_is_no_message_says_where();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
