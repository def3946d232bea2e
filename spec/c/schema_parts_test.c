/* The parts below schemas: references of RFC 3986, patterns, numbers, equality. */
#include "schema_support.h"

#include "schema/equal.h"
#include "schema/format.h"
#include "schema/pattern.h"
#include "schema/run.h"
#include "schema/uri.h"

/* ---- references ---- */

static bool resolves(const char *base, const char *reference, const char *expected)
{
	lat_arena arena = LAT_ARENA_INIT;
	char *uri = NULL, *fragment = NULL;
	size_t len;
	bool same = lat_uri_resolve(&arena, base, reference, strlen(reference), &uri, &fragment, &len);
	lat_buf whole = LAT_BUF_INIT;
	lat_buf_str(&whole, uri ? uri : "");
	if (fragment)
		lat_buf_printf(&whole, "#%s", fragment);
	same = same && strcmp(lat_buf_cstr(&whole), expected) == 0;
	if (!same)
		printf("%s against %s is %s\n", reference, base, lat_buf_cstr(&whole));
	lat_buf_free(&whole);
	lat_arena_free(&arena);
	return same;
}

/* RFC 3986 sections 5.4.1 and 5.4.2. */
static void references_resolve_as_the_rfc_lists(void)
{
	static const char *const EXAMPLES[][2] = {
		{"g:h", "g:h"},
		{"g", "http://a/b/c/g"},
		{"./g", "http://a/b/c/g"},
		{"g/", "http://a/b/c/g/"},
		{"/g", "http://a/g"},
		{"//g", "http://g"},
		{"?y", "http://a/b/c/d;p?y"},
		{"g?y", "http://a/b/c/g?y"},
		{"#s", "http://a/b/c/d;p?q#s"},
		{"g#s", "http://a/b/c/g#s"},
		{"g?y#s", "http://a/b/c/g?y#s"},
		{";x", "http://a/b/c/;x"},
		{"g;x", "http://a/b/c/g;x"},
		{"g;x?y#s", "http://a/b/c/g;x?y#s"},
		{"", "http://a/b/c/d;p?q"},
		{".", "http://a/b/c/"},
		{"./", "http://a/b/c/"},
		{"..", "http://a/b/"},
		{"../", "http://a/b/"},
		{"../g", "http://a/b/g"},
		{"../..", "http://a/"},
		{"../../", "http://a/"},
		{"../../g", "http://a/g"},
		{"../../../g", "http://a/g"},
		{"../../../../g", "http://a/g"},
		{"/./g", "http://a/g"},
		{"/../g", "http://a/g"},
		{"g.", "http://a/b/c/g."},
		{".g", "http://a/b/c/.g"},
		{"g..", "http://a/b/c/g.."},
		{"..g", "http://a/b/c/..g"},
		{"./../g", "http://a/b/g"},
		{"./g/.", "http://a/b/c/g/"},
		{"g/./h", "http://a/b/c/g/h"},
		{"g/../h", "http://a/b/c/h"},
		{"g;x=1/./y", "http://a/b/c/g;x=1/y"},
		{"g;x=1/../y", "http://a/b/c/y"},
		{"g?y/./x", "http://a/b/c/g?y/./x"},
		{"g#s/../x", "http://a/b/c/g#s/../x"},
		{"http:g", "http:g"},
	};
	for (size_t i = 0; i < sizeof EXAMPLES / sizeof *EXAMPLES; i++)
		CHECK(resolves("http://a/b/c/d;p?q", EXAMPLES[i][0], EXAMPLES[i][1]));
	CHECK(resolves("", "node", "node"));
	CHECK(resolves("", "#/$defs/a%25b", "#/$defs/a%b"));
	CHECK(resolves("urn:uuid:feebdaed", "#foo", "urn:uuid:feebdaed#foo"));
	CHECK(resolves("http://a", "g", "http://a/g"));
	CHECK(resolves("x/y", "./z", "x/z"));
}

