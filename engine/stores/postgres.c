/* lat_postgres: see postgres.h. On the loop's thread only. A connection owns libpq's, the texts of the statements that
 * are prepared in it, and the list of its requests; a request owns its statements and rows. */
#include "stores/postgres.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/libpq.h"

enum { PREPARED_MAX = 256, TEXT_TYPE = 25, NUMBER_TEXT = 32, SECRETS = 2 };

struct lat_postgres_request {
	lat_op op;
	lat_postgres *pg; /* held */
	lat_postgres_request *next;
	lat_statements statements;
	lat_rows rows;
	lat_error error;
	enum { WAITING, SENT, DONE } state;
	bool orphan;       /* its owner is gone: freed when it is done */
	uint32_t received; /* results that have ended, of 2 or 1 a statement */
	uint32_t expected;
	int prepares[2 *
	             LAT_STATEMENTS_MAX]; /* for each result: the place of what it prepares, or -1: it has rows */
};

typedef struct {
	char *sql;
	size_t len;
	bool known; /* the server has it */
} prepared;

struct lat_postgres {
	size_t holds;
	lat_loop *loop;
	const lat_libpq *pq;
	PGconn *conn; /* NULL once broken */
	lat_postgres_state state;
	lat_op op;
	lat_watch watch;
	lat_error error;
	bool noticed;
	char *secrets[SECRETS];
	lat_postgres_request *first, *last; /* only the first one is SENT */
	size_t n_prepared;
	prepared prepared[PREPARED_MAX];
};

/* ---- messages without secrets ---- */

static void hide(char *text, const char *secret)
{
	size_t len = secret ? strlen(secret) : 0;
	for (char *at = text; len > 0 && (at = strstr(at, secret)) != NULL;) {
		size_t shown = len < 3 ? len : 3;
		memset(at, '*', shown);
		memmove(at + shown, at + len, strlen(at + len) + 1);
		at += shown;
	}
}

static void fail_with(lat_postgres *pg, lat_error *err, lat_status kind, const char *text)
{
	lat_fail(err, kind, "PostgreSQL: %s", text && *text ? text : "no more is known");
	for (int i = 0; i < SECRETS; i++)
		hide(err->message, pg->secrets[i]);
	for (char *c = err->message; *c; c++)
		if (*c == '\n')
			*c = ' ';
	for (size_t n = strlen(err->message); n > 0 && err->message[n - 1] == ' '; n--)
		err->message[n - 1] = '\0';
}

/* ---- the end of requests and connections ---- */

static void let_go(lat_postgres *pg)
{
	if (--pg->holds > 0)
		return;
	for (size_t i = 0; i < pg->n_prepared; i++)
		free(pg->prepared[i].sql);
	for (int i = 0; i < SECRETS; i++)
		free(pg->secrets[i]);
	free(pg);
}

static void free_request(lat_postgres_request *r)
{
	lat_postgres *pg = r->pg;
	lat_op_forget(&r->op);
	lat_statements_free(&r->statements);
	lat_rows_free(&r->rows);
	free(r);
	let_go(pg);
}

/* Takes the first request off the list. */
static void finish_first(lat_postgres *pg)
{
	lat_postgres_request *r = pg->first;
	pg->first = r->next;
	if (!pg->first)
		pg->last = NULL;
	r->state = DONE;
	if (r->orphan)
		free_request(r);
	else
		lat_loop_notify(&r->op);
}

/* pg is held by the caller. */
static void break_connection(lat_postgres *pg, const char *why)
{
	if (pg->state == LAT_POSTGRES_BROKEN)
		return;
	pg->state = LAT_POSTGRES_BROKEN;
	fail_with(pg, &pg->error, LAT_E_CLOSED, why);
	lat_watch_remove(pg->loop, &pg->watch);
	pg->pq->finish(pg->conn);
	pg->conn = NULL;
	while (pg->first) {
		pg->first->error = pg->error;
		finish_first(pg);
	}
	lat_loop_notify(&pg->op);
}

