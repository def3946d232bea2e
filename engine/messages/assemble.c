/* lat_assembler: see assemble.h. Pure; one owner at a time. Each event is read once, into an arena that the next
 * event uses again; texts are gathered decoded and written as JSON when the message is done. */
#include "messages/assemble.h"

#include <stdlib.h>
#include <string.h>

#include "json/read.h"
#include "json/write.h"

enum { MAX_BLOCKS = 10000 };

/* What is gathered of one block. */
typedef struct {
	bool started;
	lat_buf raw;       /* content_block of its start event, as it came */
	lat_buf text;      /* text or thinking, decoded */
	lat_buf signature; /* decoded */
	lat_buf input;     /* pieces of input JSON, joined */
	lat_buf citations; /* JSON items, comma-joined */
	bool has_text, has_signature;
} gathered;

struct lat_assembler {
	lat_arena arena; /* the last event */
	lat_value last;
	lat_slice data; /* its text: valid only inside lat_assembler_event */
	lat_message *message;
	gathered *blocks;
	size_t n_blocks, cap_blocks;
	bool started;
	lat_stream_state state;
	lat_buf error;
};

lat_assembler *lat_assembler_new(void)
{
	lat_assembler *a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	a->message = lat_message_new();
	if (!a->message) {
		free(a);
		return NULL;
	}
	return a;
}

static void free_gathered(gathered *g)
{
	lat_buf_free(&g->raw);
	lat_buf_free(&g->text);
	lat_buf_free(&g->signature);
	lat_buf_free(&g->input);
	lat_buf_free(&g->citations);
}

void lat_assembler_free(lat_assembler *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n_blocks; i++)
		free_gathered(&a->blocks[i]);
	free(a->blocks);
	lat_arena_free(&a->arena);
	lat_message_free(a->message);
	lat_buf_free(&a->error);
	free(a);
}

/* ---- blocks by index ---- */

static lat_status event_index(const lat_value *event, size_t *index, lat_error *err)
{
	const lat_value *v = lat_value_get(event, "index");
	if (!v || v->type != LAT_INT || v->u.i < 0 || v->u.i >= MAX_BLOCKS)
		return lat_fail(err, LAT_E_SYNTAX, "stream: a block event needs an index from 0 to %d",
		                MAX_BLOCKS - 1);
	*index = (size_t)v->u.i;
	return LAT_OK;
}

static lat_status room_for(lat_assembler *a, size_t index, lat_error *err)
{
	if (index >= a->cap_blocks) {
		size_t cap = a->cap_blocks ? a->cap_blocks : 4;
		while (cap <= index)
			cap *= 2;
		gathered *blocks = realloc(a->blocks, cap * sizeof *blocks);
		if (!blocks)
			return lat_fail_nomem(err);
		a->blocks = blocks;
		a->cap_blocks = cap;
	}
	while (a->n_blocks <= index)
		a->blocks[a->n_blocks++] = (gathered){.started = false};
	return LAT_OK;
}

static lat_status started_block(lat_assembler *a, gathered **out, lat_error *err)
{
	size_t index;
	lat_status status = event_index(&a->last, &index, err);
	if (status != LAT_OK)
		return status;
	if (index >= a->n_blocks || !a->blocks[index].started)
		return lat_fail(err, LAT_E_SYNTAX, "stream: an event for block %zu, which never started", index);
	*out = &a->blocks[index];
	return LAT_OK;
}

static void append_string(lat_buf *out, bool *seen, const lat_value *v)
{
	if (v && v->type == LAT_STRING) {
		*seen = true;
		lat_buf_append(out, v->u.s, v->len);
	}
}

static lat_status start_block(lat_assembler *a, lat_error *err)
{
	size_t index;
	lat_status status = event_index(&a->last, &index, err);
	if (status == LAT_OK)
		status = room_for(a, index, err);
	if (status != LAT_OK)
		return status;
	gathered *g = &a->blocks[index];
	if (g->started)
		return lat_fail(err, LAT_E_SYNTAX, "stream: block %zu starts twice", index);
	lat_slice raw;
	const lat_value *block = lat_value_get(&a->last, "content_block");
	if (!block || block->type != LAT_OBJECT || !lat_raw_member(a->data, "content_block", &raw))
		return lat_fail(err, LAT_E_SYNTAX, "stream: content_block_start without a content_block");
	g->started = true;
	lat_buf_append(&g->raw, raw.s, raw.len);
	bool unused;
	append_string(&g->text, &unused, lat_value_get(block, "text"));
	append_string(&g->text, &unused, lat_value_get(block, "thinking"));
	append_string(&g->signature, &unused, lat_value_get(block, "signature"));
	return lat_buf_ok(&g->raw) && lat_buf_ok(&g->text) && lat_buf_ok(&g->signature) ? LAT_OK
	                                                                                : lat_fail_nomem(err);
}

