/* Duplicate keys of an object: few members are compared in pairs, many through a hash table that lives during
 * the call. Pure; any thread.
 *
 * The hash is SipHash-1-3 (Aumasson and Bernstein, 2012) with the kernel's random bytes for this process as
 * its key: a text made to collide can't turn a million keys into a trillion comparisons. */
#include "json/members.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { PAIRWISE_MEMBERS = 16 };

static bool same_key(const lat_value *a, const lat_value *b)
{
	return a->len == b->len && memcmp(a->u.s, b->u.s, a->len) == 0;
}

/* A member moves down to `kept`, unless an equal key stands before it: then its value goes there. */
static size_t keep(lat_value *members, size_t kept, size_t from, size_t equal)
{
	if (equal < kept) {
		members[2 * equal + 1] = members[2 * from + 1];
		return kept;
	}
	if (kept != from) {
		members[2 * kept] = members[2 * from];
		members[2 * kept + 1] = members[2 * from + 1];
	}
	return kept + 1;
}

static size_t drop_pairwise(lat_value *members, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		size_t j = 0;
		while (j < kept && !same_key(&members[2 * j], &members[2 * i]))
			j++;
		kept = keep(members, kept, i, j);
	}
	return kept;
}

typedef struct {
	uint64_t v0, v1, v2, v3;
} sip;

static inline uint64_t rotate(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static inline void sip_round(sip *s)
{
	s->v0 += s->v1, s->v1 = rotate(s->v1, 13) ^ s->v0, s->v0 = rotate(s->v0, 32);
	s->v2 += s->v3, s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 += s->v3, s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 += s->v1, s->v1 = rotate(s->v1, 17) ^ s->v2, s->v2 = rotate(s->v2, 32);
}

static inline void sip_word(sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

static uint64_t hash_key(const uint64_t secret[2], const lat_value *key)
{
	sip s = {
		secret[0] ^ 0x736f6d6570736575u,
		secret[1] ^ 0x646f72616e646f6du,
		secret[0] ^ 0x6c7967656e657261u,
		secret[1] ^ 0x7465646279746573u,
	};
	const char *p = key->u.s;
	size_t left = key->len;
	uint64_t word;
	for (; left >= 8; p += 8, left -= 8) {
		memcpy(&word, p, 8);
		sip_word(&s, word);
	}
	word = 0;
	if (left)
		memcpy(&word, p, left);
	sip_word(&s, word ^ (uint64_t)key->len << 56);
	s.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static void process_secret(uint64_t secret[2])
{
	const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes, getauxval(3) */
	if (random)
		memcpy(secret, random, 16);
}

static lat_status drop_hashed(lat_value *members, size_t *count)
{
	size_t slots = PAIRWISE_MEMBERS * 4;
	while (slots < *count * 2)
		slots *= 2;
	uint32_t *table = calloc(slots, sizeof *table); /* place in members + 1 */
	if (!table)
		return LAT_E_NOMEM;
	uint64_t secret[2] = {0, 0};
	process_secret(secret);
	size_t kept = 0;
	for (size_t i = 0; i < *count; i++) {
		size_t slot = hash_key(secret, &members[2 * i]) & (slots - 1);
		while (table[slot] && !same_key(&members[2 * (table[slot] - 1)], &members[2 * i]))
			slot = (slot + 1) & (slots - 1);
		size_t equal = table[slot] ? table[slot] - 1 : kept;
		if (!table[slot])
			table[slot] = (uint32_t)kept + 1;
		kept = keep(members, kept, i, equal);
	}
	free(table);
	*count = kept;
	return LAT_OK;
}

lat_status lat_json_drop_duplicates(lat_value *members, size_t *count)
{
	if (*count > PAIRWISE_MEMBERS)
		return drop_hashed(members, count);
	*count = drop_pairwise(members, *count);
	return LAT_OK;
}
