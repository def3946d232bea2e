/* Resolution: from a path to a place beneath a root (see workspace.h). Owns nothing; any thread. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "workspace/path.h"
#include "workspace/private.h"

enum { LINKS_MAX = 40, RACES_MAX = 64 }; /* the kernel's own bound on links; lost races with renames */

#define OPEN_FOLDER (O_PATH | O_DIRECTORY | O_CLOEXEC)

static int open_beneath(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	for (int i = 0;; i++) { /* EAGAIN: a rename somewhere in the system; the kernel can't tell (openat2(2)) */
		int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || i == RACES_MAX)
			return fd;
	}
}

bool lat_workspace_has_openat2(void)
{
	int fd = open_beneath(AT_FDCWD, ".", OPEN_FOLDER);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL && errno != E2BIG);
}

/* ---- which root ---- */

typedef struct {
	const lat_root *root;
	const char *rest; /* of the path, beneath the root */
} match;

static void match_name(const lat_root *root, const char *name, const char *path, match *best)
{
	const char *rest = name ? lat_path_beneath(name, path) : NULL;
	if (rest && (!best->root || strlen(rest) < strlen(best->rest)))
		*best = (match){root, rest};
}

static void match_roots(const lat_roots *roots, const char *path, unsigned access, match *best)
{
	for (size_t i = 0; roots && i < roots->n; i++) {
		const lat_root *root = &roots->root[i];
		if ((root->access & access) != access)
			continue;
		match_name(root, root->path, path, best);
		match_name(root, root->alias, path, best);
	}
}

/* The innermost root that path lies beneath by name and that allows it. */
static match find_root(const lat_workspace *ws, const lat_roots *grants, const char *path, unsigned access)
{
	match best = {NULL, NULL};
	match_roots(ws->roots, path, access, &best);
	match_roots(grants, path, access, &best);
	return best;
}

/* ---- the walk ---- */

typedef struct {
	const lat_workspace *ws;
	const lat_roots *grants;
	unsigned access, flags;
	int links;               /* followed so far */
	char text[LAT_PATH_MAX]; /* what is being walked, without "." and ".." */
	char real[LAT_PATH_MAX]; /* where the walk has got to, without links */
} walk;

