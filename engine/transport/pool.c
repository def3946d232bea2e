/* lat_pool: curl's multi interface on the loop.
 *
 * Owns the multi, the sockets' watches and the idle handles. Loop thread only. */
#include "transport/pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "transport/sockets.h"

enum {
	NS_PER_MS = 1000000,
	IDLE_HANDLES_MAX = 32,       /* some 6 KB each */
	IDLE_CONNECTIONS_MAX = 1024, /* kept open for the next request */
	DESCRIPTORS_SPARED = 64,     /* for everything else in the process */
	CONNECTIONS_MIN = 16
};

static const int64_t NEVER_NS = INT64_MAX / 2;

struct lat_pool {
	size_t holds;
	lat_loop *loop;
	CURLM *multi;
	lat_handle_setup *setup;
	lat_timer timer; /* libcurl's; always armed, so that moving it can't fail */
	lat_sockets sockets;
	lat_handle *idle;
	size_t idle_count;
	lat_handle *active; /* in the multi */
	int active_count;
	bool finishing; /* inside finish_done */
	int64_t time_ns;
	lat_pool_job *deaf;
	bool spoiled; /* the multi ran out of memory: it is replaced before the next request */
};

/* ---- what libcurl tells of its sockets ---- */

/* Nobody would wake this transfer: it fails as soon as we are out of libcurl. */
static void mark_deaf(lat_pool *pool, lat_pool_job *job)
{
	if (!job || job->deaf)
		return;
	job->deaf = true;
	job->next_deaf = pool->deaf;
	pool->deaf = job;
}

static lat_handle *handle_of(CURL *curl)
{
	lat_handle *handle = NULL;
	curl_easy_getinfo(curl, CURLINFO_PRIVATE, (char **)&handle);
	return handle;
}

static int on_socket(CURL *curl, curl_socket_t fd, int what, void *user, void *unused)
{
	lat_pool *pool = user;
	lat_pool_job *job = handle_of(curl)->job;
	(void)unused;
	if (what == CURL_POLL_REMOVE) {
		/* of two that were tried at once, this may be the one that doesn't stand */
		bool stands = job && job->phase == LAT_POOL_CONNECTED && job->sockets <= 1;
		lat_sockets_unwatch(&pool->sockets, fd, stands);
		return 0;
	}
	unsigned events = (what & CURL_POLL_IN ? LAT_READABLE : 0) | (what & CURL_POLL_OUT ? LAT_WRITABLE : 0);
	if (!lat_sockets_watch(&pool->sockets, fd, events, job && job->phase == LAT_POOL_RESOLVING))
		mark_deaf(pool, job);
	return 0; /* -1 would spoil the whole multi */
}

static void enter_phase(lat_pool_job *job, lat_pool_phase phase)
{
	if (!job || job->phase == phase)
		return;
	job->phase = phase;
	job->moved(job);
}

static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
	lat_handle *handle = user;
	(void)purpose;
	enter_phase(handle->job, LAT_POOL_CONNECTING);
	int fd = lat_sockets_open(&handle->pool->sockets, address->family, address->socktype, address->protocol);
	if (fd < 0)
		return CURL_SOCKET_BAD;
	if (handle->job)
		handle->job->sockets++;
	return fd;
}

static int close_socket(void *user, curl_socket_t fd)
{
	return lat_sockets_close(&((lat_pool *)user)->sockets, fd);
}

static int on_resolve(void *resolver, void *reserved, void *user)
{
	(void)resolver;
	(void)reserved;
	enter_phase(((lat_handle *)user)->job, LAT_POOL_RESOLVING);
	return 0;
}

static int on_connected(void *user, char *remote, char *local, int remote_port, int local_port)
{
	(void)remote;
	(void)local;
	(void)remote_port;
	(void)local_port;
	enter_phase(((lat_handle *)user)->job, LAT_POOL_CONNECTED);
	return CURL_PREREQFUNC_OK;
}

/* ---- driving ---- */

static void activate(lat_handle *handle)
{
	lat_pool *pool = handle->pool;
	handle->active = true;
	handle->prev = NULL;
	handle->next = pool->active;
	if (handle->next)
		handle->next->prev = handle;
	pool->active = handle;
	pool->active_count++;
}

static void deactivate(lat_handle *handle)
{
	lat_pool *pool = handle->pool;
	curl_multi_remove_handle(pool->multi, handle->curl);
	handle->active = false;
	if (handle->prev)
		handle->prev->next = handle->next;
	else
		pool->active = handle->next;
	if (handle->next)
		handle->next->prev = handle->prev;
	pool->active_count--;
}

static void finish_done(lat_pool *pool)
{
	if (pool->finishing)
		return;
	pool->finishing = true;
	int left;
	for (CURLMsg *m; (m = curl_multi_info_read(pool->multi, &left));) {
		if (m->msg != CURLMSG_DONE)
			continue;
		CURLcode code = m->data.result; /* m dies with the next call */
		lat_handle *handle = handle_of(m->easy_handle);
		deactivate(handle);
		handle->job->done(handle->job, code);
	}
	while (pool->deaf) {
		lat_pool_job *job = pool->deaf;
		pool->deaf = job->next_deaf;
		job->deaf = false;
		job->done(job, CURLE_OUT_OF_MEMORY);
	}
	pool->finishing = false;
}

