/* lat_message: see message.h. Pure; one owner at a time. */
#include "messages/message.h"

#include <stdlib.h>
#include <string.h>

#include "json/read.h"
#include "json/write.h"

lat_message *lat_message_new(void)
{
	return calloc(1, sizeof(lat_message));
}

void lat_message_free(lat_message *m)
{
	if (!m)
		return;
	lat_buf_free(&m->content);
	lat_buf_free(&m->strings);
	lat_buf_free(&m->head);
	lat_buf_free(&m->usage);
	lat_buf_free(&m->model);
	lat_buf_free(&m->stop_reason);
	free(m->blocks);
	free(m);
}

static bool buffers_ok(const lat_message *m)
{
	return lat_buf_ok(&m->content) && lat_buf_ok(&m->strings) && lat_buf_ok(&m->head) &&
	       lat_buf_ok(&m->usage) && lat_buf_ok(&m->model) && lat_buf_ok(&m->stop_reason);
}

static lat_status checked(const lat_message *m, lat_error *err)
{
	return buffers_ok(m) ? LAT_OK : lat_fail_nomem(err);
}

/* Appends the decoded text of a quoted JSON string. False when it is no string, or there is no memory. */
static bool decode_string(lat_slice json, lat_buf *out)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	bool ok =
		json.len && json.s[0] == '"' && lat_json_read(&arena, json.s, json.len, NULL, &v, NULL) == LAT_OK;
	if (ok)
		lat_buf_append(out, v.u.s, v.len);
	lat_arena_free(&arena);
	return ok && lat_buf_ok(out);
}

/* ---- blocks ---- */

static lat_block *new_block(lat_message *m)
{
	if (m->n_blocks == m->cap_blocks) {
		size_t cap = m->cap_blocks ? m->cap_blocks * 2 : 4;
		lat_block *blocks = realloc(m->blocks, cap * sizeof *blocks);
		if (!blocks)
			return NULL;
		m->blocks = blocks;
		m->cap_blocks = cap;
	}
	lat_block *b = &m->blocks[m->n_blocks++];
	*b = (lat_block){.from = m->content.len};
	return b;
}

static bool id_is_taken(const lat_message *m, const lat_block *self)
{
	for (const lat_block *b = m->blocks; b < self; b++)
		if (b->is_call && b->id_len == self->id_len &&
		    memcmp(m->strings.data + b->id_from, m->strings.data + self->id_from, b->id_len) == 0)
			return true;
	return false;
}

/* An id that no other call of the message has: the given one, or that with a number behind it. */
static void choose_id(lat_message *m, lat_block *b, lat_slice raw_id)
{
	b->id_from = m->strings.len;
	if (!decode_string(raw_id, &m->strings))
		m->strings.len = b->id_from;
	size_t given_len = m->strings.len - b->id_from;
	if (given_len == 0) {
		lat_buf_printf(&m->strings, "toolu_unnamed_%zu", m->n_blocks);
		given_len = m->strings.len - b->id_from;
	}
	b->id_len = given_len;
	for (unsigned n = 2; lat_buf_ok(&m->strings) && id_is_taken(m, b); n++) {
		m->strings.len = b->id_from + given_len;
		lat_buf_printf(&m->strings, "_%u", n);
		b->id_len = m->strings.len - b->id_from;
	}
}

static bool is_json_object(lat_slice text)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	bool ok = lat_json_read(&arena, text.s, text.len, NULL, &v, NULL) == LAT_OK && v.type == LAT_OBJECT;
	lat_arena_free(&arena);
	return ok;
}

/* Fills in what a tool_use needs to be run, and the id and input that its JSON shall have. */
static void describe_call(lat_message *m, lat_block *b, lat_slice raw, const lat_slice *streamed)
{
	lat_slice id = {"", 0}, name = {"", 0}, input = {"{}", 2};
	lat_raw_member(raw, "id", &id);
	lat_raw_member(raw, "name", &name);
	lat_raw_member(raw, "input", &input);
	b->is_call = true;
	choose_id(m, b, id);
	b->name_from = m->strings.len;
	if (!decode_string(name, &m->strings))
		m->strings.len = b->name_from;
	b->name_len = m->strings.len - b->name_from;
	if (streamed && streamed->len)
		input = *streamed;
	b->complete = is_json_object(input);
	b->input_from = m->strings.len;
	b->input_len = input.len;
	lat_buf_append(&m->strings, input.s, input.len);
}

static void write_member(lat_buf *out, bool *first, lat_slice key, lat_slice value)
{
	if (!*first)
		lat_buf_byte(out, ',');
	*first = false;
	lat_buf_append(out, key.s, key.len);
	lat_buf_byte(out, ':');
	lat_buf_append(out, value.s, value.len);
}

