/* lat_ignore: see ignore.h. */
#include "workspace/ignore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workspace/gitignore.h"

enum { LEVELS_MAX = 64 };

struct lat_ignore_frame {
	lat_gitignore *rules;
	size_t offset;
	const lat_ignore_frame *above;
	lat_ignore_frame *next; /* of all */
};

bool lat_ignores_init(lat_ignores *all)
{
	all->frames = NULL;
	return pthread_mutex_init(&all->lock, NULL) == 0;
}

void lat_ignores_destroy(lat_ignores *all)
{
	for (lat_ignore_frame *f = all->frames, *next; f; f = next) {
		next = f->next;
		lat_gitignore_free(f->rules);
		free(f);
	}
	pthread_mutex_destroy(&all->lock);
}

/* ---- reading ---- */

static char *read_all(int fd, size_t size, size_t *len)
{
	char *text = malloc(size + 1);
	*len = 0;
	while (text && *len < size) {
		ssize_t n = read(fd, text + *len, size - *len);
		if (n > 0)
			*len += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	return text;
}

/* *rules NULL: no such file, or nothing in it that counts. False: out of memory. */
static bool read_rules(int folder, const char *name, lat_gitignore **rules)
{
	*rules = NULL;
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0)
		return true;
	bool ok = true;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= LAT_IGNORE_MAX_FILE) {
		size_t len;
		char *text = read_all(fd, (size_t)st.st_size, &len);
		*rules = text ? lat_gitignore_parse(text, len) : NULL;
		ok = *rules != NULL;
		free(text);
	}
	close(fd);
	return ok;
}

static bool push(lat_ignores *all, lat_gitignore *rules, size_t offset, const lat_ignore_frame **chain)
{
	if (!rules)
		return true;
	lat_ignore_frame *frame = malloc(sizeof *frame);
	if (!frame) {
		lat_gitignore_free(rules);
		return false;
	}
	pthread_mutex_lock(&all->lock);
	*frame = (lat_ignore_frame){.rules = rules, .offset = offset, .above = *chain, .next = all->frames};
	all->frames = frame;
	pthread_mutex_unlock(&all->lock);
	*chain = frame;
	return true;
}

/* .git/info/exclude, where .git is a folder: a work tree elsewhere has it in a place that we don't look at. */
static bool enter_repository(lat_ignores *all, int fd, size_t offset, const lat_ignore_frame **chain)
{
	*chain = NULL;
	int info = -1, git = openat(fd, ".git", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (git >= 0)
		info = openat(git, "info", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	lat_gitignore *rules = NULL;
	bool ok = info < 0 || read_rules(info, "exclude", &rules);
	if (info >= 0)
		close(info);
	if (git >= 0)
		close(git);
	return ok && push(all, rules, offset, chain);
}

bool lat_ignores_enter(lat_ignores *all, int fd, size_t offset, bool has_git, bool has_file,
                       const lat_ignore_frame **chain)
{
	if (has_git && !enter_repository(all, fd, offset, chain))
		return false;
	lat_gitignore *rules = NULL;
	return !has_file || (read_rules(fd, ".gitignore", &rules) && push(all, rules, offset, chain));
}

/* ---- above the start ---- */

typedef struct {
	int fds[LEVELS_MAX]; /* the folders above, nearest first */
	size_t offsets[LEVELS_MAX];
	size_t n;
	bool has_top; /* the last one is the top of a repository */
} ancestors;

static bool has_git(int fd)
{
	struct stat st;
	return fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Where full path[0 … end) ends one component further up; 0: at "/" already. */
static size_t parent_end(const char *path, size_t end)
{
	while (end > 0 && path[end - 1] != '/')
		end--;
	return end;
}

static void find_ancestors(ancestors *a, int fd, const char *path)
{
	size_t end = strlen(path);
	while (a->n < LEVELS_MAX && end > 1) {
		end = parent_end(path, end);
		int up = openat(a->n ? a->fds[a->n - 1] : fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (up < 0 || end == 0)
			return;
		a->fds[a->n] = up;
		a->offsets[a->n++] = end;
		a->has_top = has_git(up);
		if (a->has_top)
			return;
		end--;
	}
}

bool lat_ignores_above(lat_ignores *all, int fd, const char *path, size_t levels,
                       const lat_ignore_frame **chain)
{
	ancestors a = {.n = 0};
	*chain = NULL;
	if (has_git(fd))
		return true;
	find_ancestors(&a, fd, path);
	size_t counting = a.has_top ? a.n : levels < a.n ? levels : a.n;
	bool ok = true;
	for (size_t i = a.n; i-- > 0;) {
		if (ok && i < counting)
			ok = lat_ignores_enter(all, a.fds[i], a.offsets[i], a.has_top && i + 1 == a.n, true, chain);
		close(a.fds[i]);
	}
	return ok;
}

bool lat_ignores_excludes(const lat_ignore_frame *chain, const char *path, size_t len, bool is_folder)
{
	for (const lat_ignore_frame *f = chain; f; f = f->above) {
		lat_ignore_verdict v = lat_gitignore_match(f->rules, path + f->offset, len - f->offset, is_folder);
		if (v != LAT_IGNORE_SILENT)
			return v == LAT_IGNORE_EXCLUDED;
	}
	return false;
}
