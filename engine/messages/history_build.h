/* How history_load.c fills a history (private to engine/messages). */
#ifndef LAT_MESSAGES_HISTORY_BUILD_H
#define LAT_MESSAGES_HISTORY_BUILD_H

#include "messages/block.h"
#include "messages/history.h"

/* Appends blocks that are known to be right, and answer all open calls. */
lat_status lat_history_append_user(lat_history *history, lat_span blocks, bool can_mark, lat_error *err);

/* Whether a block of that type may be marked as the end of what is cached. */
bool lat_block_can_mark(lat_span type, bool has_mark);

/* Appends a tool_result with is_error, behind a comma if something stands there. LAT_E_INVALID: no UTF-8. */
lat_status lat_write_error_result(lat_buf *out, lat_span id, lat_span text, lat_error *err);

#endif
