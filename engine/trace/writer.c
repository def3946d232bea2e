/* lat_trace_writer: see writer.h for ownership and threads. Its lock guards the counts, the error and `started`;
 * the file is the writer thread's. */
#include "trace/writer.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "scheduler/queue.h"
#include "trace/file.h"

enum { LINES_A_WRITE = 256, NS_PER_S = 1000000000 };

typedef struct {
	lat_queue_item item; /* first */
	size_t len;          /* with its newline */
	char bytes[];
} line;

struct lat_trace_writer {
	char *path;
	lat_trace_file file;
	lat_queue queue;
	lat_exit_entry exit;
	pid_t pid; /* of the process that has the thread: a fork has not */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t settled_more;
	bool started, closed;
	uint64_t queued, settled; /* lines that went into the queue; those of them that are written or dropped */
	lat_trace_status status;
};

/* The lock is held. */
static void remember_error(lat_trace_writer *w, const char *error)
{
	if (!w->status.error[0])
		snprintf(w->status.error, sizeof w->status.error, "%.250s", error);
}

/* ---- the writer thread ---- */

static void note(lat_trace_writer *w, uint64_t written, uint64_t dropped, const char *error)
{
	pthread_mutex_lock(&w->lock);
	w->status.written += written;
	w->status.dropped += dropped;
	w->settled += written + dropped;
	if (error)
		remember_error(w, error);
	pthread_cond_broadcast(&w->settled_more);
	pthread_mutex_unlock(&w->lock);
}

/* Writes what fits into one file and one system call; returns the first line that is left. */
static line *write_some(lat_trace_writer *w, line *first)
{
	struct iovec vectors[LINES_A_WRITE];
	int n = 0, written = 0;
	uint64_t bytes = first->len;
	lat_error err = {.kind = LAT_OK};
	bool can_write = lat_trace_file_prepare(&w->file, bytes, &err) == LAT_OK || w->file.fd >= 0;
	line *l = first;
	do {
		vectors[n++] = (struct iovec){.iov_base = l->bytes, .iov_len = l->len};
		l = (line *)l->item.next;
		bytes += l ? l->len : 0;
	} while (l && n < LINES_A_WRITE && lat_trace_file_fits(&w->file, bytes));
	if (can_write)
		lat_trace_file_append(&w->file, vectors, n, &written, err.kind == LAT_OK ? &err : NULL);
	note(w, (uint64_t)written, (uint64_t)(n - written), err.kind == LAT_OK ? NULL : err.message);
	return l;
}

static void *write_lines(void *arg)
{
	lat_trace_writer *w = arg;
	line *batch;
	while ((batch = (line *)lat_queue_take_all(&w->queue)) != NULL) {
		while (batch) {
			line *rest = write_some(w, batch);
			while (batch != rest) {
				line *next = (line *)batch->item.next;
				free(batch);
				batch = next;
			}
		}
	}
	lat_trace_file_close(&w->file);
	return NULL;
}

/* The lock is held. Signals are for the script's thread. */
static bool start_thread(lat_trace_writer *w)
{
	if (w->started)
		return true;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failure = pthread_create(&w->thread, NULL, write_lines, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	w->started = failure == 0;
	if (failure)
		remember_error(w, strerror(failure));
	return w->started;
}

/* ---- life ---- */

static void close_at_exit(lat_exit_entry *self)
{
	lat_trace_writer_close((lat_trace_writer *)((char *)self - offsetof(lat_trace_writer, exit)));
}

static bool init_locks(lat_trace_writer *w, size_t max_queue_bytes)
{
	pthread_condattr_t clock;
	if (pthread_condattr_init(&clock) != 0)
		return false;
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	bool has_cond = pthread_cond_init(&w->settled_more, &clock) == 0;
	pthread_condattr_destroy(&clock);
	bool has_lock = has_cond && pthread_mutex_init(&w->lock, NULL) == 0;
	if (has_lock && lat_queue_init(&w->queue, max_queue_bytes ? max_queue_bytes : LAT_TRACE_DEFAULT_QUEUE))
		return true;
	if (has_lock)
		pthread_mutex_destroy(&w->lock);
	if (has_cond)
		pthread_cond_destroy(&w->settled_more);
	return false;
}

static void destroy(lat_trace_writer *w)
{
	lat_queue_destroy(&w->queue);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->settled_more);
	free(w->path);
	free(w);
}

lat_trace_writer *lat_trace_writer_new(const lat_trace_options *options, lat_at_exit *at_exit, lat_error *err)
{
	lat_trace_writer *w = calloc(1, sizeof *w);
	if (w)
		w->path = malloc(strlen(options->path) + 1);
	if (!w || !w->path || !init_locks(w, options->max_queue_bytes)) {
		if (w)
			free(w->path);
		free(w);
		lat_fail_nomem(err);
		return NULL;
	}
	strcpy(w->path, options->path);
	lat_trace_file_init(&w->file, w->path, options->max_bytes, options->keep);
	w->pid = getpid();
	lat_at_exit_add(at_exit, &w->exit, close_at_exit);
	return w;
}

void lat_trace_writer_close(lat_trace_writer *w)
{
	pthread_mutex_lock(&w->lock);
	bool joins = w->started && !w->closed && w->pid == getpid();
	w->closed = true;
	pthread_mutex_unlock(&w->lock);
	lat_queue_close(&w->queue);
	if (joins)
		pthread_join(w->thread, NULL);
}

void lat_trace_writer_free(lat_trace_writer *w)
{
	if (!w)
		return;
	lat_at_exit_remove(&w->exit);
	lat_trace_writer_close(w);
	destroy(w);
}

/* ---- the caller's side ---- */

bool lat_trace_write(lat_trace_writer *w, const char *text, size_t len)
{
	line *l = malloc(sizeof *l + len + 1);
	if (l) {
		l->len = len + 1;
		memcpy(l->bytes, text, len);
		l->bytes[len] = '\n';
	}
	pthread_mutex_lock(&w->lock);
	bool ok = l && !w->closed && start_thread(w) && lat_queue_push(&w->queue, &l->item, l->len) == LAT_OK;
	if (ok)
		w->queued++;
	else
		w->status.dropped++;
	pthread_mutex_unlock(&w->lock);
	if (!ok)
		free(l);
	return ok;
}

bool lat_trace_flush(lat_trace_writer *w, int64_t timeout_ns)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ns / NS_PER_S;
	until.tv_nsec += timeout_ns % NS_PER_S;
	if (until.tv_nsec >= NS_PER_S) {
		until.tv_sec++;
		until.tv_nsec -= NS_PER_S;
	}
	pthread_mutex_lock(&w->lock);
	uint64_t target = w->queued;
	int waited = 0;
	while (w->settled < target && waited == 0)
		waited = pthread_cond_timedwait(&w->settled_more, &w->lock, &until);
	bool done = w->settled >= target;
	pthread_mutex_unlock(&w->lock);
	return done;
}

lat_trace_status lat_trace_status_of(lat_trace_writer *w)
{
	pthread_mutex_lock(&w->lock);
	lat_trace_status status = w->status;
	pthread_mutex_unlock(&w->lock);
	return status;
}
