/* The loop: order of timers, notices, watches that vanish while they are handed out, posts from other
 * threads. */
#include "scheduler/loop.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { NS_PER_MS = 1000000 };

static int passed, failed;

static void check(bool ok, const char *what, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("loop_test.c:%d: not so: %s\n", line, what);
}

#define CHECK(condition) check(condition, #condition, __LINE__)

/* ---- timers ---- */

static int fired[2000], fired_n;

typedef struct {
	lat_timer timer; /* first */
	int name;
	lat_loop *loop;
	bool again;
} named_timer;

static void note_timer(lat_timer *self)
{
	named_timer *t = (named_timer *)self;
	fired[fired_n++] = t->name;
	if (t->again)
		lat_timer_arm(t->loop, self, 0, NULL);
}

static size_t turn(lat_loop *loop, int64_t timeout_ns, uint64_t *ids, size_t cap)
{
	size_t n = 0;
	lat_error err = {.kind = LAT_OK};
	lat_status status = lat_loop_turn(loop, timeout_ns, ids, cap, &n, &err);
	if (status != LAT_OK)
		printf("turn: %s\n", err.message);
	if (status != LAT_OK)
		CHECK(!"a turn that fails");
	return n;
}

static void timers_fire_in_order_of_due_time_then_of_arming(void)
{
	lat_loop *loop = lat_loop_new(NULL);
	named_timer t[5];
	const int64_t due[5] = {30, 10, 20, 10, 10};
	for (int i = 0; i < 5; i++) {
		t[i] = (named_timer){.timer.fire = note_timer, .name = i};
		CHECK(lat_timer_arm(loop, &t[i].timer, due[i], NULL) == LAT_OK);
	}
	lat_timer_disarm(loop, &t[3].timer);
	lat_timer_disarm(loop, &t[3].timer);
	fired_n = 0;
	turn(loop, 0, NULL, 0);
	const int expected[4] = {1, 4, 2, 0};
	CHECK(fired_n == 4 && memcmp(fired, expected, sizeof expected) == 0);
	lat_loop_free(loop);
}

static void random_arming_and_disarming_keeps_the_order(void)
{
	const char *given = getenv("SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)getpid();
	printf("loop_test: SEED=%u\n", seed);
	lat_loop *loop = lat_loop_new(NULL);
	enum { N = 500 };
	static named_timer t[N];
	for (int i = 0; i < N; i++)
		t[i] = (named_timer){.timer.fire = note_timer, .name = i};
	for (int step = 0; step < 5000; step++) {
		named_timer *one = &t[(unsigned)rand_r(&seed) % N];
		if (rand_r(&seed) % 4)
			lat_timer_arm(loop, &one->timer, 1 + rand_r(&seed) % 1000, NULL);
		else
			lat_timer_disarm(loop, &one->timer);
	}
	int armed = 0;
	for (int i = 0; i < N; i++)
		armed += t[i].timer.slot != 0;
	fired_n = 0;
	turn(loop, 0, NULL, 0);
	CHECK(fired_n == armed);
	for (int i = 1; i < fired_n; i++) {
		const lat_timer *a = &t[fired[i - 1]].timer, *b = &t[fired[i]].timer;
		CHECK(a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->order < b->order));
	}
	lat_loop_free(loop);
}

static void a_timer_never_fires_early_and_one_that_rearms_itself_fires_once_a_turn(void)
{
	lat_loop *loop = lat_loop_new(NULL);
	named_timer late = {.timer.fire = note_timer, .name = 1};
	int64_t due = lat_now_ns() + 3 * NS_PER_MS / 2;
	lat_timer_arm(loop, &late.timer, due, NULL);
	fired_n = 0;
	while (!fired_n)
		turn(loop, -1, NULL, 0);
	CHECK(lat_now_ns() >= due);

	named_timer again = {.timer.fire = note_timer, .name = 2, .loop = loop, .again = true};
	lat_timer_arm(loop, &again.timer, 0, NULL);
	fired_n = 0;
	turn(loop, -1, NULL, 0);
	CHECK(fired_n == 1);
	turn(loop, -1, NULL, 0);
	CHECK(fired_n == 2);
	lat_timer_disarm(loop, &again.timer);
	lat_loop_free(loop);
}

/* ---- ops ---- */