static const lat_override *find_override(const lat_override *list, size_t n, lat_slice key)
{
	for (size_t i = 0; i < n; i++)
		if (lat_raw_key_is(key, list[i].name))
			return &list[i];
	return NULL;
}

/* The block's JSON: its own members as they came, the overridden ones in their places or at the end. */
static void write_block(lat_buf *out, lat_slice raw, const lat_override *overrides, size_t n)
{
	lat_raw_walk walk = lat_raw_begin(raw);
	lat_slice key, value;
	bool first = true;
	unsigned written = 0;
	lat_buf_byte(out, '{');
	while (lat_raw_next_member(&walk, &key, &value)) {
		const lat_override *o = find_override(overrides, n, key);
		if (o)
			written |= 1U << (o - overrides);
		write_member(out, &first, key, o ? o->json : value);
	}
	for (size_t i = 0; i < n; i++) {
		if (written & (1U << i))
			continue;
		lat_buf_str(out, first ? "\"" : ",\"");
		lat_buf_str(out, overrides[i].name);
		lat_buf_str(out, "\":");
		lat_buf_append(out, overrides[i].json.s, overrides[i].json.len);
		first = false;
	}
	lat_buf_byte(out, '}');
}

/* A tool_use whose id or input is not echoed as it came. */
static lat_status write_call(lat_message *m, const lat_block *b, lat_slice raw, lat_error *err)
{
	lat_buf id = LAT_BUF_INIT;
	lat_status status = lat_json_write_string(&id, m->strings.data + b->id_from, b->id_len, err);
	if (status == LAT_OK && !lat_buf_ok(&id))
		status = lat_fail_nomem(err);
	if (status == LAT_OK) {
		lat_slice input = {m->strings.data + b->input_from, b->input_len};
		if (!b->complete)
			input = (lat_slice){"{}", 2};
		lat_override fields[] = {{"id", {id.data, id.len}}, {"input", input}};
		write_block(&m->content, raw, fields, sizeof fields / sizeof *fields);
	}
	lat_buf_free(&id);
	return status;
}

static bool is_empty_text(lat_slice raw, const lat_override *overrides, size_t n)
{
	lat_slice text = {"\"\"", 2};
	lat_raw_member(raw, "text", &text);
	for (size_t i = 0; i < n; i++)
		if (strcmp(overrides[i].name, "text") == 0)
			text = overrides[i].json;
	return lat_slice_is(text, "\"\"");
}

lat_status lat_message_add(lat_message *m, lat_slice raw, const lat_override *overrides, size_t n,
                           const lat_slice *input, lat_error *err)
{
	lat_slice type;
	if (!lat_raw_member(raw, "type", &type) || type.s[0] != '"')
		return lat_fail(err, LAT_E_INVALID, "a content block needs a type");
	if (lat_slice_is(type, "\"text\"") && is_empty_text(raw, overrides, n))
		return LAT_OK;
	if (m->content.len)
		lat_buf_byte(&m->content, ',');
	lat_block *b = new_block(m);
	if (!b)
		return lat_fail_nomem(err);
	lat_status status = LAT_OK;
	if (lat_slice_is(type, "\"tool_use\"")) {
		describe_call(m, b, raw, input);
		status = lat_buf_ok(&m->strings) ? write_call(m, b, raw, err) : lat_fail_nomem(err);
	} else if (n) {
		write_block(&m->content, raw, overrides, n);
	} else {
		lat_buf_append(&m->content, raw.s, raw.len);
	}
	b->len = m->content.len - b->from;
	return status == LAT_OK ? checked(m, err) : status;
}

/* ---- head and usage ---- */

static void set_head(lat_message *m, const char *name, lat_slice value)
{
	if (m->head.len)
		lat_buf_byte(&m->head, ',');
	lat_buf_printf(&m->head, "\"%s\":", name);
	lat_buf_append(&m->head, value.s, value.len);
}

static void set_decoded(lat_buf *out, lat_slice value)
{
	lat_buf_clear(out);
	if (!decode_string(value, out) && lat_buf_ok(out))
		lat_buf_clear(out);
}

lat_status lat_message_take_head(lat_message *m, lat_slice object, lat_error *err)
{
	static const char *const NAMES[][2] = {
		{"id", "provider_response_id"},
		{"model", "model"},
		{"stop_reason", "stop_reason"},
		{"stop_sequence", "stop_sequence"},
	};
	for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
		lat_slice value;
		if (!lat_raw_member(object, NAMES[i][0], &value) || value.s[0] != '"')
			continue;
		set_head(m, NAMES[i][1], value);
		if (strcmp(NAMES[i][0], "model") == 0)
			set_decoded(&m->model, value);
		else if (strcmp(NAMES[i][0], "stop_reason") == 0)
			set_decoded(&m->stop_reason, value);
	}
	return checked(m, err);
}

