/* The pool and its queue: who runs, who is taken out, who frees, in every order of ending. Run it under TSan too. */
#include "scheduler/threads.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static int passed, failed;

static void check(bool ok, const char *what, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("threads_test.c:%d: not so: %s\n", line, what);
}

#define CHECK(condition) check(condition, #condition, __LINE__)

static atomic_int runs, drops, locals, gate_open;

typedef struct {
	lat_job job; /* first */
	int square_of, square;
} test_job;

static void drop(lat_job *job)
{
	atomic_fetch_add(&drops, 1);
	free(job);
}

static void free_local(void *local)
{
	free(local);
	atomic_fetch_sub(&locals, 1);
}

static void square(lat_job *job, lat_thread_slot *thread)
{
	test_job *t = (test_job *)job;
	if (!thread->local) {
		thread->local = malloc(1);
		thread->free_local = free_local;
		atomic_fetch_add(&locals, 1);
	}
	t->square = t->square_of * t->square_of;
	atomic_fetch_add(&runs, 1);
}

/* Runs until the gate opens or it is cancelled. */
static void hold(lat_job *job, lat_thread_slot *thread)
{
	(void)thread;
	atomic_fetch_add(&runs, 1);
	while (!atomic_load(&gate_open) && !atomic_load(&job->cancelled))
		sched_yield();
}

static test_job *make(lat_threads *pool, lat_loop *loop, void (*run)(lat_job *, lat_thread_slot *))
{
	test_job *t = calloc(1, sizeof *t);
	if (!t)
		abort();
	lat_job_init(&t->job, pool, loop, run, drop);
	return t;
}

static void reset(void)
{
	atomic_store(&runs, 0);
	atomic_store(&drops, 0);
	atomic_store(&gate_open, 0);
}

static void wait_for_runs(int n)
{
	while (atomic_load(&runs) < n)
		sched_yield();
}

static void turn_until_done(lat_loop *loop, lat_job *job)
{
	uint64_t ids[16];
	size_t n;
	while (!lat_job_done(job))
		lat_loop_turn(loop, -1, ids, 16, &n, NULL);
}

static void test_results(lat_loop *loop)
{
	enum { N = 2000 };
	static test_job *jobs[N];
	reset();
	lat_threads *pool = lat_threads_new(4, 0, NULL);
	CHECK(lat_threads_size(pool) == 4 && lat_threads_started(pool) == 0);
	for (int i = 0; i < N; i++) {
		jobs[i] = make(pool, loop, square);
		jobs[i]->square_of = i;
		if (lat_job_submit(&jobs[i]->job, NULL) != LAT_OK)
			CHECK(!"a submit that fails");
	}
	size_t notices = 0;
	while (notices < N) {
		uint64_t ids[64];
		size_t n;
		lat_loop_turn(loop, -1, ids, 64, &n, NULL);
		notices += n;
	}
	bool right = true;
	for (int i = 0; i < N; i++) {
		right = right && lat_job_done(&jobs[i]->job) && jobs[i]->job.ran && jobs[i]->square == i * i;
		lat_job_abandon(&jobs[i]->job);
	}
	CHECK(right && atomic_load(&runs) == N && atomic_load(&drops) == N);
	CHECK(lat_threads_started(pool) >= 1 && lat_threads_started(pool) <= 4 && atomic_load(&locals) >= 1);
	lat_threads_free(pool);
	CHECK(atomic_load(&locals) == 0);
}

static void test_cancel(lat_loop *loop)
{
	reset();
	lat_threads *pool = lat_threads_new(1, 0, NULL);
	test_job *running = make(pool, loop, hold), *waiting = make(pool, loop, square);
	lat_job_submit(&running->job, NULL);
	lat_job_submit(&waiting->job, NULL);
	wait_for_runs(1);
	lat_job_cancel(&waiting->job);
	CHECK(lat_job_done(&waiting->job) && !waiting->job.ran);
	uint64_t ids[4];
	size_t n;
	lat_loop_turn(loop, -1, ids, 4, &n, NULL);
	CHECK(n == 1 && ids[0] == waiting->job.op.id);
	CHECK(!lat_job_done(&running->job));
	lat_job_cancel(&running->job);
	turn_until_done(loop, &running->job);
	CHECK(running->job.ran && atomic_load(&runs) == 1);
	lat_job_cancel(&running->job); /* nothing to it any more */
	lat_job_abandon(&running->job);
	lat_job_abandon(&waiting->job);
	CHECK(atomic_load(&drops) == 2);
	lat_threads_free(pool);
}

