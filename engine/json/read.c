/* The reader: text in, tree out; see read.h. Pure; any thread.
 *
 * It owns one thing while it runs: a stack of values. A finished value stays on the stack until its container
 * closes; then the container's values move into the arena in one piece and the container itself is a finished
 * value. An open container keeps its parent's place on the stack in u.i, so depth costs no C stack.
 * The first FIRST_STACK values need no malloc; `lat_json_read` frees the rest on every way out. */
#include "json/read.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/members.h"
#include "json/number.h"
#include "json/scan.h"

enum {
	FIRST_STACK = 128, /* values */
	COPY_SLACK = 8,    /* lat_json_copy_plain writes that much too far */
};

typedef struct {
	const char *text, *end;
	lat_arena *arena;
	lat_value *stack;
	size_t top, room;
	size_t open; /* place of the innermost open container; means something when depth > 0 */
	unsigned depth, max_depth;
	bool copy_strings;
	lat_status status;
	lat_error *err;
	lat_value first[FIRST_STACK];
} reader;

/* Readers of parts return the place behind what they took, or NULL after fail(). */
__attribute__((format(printf, 4, 5), cold)) static const char *fail(reader *r, const char *at,
                                                                    lat_status kind, const char *format, ...)
{
	r->status = kind;
	if (r->err) {
		char message[sizeof r->err->message];
		va_list args;
		va_start(args, format);
		vsnprintf(message, sizeof message, format, args);
		va_end(args);
		lat_fail(r->err, kind, "%s", message);
		r->err->offset = (size_t)(at - r->text);
	}
	return NULL;
}

static const char *fail_nomem(reader *r, const char *at)
{
	return fail(r, at, LAT_E_NOMEM, "not enough memory");
}

/* "expected <what>, got <what stands there>" */
static const char *fail_expected(reader *r, const char *at, const char *what)
{
	if (at >= r->end)
		return fail(r, at, LAT_E_SYNTAX, "expected %s, got the end of the text", what);
	unsigned char c = (unsigned char)*at;
	if (c > 0x20 && c < 0x7f)
		return fail(r, at, LAT_E_SYNTAX, "expected %s, got '%c'", what, c);
	return fail(r, at, LAT_E_SYNTAX, "expected %s, got byte 0x%02x", what, c);
}

static inline const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

static bool grow_stack(reader *r)
{
	size_t room = r->room * 2;
	if (room > SIZE_MAX / sizeof(lat_value))
		return false;
	bool was_first = r->stack == r->first;
	lat_value *stack = realloc(was_first ? NULL : r->stack, room * sizeof *stack);
	if (!stack)
		return false;
	if (was_first)
		memcpy(stack, r->first, sizeof r->first);
	r->stack = stack;
	r->room = room;
	return true;
}

static inline lat_value *push(reader *r)
{
	if (r->top == r->room && !grow_stack(r))
		return NULL;
	lat_value *v = &r->stack[r->top++];
	v->flags = 0;
	v->len = 0;
	return v;
}

/* ---- strings ---- */

static const char *hex4(const char *p, const char *end, unsigned *out)
{
	unsigned code = 0;
	if (end - p < 4)
		return NULL;
	for (int i = 0; i < 4; i++, p++) {
		unsigned char c = (unsigned char)*p, low = c | 0x20;
		if (c >= '0' && c <= '9')
			code = code << 4 | (unsigned)(c - '0');
		else if (low >= 'a' && low <= 'f')
			code = code << 4 | (unsigned)(low - 'a' + 10);
		else
			return NULL;
	}
	*out = code;
	return p;
}

