/* lat_sqlite: see sqlite.h. A connection owns its handle and the prepared statements it keeps; the table of the
 * library's functions is filled once (pthread_once) and constant from then on. */
#include "stores/sqlite.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/loop.h" /* lat_now_ns */

#define LIBRARY "libsqlite3.so.0"

enum { KEPT_STATEMENTS = 96, BUSY_SLICE_MS = 200 };

/* ---- the library ---- */

#define FUNCTIONS(X)        \
	X(open_v2)              \
	X(close_v2)             \
	X(busy_timeout)         \
	X(exec)                 \
	X(errmsg)               \
	X(prepare_v3)           \
	X(finalize)             \
	X(reset)                \
	X(clear_bindings)       \
	X(step)                 \
	X(bind_parameter_count) \
	X(bind_parameter_name)  \
	X(bind_null)            \
	X(bind_int64)           \
	X(bind_double)          \
	X(bind_text)            \
	X(column_count)         \
	X(column_type)          \
	X(column_int64)         \
	X(column_double)        \
	X(column_text)          \
	X(column_bytes)         \
	X(get_autocommit)

#define MEMBER(name) __typeof__(sqlite3_##name) *name;
static struct {
	FUNCTIONS(MEMBER)
	bool loaded;
} sqlite;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

/* POSIX lets a function's address be read as an object's; ISO C has no way to write that. */
static bool find(void *library, const char *name, void *function)
{
	void *address = dlsym(library, name);
	memcpy(function, &address, sizeof address);
	return address != NULL;
}

static void load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	bool all = true;
#define FIND(name) all = find(library, "sqlite3_" #name, &sqlite.name) && all;
	FUNCTIONS(FIND)
	sqlite.loaded = all;
}

lat_status lat_sqlite_load(lat_error *err)
{
	pthread_once(&load_once, load);
	if (!sqlite.loaded)
		return lat_fail(err, LAT_E_IO,
		                LIBRARY " can't be loaded: install SQLite 3.35 or later (Debian: libsqlite3-0)");
	return LAT_OK;
}

/* ---- connections ---- */

typedef struct {
	char *sql; /* NULL: a free place */
	size_t len;
	sqlite3_stmt *prepared;
} kept_statement;

struct lat_sqlite {
	sqlite3 *handle;
	int64_t busy_ns;
	unsigned next_place;
	kept_statement kept[KEPT_STATEMENTS];
};

static bool is_busy(int code)
{
	return (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED;
}

static lat_status fail_as(lat_sqlite *db, int code, lat_error *err)
{
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return lat_fail_nomem(err);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return lat_fail(err, LAT_E_TIMEOUT, "other processes wrote to the database for too long: try again");
	case SQLITE_ERROR:
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_RANGE:
	case SQLITE_TOOBIG:
		return lat_fail(err, LAT_E_INVALID, "SQLite: %s", sqlite.errmsg(db->handle));
	default:
		return lat_fail(err, LAT_E_IO, "SQLite: %s", sqlite.errmsg(db->handle));
	}
}

static bool is_set(const atomic_bool *flag)
{
	return flag && atomic_load(flag);
}

/* SQLite itself waits a slice at a time, so that a cancelled call ends soon. */
static lat_status exec(lat_sqlite *db, const char *sql, const atomic_bool *cancelled, lat_error *err)
{
	int64_t ends = lat_now_ns() + db->busy_ns;
	for (;;) {
		int code = sqlite.exec(db->handle, sql, NULL, NULL, NULL);
		if (code == SQLITE_OK)
			return LAT_OK;
		if (!is_busy(code) || lat_now_ns() >= ends)
			return fail_as(db, code, err);
		if (is_set(cancelled))
			return lat_fail(err, LAT_E_ABORT, "the call was cancelled");
	}
}

