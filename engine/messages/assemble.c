/* lat_assembly: see assemble.h for the rules. It owns the message being made, the blocks (sorted by index)
 * with the pieces that came for them, and the arena of the event at hand, which is reused from event to
 * event. lat_assembly_free frees all. One owner at a time, any thread. */
#include "messages/assemble.h"

#include <stdlib.h>
#include <string.h>

#include "messages/pieces.h"
#include "messages/surrogates.h"
#include "json/raw.h"
#include "json/read.h"

typedef struct {
	int64_t index;
	bool stopped;
	lat_pieces *pieces;
} open_block;

struct lat_assembly {
	lat_arena arena;
	lat_value event;
	lat_span data;        /* its text */
	lat_buf mended;       /* holds that text when halves of surrogate pairs had to go */
	unsigned high;        /* the half that ended the piece before */
	lat_message *message; /* from message_start on */
	open_block *blocks;   /* by index; those of one index in the order they started in */
	size_t count, room;
	bool done, taken, has_error;
	lat_reply_error error;
	lat_error failure; /* what each further event gets */
};

lat_assembly *lat_assembly_new(lat_error *err)
{
	lat_assembly *a = calloc(1, sizeof *a);
	if (!a)
		lat_fail_nomem(err);
	return a;
}

static void free_blocks(lat_assembly *a)
{
	for (size_t i = 0; i < a->count; i++)
		lat_pieces_free(a->blocks[i].pieces);
	free(a->blocks);
	a->blocks = NULL;
	a->count = a->room = 0;
}

void lat_assembly_free(lat_assembly *a)
{
	if (!a)
		return;
	free_blocks(a);
	lat_message_free(a->message);
	lat_arena_free(&a->arena);
	lat_buf_free(&a->mended);
	free(a);
}

/* ---- blocks ---- */