static bool has_same_key(lat_slice object, lat_slice wanted)
{
	lat_raw_walk walk = lat_raw_begin(object);
	lat_slice key, value;
	while (lat_raw_next_member(&walk, &key, &value))
		if (key.len == wanted.len && memcmp(key.s, wanted.s, key.len) == 0 && !lat_slice_is(value, "null"))
			return true;
	return false;
}

lat_status lat_message_merge_usage(lat_message *m, lat_slice usage, lat_error *err)
{
	if (usage.len == 0 || usage.s[0] != '{')
		return LAT_OK;
	lat_buf merged = LAT_BUF_INIT;
	lat_buf_byte(&merged, '{');
	bool first = true;
	lat_slice key, value;
	lat_raw_walk walk = lat_raw_begin((lat_slice){m->usage.data, m->usage.len});
	while (m->usage.len && lat_raw_next_member(&walk, &key, &value))
		if (!has_same_key(usage, key))
			write_member(&merged, &first, key, value);
	walk = lat_raw_begin(usage);
	while (lat_raw_next_member(&walk, &key, &value))
		if (!lat_slice_is(value, "null"))
			write_member(&merged, &first, key, value);
	lat_buf_byte(&merged, '}');
	lat_buf_free(&m->usage);
	m->usage = merged;
	return checked(m, err);
}

int64_t lat_message_usage(const lat_message *m, const char *name)
{
	lat_slice value;
	if (!m->usage.len || !lat_raw_member((lat_slice){m->usage.data, m->usage.len}, name, &value))
		return 0;
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	int64_t count = 0;
	if (lat_json_read(&arena, value.s, value.len, NULL, &v, NULL) == LAT_OK && v.type == LAT_INT)
		count = v.u.i;
	lat_arena_free(&arena);
	return count;
}

/* ---- whole messages ---- */

static lat_status read_content(lat_message *m, lat_slice content, lat_error *err)
{
	if (content.s[0] == '"') {
		static const char TEXT[] = "{\"type\":\"text\"}";
		lat_override text = {"text", content};
		return lat_message_add(m, (lat_slice){TEXT, sizeof TEXT - 1}, &text, 1, NULL, err);
	}
	if (content.s[0] != '[')
		return lat_fail(err, LAT_E_INVALID, "content: expected a string or an array of content blocks");
	lat_raw_walk walk = lat_raw_begin(content);
	lat_slice block;
	lat_status status = LAT_OK;
	while (status == LAT_OK && lat_raw_next_item(&walk, &block))
		status = lat_message_add(m, block, NULL, 0, NULL, err);
	return status;
}

static lat_status check_shape(const lat_value *v, lat_error *err)
{
	if (v->type != LAT_OBJECT)
		return lat_fail(err, LAT_E_INVALID, "expected a message object");
	const lat_value *role = lat_value_get(v, "role");
	if (role && !lat_value_is_string(role, "assistant"))
		return lat_fail(err, LAT_E_INVALID, "role: expected \"assistant\"");
	if (!lat_value_get(v, "content"))
		return lat_fail(err, LAT_E_INVALID, "a message needs content");
	return LAT_OK;
}

lat_status lat_message_read(lat_message *m, const char *text, size_t len, lat_error *err)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	lat_status status = lat_json_read(&arena, text, len, NULL, &v, err);
	if (status == LAT_OK)
		status = check_shape(&v, err);
	lat_arena_free(&arena);
	lat_slice object = {text, len}, found;
	if (status == LAT_OK && !lat_raw_member(object, "content", &found)) /* its key is written with escapes */
		status = lat_fail(err, LAT_E_INVALID, "a message needs content");
	if (status == LAT_OK)
		status = read_content(m, found, err);
	if (status == LAT_OK)
		status = lat_message_take_head(m, object, err);
	if (status == LAT_OK && lat_raw_member(object, "usage", &found))
		status = lat_message_merge_usage(m, found, err);
	return status;
}

void lat_message_wire(const lat_message *m, lat_buf *out)
{
	lat_buf_str(out, "{\"role\":\"assistant\",\"content\":[");
	lat_buf_append(out, m->content.data, m->content.len);
	lat_buf_str(out, "]}");
}

void lat_message_json(const lat_message *m, lat_buf *out)
{
	lat_message_wire(m, out);
	if (lat_buf_ok(out))
		out->len--; /* the closing brace comes later */
	if (m->head.len) {
		lat_buf_byte(out, ',');
		lat_buf_append(out, m->head.data, m->head.len);
	}
	lat_buf_str(out, ",\"usage\":");
	if (m->usage.len)
		lat_buf_append(out, m->usage.data, m->usage.len);
	else
		lat_buf_str(out, "{}");
	lat_buf_byte(out, '}');
}
