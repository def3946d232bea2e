/* The Glob tool: files whose path matches a pattern, newest first. The thread that runs the call; the walk has
 * threads of its own. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "workspace/glob.h"
#include "workspace/start.h"
#include "workspace/tool.h"
#include "workspace/walk.h"

enum { SHOWN_MAX = 1000, NS_PER_S = 1000000000 };

typedef struct {
	const lat_tool_call *call;
	const lat_glob *glob;
} request;

static bool keep(void *arg, int folder, const char *path, size_t len, lat_walk_file *file)
{
	const request *r = arg;
	struct stat st;
	if (!lat_glob_match(r->glob, path, len))
		return false;
	if (fstatat(folder, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		file->stamp = (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
	return true;
}

static bool is_stopped(void *arg)
{
	const request *r = arg;
	return r->call->is_stopped(r->call);
}

/* Newest first; of the same moment, by path: the list that they are in is sorted. */
static int newest_first(const void *left, const void *right)
{
	const lat_walk_file *a = *(const lat_walk_file *const *)left, *b = *(const lat_walk_file *const *)right;
	if (a->stamp != b->stamp)
		return a->stamp < b->stamp ? 1 : -1;
	return a < b ? -1 : a > b;
}

static void show(lat_tool_call *call, const char *prefix, const lat_walk_file *const *files, size_t n)
{
	lat_buf *b = &call->result.text;
	size_t shown = n < SHOWN_MAX ? n : SHOWN_MAX;
	for (size_t i = 0; i < shown; i++) {
		lat_buf_str(b, i ? "\n" : "");
		lat_buf_str(b, prefix);
		lat_tool_append_name(b, files[i]->folder, files[i]->folder_len);
		lat_tool_append_name(b, files[i]->name, files[i]->name_len);
	}
	if (n > shown)
		lat_buf_printf(b, "\n(the %zu newest; %zu more match: narrow the pattern or the path)", shown,
		               n - shown);
	if (n == 0)
		lat_buf_str(b, "No files match. \"*\" stays within a folder, \"**/\" goes into all of them; what "
		               ".gitignore excludes isn't listed.");
	lat_tool_note_int(call, "matches", (int64_t)n);
	lat_tool_note_bool(call, "truncated", n > shown);
}

static void sort_and_show(lat_tool_call *call, const char *prefix, const lat_walk *walk)
{
	size_t n = lat_walk_count(walk);
	const lat_walk_file **files = malloc((n + 1) * sizeof *files);
	if (!files) {
		lat_tool_fail_nomem(call);
		return;
	}
	for (size_t i = 0; i < n; i++)
		files[i] = &lat_walk_files(walk)[i];
	if (n > 1)
		qsort(files, n, sizeof *files, newest_first);
	show(call, prefix, files, n);
	free(files);
}

static void walk_from(lat_tool_call *call, const lat_start *start, const lat_glob *glob)
{
	request r = {.call = call, .glob = glob};
	lat_walk_options options = {
		.start = start->fd, .levels = start->levels, .keep = keep, .is_stopped = is_stopped, .arg = &r};
	lat_error err;
	lat_walk *walk = lat_walk_new(&options, &err);
	if (walk)
		sort_and_show(call, start->prefix.data, walk);
	else if (err.kind == LAT_E_NOMEM)
		lat_tool_fail_nomem(call);
	else
		lat_tool_fail(call, "Glob: %s", err.message);
	lat_walk_free(walk);
}

/* The folders that an absolute pattern, or one that goes up, begins with: what stands before the last "/" in front
 * of the first special character. 0: it is relative to the path. */
static size_t folders_of(const char *pattern, size_t len)
{
	if (len == 0 || (pattern[0] != '/' && strncmp(pattern, "../", 3) != 0))
		return 0;
	size_t plain = strcspn(pattern, "*?[{\\");
	while (plain > 0 && pattern[plain - 1] != '/')
		plain--;
	return plain;
}

void lat_tool_glob(lat_tool_call *call)
{
	const lat_value *pattern = lat_tool_string(call, "pattern"), *path = lat_tool_string(call, "path");
	if (call->result.is_error)
		return;
	if (!pattern || pattern->len == 0) {
		lat_tool_fail(call, "pattern: expected a pattern such as \"src/**/*.c\", got nothing");
		return;
	}
	const char *text = pattern->u.s, *from = path ? path->u.s : ".";
	size_t len = pattern->len, from_len = path ? path->len : 1, folders = folders_of(text, len);
	if (folders > 0) {
		from = text;
		from_len = folders;
		text += folders;
		len -= folders;
	} else if (len > 2 && strncmp(text, "./", 2) == 0) {
		text += 2;
		len -= 2;
	}
	lat_error err;
	lat_glob *glob = lat_glob_new(text, len, LAT_GLOB_TOOL, &err);
	lat_start start;
	if (!glob && err.kind == LAT_E_NOMEM) {
		lat_tool_fail_nomem(call);
	} else if (!glob) {
		lat_tool_fail(call, "pattern: %s", err.message);
	} else if (lat_start_open(call, from, from_len, &start)) {
		if (start.is_file)
			lat_tool_fail(call, "path: it is a file: expected the folder to search in");
		else
			walk_from(call, &start, glob);
		lat_start_close(&start);
	}
	lat_glob_free(glob);
}