static bool is_proc(int dir)
{
	struct statfs fs;
	return fstatfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Is `name` in `dir` a link? Then the walk begins again with its text in place of the name (EAGAIN). */
static int follow(walk *w, int dir, const char *name, const char *rest)
{
	char target[LAT_PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
	if (n < 0)
		return errno == EINVAL ? 0 : errno;
	if (++w->links > LINKS_MAX || is_proc(dir))
		return ELOOP;
	target[n] = '\0';
	char text[LAT_PATH_MAX];
	int failure = lat_path_join(text, sizeof text, w->real, target, rest);
	memcpy(w->text, text, sizeof text);
	return failure ? failure : EAGAIN;
}

static int enter(walk *w, int dir, const char *name, const char *rest, int *out)
{
	*out = openat(dir, name, OPEN_FOLDER | O_NOFOLLOW);
	if (*out >= 0)
		return 0;
	if (errno == ENOENT && (w->flags & LAT_PLACE_MAKE_PARENTS)) {
		if (mkdirat(dir, name, 0777) != 0 && errno != EEXIST)
			return errno;
		*out = openat(dir, name, OPEN_FOLDER | O_NOFOLLOW);
		if (*out >= 0)
			return 0;
	}
	int failure = errno;
	int link = failure == ENOTDIR || failure == ELOOP ? follow(w, dir, name, rest) : 0;
	return link ? link : failure;
}

static int finish(walk *w, int dir, bool owned, const char *name, lat_place *place)
{
	if (strlen(name) > NAME_MAX)
		return ENAMETOOLONG;
	int link = follow(w, dir, name, "");
	if (link && link != ENOENT)
		return link;
	strcpy(place->name, *name ? name : ".");
	place->dir = owned ? dir : fcntl(dir, F_DUPFD_CLOEXEC, 0);
	if (place->dir < 0)
		return errno;
	return lat_path_join(w->real, sizeof w->real, w->real, name, "");
}

/* One pass from a root along w->text, until its last name, or a link (EAGAIN). */
static int pass(walk *w, lat_place *place)
{
	const match m = find_root(w->ws, w->grants, w->text, w->access);
	if (!m.root)
		return EXDEV;
	strcpy(w->real, m.root->path);
	int dir = m.root->fd, failure = 0;
	const char *at = m.rest;
	char name[NAME_MAX + 1];
	for (size_t n; at[n = strcspn(at, "/")] == '/' && failure == 0; at += n + 1) {
		if (n > NAME_MAX) {
			failure = ENAMETOOLONG;
			break;
		}
		memcpy(name, at, n);
		name[n] = '\0';
		int next;
		failure = enter(w, dir, name, at + n + 1, &next);
		if (failure)
			break;
		if (dir != m.root->fd)
			close(dir);
		dir = next;
		failure = lat_path_join(w->real, sizeof w->real, w->real, name, "");
	}
	bool owned = dir != m.root->fd;
	if (failure == 0)
		failure = *at ? finish(w, dir, owned, at, place) : finish(w, dir, owned, ".", place);
	if (failure == ENOENT) /* what isn't there yet has a name all the same */
		lat_path_join(w->real, sizeof w->real, w->real, at, "");
	if (failure && owned)
		close(dir);
	return failure;
}

static int run_walk(walk *w, lat_place *place)
{
	int failure;
	do
		failure = pass(w, place);
	while (failure == EAGAIN);
	return failure;
}

/* ---- openat2 ---- */

/* EAGAIN: what comes out isn't the whole answer, the walk is. */
static int resolve_beneath(const match *m, unsigned flags, lat_place *place)
{
	char parent[LAT_PATH_MAX];
	const char *slash = strrchr(m->rest, '/'), *name = slash ? slash + 1 : m->rest;
	size_t n = slash ? (size_t)(slash - m->rest) : 0;
	if (strlen(name) > NAME_MAX)
		return ENAMETOOLONG;
	memcpy(parent, n ? m->rest : ".", n ? n : 1);
	parent[n ? n : 1] = '\0';
	int dir = open_beneath(m->root->fd, parent, OPEN_FOLDER);
	if (dir < 0) {
		bool missing = errno == ENOENT && (flags & LAT_PLACE_MAKE_PARENTS);
		return missing || errno == EXDEV || errno == EAGAIN ? EAGAIN : errno;
	}
	struct stat st;
	if (*name && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) {
		close(dir);
		return EAGAIN;
	}
	strcpy(place->name, *name ? name : ".");
	place->dir = dir;
	return 0;
}

/* ---- the public part ---- */

int lat_workspace_absolute(const lat_workspace *ws, const char *path, size_t len, char out[LAT_PATH_MAX])
{
	out[0] = '\0';
	if (len == 0 || memchr(path, '\0', len))
		return EINVAL;
	if (len >= LAT_PATH_MAX)
		return ENAMETOOLONG;
	char copy[LAT_PATH_MAX];
	memcpy(copy, path, len);
	copy[len] = '\0';
	return lat_path_join(out, LAT_PATH_MAX, ws->cwd, copy, "");
}

int lat_workspace_resolve(const lat_workspace *ws, const lat_roots *grants, const char *path, size_t len,
                          unsigned access, unsigned flags, lat_place *place)
{
	place->dir = -1;
	int failure = lat_workspace_absolute(ws, path, len, place->path);
	if (failure)
		return failure;
	const match m = find_root(ws, grants, place->path, access);
	if (!m.root)
		return EXDEV;
	failure = ws->walk ? EAGAIN : resolve_beneath(&m, flags, place);
	if (failure != EAGAIN)
		return failure;
	walk w = {.ws = ws, .grants = grants, .access = access, .flags = flags};
	strcpy(w.text, place->path);
	return run_walk(&w, place);
}

int lat_workspace_canonical(const lat_workspace *ws, const lat_roots *grants, const char *path, size_t len,
                            char out[LAT_PATH_MAX])
{
	int failure = lat_workspace_absolute(ws, path, len, out);
	if (failure)
		return failure;
	walk w = {.ws = ws, .grants = grants};
	strcpy(w.text, out);
	lat_place place;
	failure = run_walk(&w, &place);
	if (failure == 0)
		lat_place_close(&place);
	if (failure && failure != ENOENT)
		return failure;
	strcpy(out, w.real);
	return 0;
}

void lat_place_close(lat_place *place)
{
	if (place->dir >= 0)
		close(place->dir);
	place->dir = -1;
}

bool lat_place_key(const lat_place *place, lat_file_key *key)
{
	struct stat st;
	if (fstat(place->dir, &st) != 0)
		return false;
	*key = (lat_file_key){st.st_dev, st.st_ino, place->name};
	return true;
}

static int fail_with(int fd, int failure)
{
	close(fd);
	errno = failure;
	return -1;
}

int lat_place_open_file(const lat_place *place, struct stat *st)
{
	/* The first look spares devices an open, which may have an effect; the second one is what counts. */
	if (fstatat(place->dir, place->name, st, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	if (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode)) {
		errno = S_ISDIR(st->st_mode) ? EISDIR : ENODEV;
		return -1;
	}
	int fd = openat(place->dir, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, st) != 0)
		return fail_with(fd, errno);
	if (!S_ISREG(st->st_mode))
		return fail_with(fd, S_ISDIR(st->st_mode) ? EISDIR : ENODEV);
	return fd;
}

int lat_place_open_dir(const lat_place *place)
{
	return openat(place->dir, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}
