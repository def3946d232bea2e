/* Parcels and flags: what is written is read, a cut parcel ends early, each allocation failed in turn. */
#include "failing_alloc.h"

#include "../../engine/base/buf.c"
#include "../../engine/scheduler/flag.c"
#include "../../engine/scheduler/parcel.c"

#include <stdio.h>

static int passed, failed;

static void check(bool ok, const char *what, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("parcel_test.c:%d: not so: %s\n", line, what);
}

#define CHECK(condition) check(condition, #condition, __LINE__)

static void fill(lat_parcel *p, lat_flag *flag)
{
	lat_parcel_open_table(p, false);
	lat_parcel_add_string(p, "a\0b", 3);
	lat_parcel_add_integer(p, INT64_MIN);
	lat_parcel_add_float(p, 0.1);
	lat_parcel_open_table(p, true);
	lat_parcel_add(p, LAT_P_TRUE);
	lat_parcel_add(p, LAT_P_NULL);
	lat_parcel_add(p, LAT_P_CLOSE);
	lat_parcel_add_ref(p, 1);
	lat_parcel_add_flag(p, flag);
	lat_parcel_add_flag(p, flag);
	lat_parcel_add(p, LAT_P_CLOSE);
}

static void test_reading(void)
{
	lat_parcel p = LAT_PARCEL_INIT;
	lat_flag *flag = lat_flag_new();
	fill(&p, flag);
	lat_flag_free(flag); /* the parcel holds it */
	static const char tags[] = "{SIF[1Z}RGG}";
	size_t at = 0, n = 0;
	bool right = true;
	for (;; n++) {
		lat_parcel_item item = lat_parcel_next(&p, &at);
		if (item.tag == LAT_P_END)
			break;
		right = right && n < sizeof tags - 1 && item.tag == (lat_parcel_tag)tags[n];
		if (item.tag == LAT_P_STRING)
			right = right && item.u.string.len == 3 && memcmp(item.u.string.s, "a\0b", 3) == 0;
		if (item.tag == LAT_P_INTEGER)
			right = right && item.u.integer == INT64_MIN;
		if (item.tag == LAT_P_FLOAT)
			right = right && item.u.number == 0.1;
		if (item.tag == LAT_P_FLAG)
			right = right && !lat_flag_is_set(item.u.flag);
	}
	CHECK(right && n == sizeof tags - 1 && p.has_refs && p.n_tables == 2);
	size_t whole = p.bytes.len;
	for (size_t cut = 0; cut < whole; cut++) { /* no byte behind the end is looked at: ASan sees to it */
		lat_parcel part = p;
		part.bytes.len = cut;
		part.bytes.data = malloc(cut + 1);
		memcpy(part.bytes.data, p.bytes.data, cut);
		for (at = 0; lat_parcel_next(&part, &at).tag != LAT_P_END;)
			continue;
		CHECK(at <= cut);
		free(part.bytes.data);
	}
	lat_parcel_clear(&p);
}

static void test_each_allocation_failing(void)
{
	bool made = false;
	for (long at = 0; !made && at < 50; at++) {
		allocs_left = at;
		lat_parcel p = LAT_PARCEL_INIT;
		lat_flag *flag = lat_flag_new();
		if (flag)
			fill(&p, flag);
		bool ok = flag && lat_parcel_ok(&p);
		bool set = flag && lat_flag_set(flag, "why", 3);
		made = ok && allocs_left >= 0;
		allocs_left = -1;
		CHECK(!flag || (set && lat_flag_is_set(flag)));
		lat_parcel_clear(&p);
		lat_flag_free(flag);
	}
	CHECK(made);
}

static int woken;

static void wake(lat_flag_watch *self)
{
	(void)self;
	woken++;
}

static void test_watches(void)
{
	lat_flag *flag = lat_flag_new();
	lat_flag_watch a = {.wake = wake}, b = {.wake = wake}, c = {.wake = wake}, late = {.wake = wake};
	CHECK(lat_flag_add_watch(flag, &a) && lat_flag_add_watch(flag, &b) && lat_flag_add_watch(flag, &c));
	lat_flag_remove_watch(flag, &b);
	lat_flag_remove_watch(flag, &b);
	lat_flag_set(flag, NULL, 0);
	CHECK(woken == 2 && !lat_flag_add_watch(flag, &late));
	lat_flag_remove_watch(flag, &c);
	lat_flag_remove_watch(flag, &a);
	lat_flag_remove_watch(flag, &late);
	lat_flag_free(flag);
}

static void test_flag(void)
{
	lat_flag *flag = lat_flag_new();
	size_t len = 7;
	CHECK(!lat_flag_is_set(flag) && !lat_flag_reason(flag, &len) && len == 0);
	CHECK(lat_flag_set(flag, "first", 5) && !lat_flag_set(flag, "second", 6));
	CHECK(lat_flag_is_set(flag) && strcmp(lat_flag_reason(flag, &len), "first") == 0 && len == 5);
	lat_flag_free(flag);
	lat_flag_free(NULL);
}

int main(void)
{
	test_reading();
	test_each_allocation_failing();
	test_flag();
	test_watches();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
