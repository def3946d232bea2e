/* Double → the shortest decimal that reads back as the same double. Owns nothing; pure; any thread.
 *
 * Most doubles in the world are short decimals: m / 10^k with m < 10^15. Both are exact then, the division
 * rounds once, as a reader does; so m / 10^k == d proves that "m × 10^-k" reads back as d, and the smallest
 * such k has the fewest digits. The rest asks printf for 16 digits and then 17, which always do. */
#include "json/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_DIGITS = 17,       /* DBL_DECIMAL_DIG */
	SHORT_POWER = 22,      /* 10^22 is the largest exact power of ten */
	FIRST_POSITIONAL = -5, /* 0.00001; smaller: 1e-6 */
	LAST_POSITIONAL = 15,  /* 1000000000000000.0; larger: 1e16 */
};

/* value = 0.d1d2d3… × 10^point */
typedef struct {
	char digits[MAX_DIGITS + 1];
	int count;
	int point;
} decimal;

char *lat_json_put_digits(char *end, uint64_t m)
{
	do {
		*--end = (char)('0' + m % 10);
		m /= 10;
	} while (m);
	return end;
}

/* m / 10^k; m doesn't end in 0 unless k is 0. */
static void from_integer(decimal *out, uint64_t m, int k)
{
	char text[20];
	const char *first = lat_json_put_digits(text + sizeof text, m);
	out->count = (int)(text + sizeof text - first);
	out->point = out->count - k;
	memcpy(out->digits, first, (size_t)out->count);
}

static bool short_decimal(decimal *out, double d)
{
	if (FLT_EVAL_METHOD != 0)
		return false;
	double power = 1;
	for (int k = 0; k <= SHORT_POWER; k++, power *= 10) {
		double scaled = d * power;
		if (scaled >= 1e15)
			return false;
		uint64_t m = (uint64_t)(scaled + 0.5);
		if ((double)m / power == d) {
			from_integer(out, m, k);
			return true;
		}
	}
	return false;
}

/* Whether digits × 10^(point - count) reads back as d; text without a point, so that no locale matters. */
static bool reads_back(const decimal *dec, double d)
{
	char text[MAX_DIGITS + 16];
	memcpy(text, dec->digits, (size_t)dec->count);
	snprintf(text + dec->count, sizeof text - (size_t)dec->count, "e%d", dec->point - dec->count);
	return strtod(text, NULL) == d;
}

/* d rounded to `count` significant digits. */
static void rounded(decimal *out, double d, int count)
{
	char text[48];
	snprintf(text, sizeof text, "%.*e", count - 1, d);
	out->count = 0;
	const char *p = text;
	for (; *p != 'e'; p++) /* skips the point, whatever its bytes are in this locale */
		if (*p >= '0' && *p <= '9')
			out->digits[out->count++] = *p;
	out->point = atoi(p + 1) + 1;
}

static void strip_zeros(decimal *dec)
{
	while (dec->count > 1 && dec->digits[dec->count - 1] == '0')
		dec->count--;
}

/* Whether `digits` digits are enough. Where the nearest decimal doesn't read back, the next one above may: on
 * a tie, and under a power of two, where doubles lie closer. */
static bool read_back_with(decimal *out, double d, int digits)
{
	rounded(out, d, digits);
	if (reads_back(out, d))
		return true;
	if (out->digits[digits - 1] == '9')
		return false;
	out->digits[digits - 1]++;
	return reads_back(out, d);
}

static void shortest(decimal *out, double d)
{
	if (short_decimal(out, d))
		return;
	int digits = d < DBL_MIN ? 1 : DBL_DIG; /* DBL_DIG digits never take more than they give, above DBL_MIN */
	while (digits < MAX_DIGITS && !read_back_with(out, d, digits))
		digits++;
	if (digits == MAX_DIGITS)
		rounded(out, d, MAX_DIGITS);
	strip_zeros(out);
}

static char *put(char *q, const char *s, int n)
{
	memcpy(q, s, (size_t)n);
	return q + n;
}

static char *zeros(char *q, int n)
{
	memset(q, '0', (size_t)n);
	return q + n;
}

static char *positional(char *q, const decimal *dec)
{
	if (dec->point <= 0) {
		q = put(q, "0.", 2);
		q = zeros(q, -dec->point);
		return put(q, dec->digits, dec->count);
	}
	if (dec->count <= dec->point) {
		q = put(q, dec->digits, dec->count);
		q = zeros(q, dec->point - dec->count);
		return put(q, ".0", 2);
	}
	q = put(q, dec->digits, dec->point);
	*q++ = '.';
	return put(q, dec->digits + dec->point, dec->count - dec->point);
}

static char *scientific(char *q, const decimal *dec)
{
	*q++ = dec->digits[0];
	if (dec->count > 1) {
		*q++ = '.';
		q = put(q, dec->digits + 1, dec->count - 1);
	}
	return q + snprintf(q, 8, "e%d", dec->point - 1);
}

size_t lat_json_format_double(char out[LAT_JSON_DOUBLE_CHARS], double d)
{
	char *q = out;
	if (signbit(d))
		*q++ = '-';
	if (d == 0) {
		q = put(q, "0.0", 3);
	} else {
		decimal dec;
		shortest(&dec, fabs(d));
		int exponent = dec.point - 1;
		q = exponent < FIRST_POSITIONAL || exponent > LAST_POSITIONAL ? scientific(q, &dec)
		                                                              : positional(q, &dec);
	}
	*q = '\0';
	return (size_t)(q - out);
}
