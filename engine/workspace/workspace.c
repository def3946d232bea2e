/* lat_roots and lat_workspace: making, holding and letting go of them. Resolution is in resolve.c, the notes of
 * what was read in seen.c. Any thread; who drops the last hold closes the descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workspace/path.h"
#include "workspace/private.h"
#include "workspace/workspace.h"

/* ---- roots ---- */

/* The name that the kernel has for an open folder; the folder may be anywhere by the time the caller uses it. */
static char *name_of(int fd, const char *given)
{
	char link[64], path[LAT_PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	if (n > 0 && path[0] == '/') {
		path[n] = '\0';
		return strdup(path);
	}
	struct stat named, opened;
	char *real = realpath(given, NULL);
	if (real && stat(real, &named) == 0 && fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
	    named.st_ino == opened.st_ino)
		return real;
	free(real);
	return NULL;
}

static lat_status open_root(lat_root *root, const lat_root_spec *spec, lat_error *err)
{
	char here[LAT_PATH_MAX], given[LAT_PATH_MAX];
	root->fd = open(spec->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root->fd < 0)
		return lat_fail(err, LAT_E_IO, "can't open the folder \"%.200s\": %s", spec->path, strerror(errno));
	if (spec->path[0] != '/' && !getcwd(here, sizeof here))
		return lat_fail(err, LAT_E_IO, "can't tell the current folder: %s", strerror(errno));
	if (lat_path_join(given, sizeof given, here, spec->path, "") != 0)
		return lat_fail(err, LAT_E_LIMIT, "the path of a root is longer than %d bytes", LAT_PATH_MAX - 1);
	root->access = spec->access;
	root->path = name_of(root->fd, spec->path);
	if (!root->path)
		return lat_fail(err, LAT_E_IO, "can't tell the real name of the folder \"%.200s\"", spec->path);
	if (strcmp(given, root->path) == 0)
		return LAT_OK;
	root->alias = strdup(given);
	return root->alias ? LAT_OK : lat_fail_nomem(err);
}

lat_roots *lat_roots_open(const lat_root_spec *specs, size_t n, lat_error *err)
{
	lat_roots *roots = calloc(1, sizeof *roots + n * sizeof roots->root[0]);
	if (!roots) {
		lat_fail_nomem(err);
		return NULL;
	}
	atomic_init(&roots->holds, 1);
	for (size_t i = 0; i < n; i++) {
		roots->root[i].fd = -1;
		roots->n = i + 1;
		if (open_root(&roots->root[i], &specs[i], err) != LAT_OK) {
			lat_roots_free(roots);
			return NULL;
		}
	}
	return roots;
}

void lat_roots_hold(lat_roots *roots)
{
	atomic_fetch_add_explicit(&roots->holds, 1, memory_order_relaxed);
}

void lat_roots_free(lat_roots *roots)
{
	if (!roots || atomic_fetch_sub_explicit(&roots->holds, 1, memory_order_acq_rel) > 1)
		return;
	for (size_t i = 0; i < roots->n; i++) {
		if (roots->root[i].fd >= 0)
			close(roots->root[i].fd);
		free(roots->root[i].path);
		free(roots->root[i].alias);
	}
	free(roots);
}

/* ---- the workspace ---- */

static lat_status set_up(lat_workspace *ws, const lat_workspace_options *options, lat_error *err)
{
	const lat_root_spec here = {options->cwd, 0};
	lat_roots *cwd = lat_roots_open(&here, 1, err);
	if (!cwd)
		return LAT_E_IO;
	ws->cwd = cwd->root[0].path;
	cwd->root[0].path = NULL;
	lat_roots_free(cwd);
	ws->roots = lat_roots_open(options->roots, options->n_roots, err);
	ws->walk = options->walk || !lat_workspace_has_openat2();
	return ws->roots ? LAT_OK : LAT_E_IO;
}

lat_workspace *lat_workspace_new(const lat_workspace_options *options, lat_error *err)
{
	lat_workspace *ws = calloc(1, sizeof *ws);
	if (!ws || pthread_mutex_init(&ws->lock, NULL) != 0) {
		free(ws);
		lat_fail_nomem(err);
		return NULL;
	}
	atomic_init(&ws->holds, 1);
	if (set_up(ws, options, err) == LAT_OK)
		return ws;
	lat_workspace_free(ws);
	return NULL;
}

void lat_workspace_hold(lat_workspace *ws)
{
	atomic_fetch_add_explicit(&ws->holds, 1, memory_order_relaxed);
}

void lat_workspace_free(lat_workspace *ws)
{
	if (!ws || atomic_fetch_sub_explicit(&ws->holds, 1, memory_order_acq_rel) > 1)
		return;
	lat_roots_free(ws->roots);
	lat_seen_free(&ws->seen);
	pthread_mutex_destroy(&ws->lock);
	free(ws->cwd);
	free(ws);
}

const char *lat_workspace_cwd(const lat_workspace *ws)
{
	return ws->cwd;
}

const lat_roots *lat_workspace_roots(const lat_workspace *ws)
{
	return ws->roots;
}
