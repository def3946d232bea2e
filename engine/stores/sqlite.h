/* lat_sqlite: one connection to an SQLite database.
 *
 * A connection is used by one thread at a time; its maker sees to that (the binding gives each connection a thread
 * of its own, which runs what it is given one after the other). Every call may block: on the disk, and on other
 * processes that write.
 *
 * libsqlite3 is loaded (dlopen) when the first connection is wanted: a script that uses none has no part of it in
 * its memory, and a machine without it runs everything else. */
#ifndef LAT_STORES_SQLITE_H
#define LAT_STORES_SQLITE_H

#include <stdatomic.h>

#include "stores/statements.h"

typedef struct lat_sqlite lat_sqlite;

typedef struct {
	int64_t busy_ns; /* how long a transaction may wait for other processes */
	bool
		synchronous; /* each commit reaches the disk: it survives a loss of power, and not only of the process */
} lat_sqlite_options;

lat_status lat_sqlite_load(lat_error *err); /* LAT_E_IO: the library isn't there */

/* Opens or creates the file, in WAL mode. cancelled (may be NULL) ends a wait for other processes early. */
lat_sqlite *lat_sqlite_open(const char *path, const lat_sqlite_options *options, const atomic_bool *cancelled,
                            lat_error *err);
void lat_sqlite_close(lat_sqlite *db); /* NULL is fine */

/* Runs the statements as one transaction: all of them or none. `writes` takes the right to write at its begin.
 * LAT_E_TIMEOUT: others wrote all the time; LAT_E_ABORT: cancelled; LAT_E_INVALID: what SQLite said of a statement;
 * LAT_E_IO: of the file. */
lat_status lat_sqlite_run(lat_sqlite *db, const lat_statements *statements, bool writes,
                          const atomic_bool *cancelled, lat_rows *rows, lat_error *err);

#endif