/* Runs libcurl. When it lacks memory for its table of sockets, it doesn't say for which transfer, and
 * would divide by zero the next time it looks at that socket, or at another one of the same number: all that
 * are under way fail at once, none is looked at again, and renew_multi replaces the table. */
static void run_multi(lat_pool *pool, curl_socket_t fd, int bits, int *running)
{
	*running = pool->active_count;
	lat_pool_note_time(pool);
	if (pool->deaf || curl_multi_socket_action(pool->multi, fd, bits, running) != CURLM_OUT_OF_MEMORY)
		return;
	pool->spoiled = true;
	for (lat_handle *handle = pool->active; handle; handle = handle->next)
		mark_deaf(pool, handle->job);
}

/* Runs libcurl, then tells those that are done; whoever is told last may free the pool. */
static void act(lat_pool *pool, curl_socket_t fd, int bits)
{
	int running;
	pool->holds++;
	run_multi(pool, fd, bits, &running);
	if (running < pool->active_count || pool->deaf)
		finish_done(pool);
	lat_pool_free(pool);
}

static void socket_ready(void *owner, int fd, unsigned events)
{
	int bits = (events & LAT_READABLE ? CURL_CSELECT_IN : 0) | (events & LAT_WRITABLE ? CURL_CSELECT_OUT : 0);
	act(owner, fd, bits);
}

static void arm_after_ms(lat_pool *pool, long ms)
{
	int64_t due = ms < 0 ? NEVER_NS : lat_now_ns() + (int64_t)ms * NS_PER_MS;
	lat_timer_arm(pool->loop, &pool->timer, due, NULL);
}

static int on_timer(CURLM *multi, long ms, void *user)
{
	(void)multi;
	arm_after_ms(user, ms);
	return 0;
}

static void timer_fired(lat_timer *timer)
{
	lat_pool *pool = (lat_pool *)((char *)timer - offsetof(lat_pool, timer));
	arm_after_ms(pool, -1);
	pool->holds++;
	act(pool, CURL_SOCKET_TIMEOUT, 0);
	finish_done(pool); /* also those that ended while they were started */
	lat_pool_free(pool);
}

/* ---- handles ---- */

static void destroy_handle(lat_handle *handle)
{
	if (handle->curl)
		curl_easy_cleanup(handle->curl);
	free(handle->url);
	lat_buf_free(&handle->joined);
	free(handle);
}

static lat_handle *new_handle(lat_pool *pool)
{
	lat_handle *handle = calloc(1, sizeof *handle);
	if (!handle)
		return NULL;
	handle->pool = pool;
	CURL *curl = handle->curl = curl_easy_init();
	bool ok = curl != NULL;
	ok = ok && curl_easy_setopt(curl, CURLOPT_PRIVATE, handle) == CURLE_OK;
	ok = ok && curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, handle->error) == CURLE_OK;
	ok = ok && curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK;
	ok = ok && curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, handle) == CURLE_OK;
	ok = ok && curl_easy_setopt(curl, CURLOPT_CLOSESOCKETFUNCTION, close_socket) == CURLE_OK;
	ok = ok && curl_easy_setopt(curl, CURLOPT_CLOSESOCKETDATA, pool) == CURLE_OK;
	ok = ok && curl_easy_setopt(curl, CURLOPT_RESOLVER_START_FUNCTION, on_resolve) == CURLE_OK;
	ok = ok && curl_easy_setopt(curl, CURLOPT_RESOLVER_START_DATA, handle) == CURLE_OK;
	ok = ok && curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_connected) == CURLE_OK;
	ok = ok && curl_easy_setopt(curl, CURLOPT_PREREQDATA, handle) == CURLE_OK;
	if (ok && pool->setup(handle))
		return handle;
	destroy_handle(handle);
	return NULL;
}

lat_handle *lat_pool_borrow(lat_pool *pool, lat_pool_job *job, lat_error *err)
{
	lat_handle *handle = pool->idle;
	if (handle) {
		pool->idle = handle->next;
		pool->idle_count--;
	} else if (!(handle = new_handle(pool))) {
		lat_fail_nomem(err);
		return NULL;
	}
	handle->job = job;
	pool->holds++;
	return handle;
}

static void forget_deaf(lat_pool *pool, lat_pool_job *job)
{
	for (lat_pool_job **at = &pool->deaf; *at; at = &(*at)->next_deaf)
		if (*at == job) {
			*at = job->next_deaf;
			job->deaf = false;
			return;
		}
}

