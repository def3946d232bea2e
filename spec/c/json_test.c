/* Reading and writing JSON: edges of numbers, strings, nesting and size; every text cut at every byte. */
#include <math.h>

#include "json_support.h"

/* ---- numbers ---- */

static bool reads_int(const char *text, int64_t i)
{
	reading r = read_text(text);
	bool ok = r.status == LAT_OK && r.value.type == LAT_INT && r.value.u.i == i && r.value.flags == 0;
	done(&r);
	return ok;
}

static bool reads_double(const char *text, double d, unsigned flags)
{
	reading r = read_text(text);
	bool ok = r.status == LAT_OK && r.value.type == LAT_DOUBLE && r.value.u.d == d &&
	          signbit(r.value.u.d) == signbit(d) && r.value.flags == flags;
	done(&r);
	return ok;
}

static void integers_are_exact_to_the_edges_of_int64(void)
{
	CHECK(reads_int("0", 0));
	CHECK(reads_int("-0", 0));
	CHECK(reads_int("9007199254740993", 9007199254740993));
	CHECK(reads_int("1618065507111835497", 1618065507111835497));
	CHECK(reads_int("999999999999999999", 999999999999999999));
	CHECK(reads_int("9223372036854775806", INT64_MAX - 1));
	CHECK(reads_int("9223372036854775807", INT64_MAX));
	CHECK(reads_int("-9223372036854775807", INT64_MIN + 1));
	CHECK(reads_int("-9223372036854775808", INT64_MIN));
}

static void integers_past_int64_are_the_nearest_double_and_marked_wide(void)
{
	CHECK(reads_double("9223372036854775808", 0x1p63, LAT_V_WIDE_INT));
	CHECK(reads_double("-9223372036854775809", -0x1p63, LAT_V_WIDE_INT));
	CHECK(reads_double("9999999999999999999", 1e19, LAT_V_WIDE_INT));
	CHECK(reads_double("10000000000000000000", 1e19, LAT_V_WIDE_INT));
	CHECK(reads_double("18446744073709551615", 0x1p64, LAT_V_WIDE_INT));
	CHECK(reads_double("18446744073709551616", 0x1p64, LAT_V_WIDE_INT));
	CHECK(reads_double("36893488147419103232", 0x1p65, LAT_V_WIDE_INT)); /* 2^65: zero modulo 2^64 */
	CHECK(reads_double("-100000000000000000000000000000", -1e29, LAT_V_WIDE_INT));
}

static void numbers_with_fraction_or_exponent_are_doubles(void)
{
	CHECK(reads_double("1.0", 1, 0));
	CHECK(reads_double("1e3", 1000, 0));
	CHECK(reads_double("1E+2", 100, 0));
	CHECK(reads_double("-0.0", -0.0, 0));
	CHECK(reads_double("-0e5", -0.0, 0));
	CHECK(reads_double("0.1", 0.1, 0));
	CHECK(reads_double("9007199254740993.0", 9007199254740992.0, LAT_V_ROUNDED));
	CHECK(reads_double("1e22", 1e22, 0));
	CHECK(reads_double("1e23", 1e23, 0));
	CHECK(reads_double("123456789012345678901234567890e-10", 12345678901234567890.1234567890, 0));
	CHECK(reads_double("0.000000000000000000000000000001", 1e-30, 0));
	CHECK(reads_double("1e00000000000000000000000000000000001", 10, 0));
	CHECK(reads_double("1e-99999999999999999999999", 0, LAT_V_ROUNDED));
	CHECK(reads_double("0e99999999999999999999999", 0, 0));
	CHECK(reads_double("1.7976931348623157e308", 0x1.fffffffffffffp1023, 0));
	CHECK(reads_double("5e-324", 0x1p-1074, 0));
	CHECK(reads_double("2.4703282292062328e-324", 0x1p-1074, 0)); /* just over half of the smallest */
	CHECK(reads_double("2.4703282292062327e-324", 0, LAT_V_ROUNDED));
}

