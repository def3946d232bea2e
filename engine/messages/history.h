/* lat_history: the conversation as the bytes that go over the wire.
 *
 * One growing text of comma-joined messages, `{"role":"user","content":[…]},{"role":"assistant",…}`, and where each
 * of them begins. It is always fit to be sent: roles alternate, the first is the user's, and each tool_use gets
 * its tool_result in the message behind it. A message is encoded once; adding costs what its own bytes cost.
 *
 * Reference counted, since an exchange in flight reads from it; everybody who holds it is on one thread. */
#ifndef LAT_MESSAGES_HISTORY_H
#define LAT_MESSAGES_HISTORY_H

#include "messages/message.h"

typedef struct lat_history lat_history;

lat_history *lat_history_new(void); /* with one reference; NULL when out of memory */
void lat_history_hold(lat_history *h);
void lat_history_free(lat_history *h); /* gives a reference back */

size_t lat_history_count(const lat_history *h);
lat_slice lat_history_bytes(const lat_history *h); /* valid until the next change */

/* Content blocks of the user's, comma-joined JSON. They join a user message that stands last. LAT_E_INVALID while
 * calls are open and the blocks don't answer them all. On failure the history is as before. */
lat_status lat_history_add_user(lat_history *h, const char *blocks, size_t len, lat_error *err);

/* An assistant message; one without blocks is not stored. */
lat_status lat_history_add_assistant(lat_history *h, const lat_message *m, lat_error *err);

/* Calls of the last message that have no result yet. */
size_t lat_history_open_calls(const lat_history *h);
lat_slice lat_history_open_id(const lat_history *h, size_t i);
lat_slice lat_history_open_name(const lat_history *h, size_t i);

/* Answers all open calls with an is_error result of that text. */
lat_status lat_history_close_calls(lat_history *h, const char *text, size_t len, lat_error *err);

/* Keeps the first n messages. Open calls of the last one kept count as open again only if it is the last added. */
void lat_history_truncate(lat_history *h, size_t n);

/* Where `,"cache_control":…` goes to mark the last block of the last message; 0 when there is no message. */
size_t lat_history_cache_mark(const lat_history *h);

/* Appends the messages of a JSON array, mended where a stored session isn't fit to be sent: a tool_use without its
 * result gets an is_error one, a tool_result without its tool_use goes, as do empty text blocks and empty
 * messages; neighbours of one role are joined. LAT_E_INVALID when it is no array of messages. */
lat_status lat_history_load(lat_history *h, const char *text, size_t len, lat_error *err);

#endif