static void test_abandon(lat_loop *loop)
{
	reset();
	lat_threads *pool = lat_threads_new(1, 0, NULL);
	test_job *fresh = make(pool, loop, square);
	lat_job_abandon(&fresh->job);
	CHECK(atomic_load(&drops) == 1);
	test_job *running = make(pool, loop, hold), *waiting = make(pool, loop, square);
	lat_job_submit(&running->job, NULL);
	lat_job_submit(&waiting->job, NULL);
	wait_for_runs(1);
	lat_job_abandon(&waiting->job);
	CHECK(atomic_load(&drops) == 2);
	lat_job_abandon(&running->job); /* the pool thread drops it */
	lat_threads_free(pool);
	CHECK(atomic_load(&drops) == 3 && atomic_load(&runs) == 1);
}

static void test_close_with_running_jobs(lat_loop *loop)
{
	reset();
	lat_threads *pool = lat_threads_new(2, 0, NULL);
	test_job *jobs[5];
	for (int i = 0; i < 5; i++) {
		jobs[i] = make(pool, loop, hold);
		lat_job_submit(&jobs[i]->job, NULL);
	}
	wait_for_runs(2);
	lat_threads_close(pool);
	int done = 0, ran = 0;
	for (int i = 0; i < 5; i++) {
		done += lat_job_done(&jobs[i]->job);
		ran += jobs[i]->job.ran;
	}
	CHECK(done == 5 && ran == 2);
	lat_error err = {.kind = LAT_OK};
	test_job *late = make(pool, loop, square);
	CHECK(lat_job_submit(&late->job, &err) == LAT_E_CLOSED && err.kind == LAT_E_CLOSED);
	lat_threads_free(pool); /* the jobs still hold its memory */
	lat_job_abandon(&late->job);
	for (int i = 0; i < 5; i++)
		lat_job_abandon(&jobs[i]->job);
	CHECK(atomic_load(&drops) == 6);
}

static void test_full_queue(lat_loop *loop)
{
	reset();
	lat_threads *pool = lat_threads_new(1, 2, NULL);
	test_job *jobs[4];
	for (int i = 0; i < 4; i++)
		jobs[i] = make(pool, loop, hold);
	lat_job_submit(&jobs[0]->job, NULL);
	wait_for_runs(1);
	lat_error err = {.kind = LAT_OK};
	CHECK(lat_job_submit(&jobs[1]->job, &err) == LAT_OK && lat_job_submit(&jobs[2]->job, &err) == LAT_OK);
	CHECK(lat_job_submit(&jobs[3]->job, &err) == LAT_E_LIMIT && err.kind == LAT_E_LIMIT);
	lat_job_cancel(&jobs[1]->job);
	CHECK(lat_job_submit(&jobs[3]->job, &err) == LAT_OK);
	atomic_store(&gate_open, 1);
	turn_until_done(loop, &jobs[3]->job);
	CHECK(jobs[3]->job.ran && jobs[2]->job.ran && !jobs[1]->job.ran);
	for (int i = 0; i < 4; i++)
		lat_job_abandon(&jobs[i]->job);
	lat_threads_free(pool);
}

/* Owners that come and go while threads run, over and over: for TSan and ASan. */
static void test_churn(lat_loop *loop)
{
	reset();
	for (int round = 0; round < 100; round++) {
		lat_threads *pool = lat_threads_new(3, 0, NULL);
		test_job *jobs[20];
		for (int i = 0; i < 20; i++) {
			jobs[i] = make(pool, loop, i % 3 ? square : hold);
			lat_job_submit(&jobs[i]->job, NULL);
		}
		for (int i = 0; i < 20; i++) {
			if (i % 4 == 1)
				lat_job_cancel(&jobs[i]->job);
			if (i % 2)
				lat_job_abandon(&jobs[i]->job);
		}
		if (round % 2)
			lat_threads_close(pool);
		for (int i = 0; i < 20; i += 2)
			lat_job_abandon(&jobs[i]->job);
		lat_threads_free(pool);
	}
	CHECK(atomic_load(&drops) == 2000 && atomic_load(&locals) == 0);
}

int main(void)
{
	lat_loop *loop = lat_loop_new(NULL);
	test_results(loop);
	test_cancel(loop);
	test_abandon(loop);
	test_close_with_running_jobs(loop);
	test_full_queue(loop);
	test_churn(loop);
	lat_loop_free(loop);
	lat_threads_free(NULL);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
