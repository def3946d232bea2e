/* lat_sqlite and lat_statements: values there and back, transactions, and each allocation failed in turn: then the
 * status is LAT_E_NOMEM, no part of the transaction was made, and nothing leaks (a sanitizer looks at the end).
 * The sources are included behind malloc that fails; SQLite's own memory isn't touched. */
#include "failing_alloc.h"

#include "../../engine/base/buf.c"
#include "../../engine/base/value.c"
#include "../../engine/stores/sqlite.c"
#include "../../engine/stores/statements.c"

#include <stdio.h>
#include <unistd.h>

static int passed, failed;

static void check(bool ok, const char *what, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("sqlite_test.c:%d: not so: %s\n", line, what);
}

#define CHECK(condition) check(condition, #condition, __LINE__)

enum { MOST_PARAMETERS = 6 };

static lat_value text(const char *s)
{
	return lat_value_string_view(s, strlen(s));
}

static lat_value list(lat_value *items, size_t n)
{
	return (lat_value){.type = LAT_ARRAY, .len = (uint32_t)n, .u.items = items};
}

/* Runs statements on a new connection; *rows is filled where it went well. */
static lat_status run(const char *path, lat_value *statements, size_t n, lat_rows *rows, lat_error *err)
{
	lat_sqlite_options options = {.busy_ns = 0};
	lat_statements own = {.n = 0};
	lat_value given = list(statements, n);
	lat_status status = lat_statements_copy(&own, &given, err);
	lat_sqlite *db = status == LAT_OK ? lat_sqlite_open(path, &options, NULL, err) : NULL;
	if (status == LAT_OK)
		status = db ? lat_sqlite_run(db, &own, true, NULL, rows, err) : err->kind;
	lat_sqlite_close(db);
	lat_statements_free(&own);
	return status;
}

static int64_t count_rows(const char *path)
{
	lat_value sql = text("SELECT count(*) FROM t"), one = list(&sql, 1);
	lat_rows rows = {.n = 0};
	lat_error err;
	int64_t n = -1;
	if (run(path, &one, 1, &rows, &err) == LAT_OK)
		n = lat_rows_value(&rows).u.items[0].u.items[0].u.items[0].u.i;
	lat_rows_free(&rows);
	return n;
}

static lat_status insert_and_select(const char *path, bool *same)
{
	lat_value insert[MOST_PARAMETERS] = {text("INSERT INTO t VALUES ($2, $1, $3, $4)"),
	                                     text("a \xe2\x82\xac"), lat_value_int(INT64_MIN), lat_value_null(),
	                                     lat_value_double(0.5)};
	lat_value select[] = {text("SELECT * FROM t WHERE a = $1 LIMIT 1"), lat_value_int(INT64_MIN)};
	lat_value statements[] = {list(insert, 5), list(select, 2)};
	lat_rows rows = {.n = 0};
	lat_error err = {.kind = LAT_OK};
	lat_status status = run(path, statements, 2, &rows, &err);
	if (status == LAT_OK) {
		lat_value results = lat_rows_value(&rows), *row = results.u.items[1].u.items[0].u.items;
		*same = results.len == 2 && results.u.items[0].len == 0 && lat_value_equal(&row[0], &insert[2]) &&
		        lat_value_equal(&row[1], &insert[1]) && row[2].type == LAT_NULL &&
		        lat_value_equal(&row[3], &insert[4]);
	}
	CHECK(status == LAT_OK || (err.kind == status && err.message[0]));
	lat_rows_free(&rows);
	return status;
}

static void fail_each_allocation(const char *path)
{
	lat_status status = LAT_E_NOMEM;
	int64_t before = count_rows(path);
	for (long n = 0; status != LAT_OK && n < 1000; n++) {
		bool same = false;
		allocs_left = n;
		status = insert_and_select(path, &same);
		allocs_left = -1;
		CHECK(status == LAT_OK ? same : status == LAT_E_NOMEM);
		CHECK(count_rows(path) == before + (status == LAT_OK));
	}
	CHECK(status == LAT_OK);
}

/* The second statement is wrong: the first one is taken back. */
static void take_back(const char *path)
{
	lat_value good = text("DELETE FROM t"), bad = text("INSERT INTO nothing VALUES (1)");
	lat_value unbound = text("DELETE FROM t WHERE a = $3"), empty = text("");
	lat_rows rows = {.n = 0};
	lat_error err;
	int64_t before = count_rows(path);
	lat_value *wrong[] = {&bad, &unbound, &empty};
	for (size_t i = 0; i < 3; i++) {
		lat_value statements[] = {list(&good, 1), list(wrong[i], 1)};
		CHECK(run(path, statements, 2, &rows, &err) == LAT_E_INVALID);
		CHECK(count_rows(path) == before);
	}
	lat_rows_free(&rows);
}

static void refuse_shapes(const char *path)
{
	lat_value number = lat_value_int(1), nested[] = {text("SELECT $1"), list(&number, 1)};
	lat_value none = list(NULL, 0), not_sql = list(&number, 1), deep = list(nested, 2);
	lat_rows rows = {.n = 0};
	lat_error err;
	CHECK(run(path, NULL, 0, &rows, &err) == LAT_E_INVALID);
	CHECK(run(path, &none, 1, &rows, &err) == LAT_E_INVALID);
	CHECK(run(path, &not_sql, 1, &rows, &err) == LAT_E_INVALID);
	CHECK(run(path, &deep, 1, &rows, &err) == LAT_E_INVALID);
}

int main(void)
{
	char path[] = "/tmp/lattice_sqlite_test.XXXXXX";
	int fd = mkstemp(path);
	lat_value create = text("CREATE TABLE t (a, b, c, d)"), statements[] = {list(&create, 1)};
	lat_rows rows = {.n = 0};
	lat_error err;
	CHECK(fd >= 0 && run(path, statements, 1, &rows, &err) == LAT_OK);
	lat_rows_free(&rows);
	fail_each_allocation(path);
	take_back(path);
	refuse_shapes(path);
	close(fd);
	unlink(path);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
