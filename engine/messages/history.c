/* lat_history: see history.h. It owns the table of messages, the open calls, and a share in the bytes; a
 * request in flight has another share. lat_history_free frees the first two and gives the share back. One
 * owner at a time.
 *
 * What is checked and found good is appended last, in one go that can't fail any more: so a failure changes
 * nothing. */
#include "messages/history.h"

#include <stdlib.h>
#include <string.h>

#include "messages/history_build.h"
#include "json/raw.h"
#include "json/read.h"
#include "json/write.h"

struct lat_history_bytes {
	unsigned shares;
	lat_buf text; /* all messages, the last one not closed */
};

typedef struct {
	size_t offset;
	bool is_user;
} message_place;

/* Calls without a result. */
typedef struct {
	lat_buf text; /* ids and names, one behind the other */
	size_t *ends; /* 2 × count: where each id, each name ends in it */
	size_t count, room;
} call_list;

struct lat_history {
	lat_history_bytes *bytes;
	message_place *messages;
	size_t count, room;
	call_list open; /* those of the last message */
	bool can_mark;  /* the last block may carry a cache_control */
};

static const char CLOSE[] = LAT_HISTORY_CLOSE;
enum { CLOSE_BYTES = sizeof CLOSE - 1 };

static void free_calls(call_list *calls)
{
	lat_buf_free(&calls->text);
	free(calls->ends);
	*calls = (call_list){.count = 0};
}

/* ---- life ---- */

lat_history *lat_history_new(lat_error *err)
{
	lat_history *h = calloc(1, sizeof *h);
	lat_history_bytes *bytes = calloc(1, sizeof *bytes);
	if (!h || !bytes) {
		free(h);
		free(bytes);
		lat_fail_nomem(err);
		return NULL;
	}
	bytes->shares = 1;
	h->bytes = bytes;
	return h;
}

void lat_history_release(lat_history_bytes *bytes)
{
	if (!bytes || --bytes->shares > 0)
		return;
	lat_buf_free(&bytes->text);
	free(bytes);
}

void lat_history_free(lat_history *h)
{
	if (!h)
		return;
	lat_history_release(h->bytes);
	free_calls(&h->open);
	free(h->messages);
	free(h);
}

lat_history_bytes *lat_history_hold(lat_history *h)
{
	h->bytes->shares++;
	return h->bytes;
}

void lat_history_read(const lat_history_bytes *bytes, size_t offset, char *dst, size_t n)
{
	if (n > 0)
		memcpy(dst, bytes->text.data + offset, n);
}

/* ---- what there is ---- */

size_t lat_history_count(const lat_history *h)
{
	return h->count;
}

size_t lat_history_len(const lat_history *h)
{
	return h->bytes->text.len;
}

void lat_history_write(const lat_history *h, lat_buf *out)
{
	lat_buf_append(out, h->bytes->text.data, h->bytes->text.len);
	if (h->count > 0)
		lat_buf_append(out, CLOSE, CLOSE_BYTES);
}

bool lat_history_cache_mark(const lat_history *h, size_t *offset)
{
	if (h->can_mark)
		*offset = h->bytes->text.len - 1;
	return h->can_mark;
}

/* ---- open calls ---- */

size_t lat_history_open_calls(const lat_history *h)
{
	return h->open.count;
}

static lat_span call_text(const call_list *calls, size_t i)
{
	size_t from = i > 0 ? calls->ends[i - 1] : 0;
	return lat_span_of(calls->text.len ? calls->text.data + from : "", calls->ends[i] - from);
}

static lat_span call_id(const call_list *calls, size_t i)
{
	return call_text(calls, 2 * i);
}

void lat_history_open_call(const lat_history *h, size_t i, lat_span *id, lat_span *name)
{
	*id = call_text(&h->open, 2 * i);
	*name = call_text(&h->open, 2 * i + 1);
}

static void forget_calls(call_list *calls)
{
	calls->count = 0;
	lat_buf_clear(&calls->text);
}

