/* lat_history: see history.h. Pure; its holders share one thread. */
#include "messages/history.h"

#include <stdlib.h>
#include <string.h>

#include "json/read.h"
#include "json/write.h"

typedef struct {
	size_t from;
	bool is_user;
} entry;

typedef struct {
	size_t id_from, id_len, name_from, name_len; /* in lat_history.strings */
	bool answered;
} open_call;

struct lat_history {
	unsigned holders;
	lat_buf bytes;
	entry *entries;
	size_t n, cap;
	open_call *open;
	size_t n_open, cap_open;
	lat_buf strings; /* ids and names of the open calls */
};

static const char USER_HEAD[] = "{\"role\":\"user\",\"content\":[";
static const char TAIL[] = "]}";
enum { TAIL_LEN = sizeof TAIL - 1 };

lat_history *lat_history_new(void)
{
	lat_history *h = calloc(1, sizeof *h);
	if (h)
		h->holders = 1;
	return h;
}

void lat_history_hold(lat_history *h)
{
	h->holders++;
}

void lat_history_free(lat_history *h)
{
	if (!h || --h->holders > 0)
		return;
	lat_buf_free(&h->bytes);
	lat_buf_free(&h->strings);
	free(h->entries);
	free(h->open);
	free(h);
}

size_t lat_history_count(const lat_history *h)
{
	return h->n;
}

lat_slice lat_history_bytes(const lat_history *h)
{
	return (lat_slice){h->bytes.data, h->bytes.len};
}

/* ---- open calls ---- */

static void forget_calls(lat_history *h)
{
	h->n_open = 0;
	lat_buf_clear(&h->strings);
}

static bool room_for_calls(lat_history *h, size_t n)
{
	if (n <= h->cap_open)
		return true;
	open_call *open = realloc(h->open, n * sizeof *open);
	if (!open)
		return false;
	h->open = open;
	h->cap_open = n;
	return true;
}

static void remember_call(lat_history *h, const char *id, size_t id_len, const char *name, size_t name_len)
{
	open_call *c = &h->open[h->n_open++];
	*c = (open_call){.id_from = h->strings.len, .id_len = id_len};
	lat_buf_append(&h->strings, id, id_len);
	c->name_from = h->strings.len;
	c->name_len = name_len;
	lat_buf_append(&h->strings, name, name_len);
}

size_t lat_history_open_calls(const lat_history *h)
{
	return h->n_open;
}

lat_slice lat_history_open_id(const lat_history *h, size_t i)
{
	return (lat_slice){h->strings.data + h->open[i].id_from, h->open[i].id_len};
}

lat_slice lat_history_open_name(const lat_history *h, size_t i)
{
	return (lat_slice){h->strings.data + h->open[i].name_from, h->open[i].name_len};
}

/* Whether a block is a tool_result; then the call it answers, or NULL when it answers none. */
static bool is_result(lat_history *h, lat_slice block, open_call **answers)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_slice type, raw_id = {"\"\"", 2};
	lat_value id;
	if (!lat_raw_member(block, "type", &type) || !lat_slice_is(type, "\"tool_result\""))
		return false;
	lat_raw_member(block, "tool_use_id", &raw_id);
	*answers = NULL;
	if (lat_json_read(&arena, raw_id.s, raw_id.len, NULL, &id, NULL) == LAT_OK && id.type == LAT_STRING) {
		for (size_t i = 0; i < h->n_open; i++) {
			lat_slice open_id = lat_history_open_id(h, i);
			if (open_id.len == id.len && memcmp(open_id.s, id.u.s, id.len) == 0)
				*answers = &h->open[i];
		}
	}
	lat_arena_free(&arena);
	return true;
}

/* Checks that blocks answer each open call once, and nothing else. */
static lat_status check_answers(lat_history *h, lat_slice array, lat_error *err)
{
	for (size_t i = 0; i < h->n_open; i++)
		h->open[i].answered = false;
	lat_raw_walk walk = lat_raw_begin(array);
	lat_slice block;
	while (lat_raw_next_item(&walk, &block)) {
		open_call *call;
		if (!is_result(h, block, &call))
			continue;
		if (!call || call->answered)
			return lat_fail(err, LAT_E_INVALID, "history: a tool_result that answers no open tool_use");
		call->answered = true;
	}
	for (size_t i = 0; i < h->n_open; i++) {
		lat_slice id = lat_history_open_id(h, i);
		if (!h->open[i].answered)
			return lat_fail(err, LAT_E_INVALID, "history: tool_use %.*s needs its tool_result first",
			                (int)id.len, id.s);
	}
	return LAT_OK;
}

/* ---- adding ---- */

