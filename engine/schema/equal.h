/* JSON equality and the hash that goes with it (equal values have equal hashes: 1 and 1.0, members in any
 * order). Pure; any thread. Both recurse as deep as the value is nested. */
#ifndef LAT_SCHEMA_EQUAL_H
#define LAT_SCHEMA_EQUAL_H

#include "base/value.h"

#include <string.h>

static inline uint64_t lat_hash_mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9E3779B97F4A7C15u;
	return h ^ (h >> 29);
}

static inline uint64_t lat_hash_bytes(uint64_t seed, const char *s, size_t len)
{
	uint64_t h = lat_hash_mix(seed, len), word;
	for (; len >= 8; s += 8, len -= 8) {
		memcpy(&word, s, 8);
		h = lat_hash_mix(h, word);
	}
	if (len) {
		word = 0;
		memcpy(&word, s, len);
		h = lat_hash_mix(h, word);
	}
	return h ^ (h >> 32);
}

uint64_t lat_value_hash(uint64_t seed, const lat_value *v);

/* Like lat_value_equal, in O(n log n) for large objects too. The arena is scratch; *nomem is set when it
 * couldn't grow (the answer then is false). */
bool lat_value_same(lat_arena *arena, const lat_value *a, const lat_value *b, bool *nomem);

/* Looks for two equal items; true and their indices when there are. */
bool lat_items_repeat(lat_arena *arena, uint64_t seed, const lat_value *array, uint32_t *first,
                      uint32_t *second, bool *nomem);

uint64_t lat_value_count(const lat_value *v); /* values in a tree, keys too */

/* An open table of 2^k slots for n entries, all 0; NULL when out of memory. *mask = slots - 1. */
uint32_t *lat_hash_table(lat_arena *arena, uint32_t n, uint32_t *mask);

#endif
