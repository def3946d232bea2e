/* Content blocks made fit to be sent back; see message.h for the rules. Owns nothing: bytes go to the
 * message's content, strings to its arena. Pure; one owner at a time. */
#include "messages/block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/raw.h"
#include "json/read.h"
#include "json/write.h"

enum { NAME_MAX_BYTES = 64 };
static const char NAMELESS[] = "unknown_tool";

/* FNV-1a, 64 bits */
uint64_t lat_hash(uint64_t seed, const void *data, size_t len)
{
	const unsigned char *p = data;
	for (size_t i = 0; i < len; i++)
		seed = (seed ^ p[i]) * 0x100000001b3u;
	return seed;
}

void lat_fresh_id(char id[LAT_FRESH_ID_BYTES + 1], uint64_t hash)
{
	snprintf(id, LAT_FRESH_ID_BYTES + 1, "toolu_%016llx", (unsigned long long)hash);
}

/* ---- blank text ---- */

/* Bytes of the white space at p (Unicode's White_Space and the separators U+001C to U+001F), 0 if it is
 * none. */
static size_t space_len(const unsigned char *p, size_t left)
{
	if (*p == ' ' || (*p >= 0x09 && *p <= 0x0d) || (*p >= 0x1c && *p <= 0x1f))
		return 1;
	if (left >= 2 && p[0] == 0xc2 && (p[1] == 0x85 || p[1] == 0xa0))
		return 2;
	if (left < 3)
		return 0;
	if (p[0] == 0xe2 && p[1] == 0x80 &&
	    ((p[2] >= 0x80 && p[2] <= 0x8a) || p[2] == 0xa8 || p[2] == 0xa9 || p[2] == 0xaf))
		return 3;
	return memcmp(p, "\xe1\x9a\x80", 3) == 0 || memcmp(p, "\xe2\x81\x9f", 3) == 0 ||
	               memcmp(p, "\xe3\x80\x80", 3) == 0
	           ? 3
	           : 0;
}

bool lat_text_is_blank(const char *s, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		n = space_len((const unsigned char *)s + i, len - i);
		if (n == 0)
			return false;
	}
	return true;
}

bool lat_block_is_blank(const lat_value *v)
{
	if (!lat_value_is_string(lat_value_get(v, "type"), "text"))
		return false;
	const lat_value *text = lat_value_get(v, "text");
	return !text || text->type != LAT_STRING || lat_text_is_blank(text->u.s, text->len);
}

/* ---- writing ---- */

void lat_write_patched(lat_buf *out, lat_span object, const lat_patch *patches, size_t n)
{
	const char *from = object.s, *end = object.s + object.len - 1; /* the closing brace */
	bool used[LAT_BLOCK_MAX_PATCHES] = {false}, empty = true;
	lat_span key, value;
	lat_json_raw walk = lat_json_raw_open(object);
	while (lat_json_raw_next(&walk, &key, &value)) {
		empty = false;
		for (size_t i = 0; i < n; i++) {
			if (!lat_json_raw_key_is(key, patches[i].key))
				continue;
			lat_buf_append(out, from, (size_t)(value.s - from));
			lat_buf_append(out, patches[i].json.s, patches[i].json.len);
			from = value.s + value.len;
			used[i] = true;
		}
	}
	lat_buf_append(out, from, (size_t)(end - from));
	for (size_t i = 0; i < n; i++) {
		if (used[i])
			continue;
		lat_buf_printf(out, "%s\"%s\":", empty ? "" : ",", patches[i].key);
		lat_buf_append(out, patches[i].json.s, patches[i].json.len);
		empty = false;
	}
	lat_buf_byte(out, '}');
}

/* ---- calls ---- */

bool lat_tool_name_ok(lat_span name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.s[i];
		bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
		if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '-')
			return false;
	}
	return name.len > 0 && name.len <= NAME_MAX_BYTES;
}

/* What goes into one block besides its raw bytes. Strings are in the message's arena. */
typedef struct {
	lat_message *message;
	const lat_block_source *source;
	lat_block block;
	lat_patch patches[LAT_BLOCK_MAX_PATCHES];
	size_t count;
} builder;

static lat_span copy(builder *b, const char *s, size_t len)
{
	return lat_span_of(lat_arena_copy(&b->message->arena, s, len), len);
}

