/* lat_tool: a built-in tool: input in, result out, on a thread of the pool.
 *
 * Every tool is one function, run on a pool thread; it touches only its call. What it was given stays valid until
 * it returns; what it leaves in `result` belongs to whoever has the call. It never raises and has no other way
 * to fail than a result with is_error and a text that helps a model. */
#ifndef LAT_WORKSPACE_TOOL_H
#define LAT_WORKSPACE_TOOL_H

#include "base/buf.h"
#include "base/value.h"
#include "workspace/workspace.h"

typedef struct {
	lat_buf text;           /* content; bytes that aren't UTF-8 are the caller's to replace */
	const char *block;      /* "image" or "document": a block goes with the text; NULL: text alone */
	const char *media_type; /* of the block */
	lat_buf data;           /* of the block, in base64 */
	lat_buf metadata;       /* JSON members without braces: "bytes":12,"truncated":false */
	bool is_error;
} lat_tool_result;

typedef struct lat_tool_call lat_tool_call;
struct lat_tool_call {
	lat_workspace *ws;
	const lat_roots *grants;                       /* NULL: none */
	const lat_value *input;                        /* an object; strings end with a NUL that isn't counted */
	bool (*is_stopped)(const lat_tool_call *self); /* look at it where the work can stop */
	lat_tool_result result;
};

typedef struct {
	const char *name;
	void (*run)(lat_tool_call *call);
} lat_tool;

const lat_tool *lat_tool_find(const char *name); /* the one table of tools (tools.c) */

void lat_tool_read(lat_tool_call *call);
void lat_tool_write(lat_tool_call *call);
void lat_tool_edit(lat_tool_call *call);
void lat_tool_ls(lat_tool_call *call);
void lat_tool_glob(lat_tool_call *call);
void lat_tool_grep(lat_tool_call *call);

/* ---- input ---- */

/* NULL: the member isn't there (or of another type, which fills in an error result). */
const lat_value *lat_tool_string(lat_tool_call *call, const char *name);
/* The member, or `missing` where there is none; out of [least, most] it is moved to the nearer end. */
int64_t lat_tool_integer(const lat_tool_call *call, const char *name, int64_t missing, int64_t least,
                         int64_t most);
bool lat_tool_boolean(const lat_tool_call *call, const char *name, bool missing);

/* ---- result ---- */

void lat_tool_note_int(lat_tool_call *call, const char *name, int64_t value); /* one member of the metadata */
void lat_tool_note_bool(lat_tool_call *call, const char *name, bool value);
void lat_tool_note_string(lat_tool_call *call, const char *name, const char *value, size_t len);

/* An error result: replaces the text. */
void lat_tool_fail(lat_tool_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lat_tool_fail_nomem(lat_tool_call *call);
/* What an errno of a path means: "can't read /ws/a: …"; EXDEV becomes the structured permission_denied:
 * {"code":"permission_denied","message":…,"path":…,"access":…,"allowed_roots":[{path, access}],"suggested_next_step":…} */
void lat_tool_fail_errno(lat_tool_call *call, const char *verb, const char *path, size_t len, unsigned access,
                         int error);

/* Resolves the path of member `name` (`missing` where there is none; NULL: it must be there) and fills in the error
 * result on failure. */
bool lat_tool_place(lat_tool_call *call, const char *name, const char *missing, const char *verb,
                    unsigned access, unsigned flags, lat_place *place);

/* For the tools that replace a file (write.c): whether it may be now, and doing it. Both fill in the error result. */
bool lat_tool_may_replace(lat_tool_call *call, const lat_place *place, const lat_file_key *key,
                          const struct stat *st);
bool lat_tool_replace(lat_tool_call *call, const lat_place *place, const lat_file_key *key,
                      const struct stat *old, const char *bytes, size_t len);

/* A name as it can stand in a line: control bytes and what isn't UTF-8 as \n, \x1b, …, a backslash as two. */
void lat_tool_append_name(lat_buf *b, const char *name, size_t len);

#endif