static void add_citation(lat_assembler *a, gathered *g)
{
	lat_slice delta, citation;
	if (!lat_raw_member(a->data, "delta", &delta) || !lat_raw_member(delta, "citation", &citation))
		return;
	if (g->citations.len)
		lat_buf_byte(&g->citations, ',');
	lat_buf_append(&g->citations, citation.s, citation.len);
}

static lat_status delta_event(lat_assembler *a, lat_error *err)
{
	gathered *g;
	lat_status status = started_block(a, &g, err);
	if (status != LAT_OK)
		return status;
	const lat_value *delta = lat_value_get(&a->last, "delta");
	const lat_value *type = delta ? lat_value_get(delta, "type") : NULL;
	bool unused;
	if (lat_value_is_string(type, "text_delta"))
		append_string(&g->text, &g->has_text, lat_value_get(delta, "text"));
	else if (lat_value_is_string(type, "input_json_delta"))
		append_string(&g->input, &unused, lat_value_get(delta, "partial_json"));
	else if (lat_value_is_string(type, "thinking_delta"))
		append_string(&g->text, &g->has_text, lat_value_get(delta, "thinking"));
	else if (lat_value_is_string(type, "signature_delta"))
		append_string(&g->signature, &g->has_signature, lat_value_get(delta, "signature"));
	else if (lat_value_is_string(type, "citations_delta"))
		add_citation(a, g);
	bool ok = lat_buf_ok(&g->text) && lat_buf_ok(&g->input) && lat_buf_ok(&g->signature) &&
	          lat_buf_ok(&g->citations);
	return ok ? LAT_OK : lat_fail_nomem(err);
}

/* ---- the end: gathered blocks become the message's ---- */

typedef struct {
	lat_buf text, signature, citations; /* as JSON */
	lat_override list[3];
	size_t n;
} overrides;

static void free_overrides(overrides *o)
{
	lat_buf_free(&o->text);
	lat_buf_free(&o->signature);
	lat_buf_free(&o->citations);
}

static lat_status override_string(overrides *o, lat_buf *json, const char *name, const lat_buf *text,
                                  lat_error *err)
{
	lat_status status = lat_json_write_string(json, text->data ? text->data : "", text->len, err);
	if (status == LAT_OK && !lat_buf_ok(json))
		status = lat_fail_nomem(err);
	if (status == LAT_OK)
		o->list[o->n++] = (lat_override){name, {json->data, json->len}};
	return status;
}

/* Citations of the start, if it has some, and those that came by deltas. */
static lat_status override_citations(overrides *o, const gathered *g, lat_error *err)
{
	lat_slice first = {"", 0};
	lat_raw_member((lat_slice){g->raw.data, g->raw.len}, "citations", &first);
	lat_buf_byte(&o->citations, '[');
	lat_raw_walk walk = lat_raw_begin(first);
	lat_slice item;
	while (lat_raw_next_item(&walk, &item)) {
		lat_buf_append(&o->citations, item.s, item.len);
		lat_buf_byte(&o->citations, ',');
	}
	lat_buf_append(&o->citations, g->citations.data, g->citations.len);
	lat_buf_byte(&o->citations, ']');
	if (!lat_buf_ok(&o->citations))
		return lat_fail_nomem(err);
	o->list[o->n++] = (lat_override){"citations", {o->citations.data, o->citations.len}};
	return LAT_OK;
}

static lat_status finish_block(lat_message *m, const gathered *g, lat_error *err)
{
	overrides o = {.n = 0};
	lat_slice raw = {g->raw.data, g->raw.len}, type = {"", 0};
	lat_raw_member(raw, "type", &type);
	const char *text_name = lat_slice_is(type, "\"thinking\"") ? "thinking" : "text";
	lat_status status = LAT_OK;
	if (g->has_text)
		status = override_string(&o, &o.text, text_name, &g->text, err);
	if (status == LAT_OK && g->has_signature)
		status = override_string(&o, &o.signature, "signature", &g->signature, err);
	if (status == LAT_OK && g->citations.len)
		status = override_citations(&o, g, err);
	lat_slice input = {g->input.data, g->input.len};
	if (status == LAT_OK)
		status = lat_message_add(m, raw, o.list, o.n, &input, err);
	free_overrides(&o);
	return status;
}

