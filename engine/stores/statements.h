/* What both databases take and give, as plain values.
 *
 *   statements   [[sql, parameter…], …]     parameters: null, booleans, numbers, strings; "$1" is the first one
 *   results      [[[column…], …], …]        for each statement its rows, empty where it gives none
 *
 * One owner at a time; they may move between threads. */
#ifndef LAT_STORES_STATEMENTS_H
#define LAT_STORES_STATEMENTS_H

#include "base/buf.h"
#include "base/value.h"

enum { LAT_STATEMENTS_MAX = 64, LAT_STATEMENT_PARAMETERS_MAX = 32 };

/* ---- statements: a copy of their own ---- */

typedef struct {
	lat_arena arena;
	uint32_t n;
	lat_value *list; /* n LAT_ARRAYs, the first item of each a LAT_STRING with a NUL behind it */
} lat_statements;

/* Checks the shape and copies it, texts too. *s is fresh (zeroes); freed by the caller, also on failure. */
lat_status lat_statements_copy(lat_statements *s, const lat_value *from, lat_error *err);
void lat_statements_free(lat_statements *s);

/* ---- results, row by row ---- */

typedef struct {
	lat_arena arena;
	lat_buf rows; /* those of the statement at hand, as lat_values */
	lat_value *results;
	uint32_t n, cap;
} lat_rows;

lat_status lat_rows_begin(lat_rows *r, uint32_t statements, lat_error *err); /* forgets what was there */
lat_value *lat_rows_add(lat_rows *r, uint32_t columns); /* a new row to fill; NULL: no memory */
bool lat_rows_text(lat_rows *r, lat_value *column, const char *text,
                   size_t len); /* copies; false: no memory */
bool lat_rows_end(lat_rows *r); /* the rows since the last call are one statement's; false: no memory */
lat_value lat_rows_value(const lat_rows *r); /* a view */
void lat_rows_free(lat_rows *r);

#endif
