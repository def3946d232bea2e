/* JSON beside two oracles, on random input (SEED=… replays a run): the C library's strtod and printf for
 * numbers, cJSON for documents of what cJSON can hold (no NUL in strings, integers below 2^53, each key
 * once). */
#include <cjson/cJSON.h>
#include <float.h>
#include <locale.h>
#include <math.h>

#include "json_support.h"

/* ---- numbers ---- */

static size_t random_digits(char *q, unsigned most)
{
	size_t n = 1 + random_below(most);
	for (size_t i = 0; i < n; i++)
		q[i] = (char)('0' + random_below(10));
	return n;
}

static void random_literal(char *text)
{
	char *q = text;
	if (random_below(2))
		*q++ = '-';
	if (random_below(4)) {
		size_t n = random_digits(q, random_below(4) ? 17 : 40);
		if (*q == '0')
			n = 1;
		q += n;
	} else {
		*q++ = '0';
	}
	bool fraction = random_below(3);
	if (fraction) {
		*q++ = '.';
		q += random_digits(q, random_below(4) ? 6 : 60);
	}
	if (!fraction || random_below(3))
		q += sprintf(q, "e%d", (int)random_below(700) - 350);
	*q = '\0';
}

static bool same_as_strtod(const char *text)
{
	double right = strtod(text, NULL);
	reading r = read_text(text);
	bool ok;
	if (isinf(right))
		ok = r.status == LAT_E_LIMIT;
	else
		ok = r.status == LAT_OK && r.value.type == LAT_DOUBLE && memcmp(&r.value.u.d, &right, 8) == 0;
	if (!ok)
		printf("%s should be %.17g\n", text, right);
	done(&r);
	return ok;
}

static void literals_are_read_as_strtod_reads_them(void)
{
	int wrong = 0;
	char text[160];
	for (int i = rounds(200000); i > 0; i--) {
		random_literal(text);
		wrong += !same_as_strtod(text);
	}
	CHECK(wrong == 0);
}

/* The point between a double and its neighbour, written out in full, and one digit more: the hardest
 * literals. */
static void literals_at_halfway_points_are_read_as_strtod_reads_them(void)
{
	int wrong = 0;
	for (int i = rounds(20000); i > 0; i--) {
		uint64_t bits = random_bits() & 0x7fffffffffffffffu;
		double d;
		memcpy(&d, &bits, 8);
		if (!(fabs(d) < 1e300))
			continue;
		long double middle = ((long double)d + (long double)nextafter(d, INFINITY)) / 2;
		char text[1400];
		snprintf(text, sizeof text, "%.1100Le", middle);
		wrong += !same_as_strtod(text);
		char *e = strchr(text, 'e');
		e[-1] = '1';
		wrong += !same_as_strtod(text);
	}
	CHECK(wrong == 0);
}

static double random_double(void)
{
	uint64_t bits = random_bits();
	double d;
	switch (random_below(4)) {
	case 0: /* a power of two: its neighbours lie at different distances */
		return ldexp(1, (int)random_below(2098) - 1074);
	case 1: /* a short decimal */
		return (double)(int64_t)(bits % 20000001) / (double[]){1, 10, 100, 1e4, 1e7, 1e12}[random_below(6)];
	case 2: /* subnormal */
		bits &= 0x000fffffffffffffu;
		break;
	default:
		break;
	}
	memcpy(&d, &bits, 8);
	return isfinite(d) ? d : 0.5;
}

static int significant_digits(const char *text)
{
	int n = 0, zeros = 0;
	for (const char *p = text; *p && *p != 'e'; p++) {
		if (*p < '0' || *p > '9' || (n == 0 && *p == '0'))
			continue;
		zeros = *p == '0' ? zeros + 1 : 0;
		n++;
	}
	return n - zeros;
}

