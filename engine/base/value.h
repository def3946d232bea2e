/* lat_value: a JSON value as plain C data, and lat_arena, the memory it lives in.
 *
 * A tree belongs to one arena and dies with it; nodes are never freed one by one. Strings are
 * views: into the arena, or into the text that was read (see json/read.h), which then must
 * outlive the tree. A tree has one owner at a time and may move between threads.
 *
 *   number literal       type          bits
 *   -7                   LAT_INT       u.i
 *   1.5, 1e3             LAT_DOUBLE    u.d
 *   1.0                  LAT_DOUBLE    u.d             (schemas take it as an integer, as the draft says)
 *   18446744073709551616 LAT_DOUBLE    u.d = nearest,  LAT_V_WIDE_INT set: an integer literal past int64
 */
#ifndef LAT_BASE_VALUE_H
#define LAT_BASE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum {
	LAT_NULL,
	LAT_FALSE,
	LAT_TRUE,
	LAT_INT,
	LAT_DOUBLE,
	LAT_STRING,
	LAT_ARRAY,
	LAT_OBJECT
} lat_type;

enum {
	LAT_V_WIDE_INT = 1, /* a LAT_DOUBLE written as an integer literal that int64 can't hold */
	LAT_V_ROUNDED =
		2, /* a LAT_DOUBLE that is a whole number, while its literal (1.00…01, 9007199254740993.0) isn't this one */
	LAT_V_EITHER = 4, /* a LAT_OBJECT without members that may be an empty array as well: Lua's {} */
};

typedef struct lat_value lat_value;
struct lat_value {
	uint8_t type; /* lat_type */
	uint8_t flags;
	uint32_t len; /* string: bytes; array: items; object: members */
	union {
		int64_t i;
		double d;
		const char *s;    /* not NUL-terminated; may hold NUL bytes */
		lat_value *items; /* array: len items; object: 2*len values, key (LAT_STRING), value, key, value … */
	} u;
};

/* ---- arena ---- */

typedef struct lat_arena lat_arena;
typedef struct lat_arena_block lat_arena_block;
struct lat_arena {
	lat_arena_block *blocks; /* newest first */
	char *at, *end;          /* free room in the newest block */
};

/* clang-format off */
#define LAT_ARENA_INIT {NULL, NULL, NULL}
/* clang-format on */

void *lat_arena_alloc(lat_arena *a, size_t n);                  /* 16-byte aligned; NULL when out of memory */
char *lat_arena_copy(lat_arena *a, const void *data, size_t n); /* a copy of n bytes and a NUL behind it */
void lat_arena_trim(lat_arena *a, void *end); /* gives back what lies behind `end` in the newest allocation */
void lat_arena_reset(lat_arena *a);           /* forgets everything, keeps the largest block for reuse */
void lat_arena_free(lat_arena *a);

/* ---- building by hand (schemas, tests); NULL when out of memory ---- */

static inline lat_value lat_value_null(void)
{
	return (lat_value){.type = LAT_NULL};
}

static inline lat_value lat_value_bool(bool b)
{
	return (lat_value){.type = (uint8_t)(b ? LAT_TRUE : LAT_FALSE)};
}

static inline lat_value lat_value_int(int64_t i)
{
	return (lat_value){.type = LAT_INT, .u.i = i};
}

static inline lat_value lat_value_double(double d)
{
	return (lat_value){.type = LAT_DOUBLE, .u.d = d};
}

static inline lat_value lat_value_string_view(const char *s, size_t len)
{
	return (lat_value){.type = LAT_STRING, .len = (uint32_t)len, .u.s = s};
}

/* The value of member `key`, the last one if it stands more than once; NULL if not there or not an object. */
const lat_value *lat_value_get(const lat_value *object, const char *key);
const lat_value *lat_value_get_n(const lat_value *object, const char *key, size_t len);

bool lat_value_is_string(const lat_value *v, const char *s); /* v may be NULL */

/* JSON equality: 1 and 1.0 are equal, members in any order are equal. */
bool lat_value_equal(const lat_value *a, const lat_value *b);

#endif