static lat_status add_call(call_list *calls, lat_span id, lat_span name, lat_error *err)
{
	if (calls->count == calls->room) {
		size_t room = calls->room ? calls->room * 2 : 4;
		size_t *ends = realloc(calls->ends, 2 * room * sizeof *ends);
		if (!ends)
			return lat_fail_nomem(err);
		calls->ends = ends;
		calls->room = room;
	}
	lat_buf_append(&calls->text, id.s, id.len);
	calls->ends[2 * calls->count] = calls->text.len;
	lat_buf_append(&calls->text, name.s, name.len);
	calls->ends[2 * calls->count + 1] = calls->text.len;
	if (!lat_buf_ok(&calls->text))
		return lat_fail_nomem(err);
	calls->count++;
	return LAT_OK;
}

/* ---- appending ---- */

static lat_status room_to_append(lat_history *h, size_t bytes, lat_error *err)
{
	enum { HEAD_BYTES = 64 }; /* `]},{"role":"assistant","content":[` */
	if (!lat_buf_reserve(&h->bytes->text, bytes + HEAD_BYTES)) {
		h->bytes->text.failed = false; /* nothing was dropped: what is there stays good */
		return lat_fail_nomem(err);
	}
	if (h->count < h->room)
		return LAT_OK;
	size_t room = h->room ? h->room * 2 : 8;
	message_place *messages = realloc(h->messages, room * sizeof *messages);
	if (!messages)
		return lat_fail_nomem(err);
	h->messages = messages;
	h->room = room;
	return LAT_OK;
}

/* Only after room_to_append: it can't fail. */
static void append(lat_history *h, bool is_user, lat_span blocks, bool can_mark)
{
	lat_buf *text = &h->bytes->text;
	if (h->count > 0 && h->messages[h->count - 1].is_user == is_user) {
		lat_buf_byte(text, ',');
	} else {
		if (h->count > 0)
			lat_buf_str(text, LAT_HISTORY_CLOSE ",");
		h->messages[h->count++] = (message_place){text->len, is_user};
		lat_buf_str(text,
		            is_user ? "{\"role\":\"user\",\"content\":[" : "{\"role\":\"assistant\",\"content\":[");
	}
	lat_buf_append(text, blocks.s, blocks.len);
	h->can_mark = can_mark;
}

lat_status lat_history_append_user(lat_history *h, lat_span blocks, bool can_mark, lat_error *err)
{
	lat_status status = room_to_append(h, blocks.len, err);
	if (status != LAT_OK)
		return status;
	append(h, true, blocks, can_mark);
	forget_calls(&h->open);
	return LAT_OK;
}

/* Prompt caching: not on thinking, and only once on a block. */
bool lat_block_can_mark(lat_span type, bool has_mark)
{
	return !has_mark && !lat_span_is(type, "thinking") && !lat_span_is(type, "redacted_thinking");
}

lat_status lat_history_add_assistant(lat_history *h, const lat_message *m, lat_error *err)
{
	if (m->count == 0)
		return LAT_OK;
	if (h->count == 0)
		return lat_fail(err, LAT_E_INVALID, "the first message of a history must be the user's");
	if (h->open.count > 0)
		return lat_fail(err, LAT_E_INVALID, "the calls of the last message need their results first");
	lat_status status = room_to_append(h, m->content.len, err);
	for (size_t i = 0; i < m->count && status == LAT_OK; i++)
		if (m->blocks[i].is_call)
			status = add_call(&h->open, m->blocks[i].id, m->blocks[i].name, err);
	if (status != LAT_OK) {
		forget_calls(&h->open);
		return status;
	}
	lat_span last = lat_message_block(m, m->count - 1);
	bool has_mark = lat_json_raw_get(last, "cache_control").s != NULL;
	append(h, false, lat_span_of(m->content.data, m->content.len),
	       lat_block_can_mark(m->blocks[m->count - 1].type, has_mark));
	return LAT_OK;
}

/* ---- the user's blocks ---- */

