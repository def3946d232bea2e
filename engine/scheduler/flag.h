/* lat_flag: a cancellation flag that threads share. Set once, never cleared; counted by its holders, the last one
 * frees it. Every function may be called by any thread that holds it. No lock: one compare-and-swap. */
#ifndef LAT_SCHEDULER_FLAG_H
#define LAT_SCHEDULER_FLAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lat_flag lat_flag;

lat_flag *lat_flag_new(void); /* held once; NULL when out of memory */
void lat_flag_hold(lat_flag *f);
void lat_flag_free(lat_flag *f); /* lets go */

/* True for the one call that set it. The reason is copied; without memory for it the flag is set all the same. */
bool lat_flag_set(lat_flag *f, const char *reason, size_t len);
bool lat_flag_is_set(const lat_flag *f);
const char *lat_flag_reason(const lat_flag *f, size_t *len); /* NULL: not set, or without a reason */
int64_t lat_flag_set_at_ns(const lat_flag *f); /* on lat_now_ns's clock; meaningful once it is set */

#endif
