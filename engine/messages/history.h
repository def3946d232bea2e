/* lat_history: a conversation, as the bytes that each request sends.
 *
 *   {"role":"user","content":[…]},{"role":"assistant","content":[…]},{"role":"user","content":[…
 *   ^ message 0                   ^ message 1                        ^ message 2      not closed ^
 *
 * Bytes are only ever appended. To make that so, the last message is not closed: whoever sends the bytes
 * puts LAT_HISTORY_CLOSE behind them (when there are any). A block that is added to the last message, and a
 * message that is added behind it, both just go at the end, in time that depends on their own size alone.
 *
 * What holds at all times: roles alternate, beginning with the user's; every block is an object with a
 * type; no text block is blank; every tool_use of a message but the last has its tool_result at the start
 * of the next one, in order.
 *
 * One owner at a time, any thread; held bytes (below) may not be read while another thread uses the
 * history. */
#ifndef LAT_MESSAGES_HISTORY_H
#define LAT_MESSAGES_HISTORY_H

#include "messages/message.h"

typedef struct lat_history lat_history;

#define LAT_HISTORY_CLOSE "]}"

lat_history *lat_history_new(lat_error *err);
/* From an array of messages, `[{"role":…,"content":…},…]`, mended where it breaks the rules above: messages
 * of one role in a row become one, blank text is dropped, so are results without a call and what stands
 * before the first user message; a call without a result gets one with is_error. Members other than role
 * and content are dropped. NULL and an error with a path when it is no such array. */
lat_history *lat_history_from_json(const char *text, size_t len, lat_error *err);
void lat_history_free(lat_history *history); /* NULL is fine; held bytes stay */

/* blocks: content blocks joined by commas, without brackets. They go to a user message that is the last one
 * already, or make a new one. LAT_E_INVALID when nothing is left of them without blank text, when one isn't
 * a block, or when the results at their start aren't those of the open calls, in order. On failure nothing
 * has changed. */
lat_status lat_history_add_user(lat_history *history, const char *blocks, size_t len, lat_error *err);

/* Appends its blocks, to the last message if that is an assistant's (a turn that was paused goes on). A
 * message without blocks is not stored: LAT_OK. LAT_E_INVALID at the start of a history, or when calls are
 * open. */
lat_status lat_history_add_assistant(lat_history *history, const lat_message *message, lat_error *err);

/* The calls of the last message: they have no result yet. */
size_t lat_history_open_calls(const lat_history *history);
void lat_history_open_call(const lat_history *history, size_t i, lat_span *id, lat_span *name);
/* Gives each open call a result with is_error and this text. */
lat_status lat_history_close_calls(lat_history *history, const char *text, size_t len, lat_error *err);

size_t lat_history_count(const lat_history *history);
/* Keeps the first n messages (n past the end: all); calls of the last one are open then. */
lat_status lat_history_truncate(lat_history *history, size_t n, lat_error *err);

size_t lat_history_len(const lat_history *history); /* bytes, without LAT_HISTORY_CLOSE */
/* All messages joined by commas, closed. Out of memory shows in the buffer. */
void lat_history_write(const lat_history *history, lat_buf *out);

/* Where `,"cache_control":{…}` may be spliced in to mark the whole conversation so far: before the closing
 * brace of the last block. False when there is no such place (it can't be on thinking; it is there
 * already). */
bool lat_history_cache_mark(const lat_history *history, size_t *offset);

/* ---- held bytes: for a request in flight ---- */

typedef struct lat_history_bytes lat_history_bytes;

/* The bytes [0, lat_history_len) of now: they stay as they are whatever happens to the history. Owned by
 * the caller. */
lat_history_bytes *lat_history_hold(lat_history *history);
void lat_history_release(lat_history_bytes *bytes); /* NULL is fine */
void lat_history_read(const lat_history_bytes *bytes, size_t offset, char *dst,
                      size_t n); /* within what was held */

#endif