void lat_sqlite_close(lat_sqlite *db)
{
	if (!db)
		return;
	for (unsigned i = 0; i < KEPT_STATEMENTS; i++) {
		sqlite.finalize(db->kept[i].prepared);
		free(db->kept[i].sql);
	}
	sqlite.close_v2(db->handle);
	free(db);
}

static lat_status set_up(lat_sqlite *db, const lat_sqlite_options *options, const atomic_bool *cancelled,
                         lat_error *err)
{
	sqlite.busy_timeout(db->handle, BUSY_SLICE_MS);
	lat_status status = exec(db, "PRAGMA journal_mode=WAL", cancelled, err);
	if (status == LAT_OK)
		status = exec(db, options->synchronous ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
		              cancelled, err);
	if (status == LAT_OK)
		status = exec(db, "PRAGMA foreign_keys=ON", cancelled, err);
	return status;
}

lat_sqlite *lat_sqlite_open(const char *path, const lat_sqlite_options *options, const atomic_bool *cancelled,
                            lat_error *err)
{
	if (lat_sqlite_load(err) != LAT_OK)
		return NULL;
	lat_sqlite *db = calloc(1, sizeof *db);
	if (!db) {
		lat_fail_nomem(err);
		return NULL;
	}
	db->busy_ns = options->busy_ns;
	int code = sqlite.open_v2(path, &db->handle,
	                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (!db->handle) {
		lat_fail_nomem(err);
	} else if (code != SQLITE_OK) {
		lat_fail(err, LAT_E_IO, "can't open %s: %s", path, sqlite.errmsg(db->handle));
	} else if (set_up(db, options, cancelled, err) == LAT_OK) {
		return db;
	}
	lat_sqlite_close(db);
	return NULL;
}

/* ---- statements ---- */

static kept_statement *find_kept(lat_sqlite *db, const lat_value *sql)
{
	for (unsigned i = 0; i < KEPT_STATEMENTS && db->kept[i].sql; i++)
		if (db->kept[i].len == sql->len && memcmp(db->kept[i].sql, sql->u.s, sql->len) == 0)
			return &db->kept[i];
	return NULL;
}

static sqlite3_stmt *prepare(lat_sqlite *db, const lat_value *sql, lat_status *status, lat_error *err)
{
	kept_statement *kept = find_kept(db, sql);
	if (kept)
		return kept->prepared;
	sqlite3_stmt *prepared = NULL;
	int code = sqlite.prepare_v3(db->handle, sql->u.s, (int)sql->len + 1, SQLITE_PREPARE_PERSISTENT,
	                             &prepared, NULL);
	char *copy = code == SQLITE_OK && prepared ? malloc(sql->len + 1) : NULL;
	if (!copy) {
		*status = code != SQLITE_OK ? fail_as(db, code, err)
		          : prepared        ? lat_fail_nomem(err)
		                            : lat_fail(err, LAT_E_INVALID, "SQLite: the statement is empty");
		sqlite.finalize(prepared);
		return NULL;
	}
	kept = &db->kept[db->next_place];
	db->next_place = (db->next_place + 1) % KEPT_STATEMENTS;
	sqlite.finalize(kept->prepared);
	free(kept->sql);
	memcpy(copy, sql->u.s, sql->len + 1);
	*kept = (kept_statement){.sql = copy, .len = sql->len, .prepared = prepared};
	return prepared;
}

static int bind_value(sqlite3_stmt *prepared, int place, const lat_value *v)
{
	switch (v->type) {
	case LAT_NULL:
		return sqlite.bind_null(prepared, place);
	case LAT_DOUBLE:
		return sqlite.bind_double(prepared, place, v->u.d);
	case LAT_STRING: /* SQLITE_STATIC: the statements outlive the step */
		return sqlite.bind_text(prepared, place, v->u.s, (int)v->len, NULL);
	default:
		return sqlite.bind_int64(prepared, place, v->type == LAT_INT ? v->u.i : v->type == LAT_TRUE);
	}
}

/* SQLite numbers the names "$1", "$2" by where they first stand; their own numbers count here, as in PostgreSQL. */
static lat_status bind_all(lat_sqlite *db, sqlite3_stmt *prepared, const lat_value *statement, lat_error *err)
{
	int places = sqlite.bind_parameter_count(prepared);
	for (int place = 1; place <= places; place++) {
		const char *name = sqlite.bind_parameter_name(prepared, place);
		unsigned long number = name && name[0] == '$' ? strtoul(name + 1, NULL, 10) : 0;
		if (number == 0 || number >= statement->len)
			return lat_fail(err, LAT_E_INVALID, "SQLite: no value for the parameter %s", name ? name : "?");
		int code = bind_value(prepared, place, &statement->u.items[number]);
		if (code != SQLITE_OK)
			return fail_as(db, code, err);
	}
	return LAT_OK;
}

static bool read_column(sqlite3_stmt *prepared, int i, lat_rows *rows, lat_value *column)
{
	switch (sqlite.column_type(prepared, i)) {
	case SQLITE_NULL:
		return true;
	case SQLITE_INTEGER:
		*column = lat_value_int(sqlite.column_int64(prepared, i));
		return true;
	case SQLITE_FLOAT:
		*column = lat_value_double(sqlite.column_double(prepared, i));
		return true;
	default: {
		const char *text = (const char *)sqlite.column_text(prepared, i);
		return text && lat_rows_text(rows, column, text, (size_t)sqlite.column_bytes(prepared, i));
	}
	}
}

static bool read_row(sqlite3_stmt *prepared, lat_rows *rows)
{
	int columns = sqlite.column_count(prepared);
	lat_value *row = lat_rows_add(rows, (uint32_t)columns);
	for (int i = 0; row && i < columns; i++)
		if (!read_column(prepared, i, rows, &row[i]))
			return false;
	return row != NULL;
}

static lat_status step_all(lat_sqlite *db, sqlite3_stmt *prepared, lat_rows *rows, lat_error *err)
{
	for (;;) {
		int code = sqlite.step(prepared);
		if (code == SQLITE_DONE)
			return lat_rows_end(rows) ? LAT_OK : lat_fail_nomem(err);
		if (code != SQLITE_ROW)
			return fail_as(db, code, err);
		if (!read_row(prepared, rows))
			return lat_fail_nomem(err);
	}
}

static lat_status run_one(lat_sqlite *db, const lat_value *statement, lat_rows *rows, lat_error *err)
{
	lat_status status = LAT_OK;
	sqlite3_stmt *prepared = prepare(db, &statement->u.items[0], &status, err);
	if (!prepared)
		return status;
	status = bind_all(db, prepared, statement, err);
	if (status == LAT_OK)
		status = step_all(db, prepared, rows, err);
	sqlite.reset(prepared); /* says again what step said */
	sqlite.clear_bindings(prepared);
	return status;
}

static lat_status run_all(lat_sqlite *db, const lat_statements *statements, lat_rows *rows, lat_error *err)
{
	lat_status status = lat_rows_begin(rows, statements->n, err);
	for (uint32_t i = 0; status == LAT_OK && i < statements->n; i++)
		status = run_one(db, &statements->list[i], rows, err);
	return status;
}

lat_status lat_sqlite_run(lat_sqlite *db, const lat_statements *statements, bool writes,
                          const atomic_bool *cancelled, lat_rows *rows, lat_error *err)
{
	lat_status status = exec(db, writes ? "BEGIN IMMEDIATE" : "BEGIN", cancelled, err);
	if (status != LAT_OK)
		return status;
	status = run_all(db, statements, rows, err);
	if (status == LAT_OK)
		status = exec(db, "COMMIT", NULL, err);
	if (status != LAT_OK && !sqlite.get_autocommit(db->handle))
		sqlite.exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
	return status;
}
