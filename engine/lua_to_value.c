/* Lua value → tree. It runs no Lua code (raw access only) and takes no memory of Lua's, so it never raises
 * and the caller's arena may be owned by a C local. On the thread of the lua_State; owns nothing.
 *
 * What a table means: marked by json.array: an array; marked by json.ordered: an object in the given order;
 * with an item 1: an array; else an object, its keys sorted by bytes. Whatever has no exact JSON form is an
 * error that names the path, written as Lua would index it: $.a[2].b */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua_core.h"
#include "lua_value.h"
#include "json/read.h"
#include "json/write.h"

enum { MAX_DEPTH = LAT_JSON_DEFAULT_DEPTH, STACK_PER_LEVEL = 6, INSERTION_SORT_MEMBERS = 12 };

/* A table on the way from the root, and the member of it that is being looked at. */
typedef struct frame frame;
struct frame {
	const frame *parent;
	const void *table;
	unsigned depth;
	const char *key; /* NULL: the member is items[index] */
	size_t key_len;
	lua_Integer index;
};

typedef struct {
	lua_State *L;
	lat_arena *arena;
	lat_error *err;
	int array_mt, ordered_mt, pairs_key; /* stack places */
} walker;

/* ---- errors ---- */

typedef struct {
	char *text;
	size_t len, room;
} line;

__attribute__((format(printf, 2, 3))) static void add(line *out, const char *format, ...)
{
	size_t left = out->room - out->len;
	va_list args;
	va_start(args, format);
	int n = vsnprintf(out->text + out->len, left, format, args);
	va_end(args);
	out->len += n < 0 ? 0 : (size_t)n < left ? (size_t)n : left - 1;
}

static bool is_name(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool letter = (s[i] | 0x20) >= 'a' && (s[i] | 0x20) <= 'z';
		if (!letter && s[i] != '_' && !(i > 0 && s[i] >= '0' && s[i] <= '9'))
			return false;
	}
	return len > 0;
}

/* In quotes, with what isn't text as \xNN. */
static void add_quoted(line *out, const char *s, size_t len)
{
	add(out, "\"");
	for (size_t i = 0; i < len;) {
		unsigned char c = (unsigned char)s[i];
		size_t n = len - i < 4 ? len - i : 4, valid = lat_utf8_valid_prefix(s + i, n);
		size_t width = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
		if (c < 0x20 || c == 0x7f || valid < width) {
			add(out, "\\x%02x", c);
			i++;
		} else {
			add(out, "%s%.*s", c == '"' || c == '\\' ? "\\" : "", (int)width, s + i);
			i += width;
		}
		if (out->len + 1 >= out->room)
			return;
	}
	add(out, "\"");
}

static void add_path(line *out, const frame *f)
{
	if (!f) {
		add(out, "$");
		return;
	}
	add_path(out, f->parent);
	if (!f->key) {
		add(out, "[%lld]", (long long)f->index);
	} else if (is_name(f->key, f->key_len)) {
		add(out, ".%.*s", (int)f->key_len, f->key);
	} else {
		add(out, "[");
		add_quoted(out, f->key, f->key_len);
		add(out, "]");
	}
}

/* A line that ran out of room ends in "..." behind its last whole character. */
static void finish(line *out)
{
	if (out->len + 1 < out->room)
		return;
	size_t valid = lat_utf8_valid_prefix(out->text, out->room - 4);
	memcpy(out->text + valid, "...", 4);
}

/* f: the path's last table; NULL for the root value itself. */
__attribute__((format(printf, 4, 5), cold)) static lat_status fail(const walker *w, const frame *f,
                                                                   lat_status kind, const char *format, ...)
{
	if (!w->err)
		return kind;
	char path[sizeof w->err->path], message[sizeof w->err->message];
	line at = {path, 0, sizeof path};
	add_path(&at, f);
	finish(&at);
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	return lat_fail_at(w->err, kind, path, "%s", message);
}

