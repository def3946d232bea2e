/* Bindings of SQLite: core.sqlite_open. Internal: the library's Lua files use it, scripts use mailboxes.
 *
 * A database is a userdata that owns a thread (a pool of one) and the connection, which only that thread uses while
 * it runs; the thread opens it with its first job. So statements of one database run one after the other, and no
 * transaction of one caller gets into another's. An op is a userdata that owns its job; a job owns its statements and
 * rows, and the userdata of its database is kept alive by the op. When the database is closed its thread has ended,
 * and then the connection is freed. */
#include <stdlib.h>
#include <string.h>

#include "lua_core.h"
#include "lua_http.h"
#include "lua_loop.h"
#include "scheduler/threads.h"
#include "stores/sqlite.h"

#define DATABASE_TYPE "lattice.sqlite"
#define RUN_TYPE      "lattice.sqlite_run"

enum { DATABASE = 1 };

typedef struct {
	lat_threads *pool; /* NULL: closed */
	lat_sqlite *db;    /* the thread's, until the pool is closed; NULL until its first job */
	lat_sqlite_options options;
	char path[];
} database;

/* ---- jobs ---- */

typedef struct {
	lat_job job;
	database *owner;
	bool writes;
	lat_statements statements;
	lat_rows rows;
	lat_error error; /* kind LAT_OK once it went well */
} run_job;

static void run(lat_job *job, lat_thread_slot *thread)
{
	(void)thread;
	run_job *r = (run_job *)job;
	database *d = r->owner;
	if (!d->db)
		d->db = lat_sqlite_open(d->path, &d->options, &job->cancelled, &r->error);
	if (d->db)
		r->error.kind =
			lat_sqlite_run(d->db, &r->statements, r->writes, &job->cancelled, &r->rows, &r->error);
}

static void drop(lat_job *job)
{
	run_job *r = (run_job *)job;
	lat_statements_free(&r->statements);
	lat_rows_free(&r->rows);
	free(r);
}

/* ---- ops ---- */

typedef struct {
	run_job *job; /* NULL before it is made */
} run_op;

static run_job *check_run(lua_State *L)
{
	run_op *op = luaL_checkudata(L, 1, RUN_TYPE);
	luaL_argcheck(L, op->job, 1, "this op is closed");
	return op->job;
}

static int run_id(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)check_run(L)->job.op.id);
	return 1;
}

static int run_ready(lua_State *L)
{
	lua_pushboolean(L, lat_job_done(&check_run(L)->job));
	return 1;
}

static int run_cancel(lua_State *L)
{
	lat_job_cancel(&check_run(L)->job);
	return 0;
}

/* Also __close: what has begun is carried through, what has not begun is not. */
static int run_gc(lua_State *L)
{
	run_op *op = luaL_checkudata(L, 1, RUN_TYPE);
	run_job *job = op->job;
	op->job = NULL;
	if (job)
		lat_job_abandon(&job->job);
	return 0;
}

/* result() → rows of each statement | nil, {kind =, message =} */
static int run_result(lua_State *L)
{
	run_job *r = check_run(L);
	if (!lat_job_done(&r->job))
		return luaL_error(L, "the statements are still running: wait until ready()");
	if (!r->job.ran)
		lat_fail(&r->error, LAT_E_ABORT, "the call was cancelled");
	if (r->error.kind == LAT_E_NOMEM)
		return lat_lua_raise(L, &r->error);
	if (r->error.kind != LAT_OK) {
		lua_pushnil(L);
		lua_createtable(L, 0, 2);
		lua_pushstring(L, lat_lua_error_kind(&r->error));
		lua_setfield(L, -2, "kind");
		lua_pushstring(L, r->error.message);
		lua_setfield(L, -2, "message");
		return 2;
	}
	lat_value results = lat_rows_value(&r->rows);
	lat_lua_push_value(L, &results);
	return 1;
}

static const luaL_Reg RUN_METHODS[] = {
	{"id", run_id},   {"ready", run_ready}, {"cancel", run_cancel}, {"result", run_result},
	{"__gc", run_gc}, {"__close", run_gc},  {NULL, NULL},
};