static char *put_utf8(char *q, unsigned code)
{
	if (code < 0x80) {
		*q++ = (char)code;
	} else if (code < 0x800) {
		*q++ = (char)(0xc0 | code >> 6);
		*q++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*q++ = (char)(0xe0 | code >> 12);
		*q++ = (char)(0x80 | (code >> 6 & 0x3f));
		*q++ = (char)(0x80 | (code & 0x3f));
	} else {
		*q++ = (char)(0xf0 | code >> 18);
		*q++ = (char)(0x80 | (code >> 12 & 0x3f));
		*q++ = (char)(0x80 | (code >> 6 & 0x3f));
		*q++ = (char)(0x80 | (code & 0x3f));
	}
	return q;
}

/* p: behind \u. A pair of surrogates is one character (RFC 8259 section 7); half a pair is none. */
static const char *unicode_escape(reader *r, const char *p, char **q)
{
	const char *start = p - 2;
	unsigned code, low;
	p = hex4(p, r->end, &code);
	if (!p)
		return fail(r, start, LAT_E_SYNTAX, "four hex digits must follow \\u");
	if (code >= 0xd800 && code <= 0xdfff) {
		bool pair = code <= 0xdbff && r->end - p >= 6 && p[0] == '\\' && p[1] == 'u';
		const char *behind = pair ? hex4(p + 2, r->end, &low) : NULL;
		if (!behind || low < 0xdc00 || low > 0xdfff)
			return fail(r, start, LAT_E_SYNTAX, "\\u%04x is half of a surrogate pair", code);
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		p = behind;
	}
	*q = put_utf8(*q, code);
	return p;
}

/* p: at a backslash. Appends what it stands for at *q. */
static const char *escape(reader *r, const char *p, char **q)
{
	static const char meant[0x80] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
	                                 ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
	if (r->end - p < 2)
		return fail_expected(r, r->end, "an escape");
	if (p[1] == 'u')
		return unicode_escape(r, p + 2, q);
	unsigned char c = (unsigned char)p[1];
	if (c > 0x7f || !meant[c])
		return fail_expected(r, p + 1, "one of \"\\/bfnrtu behind the backslash");
	*(*q)++ = meant[c];
	return p + 2;
}

/* The characters past ASCII at p, or the fault there. */
static const char *wide_characters(reader *r, const char *p)
{
	do {
		size_t n = lat_utf8_step(p, r->end);
		if (n == 0)
			return fail(r, p, LAT_E_SYNTAX, "invalid UTF-8 in a string");
		p += n;
	} while (p < r->end && (unsigned char)*p > 0x7f);
	return p;
}

static const char *fail_in_string(reader *r, const char *p)
{
	if (p >= r->end)
		return fail_expected(r, p, "the closing quote of a string");
	return fail(r, p, LAT_E_SYNTAX, "control byte 0x%02x in a string must be escaped", (unsigned char)*p);
}

/* The quote that ends the string, or end. */
static const char *closing_quote(const char *p, const char *end)
{
	while (p < end && *p != '"') {
		if (*p == '\\')
			p += end - p > 1 ? 2 : 1;
		else if (lat_json_is_plain((unsigned char)*p))
			p = lat_json_plain_end(p, end);
		else
			p++;
	}
	return p < end ? p : end;
}

/* Room for the decoded string that starts at start, its first backslash at p: no escape means more bytes than
 * it is written with. Usually the rest of the text fits into the arena as it is, else the string's end is
 * looked for. */
static char *room_for_string(reader *r, const char *start, const char *p)
{
	size_t most = (size_t)(r->end - start) + COPY_SLACK;
	if ((size_t)(r->arena->end - r->arena->at) < most)
		most = (size_t)(closing_quote(p, r->end) - start) + COPY_SLACK;
	return lat_arena_alloc(r->arena, most);
}

