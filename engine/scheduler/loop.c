/* lat_loop: one thread's epoll loop with a timer heap and an inbox for other threads.
 *
 * Owns its epoll descriptor, the eventfd that other threads wake it by, and the heap's array; ops, timers
 * and watches belong to their makers. Everything runs on the loop's thread, only lat_loop_post on any.
 * Lock: `inbox.lock` guards the inbox list and the in_inbox flags; nothing else is locked while it is
 * held.
 *
 * The eventfd is watched edge-triggered and never read: each write is an edge of its own, so a wake-up
 * costs the loop no system call beside the epoll_wait that it ends. */
#include "scheduler/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
	NS_PER_MS = 1000000,
	NS_PER_S = 1000000000,
	EVENTS_MAX = 64,         /* taken from epoll at once */
	FIRST_TIMERS = 16,       /* room in the heap at first */
	LATE_NS = 2 * NS_PER_MS, /* a timer that is so much overdue: the thread was away, sockets go first */
	CATCH_UP_ROUNDS = 256    /* how often sockets may go first: a flood can't hold timers off for ever */
};

typedef struct {
	lat_op *first, *last;
} op_list;

struct lat_loop {
	size_t holds;
	int epoll_fd, wake_fd;
	uint64_t last_id, last_order;
	op_list ready;

	lat_timer **heap;
	size_t timers, heap_cap;

	struct epoll_event batch[EVENTS_MAX]; /* being handed out: a removed watch is struck out of it */
	int batch_at, batch_n;

	struct {
		pthread_mutex_t lock;
		op_list posted;
	} inbox;
};

int64_t lat_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* ---- life ---- */

static lat_status open_descriptors(lat_loop *loop, lat_error *err)
{
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return lat_fail(err, LAT_E_IO, "can't make an epoll descriptor: %s", strerror(errno));
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->wake_fd < 0)
		return lat_fail(err, LAT_E_IO, "can't make an eventfd: %s", strerror(errno));
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) < 0)
		return lat_fail(err, LAT_E_IO, "can't watch an eventfd: %s", strerror(errno));
	return LAT_OK;
}

static void destroy(lat_loop *loop)
{
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	pthread_mutex_destroy(&loop->inbox.lock);
	free(loop->heap);
	free(loop);
}

lat_loop *lat_loop_new(lat_error *err)
{
	lat_loop *loop = calloc(1, sizeof *loop);
	if (!loop || pthread_mutex_init(&loop->inbox.lock, NULL) != 0) {
		free(loop);
		lat_fail_nomem(err);
		return NULL;
	}
	loop->holds = 1;
	loop->epoll_fd = loop->wake_fd = -1;
	if (open_descriptors(loop, err) != LAT_OK) {
		destroy(loop);
		return NULL;
	}
	return loop;
}

void lat_loop_hold(lat_loop *loop)
{
	loop->holds++;
}

void lat_loop_free(lat_loop *loop)
{
	if (loop && --loop->holds == 0)
		destroy(loop);
}

int lat_loop_fd(const lat_loop *loop)
{
	return loop->epoll_fd;
}

/* ---- ops ---- */

void lat_op_init(lat_op *op, lat_loop *loop)
{
	*op = (lat_op){.id = ++loop->last_id, .loop = loop};
	lat_loop_hold(loop);
}

void lat_loop_notify(lat_op *op)
{
	lat_loop *loop = op->loop;
	if (!loop || op->queued)
		return;
	op->queued = true;
	op->ready_next = NULL;
	op->ready_prev = loop->ready.last;
	if (loop->ready.last)
		loop->ready.last->ready_next = op;
	else
		loop->ready.first = op;
	loop->ready.last = op;
}

static void unqueue(lat_loop *loop, lat_op *op)
{
	op->queued = false;
	if (op->ready_prev)
		op->ready_prev->ready_next = op->ready_next;
	else
		loop->ready.first = op->ready_next;
	if (op->ready_next)
		op->ready_next->ready_prev = op->ready_prev;
	else
		loop->ready.last = op->ready_prev;
}

static void unpost(lat_loop *loop, lat_op *op)
{
	op->in_inbox = false;
	if (op->posted_prev)
		op->posted_prev->posted_next = op->posted_next;
	else
		loop->inbox.posted.first = op->posted_next;
	if (op->posted_next)
		op->posted_next->posted_prev = op->posted_prev;
	else
		loop->inbox.posted.last = op->posted_prev;
}

void lat_op_forget(lat_op *op)
{
	lat_loop *loop = op->loop;
	if (!loop)
		return;
	pthread_mutex_lock(&loop->inbox.lock);
	if (op->in_inbox)
		unpost(loop, op);
	pthread_mutex_unlock(&loop->inbox.lock);
	if (op->queued)
		unqueue(loop, op);
	op->loop = NULL;
	lat_loop_free(loop);
}

