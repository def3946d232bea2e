/* LS: the entries of one folder, sorted by bytes, folders with a slash. The thread that runs the call.
 *
 * All names are read, since order is only known then, up to LS_READ_MAX; LS_SHOWN_MAX of them are shown. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workspace/tool.h"

enum { LS_SHOWN_MAX = 1000, LS_READ_MAX = 1 << 20 };

typedef struct {
	lat_buf names;  /* each with its NUL */
	lat_buf starts; /* size_t offsets into names */
	size_t n;
	bool more; /* there are more than LS_READ_MAX */
} listing;

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int read_names(lat_tool_call *call, DIR *dir, listing *l)
{
	for (struct dirent *e; errno = 0, (e = readdir(dir)) != NULL;) {
		if (is_dots(e->d_name))
			continue;
		if (l->n == LS_READ_MAX || call->is_stopped(call)) {
			l->more = true;
			return 0;
		}
		lat_buf_append(&l->starts, &l->names.len, sizeof l->names.len);
		lat_buf_append(&l->names, e->d_name, strlen(e->d_name) + 1);
		l->n++;
	}
	return errno;
}

static int compare(const void *a, const void *b, void *names)
{
	const char *text = names;
	return strcmp(text + *(const size_t *)a, text + *(const size_t *)b);
}

static void show(lat_buf *b, int dir, const char *name)
{
	struct stat st;
	bool known = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	lat_tool_append_name(b, name, strlen(name));
	if (known && S_ISDIR(st.st_mode)) {
		lat_buf_byte(b, '/');
	} else if (known && S_ISLNK(st.st_mode)) {
		char target[LAT_PATH_MAX];
		ssize_t n = readlinkat(dir, name, target, sizeof target);
		lat_buf_str(b, " -> ");
		lat_tool_append_name(b, target, n > 0 ? (size_t)n : 0);
	}
	lat_buf_byte(b, '\n');
}

static void show_all(lat_tool_call *call, int dir, const listing *l)
{
	lat_buf *b = &call->result.text;
	const size_t *starts = (const size_t *)(const void *)l->starts.data;
	size_t shown = l->n < LS_SHOWN_MAX ? l->n : LS_SHOWN_MAX;
	for (size_t i = 0; i < shown; i++)
		show(b, dir, l->names.data + starts[i]);
	if (l->n == 0)
		lat_buf_str(b, "(the folder is empty)");
	else if (l->n > shown)
		lat_buf_printf(b, "(%zu%s more; use Glob to pick some)", l->n - shown, l->more ? " or" : "");
	else
		b->len -= b->len > 0; /* the end of the last line */
	lat_tool_note_int(call, "entries", (int64_t)l->n);
	lat_tool_note_bool(call, "truncated", l->n > shown);
}

void lat_tool_ls(lat_tool_call *call)
{
	lat_place place;
	if (!lat_tool_place(call, "path", ".", "list", LAT_ACCESS_READ, 0, &place))
		return;
	int fd = lat_place_open_dir(&place);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	listing l = {.names = LAT_BUF_INIT, .starts = LAT_BUF_INIT};
	int failure = dir ? read_names(call, dir, &l) : errno;
	if (failure) {
		lat_tool_fail_errno(call, "list", place.path, strlen(place.path), LAT_ACCESS_READ, failure);
	} else if (!lat_buf_ok(&l.names) || !lat_buf_ok(&l.starts)) {
		lat_tool_fail_nomem(call);
	} else {
		if (l.n > 1)
			qsort_r(l.starts.data, l.n, sizeof(size_t), compare, l.names.data);
		show_all(call, fd, &l);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	lat_buf_free(&l.names);
	lat_buf_free(&l.starts);
	lat_place_close(&place);
}