/* A string that has escapes: start is its first byte, p the first backslash. */
static const char *string_with_escapes(reader *r, const char *start, const char *p, lat_value *out)
{
	char *bytes = room_for_string(r, start, p);
	if (!bytes)
		return fail_nomem(r, p);
	memcpy(bytes, start, (size_t)(p - start));
	char *q = bytes + (p - start);
	while (p < r->end && *p != '"') {
		const char *from = p;
		if (*p == '\\') {
			p = escape(r, p, &q);
		} else if ((unsigned char)*p > 0x7f) {
			if ((p = wide_characters(r, p))) {
				memcpy(q, from, (size_t)(p - from));
				q += p - from;
			}
		} else if ((p = lat_json_copy_plain(p, r->end, &q)) == from) {
			return fail_in_string(r, p);
		}
		if (!p)
			return NULL;
	}
	if (p == r->end)
		return fail_in_string(r, p);
	lat_arena_trim(r->arena, q);
	out->type = LAT_STRING;
	out->len = (uint32_t)(q - bytes);
	out->u.s = bytes;
	return p + 1;
}

/* start: behind the opening quote. */
static inline const char *string(reader *r, const char *start, lat_value *out)
{
	const char *p = lat_json_plain_end(start, r->end);
	while (p < r->end && (unsigned char)*p > 0x7f) {
		p = wide_characters(r, p);
		if (!p)
			return NULL;
		p = lat_json_plain_end(p, r->end);
	}
	if (p < r->end && *p == '\\')
		return string_with_escapes(r, start, p, out);
	if (p >= r->end || *p != '"')
		return fail_in_string(r, p);
	out->type = LAT_STRING;
	out->len = (uint32_t)(p - start);
	out->u.s = r->copy_strings ? lat_arena_copy(r->arena, start, out->len) : start;
	return out->u.s ? p + 1 : fail_nomem(r, start);
}

/* ---- the other values ---- */

static inline const char *number(reader *r, const char *p, lat_value *out)
{
	const char *why;
	lat_status status = lat_json_read_number(&p, r->end, out, &why);
	return status == LAT_OK ? p : fail(r, p, status, "%s", why);
}

static const char *word(reader *r, const char *p, const char *name, size_t len, lat_type type, lat_value *out)
{
	if ((size_t)(r->end - p) < len || memcmp(p, name, len) != 0)
		return fail_expected(r, p, "a value");
	out->type = (uint8_t)type;
	return p + len;
}

/* p: behind the comma or brace before a key. Takes the key and its colon. */
static const char *key(reader *r, const char *p)
{
	p = skip_space(p, r->end);
	if (p >= r->end || *p != '"')
		return fail_expected(r, p, "a key in quotes");
	lat_value *k = push(r);
	if (!k)
		return fail_nomem(r, p);
	p = string(r, p + 1, k);
	if (!p)
		return NULL;
	p = skip_space(p, r->end);
	return p < r->end && *p == ':' ? p + 1 : fail_expected(r, p, "':' behind a key");
}

/* ---- containers ---- */

/* Takes an opening bracket, and the first key of an object. *closed: it was empty and is finished. */
static const char *open_container(reader *r, const char *p, lat_value *container, lat_type type, bool *closed)
{
	if (r->depth == r->max_depth)
		return fail(r, p, LAT_E_LIMIT, "nested deeper than %u levels", r->max_depth);
	char close = type == LAT_OBJECT ? '}' : ']';
	p = skip_space(p + 1, r->end);
	container->type = (uint8_t)type;
	*closed = p < r->end && *p == close;
	if (*closed) {
		container->u.items = NULL;
		return p + 1;
	}
	container->u.i = (int64_t)r->open;
	r->open = r->top - 1;
	r->depth++;
	return type == LAT_OBJECT ? key(r, p) : p;
}

/* Moves the values of the innermost container into the arena. */
static bool close_container(reader *r)
{
	lat_value *container = &r->stack[r->open];
	lat_value *items = container + 1;
	size_t count = r->top - r->open - 1, values = count;
	if (container->type == LAT_OBJECT) {
		count /= 2;
		if (lat_json_drop_duplicates(items, &count) != LAT_OK)
			return false;
		values = 2 * count;
	}
	lat_value *moved = lat_arena_alloc(r->arena, values * sizeof *moved);
	if (!moved)
		return false;
	memcpy(moved, items, values * sizeof *moved);
	r->top = r->open + 1;
	r->open = (size_t)container->u.i;
	r->depth--;
	container->len = (uint32_t)count;
	container->u.items = moved;
	return true;
}