/* What a schema that asks for an integer must not take for one. */
static void whole_doubles_of_other_literals_are_marked_rounded(void)
{
	CHECK(reads_double("4503599627370496.4", 0x1p52, LAT_V_ROUNDED));
	CHECK(reads_double("1.00000000000000000000000000001", 1, LAT_V_ROUNDED));
	CHECK(reads_double("-9007199254740993e0", -0x1p53, LAT_V_ROUNDED));
	CHECK(reads_double("1e-400", 0, LAT_V_ROUNDED));
	CHECK(reads_double("1.00000000000000000000000000000", 1, 0));
	CHECK(reads_double("9007199254740992.0", 0x1p53, 0));
	CHECK(reads_double("900719925474099200e-2", 0x1p53, 0));
	CHECK(reads_double("1e18", 1e18, 0));
	CHECK(reads_double("123456789012345600e1", 1234567890123456000.0, 0));
	CHECK(reads_double("123456789012345680e1", 1234567890123456768.0, LAT_V_ROUNDED));
	CHECK(reads_double("12300e-2", 123, 0));
	CHECK(reads_double("1.5", 1.5, 0));
}

/* 2^53 + 1 lies halfway between two doubles: the tie goes to the even one, and a digit 900 places on breaks
 * it. */
static void a_digit_far_behind_breaks_a_tie(void)
{
	char text[1024] = "9007199254740993.";
	size_t n = strlen(text);
	memset(text + n, '0', 900);
	strcpy(text + n + 900, "0");
	CHECK(reads_double(text, 9007199254740992.0, LAT_V_ROUNDED));
	strcpy(text + n + 900, "1");
	CHECK(reads_double(text, 9007199254740994.0, LAT_V_ROUNDED));
}

static void a_million_digits_are_one_number(void)
{
	enum { DIGITS = 1000000 };
	char *text = malloc(DIGITS + 32);
	memset(text, '0', DIGITS);
	memcpy(text, "0.", 2);
	strcpy(text + DIGITS, "15e999999");
	CHECK(reads_double(text, 1.5, 0)); /* 999998 zeros behind the point */
	memset(text, '7', DIGITS);
	strcpy(text + DIGITS, "e-999999");
	CHECK(reads_double(text, 7.7777777777777777777, 0));
	text[DIGITS] = '\0';
	reading r = read_text(text);
	CHECK(r.status == LAT_E_LIMIT);
	done(&r);
	free(text);
}

static void numbers_past_a_doubles_range_are_refused(void)
{
	const char *texts[] = {"1e309", "-1e309", "1.7976931348623159e308", "1e99999999999999999999",
	                       "[1,1e400]"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		reading r = read_text(texts[i]);
		CHECK(r.status == LAT_E_LIMIT && strstr(r.err.message, "range"));
		done(&r);
	}
}

