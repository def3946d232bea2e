/* lat_folder: see folder.h. The list of folders is the process's, since only that knows when it exits; its lock is a
 * leaf. A child that was forked without exec has no part in it. */
#include "workspace/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workspace/remove.h"

#define PRIVATE "lattice-session-"
#define KEPT    "lattice-kept-"
#define RANDOM  "XXXXXX"

enum { MAKE_TRIES = 20 };

struct lat_folder {
	lat_folder *prev, *next;
	pid_t owner;
	int fd; /* the folder, locked */
	bool keep;
	char path[];
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static lat_folder *list;

static void enlist(lat_folder *f)
{
	pthread_mutex_lock(&list_lock);
	f->next = list;
	if (list)
		list->prev = f;
	list = f;
	pthread_mutex_unlock(&list_lock);
}

static void delist(lat_folder *f)
{
	pthread_mutex_lock(&list_lock);
	if (f->prev)
		f->prev->next = f->next;
	else
		list = f->next;
	if (f->next)
		f->next->prev = f->prev;
	pthread_mutex_unlock(&list_lock);
}

static void discard(lat_folder *f)
{
	if (!f->keep && f->owner == getpid())
		lat_remove_tree(AT_FDCWD, f->path, f->fd);
	close(f->fd);
	free(f);
}

__attribute__((destructor)) static void discard_all(void)
{
	while (list) {
		lat_folder *f = list;
		list = f->next;
		discard(f);
	}
}

void lat_folder_free(lat_folder *f)
{
	if (!f)
		return;
	delist(f);
	discard(f);
}

const char *lat_folder_path(const lat_folder *f)
{
	return f->path;
}

bool lat_folder_is_kept(const lat_folder *f)
{
	return f->keep;
}

/* ---- making ---- */

static lat_folder *new_folder(const char *path, bool keep)
{
	size_t n = strlen(path) + 1;
	lat_folder *f = malloc(sizeof *f + n);
	if (!f)
		return NULL;
	*f = (lat_folder){.owner = getpid(), .fd = -1, .keep = keep};
	memcpy(f->path, path, n);
	return f;
}

/* Opens and locks. False: somebody took it for a dead one's and removed it, or it can't be opened. */
static bool hold(lat_folder *f)
{
	struct stat st;
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (f->fd < 0)
		return false;
	int locked = flock(f->fd, LOCK_EX | LOCK_NB);
	bool busy = locked != 0 && errno == EWOULDBLOCK;
	if (!busy && fstat(f->fd, &st) == 0 && st.st_nlink > 0)
		return true;
	close(f->fd);
	errno = ENOENT;
	return false;
}

static const char *temporary(void)
{
	const char *dir = getenv("TMPDIR");
	return dir && dir[0] == '/' ? dir : "/tmp";
}

/* Removes the private folders of this user that nobody holds. */
static void sweep(const char *parent)
{
	DIR *dir = opendir(parent);
	if (!dir)
		return;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		if (strncmp(e->d_name, PRIVATE, strlen(PRIVATE)) != 0)
			continue;
		int fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;
		if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
			lat_remove_tree(dirfd(dir), e->d_name, fd);
		if (fd >= 0)
			close(fd);
	}
	closedir(dir);
}

static lat_folder *make_one(const char *pattern, bool keep, lat_error *err)
{
	lat_folder *f = new_folder(pattern, keep);
	if (!f) {
		lat_fail_nomem(err);
		return NULL;
	}
	if (mkdtemp(f->path) && hold(f)) {
		enlist(f);
		return f;
	}
	int failure = errno;
	lat_fail(err, LAT_E_IO, "can't make a private folder like %.200s: %s", pattern, strerror(failure));
	free(f);
	errno = failure;
	return NULL;
}

lat_folder *lat_folder_make(bool keep, lat_error *err)
{
	char pattern[PATH_MAX];
	const char *parent = temporary();
	int n = snprintf(pattern, sizeof pattern, "%s/%s" RANDOM, parent, keep ? KEPT : PRIVATE);
	if (n < 0 || (size_t)n >= sizeof pattern) {
		lat_fail(err, LAT_E_LIMIT, "the path in TMPDIR is too long");
		return NULL;
	}
	sweep(parent);
	lat_folder *f = NULL;
	for (int i = 0; i < MAKE_TRIES && !f; i++) {
		f = make_one(pattern, keep, err);
		if (!f && errno != ENOENT)
			break;
	}
	return f;
}

/* Makes the folder and its parents; *made says whether it wasn't there. */
static int make_path(char *path, bool *made)
{
	*made = mkdir(path, 0700) == 0;
	if (*made || errno == EEXIST)
		return 0;
	if (errno != ENOENT)
		return errno;
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int failure = mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : errno;
		*slash = '/';
		if (failure)
			return failure;
	}
	*made = mkdir(path, 0700) == 0;
	return *made || errno == EEXIST ? 0 : errno;
}

lat_folder *lat_folder_at(const char *path, bool keep, lat_error *err)
{
	lat_folder *f = new_folder(path, keep);
	if (!f) {
		lat_fail_nomem(err);
		return NULL;
	}
	bool made = false;
	int failure = make_path(f->path, &made);
	f->keep = keep || !made;
	if (failure == 0) {
		f->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		failure = f->fd < 0 ? errno : 0;
	}
	if (failure) {
		lat_fail(err, LAT_E_IO, "can't make the folder %.200s: %s", path, strerror(failure));
		free(f);
		return NULL;
	}
	enlist(f);
	return f;
}
