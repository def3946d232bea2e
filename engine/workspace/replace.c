/* Replacing a file so that it is the old or the new one, whole, at any moment (see file.h).
 *
 * The new content goes to a file beside it, named .lattice-<16 hex digits>.tmp, which is locked (flock) as long as
 * its writer lives; the sweep removes those that nobody holds. Lock order: a name's lock is a leaf. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workspace/file.h"

#define TMP_PREFIX ".lattice-"
#define TMP_SUFFIX ".tmp"

enum { TMP_DIGITS = 16, TMP_TRIES = 100, LOCKS = 64 };

/* ---- one writer for each name ---- */

/* Writers of one file may be in different Lua states, which share nothing else than the process: so this is the
 * process's. A lock stands for all names with its hash. */
#define FOUR_LOCKS \
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER
#define SIXTEEN_LOCKS FOUR_LOCKS, FOUR_LOCKS, FOUR_LOCKS, FOUR_LOCKS
static pthread_mutex_t locks[LOCKS] = {SIXTEEN_LOCKS, SIXTEEN_LOCKS, SIXTEEN_LOCKS, SIXTEEN_LOCKS};

static pthread_mutex_t *lock_of(const lat_file_key *key)
{
	uint64_t h = key->dir_ino * 0x9e3779b97f4a7c15u ^ key->dir_dev;
	for (const char *s = key->name; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return &locks[(h ^ h >> 32) % LOCKS];
}

void lat_file_lock(const lat_file_key *key)
{
	pthread_mutex_lock(lock_of(key));
}

void lat_file_unlock(const lat_file_key *key)
{
	pthread_mutex_unlock(lock_of(key));
}

/* ---- the file beside it ---- */

typedef char tmp_name[sizeof TMP_PREFIX + TMP_DIGITS + sizeof TMP_SUFFIX];

bool lat_file_is_tmp(const char *name)
{
	size_t head = sizeof TMP_PREFIX - 1;
	return strncmp(name, TMP_PREFIX, head) == 0 && strspn(name + head, "0123456789abcdef") == TMP_DIGITS &&
	       strcmp(name + head + TMP_DIGITS, TMP_SUFFIX) == 0;
}

/* Makes the file and locks it. A sweep that came between the two has removed it: then there is another try. */
static int make_tmp(int dir, mode_t mode, tmp_name name)
{
	for (int i = 0; i < TMP_TRIES; i++) {
		uint64_t r;
		if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
			return -1;
		snprintf(name, sizeof(tmp_name), TMP_PREFIX "%016llx" TMP_SUFFIX, (unsigned long long)r);
		int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return -1;
		struct stat st;
		if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
			close(fd); /* a sweep has it, and is about to remove it */
			continue;
		}
		if (fstat(fd, &st) == 0 && st.st_nlink == 1)
			return fd;
		close(fd);
	}
	errno = EEXIST;
	return -1;
}

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len < SSIZE_MAX ? len : SSIZE_MAX);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The old one's owner where this process may give files away, and its mode. */
static int take_over(int fd, const struct stat *old)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return errno;
	mode_t mode = old->st_mode & 07777;
	if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid) && fchown(fd, old->st_uid, old->st_gid) != 0)
		mode &= 01777; /* somebody else's file now: not with the rights of the old one's owner */
	return fchmod(fd, mode) == 0 ? 0 : errno;
}

static int fill(int fd, const char *bytes, size_t len, lat_replacement *r)
{
	int failure = write_all(fd, bytes, len);
	if (failure == 0 && r->old)
		failure = take_over(fd, r->old);
	if (failure == 0 && fsync(fd) != 0)
		failure = errno;
	if (failure == 0 && fstat(fd, &r->now) != 0)
		failure = errno;
	return failure;
}

/* Whether the place still holds the old file, or still nothing. */
static int check_old(const lat_place *place, const struct stat *old)
{
	struct stat st;
	if (fstatat(place->dir, place->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT && !old ? 0 : errno == ENOENT ? EBUSY : errno;
	if (!old)
		return EBUSY;
	bool same = st.st_dev == old->st_dev && st.st_ino == old->st_ino && st.st_size == old->st_size &&
	            st.st_mtim.tv_sec == old->st_mtim.tv_sec && st.st_mtim.tv_nsec == old->st_mtim.tv_nsec;
	return same ? 0 : EBUSY;
}

int lat_file_replace(const lat_place *place, const char *bytes, size_t len, lat_replacement *r)
{
	r->not_synced = false;
	int dir = openat(place->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno;
	tmp_name name;
	int failure = 0, fd = make_tmp(dir, r->old ? 0600 : 0666, name);
	if (fd < 0) {
		failure = errno;
		close(dir);
		return failure;
	}
	failure = fill(fd, bytes, len, r);
	if (failure == 0)
		failure = check_old(place, r->old);
	if (failure == 0 && renameat(dir, name, dir, place->name) != 0)
		failure = errno;
	if (failure)
		unlinkat(dir, name, 0);
	else
		r->not_synced = fsync(dir) != 0;
	close(fd);
	close(dir);
	return failure;
}