/* The place behind all blocks with an index up to this one. */
static size_t place_behind(const lat_assembly *a, int64_t index)
{
	size_t low = 0, high = a->count;
	if (high > 0 && a->blocks[high - 1].index <= index)
		return high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (a->blocks[middle].index <= index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The newest block of that index, NULL when none started. */
static open_block *find_block(const lat_assembly *a, int64_t index)
{
	size_t behind = place_behind(a, index);
	return behind > 0 && a->blocks[behind - 1].index == index ? &a->blocks[behind - 1] : NULL;
}

static lat_status room_for_block(lat_assembly *a, lat_error *err)
{
	if (a->count == LAT_MESSAGE_MAX_BLOCKS)
		return lat_fail(err, LAT_E_LIMIT, "a message has more than %d content blocks",
		                LAT_MESSAGE_MAX_BLOCKS);
	if (a->count < a->room)
		return LAT_OK;
	size_t room = a->room ? a->room * 2 : 4;
	open_block *blocks = realloc(a->blocks, room * sizeof *blocks);
	if (!blocks)
		return lat_fail_nomem(err);
	a->blocks = blocks;
	a->room = room;
	return LAT_OK;
}

static lat_status start_block(lat_assembly *a, int64_t index, lat_span raw, const lat_value *v, bool whole,
                              lat_error *err)
{
	lat_error why;
	lat_status status = room_for_block(a, err);
	if (status != LAT_OK)
		return status;
	open_block block = {index, whole, lat_pieces_new(raw, v, &why)};
	if (!block.pieces) {
		if (err)
			*err = why;
		return why.kind;
	}
	size_t place = place_behind(a, index);
	memmove(a->blocks + place + 1, a->blocks + place, (a->count - place) * sizeof *a->blocks);
	a->blocks[place] = block;
	a->count++;
	return LAT_OK;
}

/* ---- what the events do ---- */

static lat_span string_member(const lat_value *v, const char *key)
{
	const lat_value *s = lat_value_get(v, key);
	return s && s->type == LAT_STRING ? lat_span_of(s->u.s, s->len) : lat_span_of(NULL, 0);
}

static lat_status read_index(const lat_assembly *a, int64_t *index, lat_error *err)
{
	const lat_value *v = lat_value_get(&a->event, "index");
	if (!v || v->type != LAT_INT || v->u.i < 0)
		return lat_fail(err, LAT_E_SYNTAX, "an event of a content block has no index");
	*index = v->u.i;
	return LAT_OK;
}

static lat_status set_ending(lat_message *m, const lat_value *v, lat_error *err)
{
	if (!lat_message_set(m, &m->stop_reason, lat_value_get(v, "stop_reason")) ||
	    !lat_message_set(m, &m->stop_sequence, lat_value_get(v, "stop_sequence")))
		return lat_fail_nomem(err);
	return LAT_OK;
}

/* Blocks that stand whole in message_start. */
static lat_status start_given_blocks(lat_assembly *a, lat_span message, const lat_value *content,
                                     lat_error *err)
{
	if (!content || content->type != LAT_ARRAY)
		return LAT_OK;
	lat_json_raw walk = lat_json_raw_open(lat_json_raw_get(message, "content"));
	for (size_t i = 0; i < content->len; i++) {
		lat_span key, raw = {NULL, 0};
		lat_json_raw_next(&walk, &key, &raw);
		lat_status status = start_block(a, (int64_t)i, raw, &content->u.items[i], true, err);
		if (status != LAT_OK)
			return status;
	}
	return LAT_OK;
}

static lat_status on_message_start(lat_assembly *a, lat_span data, lat_error *err)
{
	const lat_value *v = lat_value_get(&a->event, "message");
	if (a->count > 0)
		return lat_fail(err, LAT_E_SYNTAX, "a second message_start in one stream");
	if (!v || v->type != LAT_OBJECT)
		return lat_fail(err, LAT_E_SYNTAX, "message_start has no message");
	lat_message_free(a->message);
	lat_message *m = a->message = lat_message_new(err);
	if (!m)
		return LAT_E_NOMEM;
	if (!lat_message_set(m, &m->provider_response_id, lat_value_get(v, "id")) ||
	    !lat_message_set(m, &m->model, lat_value_get(v, "model")))
		return lat_fail_nomem(err);
	lat_status status = set_ending(m, v, err);
	if (status == LAT_OK)
		status = lat_message_add_usage(m, lat_value_get(v, "usage"), err);
	if (status != LAT_OK)
		return status;
	return start_given_blocks(a, lat_json_raw_get(data, "message"), lat_value_get(v, "content"), err);
}

static lat_status on_block_start(lat_assembly *a, lat_span data, lat_error *err)
{
	int64_t index = 0;
	lat_status status = read_index(a, &index, err);
	if (status != LAT_OK)
		return status;
	const open_block *before = find_block(a, index);
	if (before && !before->stopped)
		return lat_fail(err, LAT_E_SYNTAX, "content block %lld started twice", (long long)index);
	return start_block(a, index, lat_json_raw_get(data, "content_block"),
	                   lat_value_get(&a->event, "content_block"), false, err);
}

static lat_status on_delta(const lat_assembly *a, lat_span data, lat_error *err)
{
	int64_t index = 0;
	lat_status status = read_index(a, &index, err);
	if (status != LAT_OK)
		return status;
	const open_block *block = find_block(a, index);
	if (!block)
		return lat_fail(err, LAT_E_SYNTAX, "a delta for content block %lld, which never started",
		                (long long)index);
	return lat_pieces_add(block->pieces, data, lat_value_get(&a->event, "delta"), err);
}

static lat_status on_block_stop(lat_assembly *a, lat_error *err)
{
	int64_t index = 0;
	lat_status status = read_index(a, &index, err);
	open_block *block = status == LAT_OK ? find_block(a, index) : NULL;
	if (block)
		block->stopped = true;
	return status;
}

static lat_status on_message_delta(lat_assembly *a, lat_error *err)
{
	lat_status status = set_ending(a->message, lat_value_get(&a->event, "delta"), err);
	return status == LAT_OK ? lat_message_add_usage(a->message, lat_value_get(&a->event, "usage"), err)
	                        : status;
}

/* ---- events ---- */

typedef enum {
	EVENT_DELTA,
	EVENT_BLOCK_START,
	EVENT_BLOCK_STOP,
	EVENT_MESSAGE_DELTA,
	EVENT_MESSAGE_STOP,
	EVENT_MESSAGE_START,
	EVENT_ERROR,
	EVENT_OTHER
} event_type;

static event_type type_of(lat_span name)
{
	static const char *const NAMES[EVENT_OTHER] = {
		[EVENT_DELTA] = "content_block_delta",
		[EVENT_BLOCK_START] = "content_block_start",
		[EVENT_BLOCK_STOP] = "content_block_stop",
		[EVENT_MESSAGE_DELTA] = "message_delta",
		[EVENT_MESSAGE_STOP] = "message_stop",
		[EVENT_MESSAGE_START] = "message_start",
		[EVENT_ERROR] = "error",
	};
	size_t type = 0;
	while (type < EVENT_OTHER && !lat_span_is(name, NAMES[type]))
		type++;
	return (event_type)type;
}

static lat_status on_error(lat_assembly *a, const lat_value *v, lat_error *err)
{
	enum { UNKNOWN_ERROR = 500 };
	if (!lat_reply_from_value(v, 0, &a->error) && !lat_reply_from_value(v, UNKNOWN_ERROR, &a->error))
		return lat_fail(err, LAT_E_SYNTAX, "an error event without an error in it");
	a->has_error = true;
	return lat_fail(err, LAT_E_IO, "%s: %.400s", a->error.type, a->error.message);
}

/* An error event whose data is a plain sentence. */
static lat_status on_error_text(lat_assembly *a, lat_span data, lat_error *err)
{
	enum { SENTENCE_BYTES = 2048 };
	lat_value items[] = {lat_value_string_view("error", 5), lat_value_string_view(data.s, data.len)};
	if (data.len > SENTENCE_BYTES)
		items[1].len = SENTENCE_BYTES;
	lat_value v = {.type = LAT_OBJECT, .len = 1, .u.items = items};
	return on_error(a, &v, err);
}

static lat_status act(lat_assembly *a, event_type type, lat_span data, lat_error *err)
{
	if (type == EVENT_ERROR)
		return on_error(a, &a->event, err);
	if (type == EVENT_OTHER)
		return LAT_OK;
	if (type == EVENT_MESSAGE_START)
		return on_message_start(a, data, err);
	if (!a->message)
		return lat_fail(err, LAT_E_SYNTAX, "the stream doesn't begin with message_start");
	switch (type) {
	case EVENT_DELTA:
		if (data.s != a->mended.data)
			a->high = 0; /* the other half would have come now */
		return on_delta(a, data, err);
	case EVENT_BLOCK_START:
		return on_block_start(a, data, err);
	case EVENT_BLOCK_STOP:
		return on_block_stop(a, err);
	case EVENT_MESSAGE_DELTA:
		return on_message_delta(a, err);
	default:
		a->done = true;
		return LAT_OK;
	}
}

static lat_status read_json(lat_assembly *a, lat_span data, lat_error *err)
{
	static const lat_json_options OPTIONS = {.max_bytes = SIZE_MAX, .max_depth = LAT_STREAM_DEPTH};
	lat_arena_reset(&a->arena);
	a->data = data;
	lat_status status = lat_json_read(&a->arena, data.s, data.len, &OPTIONS, &a->event, err);
	if (status != LAT_E_SYNTAX)
		return status;
	lat_buf_clear(&a->mended);
	if (!lat_mend_surrogates(&a->mended, data, &a->high))
		return status;
	if (!lat_buf_ok(&a->mended))
		return lat_fail_nomem(err);
	a->data = lat_span_of(a->mended.data, a->mended.len);
	return lat_json_read(&a->arena, a->data.s, a->data.len, &OPTIONS, &a->event, err);
}

/* Reads the event's data. *type is EVENT_OTHER for what can be ignored. */
static lat_status read_event(lat_assembly *a, const lat_sse_event *event, event_type *type, bool *is_json,
                             lat_error *err)
{
	*is_json = false;
	event_type named = type_of(event->name);
	*type = EVENT_OTHER;
	if (lat_text_is_blank(event->data.s, event->data.len) || lat_span_is(event->data, "[DONE]"))
		return LAT_OK;
	lat_status status = read_json(a, event->data, err);
	*is_json = status == LAT_OK && a->event.type == LAT_OBJECT;
	if (*is_json) {
		lat_span typed = string_member(&a->event, "type");
		*type = typed.s ? type_of(typed) : named;
		if (!typed.s && *type == EVENT_OTHER && lat_value_get(&a->event, "error"))
			*type = EVENT_ERROR;
		return LAT_OK;
	}
	if (status == LAT_E_NOMEM)
		return status;
	if (named == EVENT_OTHER && !lat_span_is(event->name, "message"))
		return LAT_OK;
	if (named == EVENT_ERROR && !a->done)
		return on_error_text(a, event->data, err);
	if (status == LAT_OK)
		return lat_fail(err, LAT_E_SYNTAX, "an event's data is no JSON object");
	char why[sizeof err->message];
	memcpy(why, err->message, sizeof why);
	return lat_fail(err, status, "an event's data is no JSON: %.400s", why);
}

lat_status lat_assembly_event(lat_assembly *a, const lat_sse_event *event, const lat_value **parsed,
                              lat_error *err)
{
	event_type type;
	bool is_json = false;
	if (parsed)
		*parsed = NULL;
	if (a->failure.kind == LAT_OK) {
		lat_error why;
		lat_status status = read_event(a, event, &type, &is_json, &why);
		if (status == LAT_OK && !a->done)
			status = act(a, type, a->data, &why);
		if (status != LAT_OK && !a->done)
			a->failure = why;
		if (parsed && is_json)
			*parsed = &a->event;
	}
	if (a->failure.kind != LAT_OK && err)
		*err = a->failure;
	return a->failure.kind;
}

bool lat_assembly_done(const lat_assembly *a)
{
	return a->done;
}

const lat_reply_error *lat_assembly_error(const lat_assembly *a)
{
	return a->has_error ? &a->error : NULL;
}

/* ---- the message ---- */

lat_message *lat_assembly_take(lat_assembly *a, lat_error *err)
{
	if (a->failure.kind != LAT_OK) {
		if (err)
			*err = a->failure;
		return NULL;
	}
	if (!a->done) {
		lat_fail(err, LAT_E_IO, "the stream ended before message_stop");
		return NULL;
	}
	if (a->taken) {
		lat_fail(err, LAT_E_CLOSED, "the message was taken already");
		return NULL;
	}
	lat_message *m = a->message;
	a->message = NULL;
	a->taken = true;
	lat_status status = LAT_OK;
	for (size_t i = 0; i < a->count && status == LAT_OK; i++) {
		status = lat_pieces_close(a->blocks[i].pieces, m, err);
		lat_pieces_free(
			a->blocks[i].pieces); /* at once: a long text is there twice only while it is copied */
		a->blocks[i].pieces = NULL;
	}
	free_blocks(a);
	if (status == LAT_OK)
		return m;
	lat_message_free(m);
	return NULL;
}
