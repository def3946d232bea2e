/* lat_at_exit: what must still happen when the process exits with exit(): scripts that call os.exit leave their Lua
 * state as it is, so that no owner lets go of anything.
 *
 * One a Lua state, with a list of entries that their owners embed. The handler belongs to this module (so that it
 * isn't called after the module was unloaded) and does nothing in a forked child. Counted by its maker, its entries
 * and the handler; what the handler needs, a few dozen bytes a state, stays until the exit. Any thread; its lock is
 * held while entries run, so an entry may take its own lock, but neither add nor remove. */
#ifndef LAT_SCHEDULER_AT_EXIT_H
#define LAT_SCHEDULER_AT_EXIT_H

#include "base/error.h"

typedef struct lat_at_exit lat_at_exit;

typedef struct lat_exit_entry lat_exit_entry;
struct lat_exit_entry {
	void (*run)(lat_exit_entry *self);
	/* private */
	lat_at_exit *list;
	lat_exit_entry *prev, *next;
};

lat_at_exit *lat_at_exit_new(lat_error *err); /* held once, by the caller */
void lat_at_exit_free(lat_at_exit *list);     /* lets go */

void lat_at_exit_add(lat_at_exit *list, lat_exit_entry *entry, void (*run)(lat_exit_entry *));
void lat_at_exit_remove(lat_exit_entry *entry); /* of an entry that was never added: nothing */

#endif