static void doubles_are_written_short_and_with_a_mark_of_their_kind(void)
{
	const struct {
		double d;
		const char *text;
	} cases[] = {
		{1, "1.0"},
		{-0.0, "-0.0"},
		{0.1, "0.1"},
		{1e300, "1e300"},
		{1.5e-300, "1.5e-300"},
		{123456.789, "123456.789"},
		{1.0 / 3, "0.3333333333333333"},
		{1e15, "1000000000000000.0"},
		{1e16, "1e16"},
		{12345678901234567890.0, "1.2345678901234567e19"},
		{0.00001, "0.00001"},
		{0.000001, "1e-6"},
		{-2.5, "-2.5"},
		{0x1p-1074, "5e-324"},
		{0x1p-44, "5.684341886080802e-14"},
		{0x1.fffffffffffffp1023, "1.7976931348623157e308"},
		{0x1p-1022, "2.2250738585072014e-308"},
		{9007199254740993.0, "9007199254740992.0"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		lat_value v = lat_value_double(cases[i].d);
		CHECK(writes_as(&v, cases[i].text));
	}
	lat_buf b = LAT_BUF_INIT;
	lat_error err;
	lat_buf_str(&b, "before");
	CHECK(lat_json_write_double(&b, NAN, &err) == LAT_E_INVALID && strstr(err.message, "NaN"));
	CHECK(lat_json_write_double(&b, -INFINITY, &err) == LAT_E_INVALID && strstr(err.message, "infinity"));
	CHECK(strcmp(lat_buf_cstr(&b), "before") == 0);
	lat_buf_free(&b);
}

static void integers_are_written_to_the_edges(void)
{
	lat_value v = lat_value_int(INT64_MIN);
	CHECK(writes_as(&v, "-9223372036854775808"));
	v = lat_value_int(INT64_MAX);
	CHECK(writes_as(&v, "9223372036854775807"));
	v = lat_value_int(0);
	CHECK(writes_as(&v, "0"));
}

/* ---- strings ---- */

static void escapes_stand_for_their_characters(void)
{
	reading r = read_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\\u20AC\\ud83d\\uDE00z\"");
	const char meant[] = "\"\\/\b\f\n\r\t\0\u00e9\u20ac\U0001F600z";
	CHECK(r.status == LAT_OK && r.value.len == sizeof meant - 1);
	CHECK(r.status == LAT_OK && memcmp(r.value.u.s, meant, sizeof meant - 1) == 0);
	CHECK(r.status == LAT_OK &&
	      writes_as(&r.value, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\u00e9\u20ac\U0001F600z\""));
	done(&r);
}

/* Each place of each kind of byte within two words: the scan takes eight bytes at a time. */
static void a_special_byte_is_seen_at_every_place(void)
{
	int wrong = 0;
	for (int len = 0; len <= 24; len++) {
		for (int at = 0; at < len; at++) {
			for (int c = 0; c < 0x80; c++) {
				char text[32] = "\"";
				memset(text + 1, 'x', (size_t)len);
				text[1 + at] = (char)c;
				strcpy(text + 1 + len, "\"");
				reading r = read_n(text, (size_t)len + 2);
				bool plain = c >= 0x20 && c != '"' && c != '\\';
				if (plain)
					wrong += !(r.status == LAT_OK && r.value.len == (uint32_t)len);
				else
					wrong += !(r.status == LAT_E_SYNTAX && r.err.offset >= 1 + (size_t)at);
				done(&r);
			}
		}
	}
	CHECK(wrong == 0);
}

/* RFC 3629 by decoding: an independent way to the same verdict. */
static size_t decoded_length(const unsigned char *s, size_t len)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
	if (n == 0 || n > len)
		return 0;
	uint32_t code = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	bool surrogate = code >= 0xd800 && code <= 0xdfff;
	return code < least[n] || code > 0x10ffff || surrogate ? 0 : n;
}

static int utf8_mismatch(const unsigned char *s, size_t len)
{
	size_t valid = 0, n;
	while (valid < len && (n = decoded_length(s + valid, len - valid)))
		valid += n;
	return lat_utf8_valid_prefix((const char *)s, len) != valid;
}

static void every_sequence_of_three_bytes_is_judged_as_decoding_it_does(void)
{
	int wrong = 0;
	for (unsigned a = 0x80; a <= 0xff; a++)
		for (unsigned b = 0; b <= 0xff; b++)
			for (unsigned c = 0; c <= 0xff; c++)
				wrong +=
					utf8_mismatch((unsigned char[]){(unsigned char)a, (unsigned char)b, (unsigned char)c}, 3);
	static const unsigned char edges[] = {0x00, 0x22, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};
	for (unsigned a = 0xe0; a <= 0xff; a++)
		for (size_t i = 0; i < sizeof edges * sizeof edges * sizeof edges; i++) {
			size_t n = sizeof edges;
			unsigned char s[4] = {(unsigned char)a, edges[i % n], edges[i / n % n], edges[i / n / n]};
			wrong += utf8_mismatch(s, 4);
		}
	CHECK(wrong == 0);
}

