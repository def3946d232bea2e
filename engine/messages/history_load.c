/* Saved messages → a history that the wire accepts; see lat_history_from_json. The loader owns what it
 * gathers (a turn of the assistant, and the user's blocks behind it) until both are added to the history.
 * Pure; one owner at a time.
 *
 *   text → tree → turn: blocks of assistant messages in a row   → lat_history_add_assistant
 *               → results, others: the user's blocks behind it  → one user message: first the results, in
 *                                                                 the order of the calls */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages/history_build.h"
#include "json/raw.h"
#include "json/read.h"

static const lat_span LOST = LAT_SPAN("The call was interrupted: it has no result");

/* A block in the text being read. */
typedef struct {
	lat_span raw;
	const lat_value *value;
} block_view;

typedef struct {
	block_view *list;
	size_t count, room;
} view_list;

typedef struct {
	uint64_t *slots; /* 0: free */
	size_t count, room;
} hash_set;

typedef struct {
	lat_arena arena; /* the tree, and what stands for contents that are strings */
	lat_history *history;
	lat_message *turn; /* NULL: none is gathered */
	view_list calls;   /* the turn's tool_use blocks, as they were written */
	view_list results, others;
	size_t first_left;  /* of the results: all before it are taken */
	bool user_spoke;    /* there was a user message behind the turn */
	hash_set known_ids; /* of all turns before */
	size_t turns;
} loader;

/* ---- lists and sets ---- */

static lat_status add_view(view_list *views, lat_span raw, const lat_value *value, lat_error *err)
{
	if (views->count == views->room) {
		size_t room = views->room ? views->room * 2 : 8;
		block_view *list = realloc(views->list, room * sizeof *list);
		if (!list)
			return lat_fail_nomem(err);
		views->list = list;
		views->room = room;
	}
	views->list[views->count++] = (block_view){raw, value};
	return LAT_OK;
}

static size_t slot_of(const hash_set *set, uint64_t hash)
{
	size_t i = (size_t)hash & (set->room - 1);
	while (set->slots[i] && set->slots[i] != hash)
		i = (i + 1) & (set->room - 1);
	return i;
}

static bool has_hash(const hash_set *set, uint64_t hash)
{
	return set->room > 0 && set->slots[slot_of(set, hash | 1)] != 0;
}

static lat_status add_hash(hash_set *set, uint64_t hash, lat_error *err)
{
	if (2 * set->count >= set->room) {
		hash_set larger = {.room = set->room ? set->room * 2 : 64, .count = set->count};
		larger.slots = calloc(larger.room, sizeof *larger.slots);
		if (!larger.slots)
			return lat_fail_nomem(err);
		for (size_t i = 0; i < set->room; i++)
			if (set->slots[i])
				larger.slots[slot_of(&larger, set->slots[i])] = set->slots[i];
		free(set->slots);
		*set = larger;
	}
	uint64_t *slot = &set->slots[slot_of(set, hash | 1)];
	set->count += *slot == 0;
	*slot = hash | 1; /* never 0 */
	return LAT_OK;
}

static void free_loader(loader *l)
{
	lat_message_free(l->turn);
	free(l->calls.list);
	free(l->results.list);
	free(l->others.list);
	free(l->known_ids.slots);
	lat_arena_free(&l->arena);
}

/* ---- tool results ---- */

static bool is_nothing(const lat_value *content)
{
	if (!content || content->type == LAT_NULL)
		return true;
	if (content->type == LAT_STRING)
		return lat_text_is_blank(content->u.s, content->len);
	if (content->type != LAT_ARRAY)
		return false;
	for (size_t i = 0; i < content->len; i++)
		if (!lat_block_is_blank(&content->u.items[i]))
			return false;
	return true;
}

static bool has_blank(const lat_value *content)
{
	for (size_t i = 0; content && content->type == LAT_ARRAY && i < content->len; i++)
		if (lat_block_is_blank(&content->u.items[i]))
			return true;
	return false;
}

