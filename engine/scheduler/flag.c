/* lat_flag: see flag.h. Whoever wins OFF → SETTING writes the reason; readers look at it only after SET. */
#include "scheduler/flag.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/loop.h"

enum { OFF, SETTING, SET };

struct lat_flag {
	atomic_size_t holds;
	atomic_int state;
	char *reason;
	size_t len;
	int64_t set_at_ns;
	pthread_mutex_t lock;
	lat_flag_watch *watches;
};

lat_flag *lat_flag_new(void)
{
	lat_flag *f = calloc(1, sizeof *f);
	if (!f || pthread_mutex_init(&f->lock, NULL) != 0) {
		free(f);
		return NULL;
	}
	atomic_init(&f->holds, 1);
	atomic_init(&f->state, OFF);
	return f;
}

void lat_flag_hold(lat_flag *f)
{
	atomic_fetch_add_explicit(&f->holds, 1, memory_order_relaxed);
}

void lat_flag_free(lat_flag *f)
{
	if (!f || atomic_fetch_sub_explicit(&f->holds, 1, memory_order_acq_rel) > 1)
		return;
	pthread_mutex_destroy(&f->lock);
	free(f->reason);
	free(f);
}

bool lat_flag_set(lat_flag *f, const char *reason, size_t len)
{
	int off = OFF;
	if (!atomic_compare_exchange_strong(&f->state, &off, SETTING))
		return false;
	f->reason = reason ? malloc(len + 1) : NULL;
	if (f->reason) {
		memcpy(f->reason, reason, len);
		f->reason[len] = '\0';
		f->len = len;
	}
	f->set_at_ns = lat_now_ns();
	pthread_mutex_lock(&f->lock);
	atomic_store_explicit(&f->state, SET, memory_order_release);
	for (lat_flag_watch *w = f->watches; w; w = w->next)
		w->wake(w);
	pthread_mutex_unlock(&f->lock);
	return true;
}

bool lat_flag_add_watch(lat_flag *f, lat_flag_watch *watch)
{
	pthread_mutex_lock(&f->lock);
	bool adds = !lat_flag_is_set(f);
	if (adds) {
		watch->prev = NULL;
		watch->next = f->watches;
		if (f->watches)
			f->watches->prev = watch;
		f->watches = watch;
	}
	pthread_mutex_unlock(&f->lock);
	return adds;
}

void lat_flag_remove_watch(lat_flag *f, lat_flag_watch *watch)
{
	pthread_mutex_lock(&f->lock);
	bool is_first = f->watches == watch;
	if (is_first)
		f->watches = watch->next;
	else if (watch->prev)
		watch->prev->next = watch->next;
	if ((is_first || watch->prev) && watch->next)
		watch->next->prev = watch->prev;
	watch->prev = watch->next = NULL;
	pthread_mutex_unlock(&f->lock);
}

bool lat_flag_is_set(const lat_flag *f)
{
	return atomic_load_explicit(&f->state, memory_order_acquire) == SET;
}

const char *lat_flag_reason(const lat_flag *f, size_t *len)
{
	bool set = lat_flag_is_set(f);
	*len = set ? f->len : 0;
	return set ? f->reason : NULL;
}

int64_t lat_flag_set_at_ns(const lat_flag *f)
{
	return f->set_at_ns;
}