static bool room_for_entry(lat_history *h)
{
	if (h->n < h->cap)
		return true;
	size_t cap = h->cap ? h->cap * 2 : 8;
	entry *entries = realloc(h->entries, cap * sizeof *entries);
	if (!entries)
		return false;
	h->entries = entries;
	h->cap = cap;
	return true;
}

/* Appends blocks as a message, or to the last one if it is of the same role. `head` ends with the bracket. */
static lat_status append_blocks(lat_history *h, bool is_user, const char *head, lat_slice blocks,
                                lat_error *err)
{
	size_t before = h->bytes.len, needed = blocks.len + strlen(head) + TAIL_LEN + 1;
	if (!room_for_entry(h) || !lat_buf_reserve(&h->bytes, needed)) {
		h->bytes.failed = false; /* nothing was appended: what is there stays usable */
		return lat_fail_nomem(err);
	}
	if (h->n && h->entries[h->n - 1].is_user == is_user) {
		h->bytes.len -= TAIL_LEN;
		lat_buf_byte(&h->bytes, ',');
	} else {
		if (h->n)
			lat_buf_byte(&h->bytes, ',');
		h->entries[h->n++] = (entry){.from = before ? before + 1 : 0, .is_user = is_user};
		lat_buf_str(&h->bytes, head);
	}
	lat_buf_append(&h->bytes, blocks.s, blocks.len);
	lat_buf_str(&h->bytes, TAIL);
	return LAT_OK;
}

static lat_status check_blocks(lat_history *h, const char *blocks, size_t len, lat_error *err)
{
	lat_buf array = LAT_BUF_INIT;
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	lat_buf_byte(&array, '[');
	lat_buf_append(&array, blocks, len);
	lat_buf_byte(&array, ']');
	lat_status status = lat_buf_ok(&array) ? LAT_OK : lat_fail_nomem(err);
	if (status == LAT_OK)
		status = lat_json_read(&arena, array.data, array.len, NULL, &v, err);
	if (status == LAT_OK && v.len == 0)
		status = lat_fail(err, LAT_E_INVALID, "history: a message needs a content block");
	if (status == LAT_OK)
		status = check_answers(h, (lat_slice){array.data, array.len}, err);
	lat_arena_free(&arena);
	lat_buf_free(&array);
	return status;
}

lat_status lat_history_add_user(lat_history *h, const char *blocks, size_t len, lat_error *err)
{
	lat_status status = check_blocks(h, blocks, len, err);
	if (status == LAT_OK)
		status = append_blocks(h, true, USER_HEAD, (lat_slice){blocks, len}, err);
	if (status == LAT_OK)
		forget_calls(h);
	return status;
}

lat_status lat_history_add_assistant(lat_history *h, const lat_message *m, lat_error *err)
{
	if (m->n_blocks == 0)
		return LAT_OK;
	if (h->n == 0)
		return lat_fail(err, LAT_E_INVALID, "history: the first message must be the user's");
	if (h->n_open)
		return lat_fail(err, LAT_E_INVALID, "history: open calls need their results first");
	if (!room_for_calls(h, m->n_blocks) || !lat_buf_reserve(&h->strings, m->strings.len)) {
		h->strings.failed = false;
		return lat_fail_nomem(err);
	}
	lat_slice blocks = {m->content.data, m->content.len};
	lat_status status = append_blocks(h, false, "{\"role\":\"assistant\",\"content\":[", blocks, err);
	for (size_t i = 0; status == LAT_OK && i < m->n_blocks; i++) {
		const lat_block *b = &m->blocks[i];
		const char *strings = m->strings.data;
		if (b->is_call)
			remember_call(h, strings + b->id_from, b->id_len, strings + b->name_from, b->name_len);
	}
	return status;
}

static lat_status write_refusal(lat_buf *out, lat_slice id, const char *text, size_t len, lat_error *err)
{
	if (out->len)
		lat_buf_byte(out, ',');
	lat_buf_str(out, "{\"type\":\"tool_result\",\"tool_use_id\":");
	lat_status status = lat_json_write_string(out, id.s, id.len, err);
	lat_buf_str(out, ",\"content\":");
	if (status == LAT_OK)
		status = lat_json_write_string(out, text, len, err);
	lat_buf_str(out, ",\"is_error\":true}");
	return status;
}

lat_status lat_history_close_calls(lat_history *h, const char *text, size_t len, lat_error *err)
{
	if (h->n_open == 0)
		return LAT_OK;
	lat_buf blocks = LAT_BUF_INIT;
	lat_status status = LAT_OK;
	for (size_t i = 0; i < h->n_open && status == LAT_OK; i++)
		status = write_refusal(&blocks, lat_history_open_id(h, i), text, len, err);
	if (status == LAT_OK && !lat_buf_ok(&blocks))
		status = lat_fail_nomem(err);
	if (status == LAT_OK)
		status = append_blocks(h, true, USER_HEAD, (lat_slice){blocks.data, blocks.len}, err);
	if (status == LAT_OK)
		forget_calls(h);
	lat_buf_free(&blocks);
	return status;
}

