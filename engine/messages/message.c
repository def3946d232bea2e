/* lat_message: see message.h. It owns its content, its blocks, its usage and the arena that its strings are
 * in; lat_message_free frees all. One owner at a time, any thread. */
#include "messages/message.h"

#include <stdio.h>
#include <stdlib.h>

#include "messages/block.h"
#include "json/raw.h"
#include "json/read.h"
#include "json/write.h"

enum { USAGE_MAX_MEMBERS = 256 }; /* what has more is no usage */

lat_message *lat_message_new(lat_error *err)
{
	lat_message *m = calloc(1, sizeof *m);
	if (!m)
		lat_fail_nomem(err);
	return m;
}

void lat_message_free(lat_message *m)
{
	if (!m)
		return;
	lat_buf_free(&m->content);
	lat_buf_free(&m->usage_json);
	lat_arena_free(&m->arena);
	free(m->blocks);
	free(m);
}

bool lat_message_set(lat_message *m, lat_span *field, const lat_value *v)
{
	if (!v || v->type != LAT_STRING || v->len == 0)
		return true;
	const char *s = lat_arena_copy(&m->arena, v->u.s, v->len);
	if (s)
		*field = lat_span_of(s, v->len);
	return s != NULL;
}

/* ---- usage ---- */

/* A count of tokens: 0 for anything that isn't one. */
static int64_t tokens(const lat_value *usage, const char *key)
{
	const lat_value *v = lat_value_get(usage, key);
	if (v && v->type == LAT_INT && v->u.i > 0)
		return v->u.i;
	if (v && v->type == LAT_DOUBLE && v->u.d > 0 && v->u.d < 0x1p63)
		return (int64_t)v->u.d;
	return 0;
}

static void count_usage(lat_message *m, const lat_value *usage)
{
	m->usage = (lat_usage){
		.input_tokens = tokens(usage, "input_tokens"),
		.output_tokens = tokens(usage, "output_tokens"),
		.cache_creation_input_tokens = tokens(usage, "cache_creation_input_tokens"),
		.cache_read_input_tokens = tokens(usage, "cache_read_input_tokens"),
	};
}

/* The members of both: those of `more` win where they aren't null. */
static lat_status merge(lat_arena *arena, const lat_value *old, const lat_value *more, lat_value *out,
                        lat_error *err)
{
	size_t room = 2 * ((size_t)old->len + more->len);
	lat_value *items = lat_arena_alloc(arena, room * sizeof *items);
	if (!items)
		return lat_fail_nomem(err);
	*out = (lat_value){.type = LAT_OBJECT, .len = old->len, .u.items = items};
	for (size_t i = 0; i < 2 * (size_t)old->len; i++)
		items[i] = old->u.items[i];
	for (size_t i = 0; i < more->len; i++) {
		const lat_value *key = &more->u.items[2 * i];
		const lat_value *there = lat_value_get_n(out, key->u.s, key->len);
		if (there && key[1].type == LAT_NULL)
			continue;
		size_t at = there ? (size_t)(there - items) - 1 : 2 * (size_t)out->len++;
		items[at] = key[0];
		items[at + 1] = key[1];
	}
	return LAT_OK;
}

static lat_status merge_and_write(lat_message *m, lat_arena *arena, lat_buf *out, const lat_value *usage,
                                  lat_error *err)
{
	lat_value old = {.type = LAT_OBJECT}, all;
	lat_status status = LAT_OK;
	if (m->usage_json.len > 0)
		status = lat_json_read(arena, m->usage_json.data, m->usage_json.len, NULL, &old, err);
	if (status == LAT_OK)
		status = merge(arena, &old, usage, &all, err);
	if (status == LAT_OK)
		status = lat_json_write_value(out, &all, err);
	if (status == LAT_OK && !lat_buf_ok(out))
		status = lat_fail_nomem(err);
	if (status == LAT_OK)
		count_usage(m, &all);
	return status;
}

/* Counts are cumulative, so later ones replace earlier ones (Messages API, "message_delta"). */
lat_status lat_message_add_usage(lat_message *m, const lat_value *usage, lat_error *err)
{
	if (!usage || usage->type != LAT_OBJECT || usage->len > USAGE_MAX_MEMBERS)
		return LAT_OK;
	lat_arena arena = LAT_ARENA_INIT;
	lat_buf out = LAT_BUF_INIT;
	lat_status status = merge_and_write(m, &arena, &out, usage, err);
	if (status == LAT_OK) {
		lat_buf_free(&m->usage_json);
		m->usage_json = out;
	} else {
		lat_buf_free(&out);
	}
	lat_arena_free(&arena);
	return status;
}

/* ---- reading ---- */

