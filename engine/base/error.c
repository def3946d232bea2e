/* lat_error: filling in what went wrong. Pure; any thread; owns nothing. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

static void fill(lat_error *err, lat_status kind, const char *path, const char *format, va_list args)
{
	err->kind = kind;
	err->offset = 0;
	snprintf(err->path, sizeof err->path, "%s", path);
	vsnprintf(err->message, sizeof err->message, format, args);
}

lat_status lat_fail(lat_error *err, lat_status kind, const char *format, ...)
{
	if (err) {
		va_list args;
		va_start(args, format);
		fill(err, kind, "", format, args);
		va_end(args);
	}
	return kind;
}

lat_status lat_fail_at(lat_error *err, lat_status kind, const char *path, const char *format, ...)
{
	if (err) {
		va_list args;
		va_start(args, format);
		fill(err, kind, path, format, args);
		va_end(args);
	}
	return kind;
}

lat_status lat_fail_nomem(lat_error *err)
{
	return lat_fail(err, LAT_E_NOMEM, "not enough memory");
}

void lat_error_clear(lat_error *err)
{
	err->kind = LAT_OK;
	err->offset = 0;
	err->path[0] = '\0';
	err->message[0] = '\0';
}