static void break_as_told(lat_postgres *pg)
{
	char why[sizeof pg->error.message]; /* libpq's own goes with the connection */
	snprintf(why, sizeof why, "%s", pg->pq->errorMessage(pg->conn));
	break_connection(pg, why);
}

/* ---- sending ---- */

static void watch(lat_postgres *pg, unsigned events)
{
	lat_error err;
	if (lat_watch_set(pg->loop, &pg->watch, events, &err) != LAT_OK)
		break_connection(pg, err.message);
}

/* The place of a text among the prepared ones, -1: no room or no memory. */
static int prepared_place(lat_postgres *pg, const lat_value *sql)
{
	for (size_t i = 0; i < pg->n_prepared; i++)
		if (pg->prepared[i].len == sql->len && memcmp(pg->prepared[i].sql, sql->u.s, sql->len) == 0)
			return (int)i;
	if (pg->n_prepared == PREPARED_MAX)
		return -1;
	char *copy = malloc(sql->len + 1);
	if (!copy)
		return -1;
	memcpy(copy, sql->u.s, sql->len + 1);
	pg->prepared[pg->n_prepared] = (prepared){.sql = copy, .len = sql->len};
	return (int)pg->n_prepared++;
}

static const char *parameter_text(const lat_value *v, char *number)
{
	switch (v->type) {
	case LAT_NULL:
		return NULL;
	case LAT_STRING:
		return v->u.s;
	case LAT_INT:
		snprintf(number, NUMBER_TEXT, "%lld", (long long)v->u.i);
		return number;
	case LAT_DOUBLE:
		snprintf(number, NUMBER_TEXT, "%.17g", v->u.d);
		return number;
	default:
		return v->type == LAT_TRUE ? "true" : "false";
	}
}

static bool send_statement(lat_postgres *pg, lat_postgres_request *r, const lat_value *statement)
{
	Oid types[LAT_STATEMENT_PARAMETERS_MAX];
	const char *values[LAT_STATEMENT_PARAMETERS_MAX];
	char numbers[LAT_STATEMENT_PARAMETERS_MAX][NUMBER_TEXT], name[NUMBER_TEXT];
	int n = (int)statement->len - 1, place = prepared_place(pg, &statement->u.items[0]);
	if (place < 0)
		return false;
	for (int i = 0; i < n; i++) {
		values[i] = parameter_text(&statement->u.items[i + 1], numbers[i]);
		types[i] = TEXT_TYPE; /* the statements cast what is no text */
	}
	snprintf(name, sizeof name, "lattice_%d", place);
	if (!pg->prepared[place].known) {
		if (!pg->pq->sendPrepare(pg->conn, name, pg->prepared[place].sql, n, types))
			return false;
		r->prepares[r->expected++] = place;
	}
	r->prepares[r->expected++] = -1;
	return pg->pq->sendQueryPrepared(pg->conn, name, n, values, NULL, NULL, 0) == 1;
}

static void flush(lat_postgres *pg)
{
	int left = pg->pq->flush(pg->conn);
	if (left < 0)
		break_as_told(pg);
	else
		watch(pg, left ? LAT_READABLE | LAT_WRITABLE : LAT_READABLE);
}

static void send_first(lat_postgres *pg)
{
	lat_postgres_request *r = pg->first;
	if (!r || r->state != WAITING || pg->state != LAT_POSTGRES_READY)
		return;
	r->state = SENT;
	bool sent = lat_rows_begin(&r->rows, r->statements.n, &r->error) == LAT_OK;
	for (uint32_t i = 0; sent && i < r->statements.n; i++)
		sent = send_statement(pg, r, &r->statements.list[i]);
	if (sent && pg->pq->pipelineSync(pg->conn))
		flush(pg);
	else
		break_connection(pg, "a request could not be sent: not enough memory");
}