/* Checks a block, and whether it stands where it may. *answered counts the results so far. */
static lat_status check_block(const lat_history *h, const lat_value *block, size_t *answered, bool *others,
                              lat_error *err)
{
	const lat_value *type = lat_value_get(block, "type");
	if (!type || type->type != LAT_STRING)
		return lat_fail(err, LAT_E_INVALID, "a content block must be an object with a type");
	if (!lat_value_is_string(type, "tool_result")) {
		*others = true;
		return LAT_OK;
	}
	const lat_value *id = lat_value_get(block, "tool_use_id");
	if (!id || id->type != LAT_STRING)
		return lat_fail(err, LAT_E_INVALID, "a tool_result needs a tool_use_id, a string");
	if (*others)
		return lat_fail(err, LAT_E_INVALID, "tool_result blocks must stand before all others");
	if (*answered == h->open.count)
		return lat_fail(err, LAT_E_INVALID, "there is no open call for the tool_result of %.*s", (int)id->len,
		                id->u.s);
	lat_span due = call_id(&h->open, *answered);
	if (!lat_span_equal(due, lat_span_of(id->u.s, id->len)))
		return lat_fail(err, LAT_E_INVALID, "the next tool_result must be that of %.*s, not of %.*s",
		                (int)due.len, due.s, (int)id->len, id->u.s);
	++*answered;
	return LAT_OK;
}

static lat_status sift_blocks(const lat_history *h, lat_span array, const lat_value *v, lat_buf *out,
                              bool *can_mark, lat_error *err)
{
	size_t answered = 0;
	bool others = false;
	lat_json_raw walk = lat_json_raw_open(array);
	for (size_t i = 0; i < v->len; i++) {
		const lat_value *block = &v->u.items[i];
		lat_span key, raw = {NULL, 0};
		lat_json_raw_next(&walk, &key, &raw);
		lat_status status = check_block(h, block, &answered, &others, err);
		if (status != LAT_OK)
			return status;
		if (lat_block_is_blank(block))
			continue;
		if (out->len > 0)
			lat_buf_byte(out, ',');
		lat_buf_append(out, raw.s, raw.len);
		const lat_value *type = lat_value_get(block, "type");
		*can_mark = lat_block_can_mark(lat_span_of(type->u.s, type->len),
		                               lat_value_get(block, "cache_control") != NULL);
	}
	if (answered < h->open.count) {
		lat_span due = call_id(&h->open, answered);
		return lat_fail(err, LAT_E_INVALID, "the call %.*s needs its tool_result", (int)due.len, due.s);
	}
	if (!lat_buf_ok(out))
		return lat_fail_nomem(err);
	if (out->len == 0)
		return lat_fail(err, LAT_E_INVALID, "a message needs a content block that isn't blank text");
	return LAT_OK;
}

lat_status lat_history_add_user(lat_history *h, const char *blocks, size_t len, lat_error *err)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_buf array = LAT_BUF_INIT, out = LAT_BUF_INIT;
	lat_json_options options = {.max_bytes = SIZE_MAX, .max_depth = LAT_MESSAGE_DEPTH - 1};
	lat_value v;
	bool can_mark = false;
	lat_buf_reserve(&array, len + 2);
	lat_buf_byte(&array, '[');
	lat_buf_append(&array, blocks, len);
	lat_buf_byte(&array, ']');
	lat_buf_reserve(&out, len);
	lat_status status = lat_buf_ok(&array) ? LAT_OK : lat_fail_nomem(err);
	if (status == LAT_OK)
		status = lat_json_read(&arena, array.data, array.len, &options, &v, err);
	if (status == LAT_OK)
		status = sift_blocks(h, lat_span_of(array.data, array.len), &v, &out, &can_mark, err);
	if (status == LAT_OK)
		status = lat_history_append_user(h, lat_span_of(out.data, out.len), can_mark, err);
	lat_arena_free(&arena);
	lat_buf_free(&array);
	lat_buf_free(&out);
	return status;
}

lat_status lat_write_error_result(lat_buf *out, lat_span id, lat_span text, lat_error *err)
{
	if (out->len > 0)
		lat_buf_byte(out, ',');
	lat_buf_str(out, "{\"type\":\"tool_result\",\"tool_use_id\":");
	lat_status status = lat_json_write_string(out, id.s, id.len, err);
	lat_buf_str(out, ",\"content\":");
	if (status == LAT_OK)
		status = lat_json_write_string(out, text.s, text.len, err);
	lat_buf_str(out, ",\"is_error\":true}");
	return status;
}

