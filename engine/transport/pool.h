/* lat_pool: the connections of one loop: a curl multi whose sockets and timer are the loop's.
 *
 * One pool serves all agents of a lua_State, so that they share connections, TLS sessions and names looked
 * up. Everything runs on the loop's thread. A pool is held by its maker and by each handle that is out;
 * the last one to let go frees it. */
#ifndef LAT_TRANSPORT_POOL_H
#define LAT_TRANSPORT_POOL_H

#include <curl/curl.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "scheduler/loop.h"

typedef struct lat_pool lat_pool;
typedef struct lat_handle lat_handle;

typedef enum {
	LAT_POOL_QUEUED, /* waits for a connection to be free, or for another to be tried first */
	LAT_POOL_RESOLVING,
	LAT_POOL_CONNECTING, /* the handshake of TLS is part of it */
	LAT_POOL_CONNECTED   /* the request is on its way, or the reply */
} lat_pool_phase;

/* What a handle works on; embedded in a transfer. */
typedef struct lat_pool_job lat_pool_job;
struct lat_pool_job {
	void (*done)(lat_pool_job *self,
	             CURLcode code);       /* the handle has left the multi; called outside libcurl */
	void (*moved)(lat_pool_job *self); /* into another phase; called inside libcurl */
	lat_pool_phase phase;
	/* private to pool.c */
	lat_pool_job *next_deaf;
	bool deaf;   /* its socket couldn't be watched: no memory */
	int sockets; /* how many were opened for it */
};

/* A curl easy handle that is used again and again: what is the same for every request is set once. */
struct lat_handle {
	CURL *curl;
	lat_pool *pool;
	lat_pool_job *job;       /* NULL: idle */
	lat_handle *prev, *next; /* private to pool.c: among the idle ones, or among the active ones */
	bool active;             /* in the multi */
	bool forsaken;           /* no longer holds the pool */
	bool custom_method;
	char *url;      /* that it was last set to */
	lat_buf joined; /* a small body, so that it leaves in one call together with the header fields */
	char error[CURL_ERROR_SIZE]; /* libcurl's own words about a failure */
};

/* Sets up a new handle; its callbacks get the lat_handle. False: no memory. */
typedef bool lat_handle_setup(lat_handle *handle);

lat_pool *lat_pool_new(lat_loop *loop, lat_handle_setup *setup, lat_error *err);
void lat_pool_free(lat_pool *pool);
lat_loop *lat_pool_loop(const lat_pool *pool);

/* The time when libcurl was last set to work: for its callbacks, which come by the ten thousand, the time
 * of now. */
int64_t lat_pool_time_ns(const lat_pool *pool);
void lat_pool_note_time(lat_pool *pool);

lat_handle *lat_pool_borrow(lat_pool *pool, lat_pool_job *job, lat_error *err);
void lat_pool_give_back(lat_handle *handle); /* stops it when it runs; the job gets no call */

/* Lets an active handle run on without holding the pool: should the pool end first, the job's done is
 * called with CURLE_ABORTED_BY_CALLBACK. A job that is through already is told so at once. */
void lat_pool_forsake(lat_handle *handle);

/* Starts the request at once, as far as it goes without waiting. The job's done is called in a later turn. */
lat_status lat_pool_start(lat_handle *handle, lat_error *err);

#endif
