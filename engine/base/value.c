/* lat_value and lat_arena: see value.h. Pure; one owner at a time; any thread. */
#include "base/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK_BYTES = 1024, LARGEST_STEP_BYTES = 1 << 20, ALIGN = 16 };

struct lat_arena_block {
	lat_arena_block *older;
	size_t size; /* usable bytes behind the header */
	char bytes[] __attribute__((aligned(16)));
};

static void *alloc_slow(lat_arena *a, size_t n)
{
	size_t size = a->blocks ? a->blocks->size * 2 : FIRST_BLOCK_BYTES;
	if (size > LARGEST_STEP_BYTES)
		size = LARGEST_STEP_BYTES;
	if (size < n)
		size = n;
	if (size > SIZE_MAX - sizeof(lat_arena_block))
		return NULL;
	lat_arena_block *block = malloc(sizeof *block + size);
	if (!block)
		return NULL;
	block->older = a->blocks;
	block->size = size;
	a->blocks = block;
	a->at = block->bytes + n;
	a->end = block->bytes + size;
	return block->bytes;
}

void *lat_arena_alloc(lat_arena *a, size_t n)
{
	if (n > SIZE_MAX - ALIGN)
		return NULL;
	n = n ? (n + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN; /* NULL means no memory, also for nothing */
	if ((size_t)(a->end - a->at) < n)
		return alloc_slow(a, n);
	void *p = a->at;
	a->at += n;
	return p;
}

char *lat_arena_copy(lat_arena *a, const void *data, size_t n)
{
	char *p = n == SIZE_MAX ? NULL : lat_arena_alloc(a, n + 1);
	if (p) {
		if (n)
			memcpy(p, data, n);
		p[n] = '\0';
	}
	return p;
}

void lat_arena_trim(lat_arena *a, void *end)
{
	a->at = (char *)end + (-(uintptr_t)end & (ALIGN - 1));
}

void lat_arena_reset(lat_arena *a)
{
	lat_arena_block *keep = NULL;
	for (lat_arena_block *b = a->blocks, *older; b; b = older) {
		older = b->older;
		if (!keep || b->size > keep->size) {
			free(keep);
			keep = b;
		} else {
			free(b);
		}
	}
	a->blocks = keep;
	a->at = a->end = NULL;
	if (keep) {
		keep->older = NULL;
		a->at = keep->bytes;
		a->end = keep->bytes + keep->size;
	}
}

void lat_arena_free(lat_arena *a)
{
	for (lat_arena_block *b = a->blocks, *older; b; b = older) {
		older = b->older;
		free(b);
	}
	*a = (lat_arena)LAT_ARENA_INIT;
}

const lat_value *lat_value_get_n(const lat_value *object, const char *key, size_t len)
{
	if (!object || object->type != LAT_OBJECT)
		return NULL;
	for (size_t i = object->len; i-- > 0;) {
		const lat_value *k = &object->u.items[2 * i];
		if (k->len == len && memcmp(k->u.s, key, len) == 0)
			return k + 1;
	}
	return NULL;
}

const lat_value *lat_value_get(const lat_value *object, const char *key)
{
	return lat_value_get_n(object, key, strlen(key));
}

bool lat_value_is_string(const lat_value *v, const char *s)
{
	return v && v->type == LAT_STRING && v->len == strlen(s) && memcmp(v->u.s, s, v->len) == 0;
}

static bool int_equals_double(int64_t i, double d)
{
	/* 2^63 is the first double past int64; below it the cast is exact. */
	return d >= -0x1p63 && d < 0x1p63 && floor(d) == d && (int64_t)d == i;
}

static bool objects_equal(const lat_value *a, const lat_value *b)
{
	if (a->len != b->len)
		return false;
	for (size_t i = 0; i < a->len; i++) {
		const lat_value *key = &a->u.items[2 * i];
		const lat_value *other = lat_value_get_n(b, key->u.s, key->len);
		if (!other || !lat_value_equal(key + 1, other))
			return false;
	}
	return true;
}

bool lat_value_equal(const lat_value *a, const lat_value *b)
{
	if (a->type == LAT_INT && b->type == LAT_DOUBLE)
		return int_equals_double(a->u.i, b->u.d);
	if (a->type == LAT_DOUBLE && b->type == LAT_INT)
		return int_equals_double(b->u.i, a->u.d);
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case LAT_INT:
		return a->u.i == b->u.i;
	case LAT_DOUBLE:
		return a->u.d == b->u.d;
	case LAT_STRING:
		return a->len == b->len && (a->len == 0 || memcmp(a->u.s, b->u.s, a->len) == 0);
	case LAT_ARRAY:
		if (a->len != b->len)
			return false;
		for (size_t i = 0; i < a->len; i++)
			if (!lat_value_equal(&a->u.items[i], &b->u.items[i]))
				return false;
		return true;
	case LAT_OBJECT:
		return objects_equal(a, b);
	default: /* null, false, true */
		return true;
	}
}