/* ---- patterns ---- */

static bool matches(const char *pattern, const char *subject)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_matcher matcher = {.arena = &arena};
	lat_patterns *set = lat_patterns_new();
	lat_pattern *p = NULL;
	lat_error err;
	bool yes = false;
	if (!set || lat_patterns_add(set, pattern, strlen(pattern), &p, &err) != LAT_OK)
		CHECK(!"the pattern compiles");
	else
		yes = lat_pattern_match(p, &matcher, subject, strlen(subject)) == LAT_MATCH_YES;
	lat_patterns_free(set);
	lat_arena_free(&arena);
	return yes;
}

static bool is_refused(const char *pattern)
{
	return lat_pattern_judge(pattern, strlen(pattern)) == LAT_MATCH_NO;
}

static void patterns_mean_what_ecma_262_says(void)
{
	CHECK(matches("^\\d+$", "123") && !matches("^\\d+$", "\u0967"));
	CHECK(matches("^\\w$", "a") && !matches("^\\w$", "é"));
	CHECK(matches("^\\s+$", " \t\n\v\f\r\u00A0\uFEFF\u2028\u3000") && !matches("^\\s$", "\u180E"));
	CHECK(!matches("^\\S$", "\u00A0") && matches("^\\S$", "x"));
	CHECK(matches("^[\\s\\d]+$", "1\u00A02") && matches("^[^\\s]$", "x") && !matches("^[^\\s]$", "\uFEFF"));
	CHECK(matches("^[\\S]$", "x") && !matches("^[\\S]$", "\u2029"));
	CHECK(matches("^a.c$", "a\u2027c") && !matches("^a.c$", "a\u2028c") && !matches("^a.c$", "a\rc"));
	CHECK(!matches("^abc$", "abc\n"));
	CHECK(matches("^\\cA\\v\\0$", "\x01\v") == false);
	CHECK(matches("^\\cA\\v$", "\x01\v") && matches("^\\x41\\u0042\\u{1F600}$", "AB\U0001F600"));
	CHECK(matches("^\\uD83D\\uDE00$", "\U0001F600"));
	CHECK(!matches("[]", "a") && matches("^[^]$", "\n"));
	CHECK(matches("^[[:alpha:]]$", ":]") && matches("^\\p{Letter}+$", "aß") && !matches("^\\p{Lu}$", "a"));
	CHECK(matches("^\\p{Script=Greek}$", "α") && matches("^\\P{ASCII}$", "é") &&
	      matches("^[\\p{ASCII}]$", "a"));
	CHECK(matches("^(?<y>\\d)\\k<y>$", "11") && matches("^(a)\\1$", "aa") && matches("(?<=a)b", "ab"));
	CHECK(matches("^(?:(a)|b)\\1$", "b")); /* a group that took no part matches empty */
	CHECK(matches("^a{,3}$", "a{,3}") && matches("^\\/\\-$", "/-") && matches("^a{1,2}?$", "aa"));
}

static void what_only_other_engines_know_is_refused(void)
{
	static const char *const FOREIGN[] = {"\\A",    "\\Z",      "\\h",   "(?i)a",   "(?P<n>x)", "(?#c)",
	                                      "(?>a)",  "a++",      "a**",   "*",       "(*UTF)",   "\\",
	                                      "[a",     "(a",       "\\u12", "\\uD800", "\\x1",     "\\c1",
	                                      "\\k<n>", "\\p{}",    "\\pL",  "\\01",    "[\\1]",    "(?<1>a)",
	                                      "\\2(a)", "\\p{Nope}"};
	for (size_t i = 0; i < sizeof FOREIGN / sizeof *FOREIGN; i++) {
		bool refused = is_refused(FOREIGN[i]);
		if (!refused)
			printf("not refused: %s\n", FOREIGN[i]);
		CHECK(refused);
	}
}

/* ---- numbers ---- */

