/* lat_threads: threads that run plain C jobs for one loop.
 *
 * A pool belongs to one thread, that of its loop: it makes it, submits to it and closes it, which joins every
 * thread; none is detached. Threads are started as jobs need them, up to the size of the pool.
 *
 *            owner (loop thread)                         pool thread
 *   lat_job_init   ── the owner's ──┐
 *   lat_job_submit ── queued ───────┼──────────────────► job->run(job, thread)
 *   lat_job_cancel: out of the queue│ or its flag set        │
 *                                   ◄── done, op posted ─────┘
 *   lat_job_abandon ── job->drop, now or when its run has ended
 *
 * A job is in memory of its own, since it may outlive its owner. While it runs, it is the pool thread's, but for
 * its flag; before and afterwards the owner's.
 *
 * Lock order: the pool's lock, then the queue's or the loop's inbox. No lock is held while a job runs. */
#ifndef LAT_SCHEDULER_THREADS_H
#define LAT_SCHEDULER_THREADS_H

#include <stdatomic.h>

#include "scheduler/loop.h"
#include "scheduler/queue.h"

typedef struct lat_threads lat_threads;

enum { LAT_THREADS_DEFAULT_JOBS = 65536, LAT_THREADS_MAX = 256 };

/* What a pool thread keeps from one job to the next, such as a Lua state. */
typedef struct {
	void *local;
	void (*free_local)(void *local); /* called at the thread's end when local isn't NULL */
} lat_thread_slot;

typedef struct lat_job lat_job;
struct lat_job {
	lat_op op;                                           /* notified when the job is done */
	void (*run)(lat_job *self, lat_thread_slot *thread); /* pool thread */
	void (*drop)(lat_job *self); /* frees the memory around the job; loop thread or pool thread */
	atomic_bool cancelled;       /* run looks at it where it can stop */
	bool ran;                    /* once done: false when it was taken out before its start */
	bool interruptible;          /* set by the maker: cancelling it interrupts its thread (interrupt.h) */
	/* private to threads.c */
	lat_threads *pool;
	lat_queue_item item;
	enum {
		LAT_JOB_NEW,
		LAT_JOB_SUBMITTED,
		LAT_JOB_ABANDONED,
		LAT_JOB_DONE
	} state; /* guarded by the pool's lock */
};

/* threads: 0 for the number of cores that this process may use; max_jobs: 0 for LAT_THREADS_DEFAULT_JOBS. */
lat_threads *lat_threads_new(size_t threads, size_t max_jobs, lat_error *err);
/* Takes the waiting jobs out, sets the flag of the running ones, waits for them and joins the threads. Jobs that
 * have an owner are done then. What is submitted later is refused. */
void lat_threads_close(lat_threads *pool);
void lat_threads_free(lat_threads *pool); /* closes; the memory goes when the last job has let go of it */

size_t lat_threads_size(const lat_threads *pool);    /* threads it may have */
size_t lat_threads_started(const lat_threads *pool); /* threads it has now; owner's thread */

void lat_job_init(lat_job *job, lat_threads *pool, lat_loop *loop, void (*run)(lat_job *, lat_thread_slot *),
                  void (*drop)(lat_job *));
lat_status lat_job_submit(lat_job *job, lat_error *err); /* once; on failure the job is still new */
bool lat_job_done(const lat_job *job);
void lat_job_cancel(
	lat_job *job); /* one that waits is done at once, without having run; its op is notified */
void lat_job_abandon(lat_job *job); /* the owner's last word: cancels it and drops it as soon as possible */

#endif
