/* Bindings of the trace writer: core.trace_writer. A userdata owns its writer. */
#include <string.h>

#include "lua_at_exit.h"
#include "lua_core.h"
#include "lua_http.h"
#include "lua_loop.h"
#include "trace/writer.h"

#define WRITER_TYPE "lattice.trace_writer"
#define WHAT        "trace_writer"

enum { DEFAULT_KEEP = 3 };

typedef struct {
	lat_trace_writer *writer; /* NULL until it is made */
} writer_box;

static lat_trace_writer *check_writer(lua_State *L)
{
	writer_box *box = luaL_checkudata(L, 1, WRITER_TYPE);
	luaL_argcheck(L, box->writer, 1, "this trace writer is closed");
	return box->writer;
}

static int writer_gc(lua_State *L)
{
	writer_box *box = luaL_checkudata(L, 1, WRITER_TYPE);
	lat_trace_writer_free(box->writer);
	box->writer = NULL;
	return 0;
}

/* w:write(line) → true, or false when the line was dropped: the queue is full, or the writer closed. Never waits. */
static int writer_write(lua_State *L)
{
	lat_trace_writer *w = check_writer(L);
	size_t len;
	const char *line = luaL_checklstring(L, 2, &len);
	lua_pushboolean(L, lat_trace_write(w, line, len));
	return 1;
}

/* w:flush(timeout_ms) → true when all lines so far are written or dropped, false when the time was over first */
static int writer_flush(lua_State *L)
{
	lat_trace_writer *w = check_writer(L);
	lua_pushboolean(L, lat_trace_flush(w, lat_lua_check_ms(L, 2)));
	return 1;
}

/* w:status() → {written = lines, dropped = lines, error = the first one or nil} */
static int writer_status(lua_State *L)
{
	lat_trace_status status = lat_trace_status_of(check_writer(L));
	lua_createtable(L, 0, 3);
	lua_pushinteger(L, (lua_Integer)status.written);
	lua_setfield(L, -2, "written");
	lua_pushinteger(L, (lua_Integer)status.dropped);
	lua_setfield(L, -2, "dropped");
	if (status.error[0]) {
		lua_pushstring(L, status.error);
		lua_setfield(L, -2, "error");
	}
	return 1;
}

/* w:close(): writes what is queued. Also __close. The status can still be asked for. */
static int writer_close(lua_State *L)
{
	lat_trace_writer_close(check_writer(L));
	return 0;
}

static const luaL_Reg METHODS[] = {
	{"write", writer_write},
	{"flush", writer_flush},
	{"status", writer_status},
	{"close", writer_close},
	{"__gc", writer_gc},
	{"__close", writer_close},
	{NULL, NULL},
};

static unsigned opt_keep(lua_State *L)
{
	lua_Integer keep = DEFAULT_KEEP;
	if (lua_getfield(L, 1, "keep") != LUA_TNIL) {
		keep = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : -1;
		if (keep < 0 || keep > LAT_TRACE_MAX_KEEP)
			luaL_error(L, WHAT ": keep: expected an integer from 0 to %d", LAT_TRACE_MAX_KEEP);
	}
	lua_pop(L, 1);
	return (unsigned)keep;
}

/* trace_writer{path =, max_bytes = (rotates, default never), keep = (rotated files, default 3), max_queue_bytes =} */
static int core_trace_writer(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	lat_trace_options options = {.keep = opt_keep(L)};
	options.max_bytes = lat_lua_opt_bytes(L, 1, WHAT, "max_bytes", 0);
	options.max_queue_bytes = lat_lua_opt_bytes(L, 1, WHAT, "max_queue_bytes", LAT_TRACE_DEFAULT_QUEUE);
	size_t len = 0;
	if (lua_getfield(L, 1, "path") == LUA_TSTRING)
		options.path = lua_tolstring(L, 2, &len);
	if (len == 0 || strlen(options.path) != len)
		luaL_error(L, WHAT ": path: expected the name of a file");
	lat_at_exit *at_exit = lat_lua_at_exit(L);
	writer_box *box = lua_newuserdatauv(L, sizeof *box, 0);
	box->writer = NULL;
	luaL_setmetatable(L, WRITER_TYPE);
	lat_error err;
	box->writer = lat_trace_writer_new(&options, at_exit, &err);
	return box->writer ? 1 : lat_lua_raise(L, &err);
}

void lat_lua_open_trace(lua_State *L)
{
	luaL_newmetatable(L, WRITER_TYPE);
	luaL_setfuncs(L, METHODS, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, core_trace_writer);
	lua_setfield(L, -2, "trace_writer");
}
