/* lat_parcel: values on their way from one thread's world to another's, as tagged bytes.
 *
 *   value   bytes                                value   bytes
 *   nil     N                                    string  S len:8 bytes         (any bytes)
 *   false   0                                    table   { or [ (array mark), then key value … }
 *   true    1                                    ref     R number:8            a table that came before: tables are
 *   integer I int64:8                                                          numbered in the order of { and [, so
 *   float   F double:8                                                         shared ones stay shared, cycles cycles
 *   null    Z                                    flag    G index:8             into flags
 *
 * Numbers are in the machine's own order: a parcel doesn't leave the process. It owns its bytes and holds its
 * flags; one owner at a time; any thread. */
#ifndef LAT_SCHEDULER_PARCEL_H
#define LAT_SCHEDULER_PARCEL_H

#include "base/buf.h"
#include "scheduler/flag.h"

typedef struct {
	lat_buf bytes;
	lat_flag **flags;
	size_t n_flags;
	size_t n_tables;
	bool has_refs; /* whoever reads it must remember the tables */
} lat_parcel;

#define LAT_PARCEL_INIT       \
	{                         \
		.bytes = LAT_BUF_INIT \
	}

typedef enum {
	LAT_P_END = 0, /* of the parcel, also where it is cut */
	LAT_P_NIL = 'N',
	LAT_P_FALSE = '0',
	LAT_P_TRUE = '1',
	LAT_P_INTEGER = 'I',
	LAT_P_FLOAT = 'F',
	LAT_P_NULL = 'Z',
	LAT_P_STRING = 'S',
	LAT_P_TABLE = '{',
	LAT_P_ARRAY = '[',
	LAT_P_CLOSE = '}',
	LAT_P_REF = 'R',
	LAT_P_FLAG = 'G'
} lat_parcel_tag;

typedef struct {
	lat_parcel_tag tag;
	union {
		int64_t integer;
		double number;
		uint64_t ref;
		lat_flag *flag; /* the parcel's: hold it to keep it */
		struct {
			const char *s; /* a view into the parcel */
			size_t len;
		} string;
	} u;
} lat_parcel_item;

void lat_parcel_clear(lat_parcel *p);    /* frees what is in it; it is empty and usable again */
bool lat_parcel_ok(const lat_parcel *p); /* false: memory ran out while it was written */

/* Writing. */
void lat_parcel_add(lat_parcel *p, lat_parcel_tag tag); /* nil, false, true, null, close */
void lat_parcel_add_integer(lat_parcel *p, int64_t i);
void lat_parcel_add_float(lat_parcel *p, double d);
void lat_parcel_add_string(lat_parcel *p, const char *s, size_t len);
size_t lat_parcel_open_table(lat_parcel *p, bool array_mark); /* its number, from 1 */
void lat_parcel_add_ref(lat_parcel *p, size_t table);
void lat_parcel_add_flag(lat_parcel *p, lat_flag *f);

/* Reading: *at starts at 0 and moves on. */
lat_parcel_item lat_parcel_next(const lat_parcel *p, size_t *at);

#endif
