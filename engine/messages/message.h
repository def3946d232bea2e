/* lat_message: an assistant message, its content kept as the bytes that are sent back.
 *
 * What the wire accepts is made sure of here, whatever came (Messages API, "content blocks"):
 *   text blocks without a visible character are dropped; the others keep their order;
 *   a tool_use whose input isn't an object (it stopped in the middle, it is null, …) goes back with {};
 *   a tool_use without an id, or with the id of an earlier block, gets a fresh one;
 *   a tool name that the wire refuses ([a-zA-Z0-9_-]{1,64}) goes back with other characters as "_".
 * All other bytes of a block stay as they came: members that nobody here knows, signatures, unknown blocks.
 * A message may have no block left: the caller sees it, the history doesn't store it.
 *
 * Plain data with one owner at a time; any thread. Fields are for reading only. */
#ifndef LAT_MESSAGES_MESSAGE_H
#define LAT_MESSAGES_MESSAGE_H

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"
#include "base/value.h"

enum {
	LAT_MESSAGE_MAX_BLOCKS = 16384,
	LAT_MESSAGE_DEPTH = 990 /* levels of nesting in its JSON: as part of a history it can still be read */
};

typedef struct {
	lat_span type;    /* "text", "tool_use", … */
	size_t at, len;   /* its JSON: message->content.data[at … at + len) */
	bool is_call;     /* a tool_use: ours to run (server_tool_use and mcp_tool_use are not) */
	bool complete;    /* a call: its input is JSON; false: it stopped in the middle, or never was */
	lat_span id;      /* a call: as it is sent back */
	lat_span name;    /* a call: as the model wrote it */
	lat_span input;   /* a call: JSON text; what there is of it when it isn't complete */
	lat_span problem; /* a call that isn't complete: why */
	uint64_t id_hash; /* private */
} lat_block;

typedef struct {
	int64_t input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens;
} lat_usage;

typedef struct lat_message lat_message;
struct lat_message {
	lat_buf content; /* blocks, joined by commas */
	lat_block *blocks;
	size_t count;
	lat_span model, provider_response_id, stop_reason, stop_sequence; /* {NULL, 0}: wasn't given */
	lat_usage usage;                                                  /* 0 where it wasn't given */
	lat_buf usage_json; /* the usage object with all that came; empty: none came */
	/* private */
	lat_arena arena;
	size_t room;
	size_t place; /* in a history that is loaded: fresh ids differ between messages that are the same */
};

/* A reply's body, or what a model client made: {"role":"assistant","content":"text" or [blocks], "id" or
 * "provider_response_id", "model", "stop_reason", "stop_sequence", "usage"}; only the content must be there.
 * NULL and an error: LAT_E_SYNTAX (no JSON), LAT_E_INVALID (with the path), LAT_E_LIMIT, LAT_E_NOMEM. */
lat_message *lat_message_from_json(const char *text, size_t len, lat_error *err);
void lat_message_free(lat_message *message); /* NULL is fine */

static inline lat_span lat_message_block(const lat_message *message, size_t i)
{
	return lat_span_of(message->content.data + message->blocks[i].at, message->blocks[i].len);
}

/* Appends {"role":"assistant","content":[…]}, as it is sent back. Out of memory shows in the buffer. */
void lat_message_write_wire(const lat_message *message, lat_buf *out);

/* The same with model, stop_reason, stop_sequence and provider_response_id, where they are there, and
 * usage; readable by lat_message_from_json. */
void lat_message_write(const lat_message *message, lat_buf *out);

#endif
