/* lat_error: how every core function says what went wrong.
 *
 * Owns nothing: a plain struct that the caller puts on its stack or in its own struct.
 * Any thread may use its own lat_error. Messages are cut, never overflowed. */
#ifndef LAT_BASE_ERROR_H
#define LAT_BASE_ERROR_H

#include <stddef.h>

typedef enum {
	LAT_OK = 0,
	LAT_E_NOMEM,   /* an allocation failed */
	LAT_E_SYNTAX,  /* text that isn't what its grammar says (JSON, SSE, a pattern) */
	LAT_E_LIMIT,   /* a stated bound was passed: depth, bytes, matches */
	LAT_E_INVALID, /* well-formed, but not allowed: a bad schema, a bad header, a wrong type */
	LAT_E_IO,      /* the network or a file said no */
	LAT_E_TIMEOUT, /* a time limit ran out */
	LAT_E_ABORT,   /* cancelled by a flag */
	LAT_E_CLOSED   /* the thing was already closed */
} lat_status;

typedef struct {
	lat_status kind;
	size_t offset;     /* byte offset in the input, where that means something */
	char path[256];    /* JSON pointer or dotted path of the bad place, "" when none */
	char message[512]; /* a sentence without a full stop: what was wrong, what would be right */
} lat_error;

/* Fills *err (which may be NULL) and returns kind, so that `return lat_fail(…)` reads well. */
lat_status lat_fail(lat_error *err, lat_status kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same, with the path of the bad place. */
lat_status lat_fail_at(lat_error *err, lat_status kind, const char *path, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

lat_status lat_fail_nomem(lat_error *err);

void lat_error_clear(lat_error *err);

#endif
