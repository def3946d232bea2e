/* Telling what is wrong: path, expectation, what came, and a sentence of both. Part of a run (run.h); texts are
 * built in lat_run.text and copied into the run's arena. All of it is valid UTF-8 without control bytes, since
 * it goes to the model. */
#include "schema/run.h"

#include "json/write.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LONGEST_SHOWN = 60, /* bytes of a string from the instance */
	LONGEST_LIST = 300, /* bytes of a list of choices or names */
	LONGEST_KEY = 200   /* bytes of a member's name in a path */
};

/* At most `most` bytes of s, whole characters; control bytes escaped, invalid ones replaced. */
static void put_text(lat_buf *b, const char *s, size_t len, size_t most)
{
	size_t at = 0;
	while (at < len && at < most) {
		unsigned char c = (unsigned char)s[at];
		if (c < 0x20 || c == 0x7F) {
			lat_buf_printf(b, "\\u%04x", c);
			at++;
			continue;
		}
		size_t n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
		if (n > len - at || lat_utf8_valid_prefix(s + at, n) != n) {
			lat_buf_str(b, "\xEF\xBF\xBD");
			n = 1;
		} else {
			lat_buf_append(b, s + at, n);
		}
		at += n;
	}
	if (at < len)
		lat_buf_str(b, "…");
}

static void put_number(lat_buf *b, const lat_value *v)
{
	char text[40];
	if (v->type == LAT_INT) {
		lat_buf_printf(b, "%" PRId64, v->u.i);
		return;
	}
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(text, sizeof text, "%.*g", precision, v->u.d);
		if (strtod(text, NULL) == v->u.d)
			break;
	}
	lat_buf_str(b, text);
}

static void put_json(lat_buf *b, const lat_value *v)
{
	lat_buf json = LAT_BUF_INIT;
	if (v->type == LAT_INT || v->type == LAT_DOUBLE) {
		put_number(b, v);
		return;
	}
	if (lat_json_write_value(&json, v, NULL) == LAT_OK && lat_buf_ok(&json))
		put_text(b, json.data, json.len, LONGEST_SHOWN);
	b->failed = b->failed || json.failed;
	lat_buf_free(&json);
}

/* What came. */
static void put_actual(lat_buf *b, const lat_value *v)
{
	switch (v->type) {
	case LAT_NULL:
		lat_buf_str(b, "null");
		break;
	case LAT_FALSE:
	case LAT_TRUE:
		lat_buf_str(b, v->type == LAT_TRUE ? "true" : "false");
		break;
	case LAT_INT:
		lat_buf_str(b, "integer ");
		put_number(b, v);
		break;
	case LAT_DOUBLE:
		lat_buf_str(b, "number ");
		put_number(b, v);
		if (v->flags & LAT_V_WIDE_INT)
			lat_buf_str(b, " (an integer that 64 bits can't hold)");
		if (v->flags & LAT_V_ROUNDED)
			lat_buf_str(b, " (rounded: its digits say another number)");
		break;
	case LAT_STRING:
		lat_buf_str(b, "string \"");
		put_text(b, v->u.s, v->len, LONGEST_SHOWN);
		lat_buf_byte(b, '"');
		break;
	case LAT_ARRAY:
		lat_buf_printf(b, "array of %" PRIu32 " item%s", v->len, v->len == 1 ? "" : "s");
		break;
	default:
		lat_buf_printf(b, "object with %" PRIu32 " member%s", v->len, v->len == 1 ? "" : "s");
	}
}

/* A token of a JSON pointer (RFC 6901 section 3). */
static void put_token(lat_buf *b, const char *s, size_t len)
{
	size_t shown = len > LONGEST_KEY ? LONGEST_KEY : len;
	lat_buf_byte(b, '/');
	for (size_t start = 0, i = 0; i <= shown; i++) {
		if (i < shown && s[i] != '~' && s[i] != '/')
			continue;
		put_text(b, s + start, i - start, LONGEST_KEY);
		if (i < shown)
			lat_buf_str(b, s[i] == '~' ? "~0" : "~1");
		start = i + 1;
	}
	if (shown < len)
		lat_buf_str(b, "…");
}