/* Takes a scalar, an empty container, or the start of a container. *whole: the value is finished. */
static inline const char *value(reader *r, const char *p, bool *whole)
{
	*whole = true;
	p = skip_space(p, r->end);
	if (p >= r->end)
		return fail_expected(r, p, "a value");
	lat_value *v = push(r);
	if (!v)
		return fail_nomem(r, p);
	switch (*p) {
	case '"':
		return string(r, p + 1, v);
	case '{':
		return open_container(r, p, v, LAT_OBJECT, whole);
	case '[':
		return open_container(r, p, v, LAT_ARRAY, whole);
	case 't':
		return word(r, p, "true", 4, LAT_TRUE, v);
	case 'f':
		return word(r, p, "false", 5, LAT_FALSE, v);
	case 'n':
		return word(r, p, "null", 4, LAT_NULL, v);
	default:
		if (*p == '-' || (*p >= '0' && *p <= '9'))
			return number(r, p, v);
		return fail_expected(r, p, "a value");
	}
}

/* Behind a finished value: takes closing brackets, and the comma (and key) before the next value, if one is
 * due. */
static inline const char *behind_value(reader *r, const char *p, bool *more)
{
	for (*more = true; r->depth > 0;) {
		bool object = r->stack[r->open].type == LAT_OBJECT;
		p = skip_space(p, r->end);
		if (p < r->end && *p == ',')
			return object ? key(r, p + 1) : p + 1;
		if (p >= r->end || *p != (object ? '}' : ']'))
			return fail_expected(r, p, object ? "',' or '}'" : "',' or ']'");
		if (!close_container(r))
			return fail_nomem(r, p);
		p++;
	}
	*more = false;
	return p;
}

static void read_text(reader *r)
{
	const char *p = r->text;
	for (bool more = true, whole; p && more;) {
		p = value(r, p, &whole);
		if (p && whole)
			p = behind_value(r, p, &more);
	}
	if (!p)
		return;
	p = skip_space(p, r->end);
	if (p < r->end)
		fail_expected(r, p, "nothing behind the value");
}

lat_status lat_json_read(lat_arena *arena, const char *text, size_t len, const lat_json_options *options,
                         lat_value *out, lat_error *err)
{
	size_t max_bytes = options && options->max_bytes ? options->max_bytes : LAT_JSON_DEFAULT_BYTES;
	unsigned max_depth = options && options->max_depth ? options->max_depth : LAT_JSON_DEFAULT_DEPTH;
	if (max_bytes > UINT32_MAX)
		max_bytes = UINT32_MAX; /* lat_value.len has 32 bits */
	if (len > max_bytes) {
		lat_fail(err, LAT_E_LIMIT, "the text has %zu bytes, at most %zu are allowed", len, max_bytes);
		if (err)
			err->offset = max_bytes;
		return LAT_E_LIMIT;
	}
	reader r;
	r.text = text ? text : "";
	r.end = r.text + len;
	r.arena = arena;
	r.stack = r.first;
	r.top = 0;
	r.room = FIRST_STACK;
	r.open = 0;
	r.depth = 0;
	r.max_depth = max_depth < LAT_JSON_DEFAULT_DEPTH ? max_depth : LAT_JSON_DEFAULT_DEPTH;
	r.copy_strings = options && (options->flags & LAT_JSON_COPY_STRINGS);
	r.status = LAT_OK;
	r.err = err;
	read_text(&r);
	if (r.status == LAT_OK)
		*out = r.stack[0];
	if (r.stack != r.first)
		free(r.stack);
	return r.status;
}
