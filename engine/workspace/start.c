/* lat_start: see start.h. The thread that runs the call. */
#include "workspace/start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How many names lead from folder to path, both absolute; SIZE_MAX: it isn't beneath it. */
static size_t names_between(const char *folder, const char *path)
{
	size_t n = strlen(folder), names = 0;
	if (n > 0 && folder[n - 1] == '/')
		n--;
	if (strncmp(folder, path, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return SIZE_MAX;
	for (const char *at = path + n; *at; at++)
		names += at[0] == '/' && at[1] != '\0';
	return names;
}

static size_t levels_in(const lat_roots *roots, const char *path, size_t least)
{
	for (size_t i = 0; roots && i < roots->n; i++) {
		size_t n = names_between(roots->root[i].path, path);
		if (n < least)
			least = n;
	}
	return least;
}

/* Counted from the nearest root above. */
static size_t levels_of(const lat_tool_call *call, int fd)
{
	char link[64], path[LAT_PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof path - 1);
	if (len <= 0)
		return 0;
	path[len] = '\0';
	size_t n = levels_in(call->grants, path, levels_in(lat_workspace_roots(call->ws), path, SIZE_MAX));
	return n == SIZE_MAX ? 0 : n;
}

static void make_prefix(lat_start *start, const char *path, size_t len)
{
	while (len >= 2 && path[0] == '.' && path[1] == '/') {
		path += 2;
		len -= 2;
	}
	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len == 1 && *path == '.')
		len = 0;
	lat_tool_append_name(&start->prefix, path, len);
	if (!start->is_file && len > 0 && path[len - 1] != '/')
		lat_buf_byte(&start->prefix, '/');
	lat_buf_cstr(&start->prefix);
}

bool lat_start_open(lat_tool_call *call, const char *path, size_t len, lat_start *start)
{
	*start = (lat_start){.fd = -1, .prefix = LAT_BUF_INIT};
	lat_place place;
	int failure = lat_workspace_resolve(call->ws, call->grants, path, len, LAT_ACCESS_READ, 0, &place);
	if (failure == 0) {
		struct stat st;
		start->fd = lat_place_open_dir(&place);
		start->is_file = start->fd < 0 && errno == ENOTDIR;
		if (start->is_file)
			start->fd = lat_place_open_file(&place, &st);
		failure = start->fd < 0 ? errno : 0;
		lat_place_close(&place);
	}
	if (failure) {
		const char *name = place.path[0] ? place.path : path;
		lat_tool_fail_errno(call, "search", name, strlen(name), LAT_ACCESS_READ, failure);
		return false;
	}
	make_prefix(start, path, len);
	if (!start->is_file)
		start->levels = levels_of(call, start->fd);
	if (lat_buf_ok(&start->prefix))
		return true;
	lat_start_close(start);
	lat_tool_fail_nomem(call);
	return false;
}

void lat_start_close(lat_start *start)
{
	if (start->fd >= 0)
		close(start->fd);
	start->fd = -1;
	lat_buf_free(&start->prefix);
}