static lat_status finish(lat_assembler *a, lat_error *err)
{
	lat_status status = LAT_OK;
	for (size_t i = 0; i < a->n_blocks && status == LAT_OK; i++)
		if (a->blocks[i].started)
			status = finish_block(a->message, &a->blocks[i], err);
	if (status == LAT_OK)
		a->state = LAT_STREAM_DONE;
	return status;
}

/* ---- events ---- */

static lat_status message_start(lat_assembler *a, lat_error *err)
{
	lat_slice message, usage;
	if (a->started)
		return lat_fail(err, LAT_E_SYNTAX, "stream: a second message_start");
	a->started = true;
	if (!lat_raw_member(a->data, "message", &message))
		return lat_fail(err, LAT_E_SYNTAX, "stream: message_start without a message");
	lat_status status = lat_message_take_head(a->message, message, err);
	if (status == LAT_OK && lat_raw_member(message, "usage", &usage))
		status = lat_message_merge_usage(a->message, usage, err);
	return status;
}

static lat_status message_delta(lat_assembler *a, lat_error *err)
{
	lat_slice delta, usage;
	lat_status status = LAT_OK;
	if (lat_raw_member(a->data, "delta", &delta))
		status = lat_message_take_head(a->message, delta, err);
	if (status == LAT_OK && lat_raw_member(a->data, "usage", &usage))
		status = lat_message_merge_usage(a->message, usage, err);
	return status;
}

static lat_status error_event(lat_assembler *a, lat_error *err)
{
	lat_slice error;
	a->state = LAT_STREAM_ERROR;
	if (!lat_raw_member(a->data, "error", &error))
		error = (lat_slice){"{}", 2};
	lat_buf_append(&a->error, error.s, error.len);
	return lat_buf_ok(&a->error) ? LAT_OK : lat_fail_nomem(err);
}

static lat_status message_event(lat_assembler *a, const lat_value *type, lat_error *err)
{
	if (lat_value_is_string(type, "message_start"))
		return message_start(a, err);
	bool is_delta = lat_value_is_string(type, "content_block_delta");
	bool is_start = lat_value_is_string(type, "content_block_start");
	bool is_stop = lat_value_is_string(type, "content_block_stop");
	bool is_change = lat_value_is_string(type, "message_delta");
	bool is_end = lat_value_is_string(type, "message_stop");
	if (!(is_delta || is_start || is_stop || is_change || is_end))
		return LAT_OK; /* a kind of event that we don't know yet, or a ping */
	if (!a->started)
		return lat_fail(err, LAT_E_SYNTAX, "stream: an event of a message before message_start");
	if (is_delta)
		return delta_event(a, err);
	if (is_start)
		return start_block(a, err);
	if (is_change)
		return message_delta(a, err);
	if (is_end)
		return finish(a, err);
	gathered *ignored;
	return started_block(a, &ignored, err);
}

lat_status lat_assembler_event(lat_assembler *a, const char *data, size_t len, lat_error *err)
{
	if (a->state != LAT_STREAM_GOES_ON)
		return LAT_OK; /* what comes behind the end says nothing */
	lat_arena_reset(&a->arena);
	a->last = lat_value_null();
	a->data = (lat_slice){data, len};
	lat_status status = lat_json_read(&a->arena, data, len, NULL, &a->last, err);
	if (status == LAT_E_NOMEM)
		return status;
	if (status != LAT_OK || a->last.type != LAT_OBJECT)
		return lat_fail(err, LAT_E_SYNTAX, "stream: an event's data isn't a JSON object");
	const lat_value *type = lat_value_get(&a->last, "type");
	if (lat_value_is_string(type, "error"))
		return error_event(a, err);
	return message_event(a, type, err);
}

lat_stream_state lat_assembler_state(const lat_assembler *a)
{
	return a->state;
}

const lat_value *lat_assembler_last(const lat_assembler *a)
{
	return &a->last;
}

lat_slice lat_assembler_error(const lat_assembler *a)
{
	return (lat_slice){a->error.data, a->error.len};
}

lat_message *lat_assembler_take(lat_assembler *a)
{
	if (a->state != LAT_STREAM_DONE)
		return NULL;
	lat_message *m = a->message;
	a->message = NULL;
	return m;
}
