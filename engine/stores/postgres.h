/* lat_postgres: one connection to a PostgreSQL server, on a loop.
 *
 * Everything happens on the loop's thread and nothing blocks, but for one thing: libpq looks up the name of a host
 * (getaddrinfo) when a connection is begun; hostaddr= in the connection string avoids that.
 *
 *   lat_postgres_connect ──► CONNECTING ──► READY ──► BROKEN (for good: make another one)
 *                                 └────────────────────▲
 *
 * Requests are carried out one after the other, each in a pipeline of its own: all its statements go out at once, and
 * the server takes them as one transaction. A request that was not sent when the connection broke, or whose end was
 * not seen, fails with LAT_E_CLOSED; whether it happened is not known then.
 *
 * A connection is held by its maker and by its requests. libpq is loaded (dlopen) with the first connection. */
#ifndef LAT_STORES_POSTGRES_H
#define LAT_STORES_POSTGRES_H

#include "scheduler/loop.h"
#include "stores/statements.h"

typedef struct lat_postgres lat_postgres;

typedef enum { LAT_POSTGRES_CONNECTING, LAT_POSTGRES_READY, LAT_POSTGRES_BROKEN } lat_postgres_state;

lat_status lat_postgres_load(lat_error *err); /* LAT_E_IO: the library isn't there */

/* dsn: what libpq takes, a list of keywords or a URI. LAT_E_INVALID: it isn't one. No message ever has its password. */
lat_postgres *lat_postgres_connect(lat_loop *loop, const char *dsn, lat_error *err);
void lat_postgres_close(lat_postgres *pg); /* breaks it and lets go; its requests fail */

lat_op *lat_postgres_op(lat_postgres *pg); /* notified when the state changes and when a notice has come */
lat_postgres_state lat_postgres_state_of(const lat_postgres *pg);
const lat_error *lat_postgres_error(const lat_postgres *pg); /* why it is broken */

bool lat_postgres_take_notice(lat_postgres *pg); /* whether a notice (LISTEN) has come since the last call */

/* ---- requests ---- */

typedef struct lat_postgres_request lat_postgres_request;

/* Takes over the statements, also on failure. */
lat_postgres_request *lat_postgres_run(lat_postgres *pg, lat_statements *statements, lat_error *err);
lat_op *lat_postgres_request_op(lat_postgres_request *r); /* notified when it is done */
bool lat_postgres_request_done(const lat_postgres_request *r);
/* When done: LAT_OK and the rows; LAT_E_INVALID: what the server said of a statement; LAT_E_CLOSED: see above. */
lat_status lat_postgres_request_result(const lat_postgres_request *r, lat_value *results, lat_error *err);
/* The owner's last word: one that wasn't sent isn't; one that was is carried through, unseen. */
void lat_postgres_request_free(lat_postgres_request *r);

#endif