static void put_path(lat_run *r, lat_buf *b, const lat_place *at)
{
	size_t n = 0;
	for (const lat_place *p = at; p; p = p->up)
		n++;
	const lat_place **chain = lat_arena_alloc(r->arena, n * sizeof *chain);
	if (!chain) {
		b->failed = true;
		return;
	}
	for (size_t i = n; at; at = at->up)
		chain[--i] = at;
	for (size_t i = 0; i < n; i++) {
		if (chain[i]->key)
			put_token(b, chain[i]->key->u.s, chain[i]->key->len);
		else
			lat_buf_printf(b, "/%" PRIu32, chain[i]->index);
	}
}

/* ---- entries ---- */

/* Room for one more error; NULL when there are enough, or no memory (then the run stops). */
static lat_schema_error *new_entry(lat_run *r)
{
	lat_schema_errors *e = r->errors;
	if (e->total++ >= LAT_SCHEMA_MAX_ERRORS)
		return NULL;
	if (!e->items)
		e->items = lat_arena_alloc(r->arena, (LAT_SCHEMA_MAX_ERRORS + 1) * sizeof *e->items);
	if (e->items)
		return &e->items[e->count++];
	lat_run_nomem(r);
	return NULL;
}

/* Takes the text built so far. */
static const char *take_text(lat_run *r)
{
	const char *copy =
		lat_buf_ok(&r->text) ? lat_arena_copy(r->arena, r->text.data ? r->text.data : "", r->text.len) : NULL;
	lat_buf_clear(&r->text);
	if (!copy)
		lat_run_nomem(r);
	return copy ? copy : "";
}

static const char *path_of(lat_run *r, const lat_place *at)
{
	put_path(r, &r->text, at);
	return take_text(r);
}

/* Finishes an entry whose expectation stands in r->text. v NULL: nothing came. */
static bool finish_expected(lat_run *r, const lat_place *at, const lat_value *v)
{
	lat_schema_error *e = new_entry(r);
	if (!e) {
		lat_buf_clear(&r->text);
		return false;
	}
	e->expected = take_text(r);
	if (v)
		put_actual(&r->text, v);
	else
		lat_buf_str(&r->text, "nothing");
	e->actual = take_text(r);
	e->path = path_of(r, at);
	lat_buf_printf(&r->text, "%sexpected %s, got %s", at && at->is_name ? "as a property name: " : "",
	               e->expected, e->actual);
	e->message = take_text(r);
	return false;
}

bool lat_report(lat_run *r, const lat_place *at, const lat_value *v, const char *expected, ...)
{
	char text[512];
	va_list args;
	if (!r->report)
		return false;
	va_start(args, expected);
	vsnprintf(text, sizeof text, expected, args);
	va_end(args);
	put_text(&r->text, text, strlen(text), sizeof text);
	return finish_expected(r, at, v);
}

bool lat_report_type(lat_run *r, const lat_place *at, const lat_value *v, uint8_t types)
{
	static const struct {
		uint8_t bit;
		const char *name;
	} NAMES[] = {{LAT_T_STRING, "string"},   {LAT_T_INTEGER, "integer"}, {LAT_T_NUMBER, "number"},
	             {LAT_T_BOOLEAN, "boolean"}, {LAT_T_ARRAY, "array"},     {LAT_T_OBJECT, "object"},
	             {LAT_T_NULL, "null"}};
	const char *between = "";
	if (!r->report)
		return false;
	if (!types)
		return lat_report(r, at, v, "no value here");
	if (types & LAT_T_NUMBER)
		types &= (uint8_t)~LAT_T_INTEGER;
	for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
		if (types & NAMES[i].bit) {
			lat_buf_printf(&r->text, "%s%s", between, NAMES[i].name);
			between = " or ";
		}
	}
	return finish_expected(r, at, v);
}