lat_status lat_history_close_calls(lat_history *h, const char *text, size_t len, lat_error *err)
{
	if (lat_text_is_blank(text, len)) /* the wire refuses an error without a text */
		return lat_fail(err, LAT_E_INVALID, "the text of closed calls must not be blank");
	if (h->open.count == 0)
		return LAT_OK;
	lat_buf out = LAT_BUF_INIT;
	lat_status status = LAT_OK;
	for (size_t i = 0; i < h->open.count && status == LAT_OK; i++)
		status = lat_write_error_result(&out, call_id(&h->open, i), lat_span_of(text, len), err);
	if (status == LAT_OK && !lat_buf_ok(&out))
		status = lat_fail_nomem(err);
	if (status == LAT_OK)
		status = lat_history_append_user(h, lat_span_of(out.data, out.len), true, err);
	lat_buf_free(&out);
	return status;
}

/* ---- going back ---- */

/* Held bytes stay as they are: with another share in them, the history goes on with a copy. */
static lat_status cut_bytes(lat_history *h, size_t len, lat_error *err)
{
	if (h->bytes->shares == 1) {
		h->bytes->text.len = len;
		return LAT_OK;
	}
	lat_history_bytes *own = calloc(1, sizeof *own);
	if (!own)
		return lat_fail_nomem(err);
	own->shares = 1;
	lat_buf_append(&own->text, h->bytes->text.data, len);
	if (!lat_buf_ok(&own->text)) {
		lat_history_release(own);
		return lat_fail_nomem(err);
	}
	lat_history_release(h->bytes);
	h->bytes = own;
	return LAT_OK;
}

/* The calls of the message that is to be the last, and whether its last block can be marked. */
static lat_status reread(lat_span message, call_list *calls, bool *can_mark, lat_error *err)
{
	lat_buf whole = LAT_BUF_INIT;
	lat_arena arena = LAT_ARENA_INIT;
	lat_json_options options = {.max_bytes = SIZE_MAX};
	lat_value v;
	lat_buf_append(&whole, message.s, message.len);
	lat_buf_append(&whole, CLOSE, CLOSE_BYTES);
	lat_status status = lat_buf_ok(&whole) ? LAT_OK : lat_fail_nomem(err);
	if (status == LAT_OK)
		status = lat_json_read(&arena, whole.data, whole.len, &options, &v, err);
	const lat_value *content = status == LAT_OK ? lat_value_get(&v, "content") : NULL;
	for (size_t i = 0; content && i < content->len && status == LAT_OK; i++) {
		const lat_value *block = &content->u.items[i], *type = lat_value_get(block, "type");
		*can_mark = lat_block_can_mark(lat_span_of(type->u.s, type->len),
		                               lat_value_get(block, "cache_control") != NULL);
		const lat_value *id = lat_value_get(block, "id"), *name = lat_value_get(block, "name");
		if (lat_value_is_string(type, "tool_use"))
			status = add_call(calls, lat_span_of(id->u.s, id->len), lat_span_of(name->u.s, name->len), err);
	}
	lat_arena_free(&arena);
	lat_buf_free(&whole);
	return status;
}

lat_status lat_history_truncate(lat_history *h, size_t n, lat_error *err)
{
	if (n >= h->count)
		return LAT_OK;
	size_t len = n > 0 ? h->messages[n].offset - CLOSE_BYTES - 1 : 0;
	call_list open = {.count = 0};
	bool can_mark = false;
	lat_status status = LAT_OK;
	if (n > 0) {
		size_t from = h->messages[n - 1].offset;
		status = reread(lat_span_of(h->bytes->text.data + from, len - from), &open, &can_mark, err);
	}
	if (status == LAT_OK)
		status = cut_bytes(h, len, err);
	if (status != LAT_OK) {
		free_calls(&open);
		return status;
	}
	free_calls(&h->open);
	h->open = open;
	h->count = n;
	h->can_mark = can_mark;
	return LAT_OK;
}