/* ---- receiving ---- */

/* Types whose texts become numbers (pg_type.dat): bool, int8, int2, int4, oid, float4, float8. */
static void to_column(lat_value *column, Oid type, const char *text)
{
	switch (type) {
	case 16:
		*column = lat_value_bool(text[0] == 't');
		break;
	case 20:
	case 21:
	case 23:
	case 26:
		*column = lat_value_int(strtoll(text, NULL, 10));
		break;
	case 700:
	case 701:
		*column = lat_value_double(strtod(text, NULL));
		break;
	}
}

static bool read_rows(const lat_libpq *pq, const PGresult *result, lat_rows *rows)
{
	int n = pq->ntuples(result), columns = pq->nfields(result);
	for (int i = 0; i < n; i++) {
		lat_value *row = lat_rows_add(rows, (uint32_t)columns);
		if (!row)
			return false;
		for (int c = 0; c < columns; c++) {
			if (pq->getisnull(result, i, c))
				continue;
			const char *text = pq->getvalue(result, i, c);
			to_column(&row[c], pq->ftype(result, c), text);
			if (row[c].type == LAT_NULL &&
			    !lat_rows_text(rows, &row[c], text, (size_t)pq->getlength(result, i, c)))
				return false;
		}
	}
	return lat_rows_end(rows);
}

/* SQLSTATE (appendix A): 57P01 to 57P05 end the connection; 40001, 40P01 and 55P03 mean: try again. */
static void take_error(lat_postgres *pg, lat_postgres_request *r, const PGresult *result)
{
	const char *state = pg->pq->resultErrorField(result, PG_DIAG_SQLSTATE);
	const char *text = pg->pq->resultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	lat_status kind = LAT_E_INVALID;
	if (!state || strncmp(state, "57P", 3) == 0)
		kind = LAT_E_CLOSED;
	else if (strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0 || strcmp(state, "55P03") == 0)
		kind = LAT_E_TIMEOUT;
	if (r->error.kind == LAT_OK)
		fail_with(pg, &r->error, kind, text ? text : pg->pq->errorMessage(pg->conn));
}

static void take_result(lat_postgres *pg, const PGresult *result)
{
	lat_postgres_request *r = pg->first;
	int place = r->received < r->expected ? r->prepares[r->received] : -1;
	switch (pg->pq->resultStatus(result)) {
	case PGRES_PIPELINE_ABORTED:
		break;
	case PGRES_COMMAND_OK:
	case PGRES_TUPLES_OK:
		if (place >= 0)
			pg->prepared[place].known = true;
		else if (r->error.kind == LAT_OK && !read_rows(pg->pq, result, &r->rows))
			lat_fail_nomem(&r->error);
		break;
	default:
		take_error(pg, r, result);
	}
}

static void take_results(lat_postgres *pg)
{
	while (pg->state == LAT_POSTGRES_READY && pg->first && pg->first->state == SENT &&
	       !pg->pq->isBusy(pg->conn)) {
		PGresult *result = pg->pq->getResult(pg->conn);
		if (!result) {
			if (pg->first->received++ > pg->first->expected)
				break_connection(pg, "the server's answer ended early");
			continue;
		}
		bool ends = pg->pq->resultStatus(result) == PGRES_PIPELINE_SYNC;
		if (!ends)
			take_result(pg, result);
		pg->pq->clear(result);
		if (pg->pq->status(pg->conn) == CONNECTION_BAD) {
			break_as_told(pg);
		} else if (ends) {
			finish_first(pg);
			send_first(pg);
		}
	}
}

static void take_notices(lat_postgres *pg)
{
	if (pg->state != LAT_POSTGRES_READY)
		return;
	bool some = false;
	for (PGnotify *notice; (notice = pg->pq->notifies(pg->conn)) != NULL; some = true)
		pg->pq->freemem(notice);
	if (some) {
		pg->noticed = true;
		lat_loop_notify(&pg->op);
	}
}

