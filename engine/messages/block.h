/* One content block on its way into a message (private to engine/messages). */
#ifndef LAT_MESSAGES_BLOCK_H
#define LAT_MESSAGES_BLOCK_H

#include "messages/message.h"

/* JSON to stand as a member of a block, whatever stood there. */
typedef struct {
	const char *key;
	lat_span json;
} lat_patch;

typedef struct {
	lat_span raw;           /* the block's JSON as it came */
	const lat_value *value; /* the same, read */
	const lat_patch *patches;
	size_t patch_count;
	lat_span input; /* the input's pieces, joined; empty: none came */
	bool has_text;  /* pieces of text came with something to see in them */
	bool id_taken;  /* a call: its id is that of another one somewhere */
} lat_block_source;

enum {
	LAT_BLOCK_MAX_PATCHES = 8,
	LAT_STREAM_DEPTH = 980 /* levels of nesting in an event: its block fits into a message */
};

/* Appends it to the message, or drops it, as message.h says. LAT_E_INVALID: it has no type. */
lat_status lat_message_add(lat_message *message, const lat_block_source *source, lat_error *err);

/* Whether there is nothing to see in a text: the wire refuses such text blocks. */
bool lat_text_is_blank(const char *s, size_t len);
/* Whether v is a text block that must not be stored. */
bool lat_block_is_blank(const lat_value *v);

/* An empty message. */
lat_message *lat_message_new(lat_error *err);
/* Sets a string of the message's head; null and "" leave it as it was. False when out of memory. */
bool lat_message_set(lat_message *message, lat_span *field, const lat_value *v);
/* Takes usage over: each member that isn't null replaces what there was. Anything but an object is
 * ignored. */
lat_status lat_message_add_usage(lat_message *message, const lat_value *usage, lat_error *err);

/* Writes an object with members replaced, or added where they were missing. */
void lat_write_patched(lat_buf *out, lat_span object, const lat_patch *patches, size_t n);

/* A name as the wire takes it: [a-zA-Z0-9_-]{1,64}. */
bool lat_tool_name_ok(lat_span name);

uint64_t lat_hash(uint64_t seed, const void *data, size_t len);
#define LAT_HASH_SEED 0xcbf29ce484222325u

/* An id that comes from what it is for: "toolu_" and 16 digits. */
enum { LAT_FRESH_ID_BYTES = 22 };
void lat_fresh_id(char id[LAT_FRESH_ID_BYTES + 1], uint64_t hash);

#endif
