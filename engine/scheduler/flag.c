/* lat_flag: see flag.h. Whoever wins OFF → SETTING writes the reason; readers look at it only after SET. */
#include "scheduler/flag.h"

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
};

lat_flag *lat_flag_new(void)
{
	lat_flag *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
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
	atomic_store_explicit(&f->state, SET, memory_order_release);
	return true;
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
