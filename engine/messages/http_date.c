/* See http_date.h. Owns nothing; pure (no locale, no time zone); any thread. */
#include "messages/http_date.h"

#include <stdio.h>

enum { DATE_MAX_BYTES = 63, SECONDS_A_DAY = 86400 };

typedef struct {
	char month[4];
	int year, day, hour, minute, second;
	bool short_year;
} date;

static bool split(const char *s, date *d)
{
	int end = 0;
	/* Sun, 06 Nov 1994 08:49:37 GMT */
	if (sscanf(s, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &d->day, d->month, &d->year, &d->hour,
	           &d->minute, &d->second, &end) == 6 &&
	    end > 0 && s[end] == '\0')
		return true;
	/* Sunday, 06-Nov-94 08:49:37 GMT */
	d->short_year = true;
	if (sscanf(s, "%*9[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT%n", &d->day, d->month, &d->year, &d->hour,
	           &d->minute, &d->second, &end) == 6 &&
	    end > 0 && s[end] == '\0')
		return true;
	/* Sun Nov  6 08:49:37 1994 */
	d->short_year = false;
	return sscanf(s, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d%n", d->month, &d->day, &d->hour, &d->minute,
	              &d->second, &d->year, &end) == 6 &&
	       end > 0 && s[end] == '\0';
}

/* Days from 1970-01-01 to a day of the Gregorian calendar; years begin in March, so that a leap day is the
 * last. */
static int64_t days_of(int64_t year, int month, int day)
{
	year -= month <= 2;
	int64_t era = (year >= 0 ? year : year - 399) / 400, year_of_era = year - era * 400;
	int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static int month_of(const char *name)
{
	static const char NAMES[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	for (int i = 0; i < 12; i++)
		if (strncmp(NAMES + 3 * i, name, 3) == 0)
			return i + 1;
	return 0;
}

bool lat_http_date(lat_span text, int64_t now_s, int64_t *seconds)
{
	char s[DATE_MAX_BYTES + 1];
	date d = {.day = 0};
	if (text.len > DATE_MAX_BYTES || (text.len > 0 && memchr(text.s, '\0', text.len)))
		return false;
	memcpy(s, text.s, text.len);
	s[text.len] = '\0';
	if (!split(s, &d))
		return false;
	int month = month_of(d.month);
	if (!month || d.day < 1 || d.day > 31 || d.hour < 0 || d.hour > 23 || d.minute < 0 || d.minute > 59 ||
	    d.second < 0 || d.second > 60 || d.year < 0)
		return false;
	int64_t day = days_of(d.year + (d.short_year ? 2000 : 0), month, d.day);
	if (d.short_year && day > now_s / SECONDS_A_DAY + 50 * 365)
		day = days_of(d.year + 1900, month, d.day);
	*seconds = day * SECONDS_A_DAY + d.hour * 3600 + d.minute * 60 + d.second;
	return true;
}
