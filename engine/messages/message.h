/* lat_message: one assistant message, as it came and as it will be echoed.
 *
 * Owns all its bytes; one owner at a time; may move between threads. Made by the assembler (from a stream) or by
 * lat_message_read (from a JSON body, byte for byte). What the API would refuse is mended here, once: empty text
 * blocks are dropped, a tool_use whose id is missing, empty or used before in the message gets one of its own, a
 * tool_use whose input isn't a JSON object is kept with the input {} and marked incomplete. A message may be left
 * without a block; the history doesn't store such a one.
 *
 * Source: Anthropic Messages API, anthropic-version 2023-06-01. */
#ifndef LAT_MESSAGES_MESSAGE_H
#define LAT_MESSAGES_MESSAGE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "messages/raw.h"

typedef struct {
	size_t from, len;                            /* the block's JSON, in lat_message.content */
	bool is_call;                                /* a tool_use: ours to answer (server_tool_use isn't) */
	bool complete;                               /* is_call: its input is whole */
	size_t id_from, id_len, name_from, name_len; /* is_call: decoded, in lat_message.strings */
	size_t input_from, input_len;                /* is_call: the input as it came, in lat_message.strings */
} lat_block;

typedef struct {
	lat_buf content; /* the blocks' JSON, comma-joined, without brackets */
	lat_buf strings; /* what the blocks' offsets point into */
	lat_block *blocks;
	size_t n_blocks, cap_blocks;
	lat_buf head; /* JSON members `"model":…,"stop_reason":…` and so on, comma-joined; see lat_message_json */
	lat_buf usage;              /* a JSON object; empty when the provider said nothing */
	lat_buf model, stop_reason; /* decoded; empty when not there */
} lat_message;

lat_message *lat_message_new(void); /* NULL when out of memory */
void lat_message_free(lat_message *m);

/* Reads a message object (a whole reply body, or one of a Lua model client). Content given as a string becomes
 * a text block. LAT_E_SYNTAX when it isn't JSON, LAT_E_INVALID when it isn't an assistant message. */
lat_status lat_message_read(lat_message *m, const char *text, size_t len, lat_error *err);

/* Adds one block: `raw` is its JSON. For a tool_use, `input` overrides its input when it has bytes (pieces of a
 * stream, perhaps cut). `text_fields` are members whose value is to be replaced. Used by the assembler. */
typedef struct {
	const char *name; /* "text", "thinking", "signature", "citations" */
	lat_slice json;   /* the new value */
} lat_override;
lat_status lat_message_add(lat_message *m, lat_slice raw, const lat_override *overrides, size_t n,
                           const lat_slice *input, lat_error *err);

/* Takes id, model, stop_reason, stop_sequence from a message object's raw members; null and absent are skipped. */
lat_status lat_message_take_head(lat_message *m, lat_slice object, lat_error *err);
/* Merges a usage object into what is known: its members override, nulls say nothing. */
lat_status lat_message_merge_usage(lat_message *m, lat_slice usage, lat_error *err);

/* `{"role":"assistant","content":[…]}`: what the history stores. */
void lat_message_wire(const lat_message *m, lat_buf *out);
/* The same with model, stop_reason, stop_sequence, usage, provider_response_id. */
void lat_message_json(const lat_message *m, lat_buf *out);

/* A usage count, 0 when not there. */
int64_t lat_message_usage(const lat_message *m, const char *name);

#endif
