/* Schemas in C: what is reported, what is filled in, where the limits are, and many threads with one schema.
 * What each keyword means is the suite's matter (spec/schema_suite_spec.lua). */
#include "schema_support.h"

#include <pthread.h>

static void every_bad_path_is_reported(void)
{
	static const char SCHEMA[] =
		"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":2},"
		"\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}},"
		"\"a/b~c\":{\"type\":\"null\"}},\"required\":[\"name\",\"id\"],\"additionalProperties\":false}";
	static const char TEXT[] =
		"{\"name\":\"x\",\"items\":[{\"n\":1},{\"n\":\"2\"},{\"n\":3.5}],\"a/b~c\":1,\"bogus\":true}";
	verdict v = judge_with(SCHEMA, TEXT);
	CHECK(v.status == LAT_E_INVALID && v.errors.count == 6 && v.errors.total == 6);
	lat_arena_free(&v.arena);
	CHECK(complains(SCHEMA, TEXT, "/name", "expected string of at least 2 characters, got string \"x\""));
	CHECK(complains(SCHEMA, TEXT, "/items/1/n", "expected integer, got string \"2\""));
	CHECK(complains(SCHEMA, TEXT, "/items/2/n", "expected integer, got number 3.5"));
	CHECK(complains(SCHEMA, TEXT, "/a~1b~0c", "expected null, got integer 1"));
	CHECK(complains(SCHEMA, TEXT, "/bogus", "unknown property \"bogus\""));
	CHECK(complains(SCHEMA, TEXT, "/id", "required property \"id\" is missing"));
}

static void more_errors_than_are_told_are_counted(void)
{
	lat_buf text = LAT_BUF_INIT;
	for (int i = 0; i < 120; i++)
		lat_buf_str(&text, i ? ",1" : "[1");
	lat_buf_byte(&text, ']');
	verdict v = judge_with("{\"items\":{\"type\":\"string\"}}", lat_buf_cstr(&text));
	CHECK(v.errors.total == 120 && v.errors.count == LAT_SCHEMA_MAX_ERRORS + 1);
	CHECK(v.errors.count && strcmp(v.errors.items[v.errors.count - 1].message, "… and 70 more") == 0);
	lat_arena_free(&v.arena);
	lat_buf_free(&text);
}

static void a_union_tells_of_the_branch_that_was_meant(void)
{
	static const char SHAPES[] =
		"{\"anyOf\":[{\"properties\":{\"kind\":{\"const\":\"circle\"},\"r\":{\"type\":\"number\"}},\"required\":[\"kind\",\"r\"]},"
		"{\"properties\":{\"kind\":{\"const\":\"square\"},\"side\":{\"type\":\"number\"}},\"required\":[\"kind\",\"side\"]}]}";
	CHECK(complains(SHAPES, "{\"kind\":\"square\",\"side\":\"2\"}", "/side", "expected number"));
	CHECK(
		complains("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}]}",
	              "[1,\"a\"]", "/1", "expected integer"));
	CHECK(complains("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", "true", "",
	                "expected string or integer, got true"));
	CHECK(
		complains("{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":2}]}", "3", "", "it fits number 1 and 2"));
}

static void texts_of_errors_are_clean_utf8(void)
{
	CHECK(complains("{\"properties\":{\"\\u0000\":{\"type\":\"null\"}}}", "{\"\\u0000\":\"\\u0000\\n\"}",
	                "/\\u0000", "got string \"\\u0000\\u000a\""));
	lat_buf text = LAT_BUF_INIT;
	lat_buf_byte(&text, '"');
	for (int i = 0; i < 100; i++)
		lat_buf_str(&text, "é");
	lat_buf_byte(&text, '"');
	verdict v = judge_with("{\"type\":\"null\"}", lat_buf_cstr(&text));
	CHECK(v.errors.count == 1 && strlen(v.errors.items[0].actual) < 80);
	CHECK(lat_utf8_valid_prefix(v.errors.items[0].actual, strlen(v.errors.items[0].actual)) ==
	      strlen(v.errors.items[0].actual));
	lat_arena_free(&v.arena);
	lat_buf_free(&text);
}