/* ---- databases ---- */

static database *check_database(lua_State *L)
{
	database *d = luaL_checkudata(L, 1, DATABASE_TYPE);
	if (!d->pool)
		luaL_error(L, "the database is closed");
	return d;
}

/* Also __gc and __close. Waits for the statements that run; those that wait are cancelled. */
static int database_close(lua_State *L)
{
	database *d = luaL_checkudata(L, 1, DATABASE_TYPE);
	lat_threads *pool = d->pool;
	d->pool = NULL;
	lat_threads_free(pool);
	lat_sqlite_close(d->db);
	d->db = NULL;
	return 0;
}

/* Puts the job into the op on top of the stack. The statements are at 2. */
static void make_job(lua_State *L, database *d, run_op *op)
{
	lat_error err;
	lat_arena arena = LAT_ARENA_INIT;
	lat_value given;
	lat_loop *loop = lat_lua_loop(L);
	run_job *job = calloc(1, sizeof *job);
	if (!job)
		luaL_error(L, "not enough memory");
	lat_job_init(&job->job, d->pool, loop, run, drop);
	op->job = job;
	job->owner = d;
	job->writes = lua_toboolean(L, 3);
	lat_status status = lat_lua_to_value(L, 2, &arena, &given, &err);
	if (status == LAT_OK)
		status = lat_statements_copy(&job->statements, &given, &err);
	lat_arena_free(&arena);
	if (status == LAT_OK)
		status = lat_job_submit(&job->job, &err);
	if (status != LAT_OK)
		lat_lua_raise(L, &err);
}

/* run({{sql, parameter…}, …}, writes) → op: one transaction; BEGIN IMMEDIATE when it writes */
static int database_run(lua_State *L)
{
	database *d = check_database(L);
	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 3);
	run_op *op = lua_newuserdatauv(L, sizeof *op, 1);
	op->job = NULL;
	luaL_setmetatable(L, RUN_TYPE);
	lua_pushvalue(L, 1);
	lua_setiuservalue(L, -2, DATABASE);
	make_job(L, d, op);
	return 1;
}

static const luaL_Reg DATABASE_METHODS[] = {
	{"run", database_run}, {"close", database_close}, {"__gc", database_close}, {"__close", database_close},
	{NULL, NULL},
};

/* sqlite_open(path, {busy_timeout_ms =, synchronous = boolean}) → database | nil, message: the library isn't
 * there. The file is opened with the first statements. */
static int core_sqlite_open(lua_State *L)
{
	size_t len;
	const char *path = luaL_checklstring(L, 1, &len);
	luaL_argcheck(L, strlen(path) == len, 1, "has a NUL byte: remove it");
	luaL_checktype(L, 2, LUA_TTABLE);
	int64_t busy_ns = lat_lua_opt_ms(L, 2, "sqlite_open", "busy_timeout_ms");
	bool synchronous = lat_lua_opt_boolean(L, 2, "sqlite_open", "synchronous", true);
	lat_error err;
	if (lat_sqlite_load(&err) != LAT_OK)
		return lat_lua_nil_error(L, &err);
	database *d = lua_newuserdatauv(L, sizeof *d + len + 1, 1);
	*d = (database){.options = {.busy_ns = busy_ns, .synchronous = synchronous}};
	memcpy(d->path, path, len + 1);
	luaL_setmetatable(L, DATABASE_TYPE);
	d->pool = lat_threads_new(1, 0, &err);
	if (!d->pool)
		return lat_lua_raise(L, &err);
	return 1;
}

static void new_type(lua_State *L, const char *name, const luaL_Reg *methods)
{
	luaL_newmetatable(L, name);
	luaL_setfuncs(L, methods, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

void lat_lua_open_sqlite(lua_State *L)
{
	new_type(L, DATABASE_TYPE, DATABASE_METHODS);
	new_type(L, RUN_TYPE, RUN_METHODS);
	lua_pushcfunction(L, core_sqlite_open);
	lua_setfield(L, -2, "sqlite_open");
}