/* Every code unit as an escape: half a surrogate pair is refused, all others come back as they were. */
static void every_code_unit_can_be_escaped_unless_it_is_half_a_pair(void)
{
	int wrong = 0;
	for (unsigned u = 0; u <= 0xffff; u++) {
		char text[16];
		snprintf(text, sizeof text, "\"\\u%04X\"", u);
		reading r = read_text(text);
		bool half = u >= 0xd800 && u <= 0xdfff;
		size_t n = u < 0x80 ? 1 : u < 0x800 ? 2 : 3;
		if (half)
			wrong += r.status != LAT_E_SYNTAX;
		else
			wrong += r.status != LAT_OK || r.value.len != n ||
			         (decoded_length((const unsigned char *)r.value.u.s, n) != n);
		done(&r);
	}
	CHECK(wrong == 0);
}

static void what_isnt_utf8_is_not_written(void)
{
	lat_buf b = LAT_BUF_INIT;
	lat_error err;
	lat_buf_str(&b, "[");
	CHECK(lat_json_write_string(&b, "ab\xc3\xa9\xff", 5, &err) == LAT_E_INVALID && err.offset == 4);
	CHECK(lat_json_write_escaped(&b, "\n\xed\xa0\x80", 4, &err) == LAT_E_INVALID && err.offset == 1);
	lat_value bad[2] = {lat_value_int(1), lat_value_string_view("\xc0\x80", 2)};
	lat_value list = {.type = LAT_ARRAY, .len = 2, .u.items = bad};
	CHECK(lat_json_write_value(&b, &list, &err) == LAT_E_INVALID);
	CHECK(strcmp(lat_buf_cstr(&b), "[") == 0);
	CHECK(lat_json_write_escaped(&b, "a\"\x01", 3, &err) == LAT_OK);
	CHECK(strcmp(lat_buf_cstr(&b), "[a\\\"\\u0001") == 0);
	lat_buf_free(&b);
}

static void strings_are_views_unless_copies_are_asked_for(void)
{
	char text[] = "{\"key\":\"value\"}";
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	CHECK(lat_json_read(&arena, text, strlen(text), NULL, &v, NULL) == LAT_OK);
	CHECK(v.u.items[1].u.s == text + 8);
	lat_json_options copy = {.flags = LAT_JSON_COPY_STRINGS};
	CHECK(lat_json_read(&arena, text, strlen(text), &copy, &v, NULL) == LAT_OK);
	memset(text, 'x', strlen(text));
	CHECK(writes_as(&v, "{\"key\":\"value\"}"));
	lat_arena_free(&arena);
}

/* ---- objects ---- */

static void of_equal_keys_the_last_value_stays_in_the_first_ones_place(void)
{
	reading r = read_text("{\"a\":1,\"b\":2,\"a\":3,\"\\u0061\":{\"a\":4},\"c\":5,\"b\":6}");
	CHECK(r.status == LAT_OK && writes_as(&r.value, "{\"a\":{\"a\":4},\"b\":6,\"c\":5}"));
	done(&r);
	r = read_text("{\"\":1,\"\":2}");
	CHECK(r.status == LAT_OK && writes_as(&r.value, "{\"\":2}"));
	done(&r);
}

/* n different keys, then the same once more with other values. */
static bool keeps_last_of_two(int n)
{
	lat_buf b = LAT_BUF_INIT;
	for (int i = 0; i < 2 * n; i++)
		lat_buf_printf(&b, "%s\"key %d\":%d", i ? "," : "{", i % n, i);
	lat_buf_byte(&b, '}');
	reading r = read_n(b.data, b.len);
	bool ok = r.status == LAT_OK && r.value.len == (uint32_t)n;
	for (int i = 0; ok && i < n; i++) {
		char key[32];
		snprintf(key, sizeof key, "key %d", i);
		const lat_value *member = &r.value.u.items[2 * i];
		ok = lat_value_is_string(member, key) && member[1].u.i == n + i;
	}
	done(&r);
	lat_buf_free(&b);
	return ok;
}