static void defaults_are_filled_in_at_any_depth(void)
{
	CHECK(gives("{\"properties\":{\"a\":{\"default\":1}}}", "{}", "{\"a\":1}"));
	CHECK(gives("{\"properties\":{\"a\":{\"default\":1}}}", "{\"b\":2}", "{\"b\":2,\"a\":1}"));
	CHECK(gives("{\"properties\":{\"a\":{\"default\":1}}}", "{\"a\":null}", "{\"a\":null}"));
	CHECK(gives("{\"items\":{\"properties\":{\"a\":{\"default\":[]}}}}", "[{},{\"a\":3},4]",
	            "[{\"a\":[]},{\"a\":3},4]"));
	CHECK(gives("{\"properties\":{\"o\":{\"default\":{},\"properties\":{\"i\":{\"default\":true}}}}}", "{}",
	            "{\"o\":{\"i\":true}}"));
	CHECK(gives("{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"properties\":{\"a\":{\"$ref\":\"#/$defs/y\"}}},"
	            "\"y\":{\"type\":\"string\",\"default\":\"d\"}}}",
	            "{}", "{\"a\":\"d\"}"));
	CHECK(gives("{\"additionalProperties\":{\"properties\":{\"a\":{\"default\":1}}}}", "{\"x\":{}}",
	            "{\"x\":{\"a\":1}}"));
	CHECK(gives("{\"if\":{\"required\":[\"x\"]},\"then\":{\"properties\":{\"t\":{\"default\":1}}},"
	            "\"else\":{\"properties\":{\"e\":{\"default\":2}}}}",
	            "{}", "{\"e\":2}"));
}

static void a_branch_that_fails_fills_in_nothing(void)
{
	static const char SCHEMA[] =
		"{\"anyOf\":[{\"properties\":{\"k\":{\"const\":1},\"a\":{\"default\":1}},\"required\":[\"k\"]},"
		"{\"properties\":{\"k\":{\"const\":2},\"b\":{\"default\":2}},\"required\":[\"k\"]}]}";
	CHECK(gives(SCHEMA, "{\"k\":2}", "{\"k\":2,\"b\":2}"));
	CHECK(gives(SCHEMA, "{\"k\":1}", "{\"k\":1,\"a\":1}"));
}

static void a_schema_of_endless_defaults_ends(void)
{
	CHECK(complains(
		"{\"properties\":{\"a\":{\"$ref\":\"#\",\"default\":{}},\"b\":{\"$ref\":\"#\",\"default\":{}}}}",
		"{}", "", "defaults"));
}

static void integers_are_never_changed_silently(void)
{
	CHECK(gives("{\"type\":\"integer\"}", "1.0", "1"));
	CHECK(gives("{\"type\":\"number\"}", "1.0", "1.0"));
	CHECK(gives("{\"type\":\"integer\"}", "1618065507111835497", "1618065507111835497"));
	CHECK(gives("{\"type\":\"integer\"}", "-9223372036854775808", "-9223372036854775808"));
	CHECK(gives("{\"type\":\"number\"}", "18446744073709551616", "1.8446744073709552e19"));
	CHECK(complains("{\"type\":\"integer\"}", "18446744073709551616", "", "64 bits"));
	CHECK(complains("{\"type\":\"integer\"}", "9007199254740993.0", "", "rounded"));
	CHECK(complains("{\"type\":\"integer\"}", "1e300", "", "expected integer"));
	CHECK(accepts("{\"minimum\":9223372036854775807}", "9223372036854775807"));
	CHECK(!accepts("{\"minimum\":9223372036854775807}", "9223372036854775806"));
	CHECK(!accepts("{\"exclusiveMaximum\":9223372036854775807}", "9223372036854775807"));
	CHECK(accepts("{\"maximum\":9.3e18}", "9223372036854775807"));
	CHECK(!accepts("{\"minimum\":9.3e18}", "9223372036854775807"));
	CHECK(accepts("{\"exclusiveMinimum\":9007199254740992.0}", "9007199254740993"));
	CHECK(!accepts("{\"const\":9007199254740993}", "9007199254740992.0"));
}

