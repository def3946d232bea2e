/* A scene for tests of workspaces: a folder with a workspace and a world outside of it, whose every byte is known.
 * The tools are called right here, without a pool. */
#ifndef LAT_SPEC_WORKSPACE_SUPPORT_H
#define LAT_SPEC_WORKSPACE_SUPPORT_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workspace/tool.h"

static int passed, failed;

static inline void check(bool ok, const char *what, const char *file, int line)
{
	passed += ok;
	failed += !ok;
	if (!ok)
		printf("%s:%d: not so: %s\n", file, line, what);
}

#define CHECK(condition) check(condition, #condition, __FILE__, __LINE__)

static char scene[64];

static inline const char *at(const char *name)
{
	static _Thread_local char paths[8][LAT_PATH_MAX];
	static _Thread_local unsigned n;
	char *path = paths[n++ % 8];
	snprintf(path, LAT_PATH_MAX, "%s/%s", scene, name);
	return path;
}

static inline void put(const char *name, const char *text)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	close(fd);
}

static inline void make_dir(const char *name)
{
	if (mkdir(at(name), 0755) != 0)
		abort();
}

static inline void make_link(const char *target, const char *name)
{
	if (symlink(target, at(name)) != 0)
		abort();
}

static inline bool holds(const char *name, const char *text)
{
	char got[65536];
	int fd = open(at(name), O_RDONLY);
	ssize_t n = fd >= 0 ? read(fd, got, sizeof got) : -1;
	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text) && memcmp(got, text, (size_t)n) == 0;
}

/* Entries of a folder, all of them. */
static inline int count_entries(const char *name)
{
	DIR *dir = opendir(at(name));
	int n = 0;
	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

#define SECRET "the secret of the world outside\n"

/* ws/{file,dir/{file,sub/file}}, out/{secret,dir/{file}} */
static inline void set_scene(void)
{
	strcpy(scene, "/tmp/lattice-test-XXXXXX");
	if (!mkdtemp(scene))
		abort();
	make_dir("ws");
	make_dir("ws/dir");
	make_dir("ws/dir/sub");
	make_dir("out");
	make_dir("out/dir");
	put("ws/file", "inside\n");
	put("ws/dir/file", "inside dir\n");
	put("ws/dir/sub/file", "inside sub\n");
	put("out/secret", SECRET);
	put("out/dir/file", SECRET);
}

static inline bool outside_is_whole(void)
{
	return count_entries("out") == 2 && count_entries("out/dir") == 1 && holds("out/secret", SECRET) &&
	       holds("out/dir/file", SECRET);
}

static inline void strike_scene(void)
{
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", scene);
	if (system(command) != 0)
		abort();
}

static inline lat_workspace *open_workspace(const char *root, bool walk)
{
	const lat_root_spec spec = {root, LAT_ACCESS_READ | LAT_ACCESS_WRITE};
	const lat_workspace_options options = {.cwd = root, .roots = &spec, .n_roots = 1, .walk = walk};
	lat_error err;
	lat_workspace *ws = lat_workspace_new(&options, &err);
	if (!ws)
		printf("%s\n", err.message);
	return ws;
}

static inline bool never(const lat_tool_call *call)
{
	(void)call;
	return false;
}

/* A call with string members: name, value, name, value, …, NULL. */
typedef struct {
	lat_tool_call call;
	lat_value input, members[16];
} test_call;

static inline void prepare(test_call *t, lat_workspace *ws, const lat_roots *grants)
{
	memset(t, 0, sizeof *t);
	t->call = (lat_tool_call){.ws = ws, .grants = grants, .input = &t->input, .is_stopped = never};
	t->input = (lat_value){.type = LAT_OBJECT, .u.items = t->members};
}

static inline void give_n(test_call *t, const char *name, const char *value, size_t len)
{
	t->members[2 * t->input.len] = lat_value_string_view(name, strlen(name));
	t->members[2 * t->input.len + 1] = lat_value_string_view(value, len);
	t->input.len++;
}

static inline void give(test_call *t, const char *name, const char *value)
{
	give_n(t, name, value, strlen(value));
}

static inline void end_call(test_call *t)
{
	lat_buf_free(&t->call.result.text);
	lat_buf_free(&t->call.result.data);
	lat_buf_free(&t->call.result.metadata);
}

static inline bool says(test_call *t, const char *text)
{
	const lat_buf *b = &t->call.result.text;
	return b->data && memmem(b->data, b->len, text, strlen(text)) != NULL;
}

static inline double spec_scale(void)
{
	const char *scale = getenv("LATTICE_SPEC_SCALE");
	return scale ? atof(scale) : 1;
}

#endif