/* The content of a result: without blank text; something must be said when it is an error. */
static void write_content(lat_buf *out, const block_view *result, const lat_value *content)
{
	if (is_nothing(content)) {
		lat_buf_str(out, "\"(no content)\"");
		return;
	}
	lat_json_raw walk = lat_json_raw_open(lat_json_raw_get(result->raw, "content"));
	lat_span key, raw;
	bool first = true;
	lat_buf_byte(out, '[');
	for (size_t i = 0; lat_json_raw_next(&walk, &key, &raw); i++) {
		if (lat_block_is_blank(&content->u.items[i]))
			continue;
		if (!first)
			lat_buf_byte(out, ',');
		lat_buf_append(out, raw.s, raw.len);
		first = false;
	}
	lat_buf_byte(out, ']');
}

static lat_status write_result(lat_buf *out, const block_view *result, lat_span id, bool id_changed,
                               lat_error *err)
{
	lat_patch patches[2];
	size_t count = 0;
	lat_buf content = LAT_BUF_INIT, quoted = LAT_BUF_INIT;
	const lat_value *v = lat_value_get(result->value, "content");
	const lat_value *is_error = lat_value_get(result->value, "is_error");
	if (id_changed) { /* a fresh one: nothing in it needs an escape */
		lat_buf_byte(&quoted, '"');
		lat_buf_append(&quoted, id.s, id.len);
		lat_buf_byte(&quoted, '"');
		patches[count++] = (lat_patch){"tool_use_id", {quoted.data, quoted.len}};
	}
	if (has_blank(v) || (v && v->type == LAT_NULL) ||
	    (is_error && is_error->type == LAT_TRUE && is_nothing(v))) {
		write_content(&content, result, v);
		patches[count++] = (lat_patch){"content", {content.data, content.len}};
	}
	bool ok = lat_buf_ok(&content) && lat_buf_ok(&quoted);
	if (out->len > 0)
		lat_buf_byte(out, ',');
	if (ok)
		lat_write_patched(out, result->raw, patches, count);
	lat_buf_free(&content);
	lat_buf_free(&quoted);
	return ok && lat_buf_ok(out) ? LAT_OK : lat_fail_nomem(err);
}

/* Takes the result of a call: the first that is left with the id that the call was written with. */
static bool take_result(loader *l, const block_view *call, block_view *taken)
{
	const lat_value *id = lat_value_get(call->value, "id");
	while (l->first_left < l->results.count && !l->results.list[l->first_left].value)
		l->first_left++;
	for (size_t i = l->first_left; id && i < l->results.count; i++) {
		block_view *result = &l->results.list[i];
		const lat_value *of = result->value ? lat_value_get(result->value, "tool_use_id") : NULL;
		if (!of || of->type != LAT_STRING || !lat_value_equal(of, id))
			continue;
		*taken = *result;
		result->value = NULL;
		return true;
	}
	return false;
}

/* ---- a turn of the assistant, and the user's words behind it ---- */

static lat_status write_results(loader *l, lat_buf *out, bool *can_mark, lat_error *err)
{
	size_t count = lat_history_open_calls(l->history);
	lat_status status = LAT_OK;
	l->first_left = 0;
	for (size_t i = 0; i < count && status == LAT_OK; i++) {
		lat_span id, name;
		block_view result;
		lat_history_open_call(l->history, i, &id, &name);
		*can_mark = true;
		if (!take_result(l, &l->calls.list[i], &result)) {
			status = lat_write_error_result(out, id, LOST, err);
			continue;
		}
		const lat_value *given = lat_value_get(l->calls.list[i].value, "id");
		bool same = lat_span_equal(id, lat_span_of(given->u.s, given->len));
		status = write_result(out, &result, id, !same, err);
		*can_mark = !lat_value_get(result.value, "cache_control");
	}
	return status;
}