static void bad_schemas_are_refused_with_their_place(void)
{
	CHECK(refuses("3", "", "expected a schema"));
	CHECK(refuses("{\"properties\":{\"x\":{\"type\":\"strng\"}}}", "/properties/x/type", "got \"strng\""));
	CHECK(refuses("{\"properties\":{\"x\":3}}", "/properties", "expected a schema"));
	CHECK(refuses("{\"items\":[{}]}", "/items", "prefixItems"));
	CHECK(refuses("{\"allOf\":[{\"minLength\":-1}]}", "/allOf/0/minLength", "integer of 0 or more"));
	CHECK(refuses("{\"allOf\":[]}", "/allOf", "at least one schema"));
	CHECK(refuses("{\"required\":[1]}", "/required", "property names"));
	CHECK(refuses("{\"multipleOf\":0}", "/multipleOf", "above 0"));
	CHECK(refuses("{\"pattern\":\"(\"}", "/pattern", "regular expression"));
	CHECK(
		refuses("{\"patternProperties\":{\"\\\\A\":{}}}", "/patternProperties", "escape that means nothing"));
	CHECK(refuses("{\"$ref\":\"http://elsewhere.example/s\"}", "/$ref", "nothing is fetched"));
	CHECK(refuses("{\"$ref\":\"#/$defs/a\"}", "/$ref", "leads to no schema"));
	CHECK(refuses("{\"$id\":\"#x\"}", "/$id", "use $anchor"));
	CHECK(refuses("{\"allOf\":[{\"$anchor\":\"a\"},{\"$dynamicAnchor\":\"a\"}]}", "/allOf/1/$dynamicAnchor",
	              "twice"));
	CHECK(accepts("{\"$anchor\":\"a\",\"$dynamicAnchor\":\"a\"}", "1"));
	CHECK(refuses("{\"unevaluatedItems\":1}", "/unevaluatedItems", "expected a schema"));
}

static void schemas_that_never_end_are_refused(void)
{
	CHECK(refuses("{\"$ref\":\"#\"}", "", "never end"));
	CHECK(refuses(
		"{\"properties\":{\"x\":{\"allOf\":[{\"$ref\":\"#/$defs/a\"}]}},"
		"\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/b\"}]},\"b\":{\"not\":{\"$ref\":\"#/$defs/a\"}}}}",
		"/$defs/b", "never end"));
	CHECK(accepts("{\"properties\":{\"x\":{\"$ref\":\"#\"}}}", "{\"x\":{\"x\":{}}}"));
}

static void nesting_has_a_defined_end(void)
{
	lat_buf text = LAT_BUF_INIT;
	for (int i = 0; i < 1000; i++)
		lat_buf_byte(&text, '[');
	for (int i = 0; i < 1000; i++)
		lat_buf_byte(&text, ']');
	CHECK(accepts("{\"items\":{\"$ref\":\"#\"}}", lat_buf_cstr(&text)));
	CHECK(accepts("{\"unevaluatedItems\":{\"allOf\":[{\"$ref\":\"#\"}]}}", lat_buf_cstr(&text)));
	/* six schemas a level: past LAT_SCHEMA_MAX_DEPTH */
	verdict v = judge_with(
		"{\"items\":{\"allOf\":[{\"allOf\":[{\"allOf\":[{\"allOf\":[{\"allOf\":[{\"$ref\":\"#\"}]}]}]}]}]}}",
		lat_buf_cstr(&text));
	CHECK(v.status == LAT_E_INVALID && v.errors.count == 1 &&
	      strstr(v.errors.items[0].message, "too deeply"));
	lat_arena_free(&v.arena);
	lat_buf_free(&text);
}

/* 40 definitions, each applying the one before it twice: 2^40 steps without a bound. */
static void branching_without_end_is_given_up(void)
{
	lat_buf schema = LAT_BUF_INIT;
	lat_buf_str(&schema, "{\"$ref\":\"#/$defs/39\",\"$defs\":{\"0\":{\"type\":\"null\"}");
	for (int i = 1; i < 40; i++)
		lat_buf_printf(&schema, ",\"%d\":{\"allOf\":[{\"$ref\":\"#/$defs/%d\"},{\"$ref\":\"#/$defs/%d\"}]}",
		               i, i - 1, i - 1);
	lat_buf_str(&schema, "}}");
	CHECK(complains(lat_buf_cstr(&schema), "null", "", "too much work"));
	lat_buf_free(&schema);
}

