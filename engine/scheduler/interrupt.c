/* lat_interrupt: see interrupt.h. The signal's number is found once; its handler is taken away again when this
 * module is unloaded, since it would point into nothing. */
#include "scheduler/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id /* the kernel's name, glibc's field */
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { NS_PER_S = 1000000000 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int signal_number; /* 0: none; written once */
/* initial-exec: room in each thread from its start; else the first look at it would allocate, and abort without memory */
static _Thread_local lat_interrupt *mine __attribute__((tls_model("initial-exec")));

static void handle_signal(int number)
{
	(void)number;
	int before = errno;
	if (mine)
		mine->handle(mine);
	errno = before;
}

static void take_signal(void)
{
	for (int number = SIGRTMAX; number >= SIGRTMIN; number--) {
		struct sigaction action;
		if (sigaction(number, NULL, &action) < 0 || action.sa_handler != SIG_DFL)
			continue;
		memset(&action, 0, sizeof action);
		action.sa_handler = handle_signal;
		action.sa_flags = SA_RESTART;
		sigfillset(&action.sa_mask);
		if (sigaction(number, &action, NULL) == 0)
			signal_number = number;
		return;
	}
}

__attribute__((destructor)) static void give_signal_back(void)
{
	struct sigaction action;
	if (signal_number && sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == handle_signal)
		signal(signal_number, SIG_DFL);
}

static void set_blocked(bool blocked)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, signal_number);
	pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

bool lat_interrupt_init(lat_interrupt *i, void (*handle)(lat_interrupt *))
{
	pthread_once(&once, take_signal);
	if (!signal_number)
		return false;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal_number};
	event.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, &i->timer) < 0)
		return false;
	i->handle = handle;
	mine = i;
	set_blocked(false);
	return true;
}

void lat_interrupt_destroy(lat_interrupt *i)
{
	set_blocked(true);
	mine = NULL;
	timer_delete(i->timer);
}

void lat_interrupt_at(lat_interrupt *i, int64_t due_ns)
{
	struct itimerspec when = {.it_interval = {0, 0}};
	if (due_ns != INT64_MAX) {
		int64_t due = due_ns > 0 ? due_ns : 1;
		when.it_value = (struct timespec){.tv_sec = due / NS_PER_S, .tv_nsec = due % NS_PER_S};
	}
	timer_settime(i->timer, TIMER_ABSTIME, &when, NULL);
}

void lat_interrupt_send(pthread_t thread)
{
	if (signal_number)
		pthread_kill(thread, signal_number);
}