void lat_pool_give_back(lat_handle *handle)
{
	lat_pool *pool = handle->pool;
	if (handle->active)
		deactivate(handle);
	bool held = !handle->forsaken;
	forget_deaf(pool, handle->job);
	handle->job = NULL;
	handle->forsaken = false;
	if (pool->idle_count < IDLE_HANDLES_MAX) {
		handle->next = pool->idle;
		pool->idle = handle;
		pool->idle_count++;
	} else {
		destroy_handle(handle);
	}
	if (held)
		lat_pool_free(pool);
}

void lat_pool_forsake(lat_handle *handle)
{
	lat_pool *pool = handle->pool;
	handle->forsaken = true;
	finish_done(
		pool); /* it may have ended while it was started: such ones mustn't pile up until the next turn */
	lat_pool_free(pool);
}

/* ---- life ---- */

static long connections_max(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return 0; /* no bound */
	long spared = (long)limit.rlim_cur - DESCRIPTORS_SPARED;
	return spared > CONNECTIONS_MIN ? spared : CONNECTIONS_MIN;
}

static bool set_up_multi(lat_pool *pool)
{
	CURLM *multi = pool->multi = curl_multi_init();
	return multi && curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
	       curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, pool) == CURLM_OK &&
	       curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK &&
	       curl_multi_setopt(multi, CURLMOPT_TIMERDATA, pool) == CURLM_OK &&
	       curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX) == CURLM_OK &&
	       curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS_MAX) == CURLM_OK &&
	       curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections_max()) == CURLM_OK;
}

/* False while transfers of the old one have still to be told of their failure, or there is no memory. */
static bool renew_multi(lat_pool *pool)
{
	CURLM *old = pool->multi;
	if (pool->active_count > 0)
		return false;
	if (!set_up_multi(pool)) {
		if (pool->multi)
			curl_multi_cleanup(pool->multi);
		pool->multi = old;
		return false;
	}
	curl_multi_cleanup(old);
	pool->spoiled = false;
	return true;
}

lat_status lat_pool_start(lat_handle *handle, lat_error *err)
{
	lat_pool *pool = handle->pool;
	handle->error[0] = '\0';
	handle->job->phase = LAT_POOL_QUEUED;
	handle->job->sockets = 0;
	if (pool->spoiled && !renew_multi(pool))
		return lat_fail_nomem(err);
	CURLMcode code = curl_multi_add_handle(pool->multi, handle->curl);
	if (code != CURLM_OK)
		return code == CURLM_OUT_OF_MEMORY
		           ? lat_fail_nomem(err)
		           : lat_fail(err, LAT_E_IO, "can't start a request: %s", curl_multi_strerror(code));
	activate(handle);
	int running;
	run_multi(pool, CURL_SOCKET_TIMEOUT, 0, &running);
	if (running < pool->active_count || pool->deaf)
		arm_after_ms(pool, 0); /* told in a turn, not under the feet of the caller */
	return LAT_OK;
}

static void destroy(lat_pool *pool)
{
	while (pool->active) /* forsaken ones: the others hold the pool */
		pool->active->job->done(pool->active->job, CURLE_ABORTED_BY_CALLBACK);
	for (lat_handle *handle = pool->idle, *next; handle; handle = next) {
		next = handle->next;
		destroy_handle(handle);
	}
	if (pool->multi)
		curl_multi_cleanup(pool->multi); /* closes the connections by close_socket */
	lat_sockets_free(&pool->sockets);
	lat_timer_disarm(pool->loop, &pool->timer);
	lat_loop_free(pool->loop);
	free(pool);
	curl_global_cleanup();
}

lat_pool *lat_pool_new(lat_loop *loop, lat_handle_setup *setup, lat_error *err)
{
	/* Counted by libcurl and safe in threads since 7.84, so a failure for want of memory isn't for ever. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		lat_fail(err, LAT_E_NOMEM, "libcurl can't be set up: not enough memory");
		return NULL;
	}
	lat_pool *pool = calloc(1, sizeof *pool);
	if (!pool) {
		curl_global_cleanup();
		lat_fail_nomem(err);
		return NULL;
	}
	lat_loop_hold(loop);
	*pool = (lat_pool){.holds = 1, .loop = loop, .setup = setup, .timer.fire = timer_fired};
	pool->sockets = (lat_sockets){.loop = loop, .ready = socket_ready, .owner = pool};
	if (lat_timer_arm(loop, &pool->timer, NEVER_NS, NULL) != LAT_OK || !set_up_multi(pool)) {
		lat_fail_nomem(err);
		destroy(pool);
		return NULL;
	}
	return pool;
}

int64_t lat_pool_time_ns(const lat_pool *pool)
{
	return pool->time_ns;
}

void lat_pool_note_time(lat_pool *pool)
{
	pool->time_ns = lat_now_ns();
}

lat_loop *lat_pool_loop(const lat_pool *pool)
{
	return pool->loop;
}

void lat_pool_free(lat_pool *pool)
{
	if (pool && --pool->holds == 0)
		destroy(pool);
}