static void many_keys_are_told_apart_as_few_are(void)
{
	for (int n = 1; n <= 40; n++)
		CHECK(keeps_last_of_two(n));
	CHECK(keeps_last_of_two(1000));
	CHECK(keeps_last_of_two(200000)); /* by pairs this would be 80 billion comparisons */
}

/* ---- limits ---- */

static char *nested(unsigned levels, char open, char close)
{
	char *text = malloc(2 * levels + 1);
	memset(text, open, levels);
	memset(text + levels, close, levels);
	text[2 * levels] = '\0';
	return text;
}

static void a_thousand_levels_are_read_and_written_and_one_more_is_refused(void)
{
	char *text = nested(LAT_JSON_DEFAULT_DEPTH, '[', ']');
	reading r = read_text(text);
	CHECK(r.status == LAT_OK && writes_as(&r.value, text));
	lat_value outer = {.type = LAT_ARRAY, .len = 1, .u.items = &r.value};
	lat_buf b = LAT_BUF_INIT;
	lat_error err;
	CHECK(lat_json_write_value(&b, &outer, &err) == LAT_E_LIMIT && b.len == 0);
	lat_buf_free(&b);
	done(&r);
	free(text);
	text = nested(LAT_JSON_DEFAULT_DEPTH + 1, '[', ']');
	r = read_text(text);
	CHECK(r.status == LAT_E_LIMIT && r.err.offset == LAT_JSON_DEFAULT_DEPTH);
	lat_json_options deeper = {.max_depth = 1000000};
	CHECK(lat_json_read(&r.arena, text, strlen(text), &deeper, &r.value, NULL) == LAT_E_LIMIT);
	done(&r);
	free(text);
	text = nested(100000, '[', ']');
	r = read_text(text);
	CHECK(r.status == LAT_E_LIMIT);
	done(&r);
	free(text);
}

static void limits_are_what_the_options_say(void)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	lat_error err;
	lat_json_options flat = {.max_depth = 1};
	CHECK(lat_json_read(&arena, "[1]", 3, &flat, &v, &err) == LAT_OK);
	CHECK(lat_json_read(&arena, "[{}]", 4, &flat, &v, &err) == LAT_E_LIMIT && err.offset == 1);
	lat_json_options small = {.max_bytes = 3};
	CHECK(lat_json_read(&arena, "[1]", 3, &small, &v, &err) == LAT_OK);
	CHECK(lat_json_read(&arena, "[1] ", 4, &small, &v, &err) == LAT_E_LIMIT);
	CHECK(lat_json_read(&arena, NULL, 0, NULL, &v, &err) == LAT_E_SYNTAX);
	lat_arena_free(&arena);
}

/* ---- faults ---- */

static const char WHOLE[] =
	"{\"text\":\"a\\n\\u00e9\\ud83d\\ude00\u20ac plain and long enough for words\",\"n\":[0,-12,"
	"3.25,1e-7,9223372036854775808],\"t\":true,\"f\":false,\"z\":null,\"o\":{\"p\":[{},[]]}}";

static void a_text_that_is_cut_anywhere_is_refused(void)
{
	reading whole = read_text(WHOLE);
	CHECK(whole.status == LAT_OK);
	done(&whole);
	for (size_t n = 0; n < sizeof WHOLE - 1; n++) {
		reading r = read_n(WHOLE, n);
		CHECK(r.status == LAT_E_SYNTAX && r.err.offset <= n && r.err.message[0]);
		done(&r);
	}
}

