/* Numbers: exact comparison of integers and doubles, and multipleOf on the decimals that people wrote.
 * Pure; any thread. */
#include "schema/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_int_double(int64_t i, double d)
{
	if (d >= 0x1p63)
		return -1;
	if (d < -0x1p63)
		return 1;
	double whole = floor(d);
	int64_t w = (int64_t)whole;
	if (i != w)
		return i < w ? -1 : 1;
	return whole < d ? -1 : 0;
}

int lat_number_compare(const lat_value *a, const lat_value *b)
{
	if (a->type == LAT_INT && b->type == LAT_INT)
		return (a->u.i > b->u.i) - (a->u.i < b->u.i);
	if (a->type == LAT_INT)
		return compare_int_double(a->u.i, b->u.d);
	if (b->type == LAT_INT)
		return -compare_int_double(b->u.i, a->u.d);
	return (a->u.d > b->u.d) - (a->u.d < b->u.d);
}

bool lat_number_to_integer(lat_value *v)
{
	double d = v->u.d;
	if ((v->flags & (LAT_V_WIDE_INT | LAT_V_ROUNDED)) || !(d >= -0x1p63 && d < 0x1p63) || floor(d) != d)
		return false;
	*v = lat_value_int((int64_t)d);
	return true;
}

/* ---- multipleOf ----
 *
 * 0.0075 is a multiple of 0.0001, though their doubles aren't. So both are taken as the shortest decimals that
 * read back as these doubles, digits * 10^exponent, and divided exactly in integers. */

__extension__ typedef unsigned __int128 wide;

typedef struct {
	uint64_t digits; /* at most 19 */
	int exponent;
} decimal;

static decimal decimal_of_text(const char *s)
{
	decimal d = {0, 0};
	bool fraction = false;
	for (; *s && *s != 'e'; s++) {
		if (*s >= '0' && *s <= '9') {
			d.digits = d.digits * 10 + (uint64_t)(*s - '0');
			d.exponent -= fraction;
		} else if (*s != '-') {
			fraction = true; /* the point, whatever the locale calls it */
		}
	}
	if (*s == 'e')
		d.exponent += (int)strtol(s + 1, NULL, 10);
	while (d.digits && d.digits % 10 == 0) {
		d.digits /= 10;
		d.exponent++;
	}
	return d;
}

static decimal decimal_of(const lat_value *v)
{
	char text[40];
	if (v->type == LAT_INT) {
		uint64_t magnitude = v->u.i < 0 ? 0 - (uint64_t)v->u.i : (uint64_t)v->u.i;
		return (decimal){magnitude, 0};
	}
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(text, sizeof text, "%.*g", precision, v->u.d);
		if (strtod(text, NULL) == v->u.d)
			break;
	}
	return decimal_of_text(text);
}

static uint64_t times_mod(uint64_t a, uint64_t b, uint64_t m)
{
	return (uint64_t)((wide)a * b % m);
}

/* a * 10^n mod m */
static uint64_t scale_mod(uint64_t a, int n, uint64_t m)
{
	uint64_t result = a % m, base = 10 % m;
	for (; n > 0; n >>= 1) {
		if (n & 1)
			result = times_mod(result, base, m);
		base = times_mod(base, base, m);
	}
	return result;
}

bool lat_number_is_multiple(const lat_value *v, const lat_value *of)
{
	if (v->type == LAT_INT && of->type == LAT_INT)
		return v->u.i % of->u.i == 0;
	if (v->type == LAT_DOUBLE && !isfinite(v->u.d))
		return false;
	decimal a = decimal_of(v), b = decimal_of(of);
	if (a.digits == 0)
		return true;
	if (b.digits == 0)
		return false;
	int shift = a.exponent - b.exponent;
	if (shift >= 0)
		return scale_mod(a.digits, shift, b.digits) == 0;
	wide divisor = b.digits;
	for (; shift < 0 && divisor <= a.digits; shift++)
		divisor *= 10;
	return shift == 0 && a.digits % divisor == 0;
}

/* ---- rules ---- */

static bool check_bounds(lat_run *r, const lat_number_rules *n, const lat_value *v, const lat_place *at)
{
	bool ok = true;
	if ((n->given & LAT_N_MIN) && lat_number_compare(v, &n->min) < 0)
		ok = lat_report_bound(r, at, v, "a number of at least", &n->min);
	if ((n->given & LAT_N_MAX) && lat_number_compare(v, &n->max) > 0)
		ok = lat_report_bound(r, at, v, "a number of at most", &n->max);
	if ((n->given & LAT_N_ABOVE) && lat_number_compare(v, &n->above) <= 0)
		ok = lat_report_bound(r, at, v, "a number above", &n->above);
	if ((n->given & LAT_N_BELOW) && lat_number_compare(v, &n->below) >= 0)
		ok = lat_report_bound(r, at, v, "a number below", &n->below);
	return ok;
}

bool lat_run_number(lat_run *r, const lat_number_rules *n, const lat_value *v, const lat_place *at)
{
	bool ok = true;
	if (v->type != LAT_INT || n->int_never || v->u.i < n->int_min || v->u.i > n->int_max)
		ok = check_bounds(r, n, v, at);
	if ((n->given & LAT_N_MULTIPLE) && !lat_number_is_multiple(v, &n->multiple))
		ok = lat_report_bound(r, at, v, "a multiple of", &n->multiple);
	return ok;
}
