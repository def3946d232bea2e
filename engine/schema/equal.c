/* JSON equality, hashing, and the search for repeated items. Owns nothing: scratch comes from the caller's
 * arena. Any thread. Tables are seeded, so that whoever sends values can't choose ones that collide. */
#include "schema/equal.h"

#include <math.h>
#include <stdlib.h>

enum {
	FEW_ITEMS = 8,   /* up to here every pair is compared */
	FEW_MEMBERS = 16 /* up to here a member is found by looking at each */
};

static uint64_t hash_number(uint64_t seed, const lat_value *v)
{
	int64_t i = v->u.i;
	if (v->type == LAT_DOUBLE) {
		double d = v->u.d;
		if (!(d >= -0x1p63 && d < 0x1p63 && floor(d) == d)) {
			uint64_t bits;
			memcpy(&bits, &d, sizeof bits);
			return lat_hash_mix(seed + LAT_DOUBLE, bits);
		}
		i = (int64_t)d;
	}
	return lat_hash_mix(seed + LAT_INT, (uint64_t)i);
}

uint64_t lat_value_hash(uint64_t seed, const lat_value *v)
{
	uint64_t h = seed + v->type;
	switch (v->type) {
	case LAT_INT:
	case LAT_DOUBLE:
		return hash_number(seed, v);
	case LAT_STRING:
		return lat_hash_bytes(h, v->u.s, v->len);
	case LAT_ARRAY:
		for (uint32_t i = 0; i < v->len; i++)
			h = lat_hash_mix(h, lat_value_hash(seed, &v->u.items[i]));
		return h;
	case LAT_OBJECT: { /* a sum, so that the order of members doesn't matter */
		uint64_t sum = v->len;
		for (uint32_t i = 0; i < v->len; i++) {
			const lat_value *key = &v->u.items[2 * i];
			sum += lat_hash_mix(lat_value_hash(seed, key), lat_value_hash(seed, key + 1));
		}
		return lat_hash_mix(h, sum);
	}
	default:
		return lat_hash_mix(h, h);
	}
}

static int compare_keys(const void *a, const void *b)
{
	const lat_value *x = *(const lat_value *const *)a, *y = *(const lat_value *const *)b;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return x->len ? memcmp(x->u.s, y->u.s, x->len) : 0;
}

static const lat_value **sorted_keys(lat_arena *arena, const lat_value *object)
{
	const lat_value **keys = lat_arena_alloc(arena, object->len * sizeof *keys);
	if (!keys)
		return NULL;
	for (uint32_t i = 0; i < object->len; i++)
		keys[i] = &object->u.items[2 * i];
	qsort(keys, object->len, sizeof *keys, compare_keys);
	return keys;
}

static bool large_objects_same(lat_arena *arena, const lat_value *a, const lat_value *b, bool *nomem)
{
	const lat_value **x = sorted_keys(arena, a), **y = x ? sorted_keys(arena, b) : NULL;
	if (!y) {
		*nomem = true;
		return false;
	}
	for (uint32_t i = 0; i < a->len; i++)
		if (compare_keys(&x[i], &y[i]) != 0)
			return false;
	for (uint32_t i = 0; i < a->len; i++)
		if (!lat_value_same(arena, x[i] + 1, y[i] + 1, nomem))
			return false;
	return true;
}

static bool objects_same(lat_arena *arena, const lat_value *a, const lat_value *b, bool *nomem)
{
	if (a->len != b->len)
		return false;
	if (a->len > FEW_MEMBERS)
		return large_objects_same(arena, a, b, nomem);
	for (uint32_t i = 0; i < a->len; i++) {
		const lat_value *key = &a->u.items[2 * i];
		const lat_value *other = lat_value_get_n(b, key->u.s, key->len);
		if (!other || !lat_value_same(arena, key + 1, other, nomem))
			return false;
	}
	return true;
}

bool lat_value_same(lat_arena *arena, const lat_value *a, const lat_value *b, bool *nomem)
{
	if (a->type == LAT_OBJECT && b->type == LAT_OBJECT)
		return objects_same(arena, a, b, nomem);
	if (a->type != LAT_ARRAY || b->type != LAT_ARRAY)
		return lat_value_equal(a, b);
	if (a->len != b->len)
		return false;
	for (uint32_t i = 0; i < a->len; i++)
		if (!lat_value_same(arena, &a->u.items[i], &b->u.items[i], nomem))
			return false;
	return true;
}

uint64_t lat_value_count(const lat_value *v)
{
	uint64_t n = 1;
	if (v->type != LAT_ARRAY && v->type != LAT_OBJECT)
		return n;
	size_t items = v->type == LAT_OBJECT ? (size_t)v->len * 2 : v->len;
	for (size_t i = 0; i < items; i++)
		n += lat_value_count(&v->u.items[i]);
	return n;
}

uint32_t *lat_hash_table(lat_arena *arena, uint32_t n, uint32_t *mask)
{
	size_t slots = 4;
	while (slots < (size_t)n * 2)
		slots *= 2;
	uint32_t *table = slots > UINT32_MAX ? NULL : lat_arena_alloc(arena, slots * sizeof *table);
	if (!table)
		return NULL;
	memset(table, 0, slots * sizeof *table);
	*mask = (uint32_t)(slots - 1);
	return table;
}

static bool few_repeat(lat_arena *arena, const lat_value *array, uint32_t *first, uint32_t *second,
                       bool *nomem)
{
	for (uint32_t i = 1; i < array->len; i++) {
		for (uint32_t j = 0; j < i; j++) {
			if (lat_value_same(arena, &array->u.items[j], &array->u.items[i], nomem)) {
				*first = j;
				*second = i;
				return true;
			}
		}
	}
	return false;
}

bool lat_items_repeat(lat_arena *arena, uint64_t seed, const lat_value *array, uint32_t *first,
                      uint32_t *second, bool *nomem)
{
	if (array->len <= FEW_ITEMS)
		return few_repeat(arena, array, first, second, nomem);
	uint32_t mask = 0, *table = lat_hash_table(arena, array->len, &mask);
	uint64_t *hashes = table ? lat_arena_alloc(arena, array->len * sizeof *hashes) : NULL;
	if (!hashes) {
		*nomem = true;
		return false;
	}
	for (uint32_t i = 0; i < array->len; i++) {
		hashes[i] = lat_value_hash(seed, &array->u.items[i]);
		uint32_t slot = (uint32_t)hashes[i] & mask;
		for (; table[slot]; slot = (slot + 1) & mask) {
			uint32_t other = table[slot] - 1;
			if (hashes[other] == hashes[i] &&
			    lat_value_same(arena, &array->u.items[other], &array->u.items[i], nomem)) {
				*first = other;
				*second = i;
				return true;
			}
		}
		table[slot] = i + 1;
	}
	return false;
}
