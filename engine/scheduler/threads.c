/* lat_threads: see threads.h for ownership and lock order. The pool's lock guards the states of its jobs, `load`,
 * `closing` and what each thread is running. */
#include "scheduler/threads.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/interrupt.h"

typedef struct {
	pthread_t thread;
	lat_threads *pool;
	lat_job *running;
	lat_thread_slot kept;
} pool_thread;

struct lat_threads {
	size_t holds; /* the maker and each job that has an owner; owner's thread */
	size_t size, n_threads;
	pthread_mutex_t lock;
	size_t load; /* jobs that wait or run */
	bool closing;
	lat_queue queue;
	pool_thread threads[];
};

static lat_job *job_of(lat_queue_item *item)
{
	return (lat_job *)((char *)item - offsetof(lat_job, item));
}

/* ---- pool threads ---- */

static bool begin(pool_thread *self, lat_job *job)
{
	lat_threads *pool = self->pool;
	pthread_mutex_lock(&pool->lock);
	self->running = job;
	if (pool->closing)
		atomic_store(&job->cancelled, true);
	job->ran = !atomic_load(&job->cancelled);
	pthread_mutex_unlock(&pool->lock);
	return job->ran;
}

static void end(pool_thread *self, lat_job *job)
{
	lat_threads *pool = self->pool;
	pthread_mutex_lock(&pool->lock);
	self->running = NULL;
	pool->load--;
	bool abandoned = job->state == LAT_JOB_ABANDONED;
	if (!abandoned) {
		job->state = LAT_JOB_DONE;
		lat_loop_post(&job->op); /* inside the lock: afterwards the owner may drop the job */
	}
	pthread_mutex_unlock(&pool->lock);
	if (abandoned)
		job->drop(job);
}

static void *run_jobs(void *arg)
{
	pool_thread *self = arg;
	for (lat_queue_item *item; (item = lat_queue_pop(&self->pool->queue)) != NULL;) {
		lat_job *job = job_of(item);
		if (begin(self, job))
			job->run(job, &self->kept);
		end(self, job);
	}
	if (self->kept.local)
		self->kept.free_local(self->kept.local);
	return NULL;
}

/* Signals are for the script's thread: a pool thread starts with all of them blocked. */
static int start_thread(lat_threads *pool)
{
	pool_thread *t = &pool->threads[pool->n_threads];
	*t = (pool_thread){.pool = pool};
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failure = pthread_create(&t->thread, NULL, run_jobs, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failure == 0)
		pool->n_threads++;
	return failure;
}

/* ---- the pool ---- */

static size_t usable_cores(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
		return (size_t)CPU_COUNT(&set);
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (size_t)n : 1;
}

lat_threads *lat_threads_new(size_t threads, size_t max_jobs, lat_error *err)
{
	size_t size = threads ? threads : usable_cores();
	if (size > LAT_THREADS_MAX)
		size = LAT_THREADS_MAX;
	lat_threads *pool = calloc(1, sizeof *pool + size * sizeof pool->threads[0]);
	if (!pool || pthread_mutex_init(&pool->lock, NULL) != 0) {
		free(pool);
		lat_fail_nomem(err);
		return NULL;
	}
	if (!lat_queue_init(&pool->queue, max_jobs ? max_jobs : LAT_THREADS_DEFAULT_JOBS)) {
		pthread_mutex_destroy(&pool->lock);
		free(pool);
		lat_fail_nomem(err);
		return NULL;
	}
	pool->holds = 1;
	pool->size = size;
	return pool;
}