static lat_status add_user(loader *l, lat_error *err)
{
	lat_buf out = LAT_BUF_INIT;
	bool can_mark = false;
	lat_status status = write_results(l, &out, &can_mark, err);
	for (size_t i = 0; i < l->others.count && status == LAT_OK; i++) {
		const block_view *block = &l->others.list[i];
		const lat_value *type = lat_value_get(block->value, "type");
		if (out.len > 0)
			lat_buf_byte(&out, ',');
		lat_buf_append(&out, block->raw.s, block->raw.len);
		can_mark = lat_block_can_mark(lat_span_of(type->u.s, type->len),
		                              lat_value_get(block->value, "cache_control") != NULL);
	}
	if (status == LAT_OK && !lat_buf_ok(&out))
		status = lat_fail_nomem(err);
	if (status == LAT_OK && out.len > 0)
		status = lat_history_append_user(l->history, lat_span_of(out.data, out.len), can_mark, err);
	lat_buf_free(&out);
	return status;
}

/* A history begins with the user: a turn that has lost its beginning goes, and with it the results of its
 * calls. */
static lat_status add_turn(loader *l, lat_error *err)
{
	if (!l->turn || lat_history_count(l->history) == 0)
		return LAT_OK;
	for (size_t i = 0; i < l->turn->count; i++) {
		lat_status status =
			l->turn->blocks[i].is_call ? add_hash(&l->known_ids, l->turn->blocks[i].id_hash, err) : LAT_OK;
		if (status != LAT_OK)
			return status;
	}
	return lat_history_add_assistant(l->history, l->turn, err);
}

static lat_status add_gathered(loader *l, lat_error *err)
{
	lat_status status = add_turn(l, err);
	if (status == LAT_OK)
		status = add_user(l, err);
	lat_message_free(l->turn);
	l->turn = NULL;
	l->turns++;
	l->user_spoke = false;
	l->calls.count = l->results.count = l->others.count = 0;
	return status;
}

/* ---- gathering ---- */

static lat_status gather_user(loader *l, const block_view *block, lat_error *err)
{
	const lat_value *type = lat_value_get(block->value, "type");
	if (lat_block_is_blank(block->value) || lat_value_is_string(type, "tool_use"))
		return LAT_OK;
	bool result = lat_value_is_string(type, "tool_result");
	return add_view(result ? &l->results : &l->others, block->raw, block->value, err);
}

static lat_status gather_assistant(loader *l, const block_view *block, lat_error *err)
{
	const lat_value *type = lat_value_get(block->value, "type"), *id = lat_value_get(block->value, "id");
	if (lat_value_is_string(type, "tool_result"))
		return LAT_OK;
	lat_block_source source = {.raw = block->raw, .value = block->value};
	if (id && id->type == LAT_STRING)
		source.id_taken = has_hash(&l->known_ids, lat_hash(LAT_HASH_SEED, id->u.s, id->len));
	lat_status status = lat_message_add(l->turn, &source, err);
	if (status == LAT_OK && lat_value_is_string(type, "tool_use"))
		status = add_view(&l->calls, block->raw, block->value, err);
	return status;
}

/* The assistant speaks: what was said before is whole, unless nothing stands between and this belongs to
 * it. */
static lat_status begin_assistant(loader *l, lat_error *err)
{
	lat_status status = LAT_OK;
	if (l->others.count > 0 || (l->user_spoke && l->calls.count > 0))
		status = add_gathered(l, err);
	l->results.count = 0;
	l->user_spoke = false;
	if (status != LAT_OK || l->turn)
		return status;
	l->turn = lat_message_new(err);
	if (!l->turn)
		return LAT_E_NOMEM;
	l->turn->place = l->turns;
	return LAT_OK;
}

static lat_status gather_block(loader *l, bool is_user, const block_view *block, lat_error *err)
{
	const lat_value *type = lat_value_get(block->value, "type");
	if (!type || type->type != LAT_STRING)
		return lat_fail(err, LAT_E_INVALID, "a content block must be an object with a type");
	return is_user ? gather_user(l, block, err) : gather_assistant(l, block, err);
}