static void an_op_is_handed_out_once_for_many_notices(void)
{
	lat_loop *loop = lat_loop_new(NULL);
	lat_op a, b, c;
	lat_op_init(&a, loop);
	lat_op_init(&b, loop);
	lat_op_init(&c, loop);
	CHECK(a.id != 0 && a.id != b.id && b.id != c.id);
	lat_loop_notify(&a);
	lat_loop_notify(&b);
	lat_loop_notify(&a);
	lat_loop_post(&a);
	lat_loop_notify(&c);
	lat_op_forget(&b);
	lat_op_forget(&b);
	uint64_t ids[8];
	CHECK(turn(loop, -1, ids, 1) == 1 && ids[0] == a.id);
	CHECK(turn(loop, -1, ids, 8) == 1 && ids[0] == c.id);
	CHECK(turn(loop, 0, ids, 8) == 0);
	lat_loop_notify(&a);
	CHECK(turn(loop, -1, ids, 8) == 1 && ids[0] == a.id);
	lat_op_forget(&a);
	lat_loop_free(loop); /* c still holds it */
	lat_loop_post(&c);
	lat_op_forget(&c);
}

/* ---- watches ---- */

typedef struct {
	lat_watch watch; /* first */
	lat_loop *loop;
	lat_watch *other;
	int calls;
	unsigned events;
} test_watch;

static void note_watch(lat_watch *self, unsigned events)
{
	test_watch *w = (test_watch *)self;
	w->calls++;
	w->events = events;
	if (w->other)
		lat_watch_remove(w->loop, w->other);
}

static void a_removed_watch_gets_no_call_even_in_the_same_turn(void)
{
	lat_loop *loop = lat_loop_new(NULL);
	int p[2], q[2];
	if (pipe2(p, O_CLOEXEC) || pipe2(q, O_CLOEXEC))
		abort();
	test_watch a = {.watch = {.fd = p[0], .ready = note_watch}, .loop = loop};
	test_watch b = {.watch = {.fd = q[0], .ready = note_watch}, .loop = loop};
	a.other = &b.watch;
	b.other = &a.watch;
	CHECK(lat_watch_set(loop, &a.watch, LAT_READABLE, NULL) == LAT_OK);
	CHECK(lat_watch_set(loop, &b.watch, LAT_READABLE, NULL) == LAT_OK);
	CHECK(write(p[1], "x", 1) == 1 && write(q[1], "x", 1) == 1);
	turn(loop, -1, NULL, 0);
	CHECK(a.calls + b.calls == 1);
	CHECK((a.calls ? a.events : b.events) == LAT_READABLE);
	close(p[1]);
	close(q[1]);
	a.other = b.other = NULL;
	lat_watch_remove(loop, &a.watch);
	lat_watch_remove(loop, &b.watch);
	CHECK(read(p[0], &(char){0}, 1) == 1);
	CHECK(lat_watch_set(loop, &a.watch, LAT_READABLE, NULL) == LAT_OK);
	turn(loop, -1, NULL, 0);
	CHECK(a.events & LAT_HANGUP);
	lat_watch_remove(loop, &a.watch);
	test_watch bad = {.watch = {.fd = -1, .ready = note_watch}};
	lat_error err;
	CHECK(lat_watch_set(loop, &bad.watch, LAT_READABLE, &err) == LAT_E_IO);
	close(p[0]);
	close(q[0]);
	lat_loop_free(loop);
}

/* A reader that disarms its own time-out whenever a byte came: what an idle time-out does. */
typedef struct {
	lat_watch watch; /* first */
	lat_loop *loop;
	lat_timer idle;
	int bytes;
	bool timed_out;
} reader;

static void read_one(lat_watch *self, unsigned events)
{
	reader *r = (reader *)self;
	(void)events;
	r->bytes += (int)read(self->fd, &(char){0}, 1);
	if (r->bytes == 100)
		lat_timer_disarm(r->loop, &r->idle);
}

static void note_idle(lat_timer *timer)
{
	((reader *)((char *)timer - offsetof(reader, idle)))->timed_out = true;
}