/* The key at idx as people write it. */
static const char *key_text(const walker *w, int idx, char *text, size_t room)
{
	line out = {text, 0, room};
	text[0] = '\0';
	if (lua_type(w->L, idx) == LUA_TSTRING) {
		size_t len;
		const char *s = lua_tolstring(w->L, idx, &len);
		add_quoted(&out, s, len);
		finish(&out);
	} else if (lua_isinteger(w->L, idx)) {
		add(&out, "%lld", (long long)lua_tointeger(w->L, idx));
	} else if (lua_type(w->L, idx) == LUA_TNUMBER) {
		add(&out, "%g", lua_tonumber(w->L, idx));
	} else {
		add(&out, "of type %s", lua_typename(w->L, lua_type(w->L, idx)));
	}
	return text;
}

/* Too deep: because a table stands inside itself? Then that is the better message. */
static lat_status fail_deep(const walker *w, const frame *deepest)
{
	const frame *repeated = NULL;
	for (const frame *f = deepest; f->parent; f = f->parent)
		for (const frame *above = f->parent; above; above = above->parent)
			if (above->table == f->table)
				repeated = f; /* in the end: the one nearest to the root */
	if (repeated)
		return fail(w, repeated->parent, LAT_E_INVALID, "a cycle: this table stands inside itself");
	return fail(w, deepest->parent, LAT_E_LIMIT, "nested deeper than %d levels", MAX_DEPTH);
}

/* ---- scalars ---- */

static lat_status check_text(const walker *w, const frame *f, const char *what, const char *s, size_t len)
{
	if (len > UINT32_MAX)
		return fail(w, f, LAT_E_LIMIT, "%s is longer than 4 GiB", what);
	size_t valid = lat_utf8_valid_prefix(s, len);
	if (valid < len)
		return fail(w, f, LAT_E_INVALID, "%s is not UTF-8: byte %zu is 0x%02x", what, valid + 1,
		            (unsigned char)s[valid]);
	return LAT_OK;
}

static lat_status convert_number(const walker *w, const frame *f, lat_value *out)
{
	if (lua_isinteger(w->L, -1)) {
		*out = lat_value_int(lua_tointeger(w->L, -1));
		return LAT_OK;
	}
	double d = lua_tonumber(w->L, -1);
	if (isnan(d))
		return fail(w, f, LAT_E_INVALID, "NaN has no JSON form");
	if (isinf(d))
		return fail(w, f, LAT_E_INVALID, "infinity has no JSON form");
	*out = lat_value_double(d);
	return LAT_OK;
}

static lat_status convert_string(const walker *w, const frame *f, lat_value *out)
{
	size_t len;
	const char *s = lua_tolstring(w->L, -1, &len);
	*out = lat_value_string_view(s, len);
	return check_text(w, f, "the string", s, len);
}

/* ---- tables ---- */

static lat_status convert(const walker *w, const frame *f, lat_value *out);

static int compare_members(const void *a, const void *b)
{
	const lat_value *x = a, *y = b;
	int order = memcmp(x->u.s, y->u.s, x->len < y->len ? x->len : y->len);
	return order ? order : (x->len > y->len) - (x->len < y->len);
}

static void sort_members(lat_value *members, size_t count)
{
	if (count > INSERTION_SORT_MEMBERS) {
		qsort(members, count, 2 * sizeof *members, compare_members);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		lat_value key = members[2 * i], value = members[2 * i + 1];
		size_t j = i;
		for (; j > 0 && compare_members(&members[2 * j - 2], &key) > 0; j--)
			memcpy(&members[2 * j], &members[2 * j - 2], 2 * sizeof *members);
		members[2 * j] = key;
		members[2 * j + 1] = value;
	}
}

/* Room for n values. */
static lat_value *room_for(const walker *w, size_t n)
{
	return n > SIZE_MAX / sizeof(lat_value) ? NULL : lat_arena_alloc(w->arena, n * sizeof(lat_value));
}

/* A pair {key, value} of json.ordered is on top. */
static lat_status convert_pair(const walker *w, frame *f, lat_value *member)
{
	lua_State *L = w->L;
	bool pair = lua_istable(L, -1) && lua_rawlen(L, -1) == 2;
	if (!pair || lua_rawgeti(L, -1, 1) != LUA_TSTRING)
		return fail(w, f->parent, LAT_E_INVALID, "json.ordered: item %lld must be {string, value}",
		            (long long)f->index);
	f->key = lua_tolstring(L, -1, &f->key_len);
	lat_status status = check_text(w, f, "the key", f->key, f->key_len);
	if (status != LAT_OK)
		return status;
	member[0] = lat_value_string_view(f->key, f->key_len);
	lua_rawgeti(L, -2, 2);
	status = convert(w, f, &member[1]);
	lua_pop(L, 2);
	f->key = NULL;
	return status;
}