static void multiples_are_exact(uint64_t seed)
{
	for (int i = 0; i < 20000; i++) {
		int64_t m = (int64_t)below(&seed, 1000) + 1, v = (int64_t)below(&seed, 2000000000) - 1000000000;
		double scale = 1;
		for (uint64_t n = below(&seed, 5); n > 0; n--)
			scale *= 10;
		/* v / scale and m / scale are multiples of each other exactly when v and m are */
		lat_value a = lat_value_double((double)v / scale), b = lat_value_double((double)m / scale);
		bool same = lat_number_is_multiple(&a, &b) == (v % m == 0);
		if (!same)
			printf("%.17g of %.17g\n", a.u.d, b.u.d);
		CHECK(same);
	}
	CHECK(accepts("{\"multipleOf\":0.01}", "19.99") && accepts("{\"multipleOf\":0.1}", "1e300"));
	CHECK(accepts("{\"multipleOf\":3}", "-9223372036854775806") && !accepts("{\"multipleOf\":7.5}", "1e300"));
	CHECK(accepts("{\"multipleOf\":1e-8}", "12391239123") && !accepts("{\"multipleOf\":1e300}", "5e-324"));
}

static void comparison_is_exact_past_2_to_the_53(uint64_t seed)
{
	for (int i = 0; i < 20000; i++) {
		int64_t n = (int64_t)((uint64_t)1 << 53) + (int64_t)below(&seed, 64),
				m = n + (int64_t)below(&seed, 5) - 2;
		lat_value a = lat_value_int(n), b = lat_value_double((double)m);
		int64_t d = (int64_t)(double)m;
		CHECK(lat_number_compare(&a, &b) == (n > d) - (n < d));
		CHECK(lat_number_compare(&b, &a) == (d > n) - (d < n));
	}
}

/* ---- equality ---- */

/* A small random value out of few, so that equal ones are common; numbers in both forms. */
static lat_value random_value(lat_arena *arena, uint64_t *seed, int depth)
{
	static const char *const NAMES[] = {"a", "b", "", "ab"};
	uint64_t kind = below(seed, depth ? 7 : 5);
	if (kind < 5) {
		uint64_t n = below(seed, 3);
		return kind == 0   ? lat_value_null()
		       : kind == 1 ? lat_value_bool(n & 1)
		       : kind == 2 ? lat_value_int((int64_t)n)
		       : kind == 3 ? lat_value_double((double)n / 2)
		                   : lat_value_string_view(NAMES[n], strlen(NAMES[n]));
	}
	lat_value v = {.type = kind == 5 ? LAT_ARRAY : LAT_OBJECT, .len = (uint32_t)below(seed, 4)};
	v.u.items = lat_arena_alloc(arena, 2 * v.len * sizeof v);
	for (uint32_t i = 0, start = (uint32_t)below(seed, 4); i < v.len; i++) {
		const char *name = NAMES[(start + i) % 4];
		if (v.type == LAT_OBJECT)
			v.u.items[2 * i] = lat_value_string_view(name, strlen(name));
		v.u.items[v.type == LAT_OBJECT ? 2 * i + 1 : i] = random_value(arena, seed, depth - 1);
	}
	return v;
}

static void equality_hashes_and_repeats_agree(uint64_t seed)
{
	enum { ITEMS = 40 };
	for (int turn = 0; turn < 300; turn++) {
		lat_arena arena = LAT_ARENA_INIT;
		lat_value items[ITEMS],
			array = {.type = LAT_ARRAY, .len = (uint32_t)below(&seed, ITEMS), .u.items = items};
		bool nomem = false, any = false;
		for (uint32_t i = 0; i < array.len; i++)
			items[i] = random_value(&arena, &seed, 4);
		for (uint32_t i = 0; i < array.len; i++) {
			for (uint32_t j = 0; j < i; j++) {
				bool equal = lat_value_equal(&items[i], &items[j]);
				any = any || equal;
				CHECK(equal == lat_value_same(&arena, &items[i], &items[j], &nomem));
				CHECK(!equal || lat_value_hash(turn, &items[i]) == lat_value_hash(turn, &items[j]));
			}
		}
		uint32_t first = 0, second = 0;
		CHECK(lat_items_repeat(&arena, 7, &array, &first, &second, &nomem) == any && !nomem);
		CHECK(!any || lat_value_equal(&items[first], &items[second]));
		lat_arena_free(&arena);
	}
}