/* Whether printf has a shorter decimal that reads back. */
static bool shorter_exists(double d, int digits)
{
	char text[40];
	if (digits <= 1)
		return false;
	snprintf(text, sizeof text, "%.*e", digits - 2, d);
	return strtod(text, NULL) == d;
}

static void doubles_come_back_bit_for_bit_from_the_fewest_digits(void)
{
	int wrong = 0;
	for (int i = rounds(200000); i > 0; i--) {
		double d = random_double();
		lat_buf b = LAT_BUF_INIT;
		lat_json_write_double(&b, d, NULL);
		const char *text = lat_buf_cstr(&b);
		reading r = read_text(text);
		bool ok = r.status == LAT_OK && r.value.type == LAT_DOUBLE && memcmp(&r.value.u.d, &d, 8) == 0 &&
		          !shorter_exists(d, significant_digits(text));
		if (!ok)
			printf("%.17g was written %s\n", d, text);
		wrong += !ok;
		done(&r);
		lat_buf_free(&b);
	}
	CHECK(wrong == 0);
}

static void random_integers_come_back_exactly(void)
{
	int wrong = 0;
	for (int i = rounds(200000); i > 0; i--) {
		int64_t n = (int64_t)(random_bits() >> random_below(64));
		n = random_below(2) ? n : -n;
		lat_buf b = LAT_BUF_INIT;
		lat_json_write_int(&b, n);
		reading r = read_text(lat_buf_cstr(&b));
		wrong += !(r.status == LAT_OK && r.value.type == LAT_INT && r.value.u.i == n);
		char text[32];
		snprintf(text, sizeof text, "%lld", (long long)n);
		wrong += strcmp(text, lat_buf_cstr(&b)) != 0;
		done(&r);
		lat_buf_free(&b);
	}
	CHECK(wrong == 0);
}

/* Under a locale that writes 1,5. */
static void a_locale_with_a_decimal_comma_changes_nothing(void)
{
	const char *names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
	const char *name = NULL;
	for (size_t i = 0; !name && i < sizeof names / sizeof *names; i++)
		name = setlocale(LC_NUMERIC, names[i]);
	if (!name) {
		printf("skipped: no locale with a decimal comma is installed (de_DE.UTF-8 would do)\n");
		return;
	}
	lat_value v = lat_value_double(1.0 / 3);
	CHECK(writes_as(&v, "0.3333333333333333"));
	reading r = read_text("[1.5,12345678901234567890.25,1e-300]");
	CHECK(r.status == LAT_OK && r.value.u.items[0].u.d == 1.5 && r.value.u.items[2].u.d == 1e-300);
	CHECK(r.status == LAT_OK && r.value.u.items[1].u.d == 12345678901234567890.0);
	done(&r);
	setlocale(LC_NUMERIC, "C");
}

/* ---- documents ---- */

static void random_space(lat_buf *b)
{
	while (random_below(8) == 0)
		lat_buf_byte(b, " \n\r\t"[random_below(4)]);
}

static void random_string(lat_buf *b, const char *prefix)
{
	static const char *const pieces[] = {"a",       "plain text of some length",
	                                     "\\n",     "\\\"",
	                                     "\\\\",    "\\/",
	                                     "\u00e9",  "\u20ac",
	                                     "{}",      "\U0001F600",
	                                     "\\u0041", "\\ud83d\\ude00",
	                                     "\\u20aC", "\x7f",
	                                     ":,[]"};
	lat_buf_byte(b, '"');
	lat_buf_str(b, prefix);
	for (unsigned n = random_below(6); n > 0; n--)
		lat_buf_str(b, pieces[random_below(sizeof pieces / sizeof *pieces)]);
	lat_buf_byte(b, '"');
}