static lat_status check_no_duplicates(const walker *w, frame *f, const lat_value *members, size_t count)
{
	lat_value *sorted = room_for(w, 2 * count);
	if (!sorted)
		return lat_fail_nomem(w->err);
	memcpy(sorted, members, 2 * count * sizeof *members);
	sort_members(sorted, count);
	for (size_t i = 1; i < count; i++) {
		if (compare_members(&sorted[2 * i - 2], &sorted[2 * i]) != 0)
			continue;
		f->key = sorted[2 * i].u.s;
		f->key_len = sorted[2 * i].len;
		return fail(w, f, LAT_E_INVALID, "the key stands twice in json.ordered");
	}
	return LAT_OK;
}

/* A key that a list can't have is at idx; the list has n items. */
static lat_status fail_list_key(const walker *w, const frame *f, int idx, size_t n)
{
	char key[80];
	key_text(w, idx, key, sizeof key);
	if (lua_isinteger(w->L, idx) && lua_tointeger(w->L, idx) > 0)
		return fail(w, f->parent, LAT_E_INVALID, "a sparse array: item %s behind a hole; use json.null", key);
	if (n == 0)
		return fail(w, f->parent, LAT_E_INVALID, "marked as an array, but has the key %s", key);
	return fail(w, f->parent, LAT_E_INVALID, "a mixed table: items and the key %s have no form together",
	            key);
}

/* A list is on top: an array, or the pairs of json.ordered. */
static lat_status convert_list(const walker *w, frame *f, bool ordered, lat_value *out)
{
	lua_State *L = w->L;
	size_t n = lua_rawlen(L, -1), width = ordered ? 2 : 1, found = 0;
	if (n > UINT32_MAX)
		return fail(w, f->parent, LAT_E_LIMIT, "more than %u items", UINT32_MAX);
	lat_value *items = n ? room_for(w, width * n) : NULL;
	if (n && !items)
		return lat_fail_nomem(w->err);
	lua_pushnil(L);
	for (; lua_next(L, -2); lua_pop(L, 1), found++) {
		f->index = lua_tointeger(L, -2);
		if (!lua_isinteger(L, -2) || f->index < 1 || (size_t)f->index > n)
			return fail_list_key(w, f, -2, n);
		lat_value *item = &items[width * (size_t)(f->index - 1)];
		lat_status status = ordered ? convert_pair(w, f, item) : convert(w, f, item);
		if (status != LAT_OK)
			return status;
	}
	if (found < n) {
		for (f->index = 1; lua_rawgeti(L, -1, f->index) != LUA_TNIL; f->index++)
			lua_pop(L, 1);
		return fail(w, f, LAT_E_INVALID, "a sparse array: no value here; use json.null");
	}
	*out = (lat_value){.type = ordered ? LAT_OBJECT : LAT_ARRAY, .len = (uint32_t)n, .u.items = items};
	return ordered && n ? check_no_duplicates(w, f, items, n) : LAT_OK;
}

static size_t count_members(lua_State *L)
{
	size_t n = 0;
	lua_pushnil(L);
	for (; lua_next(L, -2); lua_pop(L, 1))
		n++;
	return n;
}

/* The key of an object's member at idx. */
static lat_status convert_key(const walker *w, frame *f, int idx, lat_value *out)
{
	if (lua_type(w->L, idx) != LUA_TSTRING) {
		char key[80];
		return fail(w, f->parent, LAT_E_INVALID, "the key %s: keys are strings, and arrays start at 1",
		            key_text(w, idx, key, sizeof key));
	}
	f->key = lua_tolstring(w->L, idx, &f->key_len);
	*out = lat_value_string_view(f->key, f->key_len);
	return check_text(w, f, "the key", f->key, f->key_len);
}

