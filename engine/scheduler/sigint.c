/* lat_sigint: see sigint.h. The handler does nothing but write to an eventfd (signal-safety(7)). */
#include "scheduler/sigint.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What a signal handler needs can't be handed to it: the one place of the engine where a global is the only way. */
static atomic_int handler_fd = -1;

static void on_sigint(int number)
{
	(void)number;
	int saved = errno;
	int fd = atomic_load_explicit(&handler_fd, memory_order_relaxed);
	if (fd >= 0) {
		uint64_t one = 1;
		ssize_t written = write(fd, &one, sizeof one);
		(void)written; /* a full eventfd is readable all the same */
	}
	errno = saved;
}

static lat_status install(struct sigaction *before, lat_error *err)
{
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = on_sigint;
	action.sa_flags = (int)SA_RESETHAND;
	if (sigaction(SIGINT, &action, before) != 0)
		return lat_fail(err, LAT_E_IO, "can't catch SIGINT: %s", strerror(errno));
	return LAT_OK;
}

static void readable(lat_watch *watch, unsigned events)
{
	(void)events;
	lat_sigint *s = (lat_sigint *)((char *)watch - offsetof(lat_sigint, watch));
	uint64_t count;
	if (read(watch->fd, &count, sizeof count) == (ssize_t)sizeof count) {
		s->fired = true;
		lat_loop_notify(&s->op);
	}
}

static void let_go_of_fd(lat_sigint *s)
{
	atomic_store(&handler_fd, -1);
	close(s->watch.fd);
	s->watch.fd = -1;
}

lat_status lat_sigint_arm(lat_sigint *s, lat_loop *loop, lat_error *err)
{
	*s = (lat_sigint){.watch = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = readable}};
	if (s->watch.fd < 0)
		return lat_fail(err, LAT_E_IO, "can't make an eventfd: %s", strerror(errno));
	int none = -1;
	if (!atomic_compare_exchange_strong(&handler_fd, &none, s->watch.fd)) {
		close(s->watch.fd);
		s->watch.fd = -1;
		return lat_fail(err, LAT_E_INVALID, "SIGINT is being watched already in this process");
	}
	lat_status status = lat_watch_set(loop, &s->watch, LAT_READABLE, err);
	if (status != LAT_OK) {
		let_go_of_fd(s);
		return status;
	}
	lat_op_init(&s->op, loop);
	s->armed = true;
	status = install(&s->before, err);
	if (status != LAT_OK)
		lat_sigint_disarm(s);
	return status;
}

lat_status lat_sigint_rearm(lat_sigint *s, lat_error *err)
{
	s->fired = false;
	return install(NULL, err);
}

void lat_sigint_disarm(lat_sigint *s)
{
	if (!s->armed)
		return;
	s->armed = false;
	sigaction(SIGINT, &s->before, NULL);
	lat_watch_remove(s->op.loop, &s->watch);
	let_go_of_fd(s);
	lat_op_forget(&s->op);
}
