/* What the tests of schemas share: counting checks, compiling and validating texts in one call. */
#ifndef LAT_SPEC_SCHEMA_SUPPORT_H
#define LAT_SPEC_SCHEMA_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/schema.h"
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

/* SEED from the environment or the clock; printed, so that a failure can be replayed. */
__attribute__((unused)) static uint64_t seed_of(const char *test)
{
	const char *given = getenv("SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	printf("%s: SEED=%llu\n", test, (unsigned long long)seed);
	return seed;
}

/* xorshift64*: a number below n. */
__attribute__((unused)) static uint64_t below(uint64_t *state, uint64_t n)
{
	uint64_t x = *state ? *state : 1;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return (x * 0x2545F4914F6CDD1Du >> 11) % n;
}

__attribute__((unused)) static lat_status compile_text(const char *text, lat_schema **out, lat_error *err)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_value schema;
	lat_error_clear(err);
	lat_status status = lat_json_read(&arena, text, strlen(text), NULL, &schema, err);
	if (status == LAT_OK)
		status = lat_schema_compile(&schema, NULL, out, err);
	lat_arena_free(&arena);
	return status;
}

/* One validation and what it leaves. */
typedef struct {
	lat_arena arena;
	lat_value value;
	lat_schema_errors errors;
	lat_status status;
} verdict;

__attribute__((unused)) static verdict judge(const lat_schema *s, const char *text, size_t len)
{
	verdict v = {.arena = LAT_ARENA_INIT};
	v.status = lat_schema_validate_text(s, text, len, &v.arena, &v.value, &v.errors);
	return v;
}

/* Compiles and validates; a schema that doesn't compile is a failed check. */
__attribute__((unused)) static verdict judge_with(const char *schema, const char *text)
{
	lat_schema *s = NULL;
	lat_error err;
	verdict v = {.status = LAT_E_INVALID};
	if (compile_text(schema, &s, &err) != LAT_OK) {
		printf("%s: %s: %s\n", schema, err.path, err.message);
		CHECK(!"the schema compiles");
		return v;
	}
	v = judge(s, text, strlen(text));
	/* what was added to the value may be in the schema: written out before that goes */
	if (v.status == LAT_OK) {
		lat_buf b = LAT_BUF_INIT;
		lat_json_write_value(&b, &v.value, NULL);
		char *copy = lat_arena_copy(&v.arena, b.data, b.len);
		v.value = lat_value_string_view(copy, copy ? b.len : 0);
		lat_buf_free(&b);
	}
	lat_schema_free(s);
	return v;
}

__attribute__((unused)) static bool accepts(const char *schema, const char *text)
{
	verdict v = judge_with(schema, text);
	lat_arena_free(&v.arena);
	return v.status == LAT_OK;
}

/* The value that comes out, as JSON. */
__attribute__((unused)) static bool gives(const char *schema, const char *text, const char *expected)
{
	verdict v = judge_with(schema, text);
	bool same = v.status == LAT_OK && lat_value_is_string(&v.value, expected);
	if (!same && v.status == LAT_OK)
		printf("gives %.*s\n", (int)v.value.len, v.value.u.s);
	lat_arena_free(&v.arena);
	return same;
}

/* The only error, or one of several, stands at path and has this message. */
__attribute__((unused)) static bool complains(const char *schema, const char *text, const char *path,
                                              const char *message)
{
	verdict v = judge_with(schema, text);
	bool found = false;
	for (size_t i = 0; i < v.errors.count; i++)
		found = found ||
		        (strcmp(v.errors.items[i].path, path) == 0 && strstr(v.errors.items[i].message, message));
	for (size_t i = 0; !found && i < v.errors.count; i++)
		printf("  %s: %s\n", v.errors.items[i].path, v.errors.items[i].message);
	found = found && v.status == LAT_E_INVALID;
	lat_arena_free(&v.arena);
	return found;
}

/* A schema that is refused, and where. */
__attribute__((unused)) static bool refuses(const char *schema, const char *path, const char *message)
{
	lat_schema *s = NULL;
	lat_error err;
	lat_status status = compile_text(schema, &s, &err);
	bool as_said = status == LAT_E_INVALID && strcmp(err.path, path) == 0 && strstr(err.message, message);
	if (!as_said)
		printf("  %d %s: %s\n", (int)status, err.path, err.message);
	lat_schema_free(status == LAT_OK ? s : NULL);
	return as_said;
}

#endif