static lat_status convert_object(const walker *w, frame *f, lat_value *out)
{
	lua_State *L = w->L;
	size_t n = count_members(L);
	if (n > UINT32_MAX)
		return fail(w, f->parent, LAT_E_LIMIT, "more than %u members", UINT32_MAX);
	if (n == 0) {
		*out = (lat_value){.type = LAT_OBJECT, .flags = LAT_V_EITHER};
		return LAT_OK;
	}
	lat_value *members = room_for(w, 2 * n), *member = members;
	if (!members)
		return lat_fail_nomem(w->err);
	lua_pushnil(L);
	for (; lua_next(L, -2); lua_pop(L, 1), member += 2) {
		lat_status status = convert_key(w, f, -2, &member[0]);
		if (status == LAT_OK)
			status = convert(w, f, &member[1]);
		if (status != LAT_OK)
			return status;
	}
	sort_members(members, n);
	*out = (lat_value){.type = LAT_OBJECT, .len = (uint32_t)n, .u.items = members};
	return LAT_OK;
}

enum meaning { PLAIN, ARRAY, ORDERED, HIDDEN };

/* What the metatable of the table on top says. */
static enum meaning marked(const walker *w)
{
	lua_State *L = w->L;
	if (!lua_getmetatable(L, -1))
		return PLAIN;
	enum meaning meaning = PLAIN;
	if (lua_rawequal(L, -1, w->array_mt)) {
		meaning = ARRAY;
	} else if (lua_rawequal(L, -1, w->ordered_mt)) {
		meaning = ORDERED;
	} else {
		lua_pushvalue(L, w->pairs_key);
		if (lua_rawget(L, -2) != LUA_TNIL)
			meaning = HIDDEN;
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return meaning;
}

static lat_status convert_table(const walker *w, const frame *parent, lat_value *out)
{
	lua_State *L = w->L;
	frame f = {.parent = parent, .table = lua_topointer(L, -1), .depth = parent ? parent->depth + 1 : 1};
	if (f.depth > MAX_DEPTH)
		return fail_deep(w, &f);
	if (!lua_checkstack(L, STACK_PER_LEVEL))
		return lat_fail_nomem(w->err);
	switch (marked(w)) {
	case ARRAY:
		return convert_list(w, &f, false, out);
	case ORDERED:
		return convert_list(w, &f, true, out);
	case HIDDEN:
		return fail(w, parent, LAT_E_INVALID,
		            "a table with __pairs shows other members than it has; copy it first");
	default:
		return lua_rawlen(L, -1) > 0 ? convert_list(w, &f, false, out) : convert_object(w, &f, out);
	}
}

/* The value is on top and stays there (on failure more may lie above). f: the table that it is in. */
static lat_status convert(const walker *w, const frame *f, lat_value *out)
{
	lua_State *L = w->L;
	int type = lua_type(L, -1);
	switch (type) {
	case LUA_TBOOLEAN:
		*out = lat_value_bool(lua_toboolean(L, -1));
		return LAT_OK;
	case LUA_TNUMBER:
		return convert_number(w, f, out);
	case LUA_TSTRING:
		return convert_string(w, f, out);
	case LUA_TTABLE:
		return convert_table(w, f, out);
	case LUA_TNIL:
		return fail(w, f, LAT_E_INVALID, "nil has no JSON form; use json.null");
	case LUA_TLIGHTUSERDATA:
		if (!lua_touserdata(L, -1)) {
			*out = lat_value_null();
			return LAT_OK;
		}
		/* fall through */
	default:
		return fail(w, f, LAT_E_INVALID, "a value of type %s has no JSON form", lua_typename(L, type));
	}
}

lat_status lat_lua_to_value(lua_State *L, int idx, lat_arena *arena, lat_value *out, lat_error *err)
{
	int top = lua_gettop(L);
	idx = lua_absindex(L, idx);
	if (!lua_checkstack(L, STACK_PER_LEVEL))
		return lat_fail_nomem(err);
	walker w = {L, arena, err, top + 1, top + 2, top + 3};
	lat_lua_push_array_mt(L);
	lat_lua_push_ordered_mt(L);
	lat_lua_push_pairs_key(L);
	lua_pushvalue(L, idx);
	lat_status status = convert(&w, NULL, out);
	lua_settop(L, top);
	return status;
}