static void a_pattern_that_would_never_end_is_given_up(void)
{
	lat_buf text = LAT_BUF_INIT;
	lat_buf_str(&text, "{\"x\":\"");
	for (int i = 0; i < 60; i++)
		lat_buf_byte(&text, 'a');
	lat_buf_str(&text, "!\"}");
	CHECK(complains("{\"properties\":{\"x\":{\"pattern\":\"^(a|aa)+$\"}}}", lat_buf_cstr(&text), "/x",
	                "match limit"));
	CHECK(complains("{\"patternProperties\":{\"^(a|aa)+$\":true}}",
	                "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\":1}",
	                "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "match limit"));
	lat_buf_free(&text);
}

static void a_text_that_is_not_json_is_one_error(void)
{
	CHECK(complains("{}", "{\"a\":", "", "not valid JSON"));
	CHECK(complains("{}", "", "", "not valid JSON"));
}

static void hundreds_of_properties_are_told_apart(void)
{
	lat_buf schema = LAT_BUF_INIT, text = LAT_BUF_INIT;
	lat_buf_str(&schema, "{\"additionalProperties\":false,\"properties\":{");
	for (int i = 0; i < 300; i++)
		lat_buf_printf(&schema, "%s\"p%d\":{\"const\":%d}", i ? "," : "", i, i);
	lat_buf_str(&schema, "},\"required\":[");
	for (int i = 0; i < 300; i++)
		lat_buf_printf(&schema, "%s\"p%d\"", i ? "," : "", i);
	lat_buf_str(&schema, "]}");
	for (int i = 299; i >= 0; i--)
		lat_buf_printf(&text, "%s\"p%d\":%d", i == 299 ? "{" : ",", i, i);
	lat_buf_byte(&text, '}');
	CHECK(accepts(lat_buf_cstr(&schema), lat_buf_cstr(&text)));
	memcpy(strstr(text.data, "\"p170\""), "\"q170\"", 6);
	CHECK(complains(lat_buf_cstr(&schema), lat_buf_cstr(&text), "/p170", "missing"));
	CHECK(complains(lat_buf_cstr(&schema), lat_buf_cstr(&text), "/q170", "unknown"));
	lat_buf_free(&schema);
	lat_buf_free(&text);
}

/* ---- threads ---- */

enum { THREADS = 4, TURNS = 300 };

static void *judge_often(void *p)
{
	lat_schema *s = lat_schema_share(p);
	static const char *const TEXTS[] = {"{\"a\":\"xy\",\"n\":[1,2,3]}", "{\"a\":\"XY\",\"n\":[1,1]}",
	                                    "{\"n\":[]}"};
	uintptr_t wrong = 0;
	for (int i = 0; i < TURNS; i++) {
		verdict v = judge(s, TEXTS[i % 3], strlen(TEXTS[i % 3]));
		wrong += v.status != (i % 3 == 1 ? LAT_E_INVALID : LAT_OK);
		lat_arena_free(&v.arena);
	}
	lat_schema_free(s);
	return (void *)wrong;
}

static void many_threads_validate_with_one_schema(void)
{
	pthread_t threads[THREADS];
	lat_schema *s = NULL;
	lat_error err;
	CHECK(compile_text("{\"properties\":{\"a\":{\"pattern\":\"^[a-z]+$\",\"default\":\"d\"},"
	                   "\"n\":{\"uniqueItems\":true}},\"unevaluatedProperties\":false}",
	                   &s, &err) == LAT_OK);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, judge_often, s) == 0);
	for (int i = 0; i < THREADS; i++) {
		void *wrong = NULL;
		pthread_join(threads[i], &wrong);
		CHECK(!wrong);
	}
	lat_schema_free(s);
}

int main(void)
{
	every_bad_path_is_reported();
	more_errors_than_are_told_are_counted();
	a_union_tells_of_the_branch_that_was_meant();
	texts_of_errors_are_clean_utf8();
	defaults_are_filled_in_at_any_depth();
	a_branch_that_fails_fills_in_nothing();
	a_schema_of_endless_defaults_ends();
	integers_are_never_changed_silently();
	bad_schemas_are_refused_with_their_place();
	schemas_that_never_end_are_refused();
	nesting_has_a_defined_end();
	branching_without_end_is_given_up();
	a_pattern_that_would_never_end_is_given_up();
	a_text_that_is_not_json_is_one_error();
	hundreds_of_properties_are_told_apart();
	many_threads_validate_with_one_schema();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
