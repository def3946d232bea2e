/* Formats of RFC 3339: date, time, date-time, duration. Pure; any thread. */
#include "schema/format_parts.h"

enum { MINUTES_OF_DAY = 24 * 60, LEAP_MINUTE = 23 * 60 + 59 };

/* A reader over the text: each take moves on, and fails for good when something else stands there. */
typedef struct {
	const char *s, *end;
	bool ok;
} cursor;

static int take_digits(cursor *c, int n)
{
	int value = 0;
	if (c->end - c->s < n)
		c->ok = false;
	for (int i = 0; c->ok && i < n; i++) {
		if (!lat_is_digit(c->s[i]))
			c->ok = false;
		value = value * 10 + (c->s[i] - '0');
	}
	if (c->ok)
		c->s += n;
	return c->ok ? value : 0;
}

static bool take_char(cursor *c, char lower)
{
	bool there = c->ok && c->s < c->end && (*c->s == lower || (*c->s | 0x20) == lower);
	c->s += there;
	return there;
}

static void expect(cursor *c, char lower)
{
	c->ok = take_char(c, lower) && c->ok;
}

static int days_in(int year, int month)
{
	static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return month == 2 && leap ? 29 : DAYS[month - 1];
}

static void read_date(cursor *c)
{
	int year = take_digits(c, 4);
	expect(c, '-');
	int month = take_digits(c, 2);
	expect(c, '-');
	int day = take_digits(c, 2);
	c->ok = c->ok && month >= 1 && month <= 12 && day >= 1 && day <= days_in(year, month);
}

/* "Z" or ±hh:mm in minutes. */
static int read_offset(cursor *c)
{
	if (take_char(c, 'z'))
		return 0;
	bool minus = take_char(c, '-');
	if (!minus)
		expect(c, '+');
	int hour = take_digits(c, 2);
	expect(c, ':');
	int minute = take_digits(c, 2);
	c->ok = c->ok && hour <= 23 && minute <= 59;
	return (hour * 60 + minute) * (minus ? -1 : 1);
}

/* A leap second (:60) is one only at 23:59 UTC (section 5.7). */
static void read_time(cursor *c)
{
	int hour = take_digits(c, 2);
	expect(c, ':');
	int minute = take_digits(c, 2);
	expect(c, ':');
	int second = take_digits(c, 2);
	if (take_char(c, '.')) {
		take_digits(c, 1);
		while (c->ok && c->s < c->end && lat_is_digit(*c->s))
			c->s++;
	}
	int offset = read_offset(c);
	int utc = (hour * 60 + minute - offset + 2 * MINUTES_OF_DAY) % MINUTES_OF_DAY;
	c->ok = c->ok && hour <= 23 && minute <= 59 && (second <= 59 || (second == 60 && utc == LEAP_MINUTE));
}

static bool at_end(const cursor *c)
{
	return c->ok && c->s == c->end;
}

bool lat_format_date(const char *s, size_t len)
{
	cursor c = {s, s + len, true};
	read_date(&c);
	return at_end(&c);
}

bool lat_format_time(const char *s, size_t len)
{
	cursor c = {s, s + len, true};
	read_time(&c);
	return at_end(&c);
}

bool lat_format_date_time(const char *s, size_t len)
{
	cursor c = {s, s + len, true};
	read_date(&c);
	expect(&c, 't');
	read_time(&c);
	return at_end(&c);
}

/* Elements such as 1Y2M3D: units in order, and none left out between the first and the last (appendix A).
 * Returns how many there were. */
static int read_elements(cursor *c, const char *units)
{
	int count = 0;
	while (c->ok && c->s < c->end && lat_is_digit(*c->s)) {
		while (c->s < c->end && lat_is_digit(*c->s))
			c->s++;
		if (count == 0)
			while (*units && (c->s == c->end || *c->s != *units))
				units++;
		c->ok = *units && c->s < c->end && *c->s == *units;
		c->s += c->ok;
		units += c->ok;
		count++;
	}
	return count;
}

static bool is_weeks(const char *s, size_t len)
{
	cursor c = {s + 1, s + len, len > 2 && *s == 'P'};
	return read_elements(&c, "W") == 1 && at_end(&c);
}

bool lat_format_duration(const char *s, size_t len)
{
	if (is_weeks(s, len))
		return true;
	cursor c = {s + 1, s + len, len > 1 && *s == 'P'};
	int count = read_elements(&c, "YMD");
	if (c.ok && c.s < c.end && *c.s == 'T') {
		c.s++;
		count = read_elements(&c, "HMS");
	}
	return count > 0 && at_end(&c);
}