static bool patch(builder *b, const char *key, lat_span json)
{
	if (json.s)
		b->patches[b->count++] = (lat_patch){key, json};
	return json.s != NULL;
}

static lat_span member_string(const lat_value *object, const char *key)
{
	const lat_value *v = lat_value_get(object, key);
	return v && v->type == LAT_STRING ? lat_span_of(v->u.s, v->len) : lat_span_of("", 0);
}

static bool id_is_taken(const lat_message *m, uint64_t hash)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->blocks[i].id_hash == hash)
			return true;
	return false;
}

/* The same message gets the same ids each time it is assembled; other messages get others (usage differs). */
static bool settle_id(builder *b)
{
	const lat_message *m = b->message;
	lat_span id = member_string(b->source->value, "id");
	b->block.id_hash = lat_hash(LAT_HASH_SEED, id.s, id.len);
	bool taken = b->block.is_call && (b->source->id_taken || id_is_taken(m, b->block.id_hash));
	if (id.len > 0 && !taken) {
		b->block.id = copy(b, id.s, id.len);
		return b->block.id.s != NULL;
	}
	if (!b->block.is_call)
		return true;
	char fresh[LAT_FRESH_ID_BYTES + 1], quoted[LAT_FRESH_ID_BYTES + 3];
	uint64_t hash = lat_hash(LAT_HASH_SEED, &m->place, sizeof m->place);
	hash = lat_hash(hash, m->provider_response_id.s, m->provider_response_id.len);
	hash = lat_hash(hash, m->usage_json.data, m->usage_json.len);
	hash = lat_hash(hash, b->source->raw.s, b->source->raw.len);
	do {
		hash = lat_hash(hash, &m->count, sizeof m->count);
		lat_fresh_id(fresh, hash);
		b->block.id_hash = lat_hash(LAT_HASH_SEED, fresh, LAT_FRESH_ID_BYTES);
	} while (id_is_taken(m, b->block.id_hash));
	b->block.id = copy(b, fresh, LAT_FRESH_ID_BYTES);
	int len = snprintf(quoted, sizeof quoted, "\"%s\"", fresh);
	return b->block.id.s && patch(b, "id", copy(b, quoted, (size_t)len));
}

/* A tool of a name that the wire refuses can't exist here, so the call fails either way; but sent back as
 * it is, it would make every later request fail. */
static bool settle_name(builder *b)
{
	lat_span name = member_string(b->source->value, "name");
	b->block.name = copy(b, name.s, name.len);
	if (!b->block.name.s || lat_tool_name_ok(name))
		return b->block.name.s != NULL;
	char fit[NAME_MAX_BYTES + 3];
	size_t len = 0;
	if (name.len == 0)
		name = lat_span_str(NAMELESS);
	fit[len++] = '"';
	for (size_t i = 0; i < name.len && len <= NAME_MAX_BYTES; i++)
		fit[len++] = lat_tool_name_ok(lat_span_of(name.s + i, 1)) ? name.s[i] : '_';
	fit[len++] = '"';
	return patch(b, "name", copy(b, fit, len));
}

/* Reads the joined pieces of an input, once. LAT_OK also when they are no JSON: *why then says so. */
static lat_status read_joined(lat_span joined, lat_type *type, lat_error *why, lat_error *err)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v = lat_value_null();
	lat_json_options options = {.max_depth = LAT_STREAM_DEPTH - 2};
	lat_error_clear(why);
	lat_status status = lat_json_read(&arena, joined.s, joined.len, &options, &v, why);
	lat_arena_free(&arena);
	*type = (lat_type)v.type;
	return status == LAT_E_NOMEM ? lat_fail_nomem(err) : LAT_OK;
}

static lat_status settle_joined_input(builder *b, lat_error *err)
{
	lat_type type;
	lat_error why;
	lat_span joined = b->source->input;
	if (read_joined(joined, &type, &why, err) != LAT_OK)
		return LAT_E_NOMEM;
	b->block.complete = why.kind == LAT_OK;
	patch(b, "input", b->block.complete && type == LAT_OBJECT ? joined : lat_span_str("{}"));
	if (!b->block.is_call)
		return LAT_OK;
	b->block.input = copy(b, joined.s, joined.len);
	if (!b->block.complete)
		b->block.problem = copy(b, why.message, strlen(why.message));
	if (!b->block.input.s || (!b->block.complete && !b->block.problem.s))
		return lat_fail_nomem(err);
	return LAT_OK;
}

