/* lat_at_exit: see at_exit.h for ownership, threads and the lock. */
#include "scheduler/at_exit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* The C++ ABI's atexit (Itanium C++ ABI 3.3.6), which takes an argument and knows the module. */
extern int __cxa_atexit(void (*handler)(void *), void *arg, void *module);
extern void *__dso_handle __attribute__((visibility("hidden")));

struct lat_at_exit {
	atomic_size_t holds;
	pid_t pid;
	pthread_mutex_t lock;
	lat_exit_entry *first;
};

static void let_go(lat_at_exit *list)
{
	if (atomic_fetch_sub(&list->holds, 1) > 1)
		return;
	pthread_mutex_destroy(&list->lock);
	free(list);
}

static void handle_exit(void *arg)
{
	lat_at_exit *list = arg;
	if (list->pid != getpid())
		return;
	pthread_mutex_lock(&list->lock);
	for (lat_exit_entry *e = list->first; e; e = e->next)
		e->run(e);
	pthread_mutex_unlock(&list->lock);
	let_go(list);
}

lat_at_exit *lat_at_exit_new(lat_error *err)
{
	lat_at_exit *list = calloc(1, sizeof *list);
	if (!list || pthread_mutex_init(&list->lock, NULL) != 0) {
		free(list);
		lat_fail_nomem(err);
		return NULL;
	}
	list->pid = getpid();
	atomic_init(&list->holds, 2);
	if (__cxa_atexit(handle_exit, list, &__dso_handle) == 0)
		return list;
	atomic_init(&list->holds, 1);
	let_go(list);
	lat_fail_nomem(err);
	return NULL;
}

void lat_at_exit_free(lat_at_exit *list)
{
	if (list)
		let_go(list);
}

void lat_at_exit_add(lat_at_exit *list, lat_exit_entry *entry, void (*run)(lat_exit_entry *))
{
	atomic_fetch_add(&list->holds, 1);
	pthread_mutex_lock(&list->lock);
	*entry = (lat_exit_entry){.run = run, .list = list, .next = list->first};
	if (list->first)
		list->first->prev = entry;
	list->first = entry;
	pthread_mutex_unlock(&list->lock);
}

void lat_at_exit_remove(lat_exit_entry *entry)
{
	lat_at_exit *list = entry->list;
	if (!list)
		return;
	pthread_mutex_lock(&list->lock);
	if (list->first == entry)
		list->first = entry->next;
	else
		entry->prev->next = entry->next;
	if (entry->next)
		entry->next->prev = entry->prev;
	entry->list = NULL;
	pthread_mutex_unlock(&list->lock);
	let_go(list);
}
