/* The batch plan: a model check against the naive rule, every allocation failed in turn, large batches. */
#include "failing_alloc.h"

#include "../../engine/base/value.c"
#include "../../engine/scheduler/batch.c"

#include <stdio.h>
#include <time.h>

static int passed, failed;

static void check(bool ok, const char *what, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("batch_test.c:%d: not so: %s\n", line, what);
}

#define CHECK(condition) check(condition, #condition, __LINE__)

static uint64_t random_state;

static unsigned below(unsigned n) /* xorshift64* */
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (unsigned)((random_state * 0x2545F4914F6CDD1Du) >> 33) % n;
}

/* ---- model: sets are bit masks of eight names; bit 8: everything ---- */

enum { MODEL_CALLS = 40, NAMES = 8, ALL = 1 << NAMES };

typedef struct {
	unsigned reads, writes;
	call_state state;
} model_call;

static bool meets(unsigned a, unsigned b)
{
	return a && b && ((a | b) & ALL || a & b);
}

static bool conflicts(const model_call *a, const model_call *b)
{
	return meets(a->writes, b->writes) || meets(a->writes, b->reads) || meets(a->reads, b->writes);
}

static size_t model_next(model_call *calls, size_t n, size_t max)
{
	size_t running = 0;
	for (size_t i = 0; i < n; i++)
		running += calls[i].state == RUNNING;
	for (size_t i = 0; i < n && running < max; i++) {
		bool free_to_go = calls[i].state == WAITING;
		for (size_t j = 0; j < i; j++)
			free_to_go = free_to_go && (calls[j].state == DONE || !conflicts(&calls[j], &calls[i]));
		if (free_to_go) {
			calls[i].state = RUNNING;
			return i;
		}
	}
	return LAT_BATCH_NONE;
}

static unsigned random_set(void)
{
	switch (below(8)) {
	case 0:
		return ALL;
	case 1:
	case 2:
	case 3:
		return 0;
	default:
		return 1u << below(NAMES) | (below(3) ? 0 : 1u << below(NAMES));
	}
}

static bool declare(lat_batch *b, size_t i, const model_call *c)
{
	static const char *const names[NAMES + 1] = {"a", "b", "c", "a/b", "", "**", "x", "y", "*"};
	bool ok = true;
	for (unsigned k = 0; k <= NAMES; k++) {
		if (c->reads >> k & 1)
			ok = lat_batch_read(b, i, names[k], strlen(names[k]), NULL) == LAT_OK && ok;
		if (c->writes >> k & 1)
			ok = lat_batch_write(b, i, names[k], strlen(names[k]), NULL) == LAT_OK && ok;
	}
	return ok;
}

static bool run_both(lat_batch *b, model_call *calls, size_t n, size_t max)
{
	size_t running[MODEL_CALLS], n_running = 0;
	for (;;) {
		size_t expected = model_next(calls, n, max), got = lat_batch_next(b);
		if (expected != got || lat_batch_running(b) != n_running + (got != LAT_BATCH_NONE))
			return false;
		if (got != LAT_BATCH_NONE)
			running[n_running++] = got;
		if (n_running && (got == LAT_BATCH_NONE || below(2))) {
			size_t k = below((unsigned)n_running), ended = running[k];
			running[k] = running[--n_running];
			calls[ended].state = DONE;
			if (!lat_batch_done(b, ended) || lat_batch_done(b, ended))
				return false;
		} else if (got == LAT_BATCH_NONE) {
			return lat_batch_pending(b) == 0;
		}
	}
}

static bool random_batch_agrees(void)
{
	model_call calls[MODEL_CALLS] = {{0, 0, WAITING}};
	size_t n = below(MODEL_CALLS + 1), max = 1 + below(8);
	lat_batch *b = lat_batch_new(n, max, NULL);
	if (!b)
		return false;
	bool ok = true;
	for (size_t i = 0; i < n; i++) {
		calls[i].reads = random_set();
		calls[i].writes = random_set();
		ok = declare(b, i, &calls[i]) && ok;
	}
	ok = ok && lat_batch_seal(b, NULL) == LAT_OK && run_both(b, calls, n, max);
	lat_batch_free(b);
	return ok;
}

static void test_random_batches(void)
{
	const char *given = getenv("SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	printf("SEED=%llu\n", (unsigned long long)seed);
	random_state = seed * 2 + 1;
	bool ok = true;
	for (int round = 0; round < 20000 && ok; round++)
		ok = random_batch_agrees();
	CHECK(ok);
}

/* ---- memory ---- */

static lat_batch *build_batch(lat_error *err)
{
	lat_batch *b = lat_batch_new(200, 4, err);
	for (size_t i = 0; b && i < 200; i++) {
		char name[32];
		int len = snprintf(name, sizeof name, "/some/where/file-%zu", i % 50);
		if (lat_batch_write(b, i, name, (size_t)len, err) != LAT_OK ||
		    lat_batch_read(b, i, "shared", 6, err) != LAT_OK) {
			lat_batch_free(b);
			return NULL;
		}
	}
	return b;
}

static void test_each_allocation_failing(void)
{
	bool made = false;
	int failures = 0;
	for (long at = 0; !made && at < 1000; at++) {
		lat_error err = {.kind = LAT_OK};
		allocs_left = at;
		lat_batch *b = build_batch(&err);
		bool sealed = b && lat_batch_seal(b, &err) == LAT_OK;
		made = sealed && allocs_left >= 0;
		allocs_left = -1;
		if (!sealed) {
			failures++;
			CHECK(err.kind == LAT_E_NOMEM);
		}
		if (b && !sealed) /* a failed seal can be tried again */
			CHECK(lat_batch_seal(b, NULL) == LAT_OK && lat_batch_next(b) == 0);
		lat_batch_free(b);
	}
	CHECK(made && failures >= 8);
}

/* ---- size ---- */

/* Every call reads everything and writes a name of its own: each waits for the one before. */
static void test_a_chain_through_gates(void)
{
	enum { N = 20000 };
	lat_batch *b = lat_batch_new(N, 8, NULL);
	CHECK(b != NULL);
	for (size_t i = 0; i < N; i++) {
		char name[16];
		snprintf(name, sizeof name, "%zu", i);
		lat_batch_read_all(b, i);
		lat_batch_write(b, i, name, strlen(name), NULL);
	}
	CHECK(lat_batch_seal(b, NULL) == LAT_OK);
	bool one_by_one = true;
	for (size_t i = 0; i < N; i++) {
		one_by_one = one_by_one && lat_batch_next(b) == i && lat_batch_next(b) == LAT_BATCH_NONE;
		lat_batch_done(b, i);
	}
	CHECK(one_by_one);
	lat_batch_free(b);
}

static void test_bounds(void)
{
	lat_error err = {.kind = LAT_OK};
	CHECK(!lat_batch_new(1, 0, &err) && err.kind == LAT_E_INVALID);
	CHECK(!lat_batch_new((size_t)LAT_BATCH_MAX_CALLS + 1, 1, &err) && err.kind == LAT_E_INVALID);
	lat_batch *b = lat_batch_new(0, 1, &err);
	CHECK(b && lat_batch_seal(b, &err) == LAT_OK && lat_batch_next(b) == LAT_BATCH_NONE);
	CHECK(!lat_batch_done(b, 0));
	lat_batch_free(b);
	lat_batch_free(NULL);
}

int main(void)
{
	test_random_batches();
	test_each_allocation_failing();
	test_a_chain_through_gates();
	test_bounds();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