void lat_history_truncate(lat_history *h, size_t n)
{
	if (n >= h->n)
		return;
	h->bytes.len = n == 0 ? 0 : h->entries[n].from - 1;
	h->n = n;
	forget_calls(h);
}

size_t lat_history_cache_mark(const lat_history *h)
{
	return h->n ? h->bytes.len - TAIL_LEN - 1 : 0; /* before the last block's closing brace */
}

/* ---- loading ---- */

/* One message of a stored user: results of open calls first, in call order, then the other blocks. */
static lat_status mend_user(lat_history *h, lat_slice content, lat_buf *out, lat_error *err)
{
	static const char LOST[] = "The result of this call was lost.";
	lat_status status = LAT_OK;
	for (size_t i = 0; i < h->n_open && status == LAT_OK; i++) {
		lat_raw_walk walk = lat_raw_begin(content);
		lat_slice block;
		open_call *call = NULL;
		bool found = false;
		while (!found && lat_raw_next_item(&walk, &block))
			found = is_result(h, block, &call) && call == &h->open[i];
		if (found) {
			if (out->len)
				lat_buf_byte(out, ',');
			lat_buf_append(out, block.s, block.len);
		} else {
			status = write_refusal(out, lat_history_open_id(h, i), LOST, sizeof LOST - 1, err);
		}
	}
	lat_raw_walk walk = lat_raw_begin(content);
	lat_slice block, text;
	while (lat_raw_next_item(&walk, &block)) {
		open_call *call;
		if (is_result(h, block, &call))
			continue;
		if (lat_raw_member(block, "text", &text) && lat_slice_is(text, "\"\""))
			continue;
		if (out->len)
			lat_buf_byte(out, ',');
		lat_buf_append(out, block.s, block.len);
	}
	return status == LAT_OK && !lat_buf_ok(out) ? lat_fail_nomem(err) : status;
}

static lat_status load_user(lat_history *h, lat_slice content, lat_error *err)
{
	lat_buf array = LAT_BUF_INIT, mended = LAT_BUF_INIT;
	if (content.s[0] == '"') {
		lat_buf_str(&array, "[{\"type\":\"text\",\"text\":");
		lat_buf_append(&array, content.s, content.len);
		lat_buf_str(&array, "}]");
		content = (lat_slice){array.data, array.len};
	}
	lat_status status = lat_buf_ok(&array) ? mend_user(h, content, &mended, err) : lat_fail_nomem(err);
	if (status == LAT_OK && mended.len)
		status = lat_history_add_user(h, mended.data, mended.len, err);
	lat_buf_free(&array);
	lat_buf_free(&mended);
	return status;
}

static lat_status load_assistant(lat_history *h, lat_slice message, lat_error *err)
{
	static const char LOST[] = "The result of this call was lost.";
	lat_message *m = lat_message_new();
	if (!m)
		return lat_fail_nomem(err);
	lat_status status = lat_message_read(m, message.s, message.len, err);
	if (status == LAT_OK)
		status = lat_history_close_calls(h, LOST, sizeof LOST - 1, err);
	if (status == LAT_OK)
		status = lat_history_add_assistant(h, m, err);
	lat_message_free(m);
	return status;
}

static lat_status load_message(lat_history *h, lat_slice message, lat_error *err)
{
	lat_slice role = {"", 0}, content;
	lat_raw_member(message, "role", &role);
	if (!lat_raw_member(message, "content", &content))
		return lat_fail(err, LAT_E_INVALID, "a message needs role and content");
	if (lat_slice_is(role, "\"user\""))
		return load_user(h, content, err);
	if (lat_slice_is(role, "\"assistant\""))
		return load_assistant(h, message, err);
	return lat_fail(err, LAT_E_INVALID, "role: expected \"user\" or \"assistant\"");
}

lat_status lat_history_load(lat_history *h, const char *text, size_t len, lat_error *err)
{
	static const char LOST[] = "The result of this call was lost.";
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	lat_status status = lat_json_read(&arena, text, len, NULL, &v, err);
	if (status == LAT_OK && v.type != LAT_ARRAY)
		status = lat_fail(err, LAT_E_INVALID, "expected an array of messages");
	lat_arena_free(&arena);
	lat_raw_walk walk = lat_raw_begin((lat_slice){text, len});
	lat_slice message;
	while (status == LAT_OK && lat_raw_next_item(&walk, &message))
		status = load_message(h, message, err);
	if (status == LAT_OK)
		status = lat_history_close_calls(h, LOST, sizeof LOST - 1, err);
	return status;
}
