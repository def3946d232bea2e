/* What the tests of JSON share: counting checks, reading a text from memory of exactly its size (so that a
 * sanitizer sees each byte read past it), seeded random numbers. */
#ifndef LAT_SPEC_JSON_SUPPORT_H
#define LAT_SPEC_JSON_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json/read.h"
#include "json/write.h"

static int passed, failed;

__attribute__((unused)) static void check(bool ok, const char *what, const char *file, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("%s:%d: not so: %s\n", file, line, what);
}

#define CHECK(condition) check(condition, #condition, __FILE__, __LINE__)

/* A text being tested, and what came of it. */
typedef struct {
	lat_arena arena;
	char *text;
	lat_value value;
	lat_error err;
	lat_status status;
} reading;

__attribute__((unused)) static void done(reading *r)
{
	lat_arena_free(&r->arena);
	free(r->text);
	*r = (reading){.arena = LAT_ARENA_INIT};
}

__attribute__((unused)) static reading read_n(const char *text, size_t len)
{
	reading r = {.arena = LAT_ARENA_INIT, .text = malloc(len ? len : 1)};
	memcpy(r.text, text, len);
	r.status = lat_json_read(&r.arena, r.text, len, NULL, &r.value, &r.err);
	return r;
}

__attribute__((unused)) static reading read_text(const char *text)
{
	return read_n(text, strlen(text));
}

/* Whether the tree is written as `text`. */
__attribute__((unused)) static bool writes_as(const lat_value *v, const char *text)
{
	lat_buf b = LAT_BUF_INIT;
	lat_error err;
	bool same = lat_json_write_value(&b, v, &err) == LAT_OK && strcmp(lat_buf_cstr(&b), text) == 0;
	if (!same)
		printf("written: %s\n", lat_buf_cstr(&b));
	lat_buf_free(&b);
	return same;
}

/* ---- random ---- */

static uint64_t random_state;

__attribute__((unused)) static void seed_random(void)
{
	const char *given = getenv("SEED");
	random_state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	printf("SEED=%llu\n", (unsigned long long)random_state);
}

/* splitmix64 */
__attribute__((unused)) static uint64_t random_bits(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

__attribute__((unused)) static unsigned random_below(unsigned n)
{
	return (unsigned)(random_bits() % n);
}

/* How many rounds a property gets: all of them, or LATTICE_SPEC_SCALE of them. */
__attribute__((unused)) static int rounds(int all)
{
	const char *scale = getenv("LATTICE_SPEC_SCALE");
	int n = scale ? (int)(all * atof(scale)) : all;
	return n > 20 ? n : 20;
}

#endif