static lat_status gather_blocks(loader *l, bool is_user, lat_span raw, const lat_value *content,
                                lat_error *err)
{
	lat_json_raw walk = lat_json_raw_open(raw);
	lat_status status = LAT_OK;
	for (size_t i = 0; i < content->len && status == LAT_OK; i++) {
		block_view block = {.value = &content->u.items[i]};
		lat_span key;
		lat_json_raw_next(&walk, &key, &block.raw);
		status = gather_block(l, is_user, &block, err);
		if (status == LAT_E_INVALID && err)
			snprintf(err->path, sizeof err->path, "content.%zu", i);
	}
	return status;
}

/* A string is short for one text block. */
static lat_status gather_text(loader *l, bool is_user, lat_span raw, const lat_value *content, lat_error *err)
{
	static const lat_span HEAD = LAT_SPAN("{\"type\":\"text\",\"text\":");
	lat_value *v = lat_arena_alloc(&l->arena, 5 * sizeof *v);
	char *text = lat_arena_alloc(&l->arena, HEAD.len + raw.len + 1);
	if (!v || !text)
		return lat_fail_nomem(err);
	v[0] = (lat_value){.type = LAT_OBJECT, .len = 2, .u.items = v + 1};
	v[1] = lat_value_string_view("type", 4);
	v[2] = v[3] = lat_value_string_view("text", 4);
	v[4] = *content;
	memcpy(text, HEAD.s, HEAD.len);
	memcpy(text + HEAD.len, raw.s, raw.len);
	text[HEAD.len + raw.len] = '}';
	block_view block = {lat_span_of(text, HEAD.len + raw.len + 1), v};
	return gather_block(l, is_user, &block, err);
}

static lat_status gather_message(loader *l, lat_span raw, const lat_value *message, lat_error *err)
{
	const lat_value *role = lat_value_get(message, "role"), *content = lat_value_get(message, "content");
	bool is_user = lat_value_is_string(role, "user");
	if (!is_user && !lat_value_is_string(role, "assistant"))
		return lat_fail_at(err, LAT_E_INVALID, "role", "expected \"user\" or \"assistant\"");
	if (!content || (content->type != LAT_ARRAY && content->type != LAT_STRING))
		return lat_fail_at(err, LAT_E_INVALID, "content", "expected a string or an array of content blocks");
	lat_status status = is_user ? LAT_OK : begin_assistant(l, err);
	if (status != LAT_OK)
		return status;
	l->user_spoke = l->user_spoke || is_user;
	lat_span inner = lat_json_raw_get(raw, "content");
	if (content->type == LAT_STRING)
		return gather_text(l, is_user, inner, content, err);
	return gather_blocks(l, is_user, inner, content, err);
}

static lat_status load(loader *l, lat_span text, const lat_value *messages, lat_error *err)
{
	if (messages->type != LAT_ARRAY)
		return lat_fail(err, LAT_E_INVALID, "expected an array of messages");
	lat_json_raw walk = lat_json_raw_open(text);
	for (size_t i = 0; i < messages->len; i++) {
		lat_span key, raw = {NULL, 0};
		lat_json_raw_next(&walk, &key, &raw);
		lat_status status = gather_message(l, raw, &messages->u.items[i], err);
		if (status == LAT_E_INVALID && err) {
			char inner[sizeof err->path];
			memcpy(inner, err->path, sizeof inner);
			snprintf(err->path, sizeof err->path, "%zu%s%.200s", i, inner[0] ? "." : "", inner);
		}
		if (status != LAT_OK)
			return status;
	}
	return add_gathered(l, err);
}

lat_history *lat_history_from_json(const char *text, size_t len, lat_error *err)
{
	lat_json_options options = {.max_bytes = SIZE_MAX};
	loader l = {.history = lat_history_new(err)};
	if (!l.history)
		return NULL;
	lat_value messages;
	lat_status status = lat_json_read(&l.arena, text, len, &options, &messages, err);
	if (status == LAT_OK)
		status = load(&l, lat_span_of(text, len), &messages, err);
	free_loader(&l);
	if (status == LAT_OK)
		return l.history;
	lat_history_free(l.history);
	return NULL;
}