bool lat_report_missing(lat_run *r, const lat_place *at, const lat_text *name, const lat_text *because)
{
	lat_value key = lat_value_string_view(name->s, name->len);
	lat_place here = {at, &key, 0, false};
	if (!r->report)
		return false;
	lat_schema_error *e = new_entry(r);
	if (!e)
		return false;
	e->path = path_of(r, &here);
	lat_buf_str(&r->text, "a value (required");
	if (because) {
		lat_buf_str(&r->text, " beside \"");
		put_text(&r->text, because->s, because->len, LONGEST_SHOWN);
		lat_buf_byte(&r->text, '"');
	}
	lat_buf_byte(&r->text, ')');
	e->expected = take_text(r);
	e->actual = "nothing";
	lat_buf_str(&r->text, "required property \"");
	put_text(&r->text, name->s, name->len, LONGEST_KEY);
	lat_buf_str(&r->text, "\" is missing");
	e->message = take_text(r);
	return false;
}

static void put_known(lat_buf *b, const lat_object_rules *o)
{
	size_t start = b->len;
	lat_buf_str(b, "one of the properties ");
	for (uint32_t i = 0; i < o->property_count; i++) {
		if (b->len - start > LONGEST_LIST) {
			lat_buf_str(b, ", …");
			return;
		}
		lat_buf_str(b, i ? ", \"" : "\"");
		put_text(b, o->properties[i].name.s, o->properties[i].name.len, LONGEST_KEY);
		lat_buf_byte(b, '"');
	}
}

bool lat_report_unknown(lat_run *r, const lat_place *member, const lat_value *v, const lat_object_rules *o)
{
	if (!r->report)
		return false;
	lat_schema_error *e = new_entry(r);
	if (!e)
		return false;
	e->path = path_of(r, member);
	if (o && o->property_count)
		put_known(&r->text, o);
	else
		lat_buf_str(&r->text, "no further property");
	e->expected = take_text(r);
	put_actual(&r->text, v);
	e->actual = take_text(r);
	lat_buf_str(&r->text, "unknown property \"");
	put_text(&r->text, member->key->u.s, member->key->len, LONGEST_KEY);
	lat_buf_printf(&r->text, "\", expected %s", e->expected);
	e->message = take_text(r);
	return false;
}

bool lat_report_choices(lat_run *r, const lat_place *at, const lat_value *v, const lat_value *choices,
                        uint32_t count)
{
	if (!r->report)
		return false;
	if (!count)
		return lat_report(r, at, v, "no value here");
	lat_buf_str(&r->text, count == 1 ? "" : "one of ");
	for (uint32_t i = 0; i < count; i++) {
		if (r->text.len > LONGEST_LIST) {
			lat_buf_str(&r->text, ", …");
			break;
		}
		lat_buf_str(&r->text, i ? ", " : "");
		put_json(&r->text, &choices[i]);
	}
	return finish_expected(r, at, v);
}

bool lat_report_bound(lat_run *r, const lat_place *at, const lat_value *v, const char *words,
                      const lat_value *bound)
{
	if (!r->report)
		return false;
	lat_buf_printf(&r->text, "%s ", words);
	put_number(&r->text, bound);
	return finish_expected(r, at, v);
}

bool lat_report_limit(lat_run *r, const lat_place *at, const char *message)
{
	lat_schema_error *e = new_entry(r);
	if (e)
		*e = (lat_schema_error){path_of(r, at), "a value that can be judged within the limits", "", message};
	return false;
}

void lat_report_rest(lat_run *r)
{
	lat_schema_errors *e = r->errors;
	if (r->stop == LAT_E_NOMEM || e->total <= LAT_SCHEMA_MAX_ERRORS)
		return;
	lat_buf_printf(&r->text, "… and %" PRIu64 " more", (uint64_t)e->total - LAT_SCHEMA_MAX_ERRORS);
	e->items[e->count++] = (lat_schema_error){"", "", "", take_text(r)};
}

lat_status lat_report_text(lat_arena *arena, lat_schema_errors *errors, const lat_error *err)
{
	char message[sizeof err->message + 64];
	snprintf(message, sizeof message, "not valid JSON: %s (offset %zu)", err->message, err->offset);
	const char *copy = lat_arena_copy(arena, message, strlen(message));
	errors->items = lat_arena_alloc(arena, sizeof *errors->items);
	if (!copy || !errors->items)
		return LAT_E_NOMEM;
	errors->items[0] = (lat_schema_error){"", "JSON text", "text that isn't JSON", copy};
	errors->count = errors->total = 1;
	return LAT_E_INVALID;
}
