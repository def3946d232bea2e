/* lat_assembler: stream events → one lat_message.
 *
 * Feed it the data of each server-sent event, in order; it is done when message_stop came. Owns the message until
 * lat_assembler_take. Knows no socket. Any one thread at a time.
 *
 * Tolerated, since real endpoints do so: events and deltas of unknown kinds, pings anywhere, an SSE event name
 * that differs from data.type (data.type counts), deltas interleaved between blocks, a block that is never
 * stopped, the whole input at a block's start, fields missing from usage. Refused with LAT_E_SYNTAX: data that
 * isn't a JSON object, a delta or stop for a block that never started, an index started twice, a second
 * message_start, an event of a message before message_start. */
#ifndef LAT_MESSAGES_ASSEMBLE_H
#define LAT_MESSAGES_ASSEMBLE_H

#include "base/value.h"
#include "messages/message.h"

typedef struct lat_assembler lat_assembler;

typedef enum {
	LAT_STREAM_GOES_ON,
	LAT_STREAM_DONE,  /* message_stop came: the message is whole */
	LAT_STREAM_ERROR, /* an error event came: lat_assembler_error says what it was */
} lat_stream_state;

lat_assembler *lat_assembler_new(void); /* NULL when out of memory */
void lat_assembler_free(lat_assembler *a);

/* One event's data. After anything but LAT_OK the message is lost. */
lat_status lat_assembler_event(lat_assembler *a, const char *data, size_t len, lat_error *err);
lat_stream_state lat_assembler_state(const lat_assembler *a);

/* The last event as a tree; it lives until the next event. */
const lat_value *lat_assembler_last(const lat_assembler *a);

/* The JSON of the error event's "error" member. */
lat_slice lat_assembler_error(const lat_assembler *a);

/* Moves the whole message out; NULL unless the state is LAT_STREAM_DONE. */
lat_message *lat_assembler_take(lat_assembler *a);

#endif