void lat_loop_post(lat_op *op)
{
	lat_loop *loop = op->loop;
	pthread_mutex_lock(&loop->inbox.lock);
	if (!op->in_inbox) {
		bool was_empty = !loop->inbox.posted.first;
		op->in_inbox = true;
		op->posted_next = NULL;
		op->posted_prev = loop->inbox.posted.last;
		if (was_empty)
			loop->inbox.posted.first = op;
		else
			loop->inbox.posted.last->posted_next = op;
		loop->inbox.posted.last = op;
		/* Inside the lock: afterwards the loop's thread may free the op and the loop. The write can't fail
		 * but by a counter at 2^64 - 2. */
		const uint64_t one = 1;
		if (was_empty && write(loop->wake_fd, &one, sizeof one) < 0)
			(void)one;
	}
	pthread_mutex_unlock(&loop->inbox.lock);
}

static void take_posted(lat_loop *loop)
{
	pthread_mutex_lock(&loop->inbox.lock);
	while (loop->inbox.posted.first) {
		lat_op *op = loop->inbox.posted.first;
		unpost(loop, op);
		lat_loop_notify(op);
	}
	pthread_mutex_unlock(&loop->inbox.lock);
}

/* ---- timers: a binary heap, the soonest at its root ---- */

static bool sooner(const lat_timer *a, const lat_timer *b)
{
	return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->order < b->order);
}

static void place(lat_loop *loop, size_t i, lat_timer *timer)
{
	loop->heap[i] = timer;
	timer->slot = i + 1;
}

static void sift_up(lat_loop *loop, size_t i, lat_timer *timer)
{
	while (i > 0 && sooner(timer, loop->heap[(i - 1) / 2])) {
		place(loop, i, loop->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	place(loop, i, timer);
}

static void sift_down(lat_loop *loop, size_t i, lat_timer *timer)
{
	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= loop->timers)
			break;
		if (child + 1 < loop->timers && sooner(loop->heap[child + 1], loop->heap[child]))
			child++;
		if (!sooner(loop->heap[child], timer))
			break;
		place(loop, i, loop->heap[child]);
		i = child;
	}
	place(loop, i, timer);
}

static void sift(lat_loop *loop, size_t i, lat_timer *timer)
{
	if (i > 0 && sooner(timer, loop->heap[(i - 1) / 2]))
		sift_up(loop, i, timer);
	else
		sift_down(loop, i, timer);
}

static bool grow_heap(lat_loop *loop)
{
	if (loop->timers < loop->heap_cap)
		return true;
	size_t cap = loop->heap_cap ? loop->heap_cap * 2 : FIRST_TIMERS;
	lat_timer **heap = realloc(loop->heap, cap * sizeof *heap);
	if (!heap)
		return false;
	loop->heap = heap;
	loop->heap_cap = cap;
	return true;
}

lat_status lat_timer_arm(lat_loop *loop, lat_timer *timer, int64_t due_ns, lat_error *err)
{
	if (!timer->slot && !grow_heap(loop))
		return lat_fail_nomem(err);
	timer->due_ns = due_ns;
	timer->order = ++loop->last_order;
	if (timer->slot)
		sift(loop, timer->slot - 1, timer);
	else
		sift_up(loop, loop->timers++, timer);
	return LAT_OK;
}

void lat_timer_disarm(lat_loop *loop, lat_timer *timer)
{
	if (!timer->slot)
		return;
	size_t i = timer->slot - 1;
	timer->slot = 0;
	lat_timer *last = loop->heap[--loop->timers];
	if (last != timer)
		sift(loop, i, last);
}

/* Fires what is due at `now`, but nothing that is armed meanwhile: a timer that re-arms itself can't hold
 * us. */
static void fire_due(lat_loop *loop, int64_t now)
{
	uint64_t armed_before = loop->last_order;
	while (loop->timers && loop->heap[0]->due_ns <= now && loop->heap[0]->order <= armed_before) {
		lat_timer *timer = loop->heap[0];
		lat_timer_disarm(loop, timer);
		timer->fire(timer);
	}
}

/* ---- descriptors ---- */

static uint32_t epoll_bits(unsigned events)
{
	return (events & LAT_READABLE ? (uint32_t)EPOLLIN : 0) | (events & LAT_WRITABLE ? (uint32_t)EPOLLOUT : 0);
}