static void large_objects_compare_in_any_order(void)
{
	lat_buf text = LAT_BUF_INIT;
	lat_buf_byte(&text, '[');
	for (int side = 0; side < 2; side++) {
		for (int i = 0; i < 5000; i++)
			lat_buf_printf(&text, "%s\"k%d\":%d",
			               i      ? ","
			               : side ? ",{"
			                      : "{",
			               side ? 4999 - i : i, side ? 4999 - i : i);
		lat_buf_byte(&text, '}');
	}
	lat_buf_byte(&text, ']');
	CHECK(complains("{\"uniqueItems\":true}", lat_buf_cstr(&text), "", "items 0 and 1 are equal"));
	memcpy(strrchr(text.data, ':'), ":7", 2);
	CHECK(accepts("{\"uniqueItems\":true}", lat_buf_cstr(&text)));
	lat_buf_free(&text);
}

/* ---- formats ---- */

static bool is(const char *format, const char *text)
{
	const lat_format *f = lat_format_find(format, strlen(format));
	return f && f->check(text, strlen(text));
}

static void formats_hold_at_their_edges(void)
{
	CHECK(!lat_format_find("nope", 4) && !lat_format_find("dat", 3));
	CHECK(is("date-time", "2024-02-29T23:59:60+00:00") && !is("date-time", "2023-02-29T00:00:00Z"));
	CHECK(is("time", "00:29:60-23:30") && !is("time", "00:30:60-23:30"));
	CHECK(is("ipv6", "::") && is("ipv6", "1::8") && !is("ipv6", "1::2::3") && !is("ipv6", ":") &&
	      !is("ipv6", ""));
	CHECK(is("ipv6", "1:2:3:4:5:6:1.2.3.4") && !is("ipv6", "1:2:3:4:5:6:7:1.2.3.4") &&
	      !is("ipv6", "::1.2.3"));
	CHECK(is("uri", "a:") && !is("uri", ":") && is("uri-reference", "") && !is("uri", "http://[v1]/"));
	CHECK(is("uri", "http://[v1.a:b]:80/") && !is("uri", "http://[::1]x/") && is("uri", "http://@:/"));
	CHECK(is("email", "\"\\\"\"@a") && !is("email", "\"\"\"@a") && !is("email", "a@") && !is("email", "@"));
	CHECK(is("idn-hostname", "bücher.example") && !is("idn-hostname", "Bücher.example"));
	CHECK(is("hostname", "xn--bcher-kva.example") && !is("hostname", "xn--bcher-kv\n"));
	CHECK(!is("idn-hostname", "\xC3") && !is("idn-hostname", "\xF4\x90\x80\x80") &&
	      !is("idn-email", "\xFF@a"));
	CHECK(is("uri-template", "{a%41b}") && !is("uri-template", "{a%4}") && !is("uri-template", "{"));
	CHECK(!is("duration", "") && !is("duration", "P") && !is("duration", "PW") && is("duration", "P1W"));
}

int main(void)
{
	uint64_t seed = seed_of("schema_parts_test");
	references_resolve_as_the_rfc_lists();
	patterns_mean_what_ecma_262_says();
	what_only_other_engines_know_is_refused();
	multiples_are_exact(seed);
	comparison_is_exact_past_2_to_the_53(seed);
	equality_hashes_and_repeats_agree(seed);
	large_objects_compare_in_any_order();
	formats_hold_at_their_edges();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
