/* Number literal → int64 or the nearest double. Owns nothing; pure; any thread.
 *
 * Most literals need no library: up to 19 digits fit a uint64, and m × 10^e with m < 2^53 and |e| ≤ 22 takes
 * one rounding (both operands are exact), so it is the nearest double (Clinger, "How to read floating point
 * numbers accurately", 1990). The others go through strtod as digits and exponent without a point: the point
 * is the only thing there that a locale could change. */
#include "json/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	UINT64_DIGITS = 19,  /* that many digits always fit */
	EXACT_POWER = 22,    /* 10^22 is the largest exact power of ten */
	KEPT_DIGITS = 800,   /* a point halfway between two doubles has at most 768 */
	EXPONENT_CAP = 2000, /* with KEPT_DIGITS digits: past it all is zero or infinite */
};

static const int64_t EXPONENT_STOP = (int64_t)1 << 48; /* far past any text's length, far from overflow */

static const double power_of_ten[EXACT_POWER + 1] = {
	1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

typedef struct {
	const char *digits; /* first digit */
	const char *stop;   /* behind the last digit or point, before the exponent */
	uint64_t m;         /* all digits as one integer; garbage if there are more than UINT64_DIGITS */
	size_t whole;       /* digits before the point */
	size_t fraction;    /* digits behind it */
	int64_t exponent;   /* as written */
	bool negative;
	bool real; /* has a fraction or an exponent */
} literal;

static inline bool is_digit(const char *p, const char *end)
{
	return p < end && (unsigned char)(*p - '0') < 10;
}

static inline const char *take_digits(const char *p, const char *end, uint64_t *m)
{
	for (; is_digit(p, end); p++)
		*m = *m * 10 + (uint64_t)(*p - '0');
	return p;
}

static const char *take_exponent(const char *p, const char *end, int64_t *exponent, const char **why)
{
	bool negative = p < end && *p == '-';
	if (p < end && (*p == '-' || *p == '+'))
		p++;
	if (!is_digit(p, end))
		*why = "a digit must follow the exponent's e";
	int64_t e = 0;
	for (; is_digit(p, end); p++)
		if (e < EXPONENT_STOP)
			e = e * 10 + (*p - '0');
	*exponent = negative ? -e : e;
	return p;
}

/* Splits the literal; *why is set on a fault, and the place of it returned. */
static const char *split(const char *p, const char *end, literal *n, const char **why)
{
	n->negative = *p == '-';
	p += n->negative;
	n->digits = p;
	if (!is_digit(p, end)) {
		*why = "a digit must follow the minus sign";
		return p;
	}
	p = take_digits(p, end, &n->m);
	n->whole = (size_t)(p - n->digits);
	if (*n->digits == '0' && n->whole > 1) {
		*why = "a number must not start with 0 and go on";
		return n->digits;
	}
	if (p < end && *p == '.') {
		const char *first = ++p;
		p = take_digits(p, end, &n->m);
		n->fraction = (size_t)(p - first);
		n->real = true;
		if (n->fraction == 0) {
			*why = "a digit must follow the point";
			return p;
		}
	}
	n->stop = p;
	if (p < end && (*p | 0x20) == 'e') {
		n->real = true;
		p = take_exponent(p + 1, end, &n->exponent, why);
	}
	return p;
}

/* The first KEPT_DIGITS significant digits and an exponent; a 1 behind them stands for all that was cut,
 * which is enough to tell which side of a halfway point the number is on. */
static double slow_double(const literal *n)
{
	char text[KEPT_DIGITS + 32];
	size_t kept = 0, cut = 0;
	bool rest = false;
	for (const char *p = n->digits; p < n->stop; p++) {
		if (*p == '.' || (kept == 0 && *p == '0'))
			continue;
		if (kept < KEPT_DIGITS) {
			text[kept++] = *p;
		} else {
			cut++;
			rest |= *p != '0';
		}
	}
	int64_t e = n->exponent - (int64_t)n->fraction + (int64_t)cut;
	if (kept == 0)
		return 0.0;
	if (rest) {
		text[kept++] = '1';
		e--;
	}
	e = e > EXPONENT_CAP ? EXPONENT_CAP : e < -EXPONENT_CAP ? -EXPONENT_CAP : e;
	snprintf(text + kept, sizeof text - kept, "e%d", (int)e);
	return strtod(text, NULL);
}

static double magnitude(const literal *n)
{
	int64_t e = n->exponent - (int64_t)n->fraction;
	bool exact = n->whole + n->fraction <= UINT64_DIGITS && n->m < (uint64_t)1 << DBL_MANT_DIG;
	if (exact && FLT_EVAL_METHOD == 0) {
		if (n->m == 0)
			return 0.0;
		if (e >= 0 && e <= EXACT_POWER)
			return (double)n->m * power_of_ten[e];
		if (e < 0 && e >= -EXACT_POWER)
			return (double)n->m / power_of_ten[-e];
	}
	return slow_double(n);
}

/* Whether the literal is exactly the whole number d: both as digits without zeros at the ends, and an exponent. */
static bool is_exactly(const literal *n, double d)
{
	char text[32]; /* below 2^63: 19 digits */
	int len = snprintf(text, sizeof text, "%.0f", d), zeros = 0, i = 0;
	int64_t exponent = n->exponent - (int64_t)n->fraction;
	const char *p = n->digits, *stop = n->stop;
	for (; len > 0 && text[len - 1] == '0'; len--)
		zeros++;
	for (; stop > p && (stop[-1] == '0' || stop[-1] == '.'); stop--)
		exponent += stop[-1] == '0';
	while (p < stop && (*p == '0' || *p == '.'))
		p++;
	for (; p < stop; p++)
		if (*p != '.' && (i == len || text[i++] != *p))
			return false;
	return i == len && (len == 0 || exponent == zeros);
}

/* A literal with a fraction or an exponent: is the double a whole number that the literal isn't? */
static bool is_rounded(const literal *n, double d)
{
	static const uint64_t INTEGER_POWER[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
	if (!(d < 0x1p63) || floor(d) != d)
		return false;
	int64_t e = n->exponent - (int64_t)n->fraction;
	bool few = n->whole + n->fraction <= UINT64_DIGITS && n->m < (uint64_t)1 << DBL_MANT_DIG;
	if (few && e <= 0 && e > -(int64_t)(sizeof INTEGER_POWER / sizeof *INTEGER_POWER))
		return n->m % INTEGER_POWER[-e] != 0;
	return !is_exactly(n, d);
}

static bool fits_int64(const literal *n)
{
	uint64_t limit = (uint64_t)INT64_MAX + (n->negative ? 1 : 0);
	return n->whole <= UINT64_DIGITS && n->m <= limit;
}

lat_status lat_json_read_number(const char **at, const char *end, lat_value *out, const char **why)
{
	literal n = {0};
	const char *start = *at;
	*why = NULL;
	*at = split(start, end, &n, why);
	if (*why)
		return LAT_E_SYNTAX;
	if (!n.real && fits_int64(&n)) {
		/* -m modulo 2^64: right for -2^63 too */
		out->type = LAT_INT;
		out->u.i = (int64_t)(n.negative ? 0 - n.m : n.m);
		return LAT_OK;
	}
	double d = magnitude(&n);
	if (isinf(d)) {
		*at = start;
		*why = "the number is past the range of a double";
		return LAT_E_LIMIT;
	}
	out->type = LAT_DOUBLE;
	out->flags = !n.real ? LAT_V_WIDE_INT : is_rounded(&n, d) ? LAT_V_ROUNDED : 0;
	out->u.d = n.negative ? -d : d;
	return LAT_OK;
}