static lat_status read_head(lat_message *m, const lat_value *v, lat_error *err)
{
	const lat_value *role = lat_value_get(v, "role"), *id = lat_value_get(v, "provider_response_id");
	if (role && !lat_value_is_string(role, "assistant"))
		return lat_fail_at(err, LAT_E_INVALID, "role", "expected \"assistant\"");
	if (!id)
		id = lat_value_get(v, "id");
	if (!lat_message_set(m, &m->provider_response_id, id) ||
	    !lat_message_set(m, &m->model, lat_value_get(v, "model")) ||
	    !lat_message_set(m, &m->stop_reason, lat_value_get(v, "stop_reason")) ||
	    !lat_message_set(m, &m->stop_sequence, lat_value_get(v, "stop_sequence")))
		return lat_fail_nomem(err);
	return lat_message_add_usage(m, lat_value_get(v, "usage"), err);
}

static lat_status read_blocks(lat_message *m, lat_span raw, const lat_value *content, lat_error *err)
{
	lat_json_raw walk = lat_json_raw_open(raw);
	lat_span key;
	for (size_t i = 0; i < content->len; i++) {
		lat_block_source source = {.value = &content->u.items[i]};
		lat_json_raw_next(&walk, &key, &source.raw);
		lat_status status = lat_message_add(m, &source, err);
		if (status == LAT_E_INVALID && err)
			snprintf(err->path, sizeof err->path, "content.%zu", i);
		if (status != LAT_OK)
			return status;
	}
	return LAT_OK;
}

/* A string is short for one text block. */
static lat_status read_text(lat_message *m, lat_span raw, const lat_value *content, lat_error *err)
{
	lat_value items[] = {lat_value_string_view("type", 4), lat_value_string_view("text", 4),
	                     lat_value_string_view("text", 4), *content};
	lat_value block = {.type = LAT_OBJECT, .len = 2, .u.items = items};
	lat_patch text = {"text", raw};
	lat_block_source source = {.raw = lat_span_str("{\"type\":\"text\"}"),
	                           .value = &block,
	                           .patches = &text,
	                           .patch_count = 1};
	return lat_message_add(m, &source, err);
}

static lat_status read_message(lat_message *m, lat_span text, const lat_value *v, lat_error *err)
{
	if (v->type != LAT_OBJECT)
		return lat_fail(err, LAT_E_INVALID, "a message must be an object");
	lat_status status = read_head(m, v, err);
	if (status != LAT_OK)
		return status;
	const lat_value *content = lat_value_get(v, "content");
	lat_span raw = lat_json_raw_get(text, "content");
	if (content && content->type == LAT_ARRAY)
		return read_blocks(m, raw, content, err);
	if (content && content->type == LAT_STRING)
		return read_text(m, raw, content, err);
	return lat_fail_at(err, LAT_E_INVALID, "content", "expected a string or an array of content blocks");
}

lat_message *lat_message_from_json(const char *text, size_t len, lat_error *err)
{
	lat_message *m = lat_message_new(err);
	if (!m)
		return NULL;
	lat_arena arena = LAT_ARENA_INIT;
	lat_json_options options = {.max_bytes = SIZE_MAX, .max_depth = LAT_MESSAGE_DEPTH};
	lat_value v;
	lat_status status = lat_json_read(&arena, text, len, &options, &v, err);
	if (status == LAT_OK)
		status = read_message(m, lat_span_of(text, len), &v, err);
	lat_arena_free(&arena);
	if (status != LAT_OK) {
		lat_message_free(m);
		return NULL;
	}
	return m;
}

/* ---- writing ---- */

static void write_string(lat_buf *out, const char *key, lat_span s)
{
	if (!s.s)
		return;
	lat_buf_printf(out, ",\"%s\":", key);
	lat_json_write_string(out, s.s, s.len, NULL);
}

static void write_open(const lat_message *m, lat_buf *out)
{
	lat_buf_str(out, "{\"role\":\"assistant\",\"content\":[");
	lat_buf_append(out, m->content.data, m->content.len);
	lat_buf_byte(out, ']');
}

void lat_message_write_wire(const lat_message *m, lat_buf *out)
{
	write_open(m, out);
	lat_buf_byte(out, '}');
}

void lat_message_write(const lat_message *m, lat_buf *out)
{
	write_open(m, out);
	write_string(out, "model", m->model);
	write_string(out, "stop_reason", m->stop_reason);
	write_string(out, "stop_sequence", m->stop_sequence);
	write_string(out, "provider_response_id", m->provider_response_id);
	lat_buf_str(out, ",\"usage\":");
	if (m->usage_json.len > 0)
		lat_buf_append(out, m->usage_json.data, m->usage_json.len);
	else
		lat_buf_str(out, "{}");
	lat_buf_byte(out, '}');
}