lat_status lat_watch_set(lat_loop *loop, lat_watch *watch, unsigned events, lat_error *err)
{
	if (watch->added && watch->events == events)
		return LAT_OK;
	struct epoll_event event = {.events = epoll_bits(events), .data.ptr = watch};
	int change = watch->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	if (epoll_ctl(loop->epoll_fd, change, watch->fd, &event) < 0)
		return lat_fail(err, errno == ENOMEM ? LAT_E_NOMEM : LAT_E_IO, "can't watch a descriptor: %s",
		                strerror(errno));
	watch->added = true;
	watch->events = events;
	return LAT_OK;
}

void lat_watch_remove(lat_loop *loop, lat_watch *watch)
{
	if (watch->added)
		epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->added = false;
	for (int i = loop->batch_at; i < loop->batch_n; i++)
		if (loop->batch[i].data.ptr == watch)
			loop->batch[i].events = 0;
}

static void hand_out(lat_loop *loop, int n)
{
	loop->batch_n = n;
	for (loop->batch_at = 0; loop->batch_at < loop->batch_n;) {
		struct epoll_event event = loop->batch[loop->batch_at++];
		lat_watch *watch = event.data.ptr;
		if (!watch || !event.events) /* the eventfd, or removed meanwhile */
			continue;
		unsigned events = (event.events & EPOLLIN ? LAT_READABLE : 0) |
		                  (event.events & EPOLLOUT ? LAT_WRITABLE : 0) |
		                  (event.events & (EPOLLERR | EPOLLHUP) ? LAT_HANGUP : 0);
		watch->ready(watch, events);
	}
	loop->batch_at = loop->batch_n = 0;
}

/* ---- turning ---- */

static pthread_once_t probe_once = PTHREAD_ONCE_INIT;
static bool has_pwait2; /* written once, by probe */

static void probe(void)
{
	struct epoll_event event;
	has_pwait2 = epoll_pwait2(-1, &event, 1, &(struct timespec){0, 0}, NULL) < 0 && errno == EBADF;
}

/* In nanoseconds where the kernel can (Linux 5.11, unless a sandbox forbids it), else in milliseconds,
 * rounded up: no timer fires early. */
static int poll_epoll(lat_loop *loop, int64_t timeout_ns)
{
	if (timeout_ns > 0) {
		pthread_once(&probe_once, probe);
		struct timespec limit = {.tv_sec = timeout_ns / NS_PER_S, .tv_nsec = timeout_ns % NS_PER_S};
		if (has_pwait2)
			return epoll_pwait2(loop->epoll_fd, loop->batch, EVENTS_MAX, &limit, NULL);
	}
	const int64_t longest_ms = 24 * 3600 * 1000;
	int64_t ms = timeout_ns < 0 ? -1 : timeout_ns / NS_PER_MS + (timeout_ns % NS_PER_MS != 0);
	return epoll_wait(loop->epoll_fd, loop->batch, EVENTS_MAX, (int)(ms > longest_ms ? longest_ms : ms));
}

static int64_t wait_limit(const lat_loop *loop, int64_t timeout_ns)
{
	if (loop->ready.first || timeout_ns == 0)
		return 0;
	if (!loop->timers)
		return timeout_ns;
	int64_t left = loop->heap[0]->due_ns - lat_now_ns();
	if (left <= 0)
		return 0;
	return timeout_ns < 0 || left < timeout_ns ? left : timeout_ns;
}

static bool timers_are_late(const lat_loop *loop, int64_t now)
{
	return loop->timers && now - loop->heap[0]->due_ns > LATE_NS;
}

/* The first wait, then looks until nothing comes while a timer is late. Returns -1 with errno. */
static int run_watches(lat_loop *loop, int64_t timeout_ns)
{
	int64_t limit = wait_limit(loop, timeout_ns);
	for (int round = 0; round < CATCH_UP_ROUNDS; round++) {
		int n = poll_epoll(loop, limit);
		if (n < 0)
			return -1;
		hand_out(loop, n);
		if (n == 0 || !timers_are_late(loop, lat_now_ns()))
			return 0;
		limit = 0;
	}
	return 0;
}

lat_status lat_loop_turn(lat_loop *loop, int64_t timeout_ns, uint64_t *ids, size_t cap, size_t *n,
                         lat_error *err)
{
	*n = 0;
	take_posted(loop);
	if (run_watches(loop, timeout_ns) < 0)
		return errno == EINTR ? LAT_OK : lat_fail(err, LAT_E_IO, "epoll_wait: %s", strerror(errno));
	if (loop->timers)
		fire_due(loop, lat_now_ns());
	take_posted(loop);
	while (*n < cap && loop->ready.first) {
		lat_op *op = loop->ready.first;
		unqueue(loop, op);
		ids[(*n)++] = op->id;
	}
	return LAT_OK;
}