/* ---- connecting ---- */

static void become_ready(lat_postgres *pg)
{
	if (pg->pq->setnonblocking(pg->conn, 1) != 0 || !pg->pq->enterPipelineMode(pg->conn)) {
		break_as_told(pg);
		return;
	}
	pg->state = LAT_POSTGRES_READY;
	watch(pg, LAT_READABLE);
	lat_loop_notify(&pg->op);
	send_first(pg);
}

/* libpq may close its socket and open another one of the same number: the watch is new each time. */
static void poll_connecting(lat_postgres *pg)
{
	lat_watch_remove(pg->loop, &pg->watch);
	PostgresPollingStatusType wanted = pg->pq->connectPoll(pg->conn);
	pg->watch.fd = pg->pq->socket(pg->conn);
	switch (wanted) {
	case PGRES_POLLING_READING:
		watch(pg, LAT_READABLE);
		break;
	case PGRES_POLLING_WRITING:
		watch(pg, LAT_WRITABLE);
		break;
	case PGRES_POLLING_OK:
		become_ready(pg);
		break;
	default:
		break_as_told(pg);
	}
}

static void on_ready(lat_watch *w, unsigned events)
{
	lat_postgres *pg = (lat_postgres *)((char *)w - offsetof(lat_postgres, watch));
	pg->holds++;
	if (pg->state == LAT_POSTGRES_CONNECTING) {
		poll_connecting(pg);
	} else if (pg->state == LAT_POSTGRES_READY) {
		if (events & LAT_WRITABLE)
			flush(pg);
		if (pg->state == LAT_POSTGRES_READY && !pg->pq->consumeInput(pg->conn))
			break_as_told(pg);
		take_results(pg);
		take_notices(pg);
	}
	let_go(pg);
}

static void ignore_notice(void *context, const PGresult *result) /* libpq would print it */
{
	(void)context;
	(void)result;
}

/* Keeps what must not be shown; false: no memory, or dsn is no connection string (err has it). */
static bool parse_dsn(lat_postgres *pg, const char *dsn, lat_error *err)
{
	static const char *const keywords[SECRETS] = {"password", "sslpassword"};
	char *message = NULL;
	PQconninfoOption *options = pg->pq->conninfoParse(dsn, &message);
	pg->pq->freemem(message); /* it may show parts of the string, and so a password */
	if (!options) {
		lat_fail(err, LAT_E_INVALID,
		         "dsn: expected a connection string of libpq, such as \"host=… dbname=… user=…\" or "
		         "\"postgresql://user@host/name\"");
		return false;
	}
	bool good = true;
	for (PQconninfoOption *o = options; o->keyword; o++)
		for (int i = 0; i < SECRETS; i++)
			if (o->val && strcmp(o->keyword, keywords[i]) == 0)
				good = (pg->secrets[i] = strdup(o->val)) != NULL && good;
	pg->pq->conninfoFree(options);
	if (!good)
		lat_fail_nomem(err);
	return good;
}

static bool start(lat_postgres *pg, const char *dsn, lat_error *err)
{
	const char *const keywords[] = {"fallback_application_name", "dbname", "client_encoding", NULL};
	const char *const values[] = {"lattice", dsn, "UTF8", NULL};
	pg->conn = pg->pq->connectStartParams(keywords, values, 1);
	if (!pg->conn) {
		lat_fail_nomem(err);
		return false;
	}
	pg->pq->setNoticeReceiver(pg->conn, ignore_notice, NULL);
	pg->watch = (lat_watch){.fd = pg->pq->socket(pg->conn), .ready = on_ready};
	if (pg->pq->status(pg->conn) == CONNECTION_BAD)
		break_as_told(pg);
	else
		watch(pg, LAT_WRITABLE);
	return true;
}

lat_status lat_postgres_load(lat_error *err)
{
	return lat_libpq_load(err) ? LAT_OK : err->kind;
}