static void random_document(lat_buf *b, unsigned depth)
{
	unsigned kind = random_below(depth ? 9 : 7);
	random_space(b);
	switch (kind) {
	case 0:
		lat_buf_str(b, (const char *[]){"null", "true", "false"}[random_below(3)]);
		break;
	case 1:
		lat_buf_printf(b, "%lld", (long long)(random_bits() >> 11) * (random_below(2) ? 1 : -1));
		break;
	case 2:
		lat_buf_printf(b, "%.*g", 1 + (int)random_below(17), (double)(int64_t)random_bits() / 1e9 + 0.5);
		break;
	case 3:
		lat_buf_printf(b, "%u.%ue%d", random_below(1000), random_below(1000), (int)random_below(40) - 20);
		break;
	case 4:
	case 5:
	case 6:
		random_string(b, "");
		break;
	default:
		lat_buf_byte(b, kind == 7 ? '[' : '{');
		for (unsigned i = 0, n = random_below(5) ? random_below(6) : random_below(40); i < n; i++) {
			if (i > 0)
				lat_buf_byte(b, ',');
			if (kind == 8) {
				char prefix[16];
				snprintf(prefix, sizeof prefix, "%u", i);
				random_space(b);
				random_string(b, prefix);
				random_space(b);
				lat_buf_byte(b, ':');
			}
			random_document(b, depth - 1);
		}
		lat_buf_byte(b, kind == 7 ? ']' : '}');
	}
	random_space(b);
}

static bool same_string(const lat_value *v, const char *s)
{
	return v->type == LAT_STRING && v->len == strlen(s) && memcmp(v->u.s, s, v->len) == 0;
}

static bool same_tree(const lat_value *v, const cJSON *c)
{
	if (cJSON_IsNull(c))
		return v->type == LAT_NULL;
	if (cJSON_IsBool(c))
		return v->type == (cJSON_IsTrue(c) ? LAT_TRUE : LAT_FALSE);
	if (cJSON_IsNumber(c))
		return (v->type == LAT_INT && (double)v->u.i == c->valuedouble) ||
		       (v->type == LAT_DOUBLE && v->u.d == c->valuedouble);
	if (cJSON_IsString(c))
		return same_string(v, c->valuestring);
	bool object = cJSON_IsObject(c);
	if (v->type != (object ? LAT_OBJECT : LAT_ARRAY))
		return false;
	const lat_value *item = v->u.items;
	uint32_t n = 0;
	for (const cJSON *child = c->child; child; child = child->next, item++, n++) {
		if (n == v->len || (object && !same_string(item, child->string)))
			return false;
		item += object;
		if (!same_tree(item, child))
			return false;
	}
	return n == v->len;
}

static void documents_are_read_as_cjson_reads_them_and_come_back_from_their_text(void)
{
	int wrong = 0;
	for (int i = rounds(30000); i > 0; i--) {
		lat_buf b = LAT_BUF_INIT, out = LAT_BUF_INIT;
		random_document(&b, 6);
		reading r = read_n(b.data, b.len);
		cJSON *tree = cJSON_ParseWithLength(b.data, b.len);
		bool ok = r.status == LAT_OK && tree && same_tree(&r.value, tree) &&
		          lat_json_write_value(&out, &r.value, NULL) == LAT_OK;
		reading again = read_n(out.data, out.len);
		ok = ok && again.status == LAT_OK && lat_value_equal(&r.value, &again.value);
		if (!ok)
			printf("%.*s\n%s\n", (int)b.len, b.data, r.status ? r.err.message : "differs");
		wrong += !ok;
		cJSON_Delete(tree);
		done(&r);
		done(&again);
		lat_buf_free(&b);
		lat_buf_free(&out);
	}
	CHECK(wrong == 0);
}

int main(void)
{
	seed_random();
	literals_are_read_as_strtod_reads_them();
	literals_at_halfway_points_are_read_as_strtod_reads_them();
	doubles_come_back_bit_for_bit_from_the_fewest_digits();
	random_integers_come_back_exactly();
	a_locale_with_a_decimal_comma_changes_nothing();
	documents_are_read_as_cjson_reads_them_and_come_back_from_their_text();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