/* Each byte replaced by each other byte: read or refused; what is read can be written and read. */
static void a_text_with_any_byte_changed_has_a_defined_outcome(void)
{
	int wrong = 0;
	char text[sizeof WHOLE];
	for (size_t at = 0; at < sizeof WHOLE - 1; at++) {
		for (int c = 0; c <= 0xff; c++) {
			memcpy(text, WHOLE, sizeof WHOLE);
			text[at] = (char)c;
			reading r = read_n(text, sizeof WHOLE - 1);
			if (r.status != LAT_OK) {
				wrong += r.err.kind != r.status || r.err.offset >= sizeof WHOLE;
			} else {
				lat_buf b = LAT_BUF_INIT;
				wrong += lat_json_write_value(&b, &r.value, NULL) != LAT_OK;
				reading again = read_n(b.data, b.len);
				wrong += again.status != LAT_OK || !lat_value_equal(&r.value, &again.value);
				done(&again);
				lat_buf_free(&b);
			}
			done(&r);
		}
	}
	CHECK(wrong == 0);
}

static void messages_say_what_would_be_right(void)
{
	const struct {
		const char *text;
		size_t offset;
		const char *message;
	} cases[] = {
		{"", 0, "expected a value, got the end of the text"},
		{"[1,]", 3, "expected a value, got ']'"},
		{"{\"a\":1,}", 7, "expected a key in quotes, got '}'"},
		{"{\"a\" 1}", 5, "expected ':' behind a key, got '1'"},
		{"[1 2]", 3, "expected ',' or ']', got '2'"},
		{"\xef\xbb\xbf{}", 0, "expected a value, got byte 0xef"},
		{"1 x", 2, "expected nothing behind the value, got 'x'"},
		{"01", 0, "a number must not start with 0 and go on"},
		{"-", 1, "a digit must follow the minus sign"},
		{"1.e1", 2, "a digit must follow the point"},
		{"1e+", 3, "a digit must follow the exponent's e"},
		{"\"\\x\"", 2, "expected one of \"\\/bfnrtu behind the backslash, got 'x'"},
		{"\"\\u12g4\"", 1, "four hex digits must follow \\u"},
		{"\"\\udc00\"", 1, "\\udc00 is half of a surrogate pair"},
		{"\"a\tb\"", 2, "control byte 0x09 in a string must be escaped"},
		{"\"\\n\x80\"", 3, "invalid UTF-8 in a string"},
		{"[nul]", 1, "expected a value, got 'n'"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		reading r = read_text(cases[i].text);
		CHECK(r.status == LAT_E_SYNTAX);
		if (r.err.offset != cases[i].offset || strcmp(r.err.message, cases[i].message) != 0)
			printf("%s: byte %zu: %s\n", cases[i].text, r.err.offset, r.err.message);
		CHECK(r.err.offset == cases[i].offset && strcmp(r.err.message, cases[i].message) == 0);
		done(&r);
	}
}

int main(void)
{
	integers_are_exact_to_the_edges_of_int64();
	integers_past_int64_are_the_nearest_double_and_marked_wide();
	numbers_with_fraction_or_exponent_are_doubles();
	whole_doubles_of_other_literals_are_marked_rounded();
	a_digit_far_behind_breaks_a_tie();
	a_million_digits_are_one_number();
	numbers_past_a_doubles_range_are_refused();
	doubles_are_written_short_and_with_a_mark_of_their_kind();
	integers_are_written_to_the_edges();
	escapes_stand_for_their_characters();
	a_special_byte_is_seen_at_every_place();
	every_sequence_of_three_bytes_is_judged_as_decoding_it_does();
	every_code_unit_can_be_escaped_unless_it_is_half_a_pair();
	what_isnt_utf8_is_not_written();
	strings_are_views_unless_copies_are_asked_for();
	of_equal_keys_the_last_value_stays_in_the_first_ones_place();
	many_keys_are_told_apart_as_few_are();
	a_thousand_levels_are_read_and_written_and_one_more_is_refused();
	limits_are_what_the_options_say();
	a_text_that_is_cut_anywhere_is_refused();
	a_text_with_any_byte_changed_has_a_defined_outcome();
	messages_say_what_would_be_right();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