/* A block of a kind that nobody here knows, with an input in pieces. */
static lat_status settle_foreign_input(builder *b, lat_error *err)
{
	lat_type type;
	lat_error why;
	if (read_joined(b->source->input, &type, &why, err) != LAT_OK)
		return LAT_E_NOMEM;
	if (why.kind == LAT_OK)
		patch(b, "input", b->source->input);
	return LAT_OK;
}

/* The input stands in the block as it started. null and [] are what some endpoints write for "no
 * arguments". */
static lat_status settle_whole_input(builder *b, lat_error *err)
{
	const lat_value *v = lat_value_get(b->source->value, "input");
	lat_span raw = lat_json_raw_get(b->source->raw, "input");
	bool nothing = !v || v->type == LAT_NULL || (v->type == LAT_ARRAY && v->len == 0);
	if (nothing)
		raw = lat_span_str("{}");
	b->block.complete = true;
	if (nothing || v->type != LAT_OBJECT)
		patch(b, "input", lat_span_str("{}"));
	if (b->block.is_call) {
		b->block.input = copy(b, raw.s, raw.len);
		if (!b->block.input.s)
			return lat_fail_nomem(err);
	}
	return LAT_OK;
}

static bool has_joined_input(const lat_block_source *source)
{
	return !lat_text_is_blank(source->input.s, source->input.len);
}

static lat_status settle_call(builder *b, lat_error *err)
{
	if (!settle_id(b) || (b->block.is_call && !settle_name(b)))
		return lat_fail_nomem(err);
	return has_joined_input(b->source) ? settle_joined_input(b, err) : settle_whole_input(b, err);
}

/* ---- blocks ---- */

static lat_status room_for_block(lat_message *m, lat_error *err)
{
	if (m->count == LAT_MESSAGE_MAX_BLOCKS)
		return lat_fail(err, LAT_E_LIMIT, "a message has more than %d content blocks",
		                LAT_MESSAGE_MAX_BLOCKS);
	if (m->count < m->room)
		return LAT_OK;
	size_t room = m->room ? m->room * 2 : 4;
	lat_block *blocks = realloc(m->blocks, room * sizeof *blocks);
	if (!blocks)
		return lat_fail_nomem(err);
	m->blocks = blocks;
	m->room = room;
	return LAT_OK;
}

static lat_status append(builder *b, lat_error *err)
{
	lat_message *m = b->message;
	size_t before = m->content.len;
	if (m->count > 0)
		lat_buf_byte(&m->content, ',');
	b->block.at = m->content.len;
	if (b->count > 0)
		lat_write_patched(&m->content, b->source->raw, b->patches, b->count);
	else
		lat_buf_append(&m->content, b->source->raw.s, b->source->raw.len);
	if (!lat_buf_ok(&m->content)) {
		m->content.len = before;
		return lat_fail_nomem(err);
	}
	b->block.len = m->content.len - b->block.at;
	m->blocks[m->count++] = b->block;
	return LAT_OK;
}

lat_status lat_message_add(lat_message *message, const lat_block_source *source, lat_error *err)
{
	const lat_value *type = lat_value_get(source->value, "type");
	if (source->value->type != LAT_OBJECT)
		return lat_fail(err, LAT_E_INVALID, "a content block must be an object");
	if (!type || type->type != LAT_STRING)
		return lat_fail(err, LAT_E_INVALID, "a content block needs a type, a string");
	if (!source->has_text && lat_block_is_blank(source->value))
		return LAT_OK;
	builder b = {.message = message, .source = source};
	lat_status status = room_for_block(message, err);
	if (status != LAT_OK)
		return status;
	b.block.type = copy(&b, type->u.s, type->len);
	if (!b.block.type.s)
		return lat_fail_nomem(err);
	for (size_t i = 0; i < source->patch_count; i++)
		patch(&b, source->patches[i].key, source->patches[i].json);
	b.block.is_call = lat_span_is(b.block.type, "tool_use");
	if (b.block.is_call || lat_span_is(b.block.type, "server_tool_use") ||
	    lat_span_is(b.block.type, "mcp_tool_use"))
		status = settle_call(&b, err);
	else if (has_joined_input(source))
		status = settle_foreign_input(&b, err);
	return status == LAT_OK ? append(&b, err) : status;
}
