/* lat_crew: see crew.h. Threads live for one call, none is detached; signals stay with the other threads. */
#include "workspace/crew.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

typedef struct {
	void (*work)(void *arg);
	void *arg;
} task;

static void *run_task(void *arg)
{
	const task *t = arg;
	t->work(t->arg);
	return NULL;
}

size_t lat_crew_size(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	return cores < 1 ? 1 : cores > LAT_CREW_MAX ? LAT_CREW_MAX : (size_t)cores;
}

void lat_crew_run(size_t threads, void (*work)(void *arg), void *arg)
{
	task t = {work, arg};
	pthread_t others[LAT_CREW_MAX];
	size_t n = 0;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (n + 1 < threads && n < LAT_CREW_MAX && pthread_create(&others[n], NULL, run_task, &t) == 0)
		n++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	work(arg);
	for (size_t i = 0; i < n; i++)
		pthread_join(others[i], NULL);
}
