/* lat_assembly: the events of one streamed reply → a message (Messages API, "Streaming messages").
 *
 * How events out of protocol are taken:
 *   data.type wins over the SSE event's name; without data.type the name is the type;
 *   pings, unknown events and unknown deltas change nothing; blocks of unknown type are kept as they started;
 *   empty data, "[DONE]", and events with a name that isn't the protocol's needn't be JSON;
 *   blocks are put in order of their index, in whatever order they interleave; an index that is used again
 *   after its block stopped is a new block behind it; deltas behind a block's stop, and stops of blocks that
 *   never started, are taken;
 *   a surrogate pair that is cut in two, each half in a delta of its own, is joined; other halves are U+FFFD;
 *   a second message_start is taken as long as no block has begun;
 *   an error event fails the try: LAT_E_IO, and lat_assembly_error says what it was;
 *   everything behind message_stop is ignored;
 *   LAT_E_SYNTAX: data that isn't a JSON object; anything of a message before message_start, or a second one
 *   after blocks began; a delta for a block that never started; a block started twice; a missing or wrong
 *   member that is needed.
 * After a failure each further event fails the same way.
 *
 * One owner at a time, any thread. */
#ifndef LAT_MESSAGES_ASSEMBLE_H
#define LAT_MESSAGES_ASSEMBLE_H

#include "messages/message.h"
#include "messages/reply.h"
#include "messages/sse.h"

typedef struct lat_assembly lat_assembly;

lat_assembly *lat_assembly_new(lat_error *err);
void lat_assembly_free(lat_assembly *assembly); /* NULL is fine */

/* Takes one event. *parsed (may be NULL) is its data as a tree, NULL when it was no JSON object; it holds
 * until the next call, as long as the event's views do. Error events and those behind message_stop are
 * parsed too. */
lat_status lat_assembly_event(lat_assembly *assembly, const lat_sse_event *event, const lat_value **parsed,
                              lat_error *err);

/* Whether message_stop was seen: the message is whole. */
bool lat_assembly_done(const lat_assembly *assembly);

/* The error event that failed it, NULL when there was none. Lives as long as the assembly. */
const lat_reply_error *lat_assembly_error(const lat_assembly *assembly);

/* The whole message, to be had once; the caller frees it. NULL and LAT_E_IO when the stream was cut: the
 * partial message is not to be had. */
lat_message *lat_assembly_take(lat_assembly *assembly, lat_error *err);

#endif