static void after_a_long_absence_sockets_are_read_before_timers_are_judged(void)
{
	lat_loop *loop = lat_loop_new(NULL);
	int p[2];
	if (pipe2(p, O_CLOEXEC))
		abort();
	reader r = {.watch = {.fd = p[0], .ready = read_one}, .loop = loop, .idle.fire = note_idle};
	lat_watch_set(loop, &r.watch, LAT_READABLE, NULL);
	char bytes[100] = {0};
	CHECK(write(p[1], bytes, sizeof bytes) == sizeof bytes);
	lat_timer_arm(loop, &r.idle, lat_now_ns() - 3600 * 1000 * (int64_t)NS_PER_MS, NULL);
	turn(loop, -1, NULL, 0);
	CHECK(r.bytes == 100 && !r.timed_out);
	lat_watch_remove(loop, &r.watch);
	close(p[0]);
	close(p[1]);
	lat_loop_free(loop);
}

/* ---- other threads, signals, a host's poll ---- */

enum { THREADS = 4, POSTS = 5000 };

typedef struct {
	lat_op op;
	pthread_t thread;
	pthread_mutex_t lock;
	int done;
} poster;

static void *post_often(void *arg)
{
	poster *p = arg;
	for (int i = 0; i < POSTS; i++) {
		pthread_mutex_lock(&p->lock);
		p->done++;
		pthread_mutex_unlock(&p->lock);
		lat_loop_post(&p->op);
	}
	return NULL;
}

static void posts_from_threads_wake_the_loop_and_none_is_lost(void)
{
	lat_loop *loop = lat_loop_new(NULL);
	poster p[THREADS];
	for (int i = 0; i < THREADS; i++) {
		lat_op_init(&p[i].op, loop);
		pthread_mutex_init(&p[i].lock, NULL);
		p[i].done = 0;
		pthread_create(&p[i].thread, NULL, post_often, &p[i]);
	}
	for (int complete = 0; complete < THREADS;) {
		uint64_t ids[THREADS];
		size_t n = turn(loop, -1, ids, THREADS);
		for (size_t k = 0; k < n; k++)
			for (int i = 0; i < THREADS; i++)
				if (p[i].op.id == ids[k]) {
					pthread_mutex_lock(&p[i].lock);
					complete += p[i].done == POSTS;
					p[i].done += p[i].done == POSTS; /* counted once */
					pthread_mutex_unlock(&p[i].lock);
				}
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(p[i].thread, NULL);
		CHECK(p[i].done == POSTS + 1);
		pthread_mutex_destroy(&p[i].lock);
		lat_op_forget(&p[i].op);
	}
	lat_loop_free(loop);
}

static void a_hosts_poll_sees_a_post(void)
{
	lat_loop *loop = lat_loop_new(NULL);
	lat_op op;
	lat_op_init(&op, loop);
	struct pollfd host = {.fd = lat_loop_fd(loop), .events = POLLIN};
	CHECK(poll(&host, 1, 0) == 0);
	lat_loop_post(&op);
	CHECK(poll(&host, 1, -1) == 1);
	uint64_t id = 0;
	CHECK(turn(loop, 0, &id, 1) == 1 && id == op.id);
	CHECK(poll(&host, 1, 0) == 0);
	lat_op_forget(&op);
	lat_loop_free(loop);
}

static void on_signal(int number)
{
	(void)number;
}

static void a_signal_ends_the_wait_early_and_empty(void)
{
	lat_loop *loop = lat_loop_new(NULL);
	signal(SIGALRM, on_signal);
	struct itimerval every = {.it_interval.tv_usec = 2000, .it_value.tv_usec = 2000};
	setitimer(ITIMER_REAL, &every, NULL);
	uint64_t id;
	CHECK(turn(loop, -1, &id, 1) == 0);
	setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_sec = 0}, NULL);
	lat_loop_free(loop);
}

int main(void)
{
	timers_fire_in_order_of_due_time_then_of_arming();
	random_arming_and_disarming_keeps_the_order();
	a_timer_never_fires_early_and_one_that_rearms_itself_fires_once_a_turn();
	an_op_is_handed_out_once_for_many_notices();
	a_removed_watch_gets_no_call_even_in_the_same_turn();
	after_a_long_absence_sockets_are_read_before_timers_are_judged();
	posts_from_threads_wake_the_loop_and_none_is_lost();
	a_hosts_poll_sees_a_post();
	a_signal_ends_the_wait_early_and_empty();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
