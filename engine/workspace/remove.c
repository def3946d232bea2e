/* lat_remove_tree: see remove.h. A folder within is emptied by moving its folders up to the top, so that none is ever
 * deeper than one level:
 *
 *   top/a/{f, b/, c/}  →  top/{b→.0, c→.1}, f unlinked, a removed  →  the same with .0 and .1 */
#include "workspace/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PASSES_WITHOUT_PROGRESS = 3 };

typedef struct {
	int top;
	unsigned long moved; /* folders, for their names */
	bool progress;
} removal;

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A folder without its owner's rights can't be emptied. Through /proc, since chmod by name might follow a link that
 * was put in its place. */
static void give_rights(int dir, const char *name)
{
	char link[64];
	int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	struct stat st;
	if (fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700 && chmod(link, 0700) != 0)
		errno = 0; /* then what follows fails, and says so */
	close(fd);
}

static DIR *open_entries(int dir, const char *name)
{
	give_rights(dir, name);
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
	if (fd >= 0 && !entries)
		close(fd);
	return entries;
}

static void move_up(removal *r, int dir, const char *name)
{
	for (int tries = 0; tries < 1000; tries++) {
		char to[32];
		snprintf(to, sizeof to, ".%lu", r->moved++);
		give_rights(dir, name);
		if (renameat2(dir, name, r->top, to, RENAME_NOREPLACE) == 0) {
			r->progress = true;
			return;
		}
		if (errno != EEXIST)
			return;
	}
}

/* Empties a folder of the top one. */
static void flatten(removal *r, const char *name)
{
	DIR *entries = open_entries(r->top, name);
	if (!entries)
		return;
	for (struct dirent *e; (e = readdir(entries)) != NULL;) {
		if (is_dots(e->d_name))
			continue;
		if (unlinkat(dirfd(entries), e->d_name, 0) == 0)
			r->progress = true;
		else if (errno == EISDIR || errno == EPERM)
			move_up(r, dirfd(entries), e->d_name);
	}
	closedir(entries);
}

/* Once over the entries of the top folder. False: there were none. */
static bool pass(removal *r)
{
	DIR *entries = open_entries(r->top, ".");
	bool any = false;
	if (!entries)
		return false;
	for (struct dirent *e; (e = readdir(entries)) != NULL;) {
		if (is_dots(e->d_name))
			continue;
		any = true;
		if (unlinkat(r->top, e->d_name, 0) == 0) {
			r->progress = true;
		} else if (errno == EISDIR || errno == EPERM) {
			flatten(r, e->d_name);
			r->progress |= unlinkat(r->top, e->d_name, AT_REMOVEDIR) == 0;
		}
	}
	closedir(entries);
	return any;
}

bool lat_remove_tree(int dir, const char *name, int fd)
{
	removal r = {.top = fd};
	int idle = 0;
	while (idle < PASSES_WITHOUT_PROGRESS && pass(&r)) {
		idle = r.progress ? 0 : idle + 1;
		r.progress = false;
	}
	struct stat named, opened;
	bool same = fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &opened) == 0 &&
	            named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
	return same && unlinkat(dir, name, AT_REMOVEDIR) == 0;
}