static void let_go(lat_threads *pool)
{
	if (--pool->holds > 0)
		return;
	lat_queue_destroy(&pool->queue);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Takes a waiting job out of the queue: it is done and has not run. The lock is held. */
static bool take_out(lat_threads *pool, lat_job *job)
{
	if (!lat_queue_remove(&pool->queue, &job->item))
		return false;
	pool->load--;
	job->state = LAT_JOB_DONE;
	return true;
}

/* The lock is held: the thread that runs the job can't end it meanwhile. */
static void stop_running(lat_threads *pool, lat_job *job)
{
	atomic_store(&job->cancelled, true);
	for (size_t i = 0; i < pool->n_threads; i++)
		if (job->interruptible && pool->threads[i].running == job)
			lat_interrupt_send(pool->threads[i].thread);
}

void lat_threads_close(lat_threads *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	for (size_t i = 0; i < pool->n_threads; i++)
		if (pool->threads[i].running)
			stop_running(pool, pool->threads[i].running);
	pthread_mutex_unlock(&pool->lock);
	lat_queue_close(&pool->queue); /* the threads empty it: with `closing` set, no job runs any more */
	for (size_t i = 0; i < pool->n_threads; i++)
		pthread_join(pool->threads[i].thread, NULL);
	pool->n_threads = 0;
}

void lat_threads_free(lat_threads *pool)
{
	if (!pool)
		return;
	lat_threads_close(pool);
	let_go(pool);
}

size_t lat_threads_size(const lat_threads *pool)
{
	return pool->size;
}

size_t lat_threads_started(const lat_threads *pool)
{
	return pool->n_threads;
}

/* ---- jobs, from the owner's side ---- */

void lat_job_init(lat_job *job, lat_threads *pool, lat_loop *loop, void (*run)(lat_job *, lat_thread_slot *),
                  void (*drop)(lat_job *))
{
	*job = (lat_job){.run = run, .drop = drop, .pool = pool, .state = LAT_JOB_NEW};
	atomic_init(&job->cancelled, false);
	lat_op_init(&job->op, loop);
	pool->holds++;
}

static lat_status refuse(lat_status kind, lat_error *err)
{
	if (kind == LAT_E_LIMIT)
		return lat_fail(err, kind, "the pool's queue is full: wait for some of its jobs first");
	return lat_fail(err, kind, "the pool is closed");
}

lat_status lat_job_submit(lat_job *job, lat_error *err)
{
	lat_threads *pool = job->pool;
	pthread_mutex_lock(&pool->lock);
	lat_status status = pool->closing ? LAT_E_CLOSED : lat_queue_push(&pool->queue, &job->item, 1);
	bool wants_thread = false;
	if (status == LAT_OK) {
		job->state = LAT_JOB_SUBMITTED;
		wants_thread = ++pool->load > pool->n_threads && pool->n_threads < pool->size;
	}
	pthread_mutex_unlock(&pool->lock);
	if (status != LAT_OK)
		return refuse(status, err);
	int failure = wants_thread ? start_thread(pool) : 0;
	if (failure == 0 || pool->n_threads > 0) /* one thread less is no failure while there is another */
		return LAT_OK;
	pthread_mutex_lock(&pool->lock);
	take_out(pool, job);
	job->state = LAT_JOB_NEW;
	pthread_mutex_unlock(&pool->lock);
	return lat_fail(err, LAT_E_IO, "can't start a thread: %s", strerror(failure));
}

bool lat_job_done(const lat_job *job)
{
	pthread_mutex_lock(&job->pool->lock);
	bool done = job->state == LAT_JOB_DONE;
	pthread_mutex_unlock(&job->pool->lock);
	return done;
}

void lat_job_cancel(lat_job *job)
{
	lat_threads *pool = job->pool;
	pthread_mutex_lock(&pool->lock);
	stop_running(pool, job);
	bool taken_out = job->state == LAT_JOB_SUBMITTED && take_out(pool, job);
	pthread_mutex_unlock(&pool->lock);
	if (taken_out)
		lat_loop_notify(&job->op);
}

void lat_job_abandon(lat_job *job)
{
	lat_threads *pool = job->pool;
	pthread_mutex_lock(&pool->lock);
	stop_running(pool, job);
	bool running = job->state == LAT_JOB_SUBMITTED && !take_out(pool, job);
	if (running)
		job->state = LAT_JOB_ABANDONED;
	lat_op_forget(&job->op); /* inside the lock: the pool thread may drop the job right behind it */
	pthread_mutex_unlock(&pool->lock);
	if (!running)
		job->drop(job);
	let_go(pool);
}