lat_postgres *lat_postgres_connect(lat_loop *loop, const char *dsn, lat_error *err)
{
	const lat_libpq *pq = lat_libpq_load(err);
	lat_postgres *pg = pq ? calloc(1, sizeof *pg) : NULL;
	if (!pg) {
		if (pq)
			lat_fail_nomem(err);
		return NULL;
	}
	pg->holds = 1;
	pg->loop = loop;
	pg->pq = pq;
	lat_op_init(&pg->op, loop);
	if (parse_dsn(pg, dsn, err) && start(pg, dsn, err))
		return pg;
	lat_op_forget(&pg->op);
	let_go(pg);
	return NULL;
}

void lat_postgres_close(lat_postgres *pg)
{
	break_connection(pg, "the connection was closed");
	lat_op_forget(&pg->op);
	let_go(pg);
}

lat_op *lat_postgres_op(lat_postgres *pg)
{
	return &pg->op;
}

lat_postgres_state lat_postgres_state_of(const lat_postgres *pg)
{
	return pg->state;
}

const lat_error *lat_postgres_error(const lat_postgres *pg)
{
	return &pg->error;
}

bool lat_postgres_take_notice(lat_postgres *pg)
{
	bool some = pg->noticed;
	pg->noticed = false;
	return some;
}

/* ---- requests ---- */

/* The wire has texts that end at a NUL. */
static lat_status check_texts(const lat_statements *statements, lat_error *err)
{
	for (uint32_t i = 0; i < statements->n; i++)
		for (uint32_t k = 0; k < statements->list[i].len; k++) {
			const lat_value *v = &statements->list[i].u.items[k];
			if (v->type == LAT_STRING && memchr(v->u.s, '\0', v->len))
				return lat_fail(err, LAT_E_INVALID,
				                "statement %u: parameter %u has a NUL byte: PostgreSQL takes none", i + 1, k);
		}
	return LAT_OK;
}

lat_postgres_request *lat_postgres_run(lat_postgres *pg, lat_statements *statements, lat_error *err)
{
	lat_postgres_request *r = NULL;
	if (check_texts(statements, err) == LAT_OK) {
		r = calloc(1, sizeof *r);
		if (!r)
			lat_fail_nomem(err);
	}
	if (!r) {
		lat_statements_free(statements);
		return NULL;
	}
	r->pg = pg;
	pg->holds++;
	lat_op_init(&r->op, pg->loop);
	r->statements = *statements;
	*statements = (lat_statements){.n = 0};
	if (pg->state == LAT_POSTGRES_BROKEN) {
		r->error = pg->error;
		r->state = DONE;
		lat_loop_notify(&r->op);
		return r;
	}
	*(pg->last ? &pg->last->next : &pg->first) = r;
	pg->last = r;
	send_first(pg);
	return r;
}

lat_op *lat_postgres_request_op(lat_postgres_request *r)
{
	return &r->op;
}

bool lat_postgres_request_done(const lat_postgres_request *r)
{
	return r->state == DONE;
}

lat_status lat_postgres_request_result(const lat_postgres_request *r, lat_value *results, lat_error *err)
{
	*err = r->error;
	if (r->error.kind == LAT_OK)
		*results = lat_rows_value(&r->rows);
	return r->error.kind;
}

static void unlink_request(lat_postgres *pg, lat_postgres_request *r)
{
	lat_postgres_request **at = &pg->first, *before = NULL;
	while (*at != r) {
		before = *at;
		at = &(*at)->next;
	}
	*at = r->next;
	if (pg->last == r)
		pg->last = before;
}

void lat_postgres_request_free(lat_postgres_request *r)
{
	if (r->state == SENT) {
		r->orphan = true;
		lat_op_forget(&r->op);
		return;
	}
	if (r->state == WAITING)
		unlink_request(r->pg, r);
	free_request(r);
}
