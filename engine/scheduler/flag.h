/* lat_flag: a cancellation flag that threads share. Set once, never cleared; counted by its holders, the last one
 * frees it. Every function may be called by any thread that holds it. Its lock guards the list of those that are
 * woken; while it is held they are called, and must not lock anything themselves. */
#ifndef LAT_SCHEDULER_FLAG_H
#define LAT_SCHEDULER_FLAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lat_flag lat_flag;

/* Whoever is to be woken when the flag is set, by the thread that sets it. */
typedef struct lat_flag_watch lat_flag_watch;
struct lat_flag_watch {
	void (*wake)(lat_flag_watch *self);
	/* private */
	lat_flag_watch *prev, *next;
};

lat_flag *lat_flag_new(void); /* held once; NULL when out of memory */
void lat_flag_hold(lat_flag *f);
void lat_flag_free(lat_flag *f); /* lets go */

/* True for the one call that set it. The reason is copied; without memory for it the flag is set all the same. */
bool lat_flag_set(lat_flag *f, const char *reason, size_t len);
bool lat_flag_is_set(const lat_flag *f);
const char *lat_flag_reason(const lat_flag *f, size_t *len); /* NULL: not set, or without a reason */
int64_t lat_flag_set_at_ns(const lat_flag *f); /* on lat_now_ns's clock; meaningful once it is set */

bool lat_flag_add_watch(lat_flag *f, lat_flag_watch *watch); /* false: it is set already, nobody will wake */
void lat_flag_remove_watch(lat_flag *f,
                           lat_flag_watch *watch); /* afterwards it isn't called any more; twice is fine */

#endif
