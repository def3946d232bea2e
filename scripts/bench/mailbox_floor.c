/* What the databases themselves take for a mailbox's statements: mailbox_floor sqlite|postgres PLACE FILE N
 *
 * FILE has the statements as mailbox.lua writes them, in transactions; N times all of them, with "#" in a parameter as
 * the number of the round. Statements are prepared once; in PostgreSQL a transaction is one pipeline. Prints rounds a
 * second. */
#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STATEMENTS = 32, PARAMETERS = 16, TEXT = 512 };

typedef struct {
	bool first; /* of its transaction */
	char *sql;
	int n;
	char *parameters[PARAMETERS]; /* NULL: NULL */
	sqlite3_stmt *prepared;
} statement;

static statement list[STATEMENTS];
static int count;

static void fail(const char *why)
{
	fprintf(stderr, "mailbox_floor: %s\n", why);
	exit(1);
}

static char *read_text(FILE *file) /* length, newline, bytes, newline; a length of -1 is NULL */
{
	int len;
	if (fscanf(file, "%d", &len) != 1 || fgetc(file) != '\n')
		fail("the file of statements is cut");
	if (len < 0)
		return NULL;
	char *text = calloc(1, (size_t)len + 1);
	if (!text || fread(text, 1, (size_t)len, file) != (size_t)len || fgetc(file) != '\n')
		fail("the file of statements is cut");
	return text;
}

static void read_statements(const char *path)
{
	FILE *file = fopen(path, "r");
	if (!file)
		fail("no file of statements");
	int first, n;
	while (count < STATEMENTS && fscanf(file, "%d %d\n", &first, &n) == 2) {
		statement *s = &list[count++];
		s->first = first != 0;
		s->n = n;
		s->sql = read_text(file);
		for (int i = 0; i < n && i < PARAMETERS; i++)
			s->parameters[i] = read_text(file);
	}
	fclose(file);
}

static const char *filled(const char *parameter, long round, char out[TEXT])
{
	if (!parameter)
		return NULL;
	const char *hash = strchr(parameter, '#');
	if (!hash)
		return parameter;
	snprintf(out, TEXT, "%.*s%ld%s", (int)(hash - parameter), parameter, round, hash + 1);
	return out;
}

/* ---- SQLite ---- */

static void exec_sqlite(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail(sqlite3_errmsg(db));
}

static void step_sqlite(sqlite3 *db, statement *s, long round)
{
	if (!s->prepared && sqlite3_prepare_v2(db, s->sql, -1, &s->prepared, NULL) != SQLITE_OK)
		fail(sqlite3_errmsg(db));
	char texts[PARAMETERS][TEXT];
	for (int place = 1; place <= sqlite3_bind_parameter_count(s->prepared); place++) {
		int i = atoi(sqlite3_bind_parameter_name(s->prepared, place) + 1) - 1;
		sqlite3_bind_text(s->prepared, place, filled(s->parameters[i], round, texts[i]), -1, SQLITE_STATIC);
	}
	int code;
	while ((code = sqlite3_step(s->prepared)) == SQLITE_ROW)
		for (int i = 0; i < sqlite3_column_count(s->prepared); i++)
			sqlite3_column_text(s->prepared, i);
	if (code != SQLITE_DONE)
		fail(sqlite3_errmsg(db));
	sqlite3_reset(s->prepared);
}

static void run_sqlite(const char *path, long rounds)
{
	sqlite3 *db;
	if (sqlite3_open(path, &db) != SQLITE_OK)
		fail("can't open the database");
	exec_sqlite(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
	for (long round = 1; round <= rounds; round++)
		for (int i = 0; i < count; i++) {
			if (list[i].first)
				exec_sqlite(db, "BEGIN IMMEDIATE");
			step_sqlite(db, &list[i], round);
			if (i + 1 == count || list[i + 1].first)
				exec_sqlite(db, "COMMIT");
		}
	for (int i = 0; i < count; i++)
		sqlite3_finalize(list[i].prepared);
	sqlite3_close(db);
}

/* ---- PostgreSQL ---- */

static void send_postgres(PGconn *conn, int number, long round)
{
	statement *s = &list[number];
	char name[16], texts[PARAMETERS][TEXT];
	const char *values[PARAMETERS];
	Oid types[PARAMETERS];
	snprintf(name, sizeof name, "s%d", number);
	for (int i = 0; i < s->n; i++) {
		values[i] = filled(s->parameters[i], round, texts[i]);
		types[i] = 25;
	}
	if ((round == 1 && !PQsendPrepare(conn, name, s->sql, s->n, types)) ||
	    !PQsendQueryPrepared(conn, name, s->n, values, NULL, NULL, 0))
		fail(PQerrorMessage(conn));
}

static void end_postgres(PGconn *conn)
{
	if (!PQpipelineSync(conn))
		fail(PQerrorMessage(conn));
	for (bool ends = false; !ends;) {
		PGresult *result = PQgetResult(conn);
		if (!result)
			continue;
		ExecStatusType status = PQresultStatus(result);
		if (status == PGRES_FATAL_ERROR)
			fail(PQresultErrorMessage(result));
		ends = status == PGRES_PIPELINE_SYNC;
		PQclear(result);
	}
}

static void run_postgres(const char *dsn, long rounds)
{
	PGconn *conn = PQconnectdb(dsn);
	if (PQstatus(conn) != CONNECTION_OK || !PQenterPipelineMode(conn))
		fail(PQerrorMessage(conn));
	for (long round = 1; round <= rounds; round++)
		for (int i = 0; i < count; i++) {
			send_postgres(conn, i, round);
			if (i + 1 == count || list[i + 1].first)
				end_postgres(conn);
		}
	PQfinish(conn);
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		fail("usage: mailbox_floor sqlite|postgres PLACE FILE N");
	read_statements(argv[3]);
	long rounds = atol(argv[4]);
	double begun = now_s();
	(strcmp(argv[1], "sqlite") == 0 ? run_sqlite : run_postgres)(argv[2], rounds);
	printf("%.0f\n", (double)rounds / (now_s() - begun));
	return 0;
}
