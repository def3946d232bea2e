/* Removing what killed processes left half written (see file.h): a walk over folders, the nearest first, that follows
 * no link and looks at a bounded number of entries. Owns its list of folders; any thread. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workspace/file.h"

static bool remove_stale(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return false;
	struct stat st;
	bool removed = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	               unlinkat(dir, name, 0) == 0;
	close(fd);
	return removed;
}

/* A folder that is still to be looked at; they are taken level by level, the nearest first. */
typedef struct folder folder;
struct folder {
	folder *next;
	int root;
	char path[]; /* beneath the root */
};

typedef struct {
	folder *deeper; /* those of the next level */
	size_t left, removed;
} sweep;

static void enqueue(sweep *s, int root, const char *path, const char *name)
{
	size_t a = strlen(path), b = strlen(name), slash = a > 0;
	folder *f = a + slash + b < LAT_PATH_MAX ? malloc(sizeof *f + a + slash + b + 1) : NULL;
	if (!f)
		return; /* what isn't looked at now is another time */
	f->root = root;
	memcpy(f->path, path, a);
	memcpy(f->path + a, "/", slash);
	memcpy(f->path + a + slash, name, b + 1);
	f->next = s->deeper;
	s->deeper = f;
}

/* Opens root/path name by name, so that no link is followed. */
static int open_folder(int root, const char *path)
{
	int dir = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (*path && dir >= 0) {
		char name[NAME_MAX + 1];
		size_t n = strcspn(path, "/");
		memcpy(name, path, n);
		name[n] = '\0';
		int next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(dir);
		dir = next;
		path += n + (path[n] == '/');
	}
	return dir;
}

static bool is_folder(int dir, const struct dirent *e)
{
	struct stat st;
	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_DIR;
	return fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static void sweep_folder(sweep *s, const folder *f)
{
	int fd = open_folder(f->root, f->path);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (struct dirent *e; s->left > 0 && (e = readdir(dir)) != NULL; s->left--) {
		bool dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
		if (!dots && is_folder(fd, e))
			enqueue(s, f->root, f->path, e->d_name);
		else if (lat_file_is_tmp(e->d_name))
			s->removed += remove_stale(fd, e->d_name);
	}
	closedir(dir);
}

size_t lat_file_sweep(const lat_roots *roots, size_t max)
{
	sweep s = {.left = max};
	for (size_t i = 0; i < roots->n; i++)
		if (roots->root[i].access & LAT_ACCESS_WRITE)
			enqueue(&s, roots->root[i].fd, "", "");
	for (folder *level; (level = s.deeper) != NULL;) {
		s.deeper = NULL;
		for (folder *f = level, *next; f; f = next) {
			next = f->next;
			sweep_folder(&s, f);
			free(f);
		}
	}
	return s.removed;
}
