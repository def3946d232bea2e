/* lat_walk: see walk.h. Folders that wait for a thread are a list under the walk's lock; a folder is the thread's
 * that took it until it is read, and nobody changes it afterwards. No recursion: depth is the file system's.
 *
 * Lock order: the walk's lock and that of its ignores are leaves. */
#include "workspace/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "workspace/crew.h"
#include "workspace/ignore.h"

enum {
	ENTRIES_BYTES = 64 * 1024,
	FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
};

typedef struct folder folder;

typedef struct {
	lat_walk_file file;
	size_t name_at; /* in the folder's names, while they still grow */
	unsigned char type;
	folder *child; /* for folders */
} entry;

struct folder {
	char *path; /* full: the start's, then its own with a "/" at its end */
	size_t path_len;
	lat_buf names;
	entry *entries;
	size_t n, cap;
	const lat_ignore_frame *rules;
	folder *waiting; /* next one that waits for a thread */
	folder *parent;
	size_t at; /* while the list is made: the entry that comes next */
};

struct lat_walk {
	const lat_walk_options *options; /* while it runs */
	size_t start_len;
	folder *top;
	lat_ignores ignores;
	lat_walk_file *files;
	size_t count;
	/* guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	folder *waiting;
	size_t busy, n_kept, unreadable;
	lat_status status;
};

typedef struct {
	lat_walk *walk;
	char *entries; /* what the kernel hands over */
	lat_buf path;  /* full path of the entry in hand */
} walker;

/* ---- folders ---- */

int lat_walk_open_folder(int start, const char *path)
{
	if (!*path)
		return openat(start, ".", FOLDER_FLAGS);
	struct open_how how = {.flags = FOLDER_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(SYS_openat2, start, path, &how, sizeof how);
	if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != ENAMETOOLONG))
		return fd;
	fd = openat(start, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 &&
	       *path) { /* name by name: an old kernel, or a path that is longer than it takes at once */
		size_t len = strcspn(path, "/");
		char name[NAME_MAX + 1];
		if (len > NAME_MAX) {
			close(fd);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		path += len + strspn(path + len, "/");
		int next = openat(fd, name, *path ? O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW : FOLDER_FLAGS);
		int failure = errno;
		close(fd);
		errno = failure;
		fd = next;
	}
	return fd;
}

static folder *new_folder(folder *parent, const char *name, size_t len)
{
	size_t before = parent ? parent->path_len : 0;
	folder *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	f->path = malloc(before + len + 2);
	if (!f->path) {
		free(f);
		return NULL;
	}
	if (parent)
		memcpy(f->path, parent->path, before);
	memcpy(f->path + before, name, len);
	f->path_len = before + len;
	if (f->path_len == 0 || f->path[f->path_len - 1] != '/')
		f->path[f->path_len++] = '/';
	f->path[f->path_len] = '\0';
	f->parent = parent;
	f->rules = parent ? parent->rules : NULL;
	return f;
}

/* The folder alone: its children are in other hands. */
static void free_folder(folder *f)
{
	free(f->path);
	free(f->entries);
	lat_buf_free(&f->names);
	free(f);
}

/* ---- reading one folder ---- */

static entry *new_entry(folder *f)
{
	if (f->n == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 16;
		entry *entries = realloc(f->entries, cap * sizeof *entries);
		if (!entries)
			return NULL;
		f->entries = entries;
		f->cap = cap;
	}
	f->entries[f->n] = (entry){.name_at = f->names.len};
	return &f->entries[f->n++];
}

typedef struct {
	bool has_git, has_rules;
} findings;

static bool take_entry(folder *f, const struct dirent64 *d, findings *found)
{
	const char *name = d->d_name;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return true;
	if (strcmp(name, ".git") == 0) {
		found->has_git = true;
		return true;
	}
	if (strcmp(name, ".gitignore") == 0)
		found->has_rules = true;
	if (d->d_type != DT_REG && d->d_type != DT_LNK && d->d_type != DT_DIR && d->d_type != DT_UNKNOWN)
		return true;
	entry *e = new_entry(f);
	if (!e)
		return false;
	e->type = d->d_type;
	e->file.name_len = (uint32_t)strlen(name);
	lat_buf_append(&f->names, name, e->file.name_len + 1);
	return lat_buf_ok(&f->names);
}

/* LAT_E_IO: the kernel said no in the middle. */
static lat_status read_entries(walker *w, folder *f, int fd, findings *found)
{
	for (;;) {
		ssize_t n = getdents64(fd, w->entries, ENTRIES_BYTES);
		if (n <= 0)
			return n == 0 ? LAT_OK : LAT_E_IO;
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(w->entries + at);
			if (!take_entry(f, d, found))
				return LAT_E_NOMEM;
			at += d->d_reclen;
		}
	}
}

static unsigned char type_of(int fd, const char *name)
{
	struct stat st;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISREG(st.st_mode)   ? DT_REG
	       : S_ISLNK(st.st_mode) ? DT_LNK
	       : S_ISDIR(st.st_mode) ? DT_DIR
	                             : DT_UNKNOWN;
}

/* Whether the entry stays; a folder that stays gets its child. */
static bool stays(walker *w, folder *f, int fd, entry *e, lat_status *status)
{
	const lat_walk_options *options = w->walk->options;
	if (e->type == DT_UNKNOWN)
		e->type = type_of(fd, e->file.name);
	if (e->type == DT_UNKNOWN)
		return false;
	w->path.len = f->path_len;
	lat_buf_append(&w->path, e->file.name, e->file.name_len + 1);
	if (!lat_buf_ok(&w->path)) {
		*status = LAT_E_NOMEM;
		return false;
	}
	size_t len = w->path.len - 1;
	if (lat_ignores_excludes(f->rules, w->path.data, len, e->type == DT_DIR))
		return false;
	if (e->type == DT_DIR) {
		e->child = new_folder(f, e->file.name, e->file.name_len);
		if (!e->child)
			*status = LAT_E_NOMEM;
		return e->child != NULL;
	}
	e->file.is_link = e->type == DT_LNK;
	size_t start = w->walk->start_len;
	return !options->keep || options->keep(options->arg, fd, w->path.data + start, len - start, &e->file);
}

static int key_byte(const entry *e, size_t i)
{
	if (i < e->file.name_len)
		return (unsigned char)e->file.name[i];
	return i == e->file.name_len && e->child ? '/' : -1;
}

/* By the bytes of whole paths: a folder's name counts with the "/" that follows it there. */
static int by_path(const void *left, const void *right)
{
	const entry *a = left, *b = right;
	size_t n = a->file.name_len < b->file.name_len ? a->file.name_len : b->file.name_len;
	int order = memcmp(a->file.name, b->file.name, n);
	for (size_t i = n; order == 0; i++) {
		int x = key_byte(a, i), y = key_byte(b, i);
		if (x < 0 && y < 0)
			return 0;
		order = x - y;
	}
	return order;
}

static lat_status sift(walker *w, folder *f, int fd)
{
	lat_status status = LAT_OK;
	size_t kept = 0;
	lat_buf_clear(&w->path);
	lat_buf_append(&w->path, f->path, f->path_len);
	for (size_t i = 0; i < f->n; i++) {
		entry *e = &f->entries[i];
		e->file.name = f->names.data + e->name_at;
		e->file.folder = f->path + w->walk->start_len;
		e->file.folder_len = (uint32_t)(f->path_len - w->walk->start_len);
		if (status == LAT_OK && stays(w, f, fd, e, &status))
			f->entries[kept++] = *e;
	}
	f->n = kept;
	if (kept > 1)
		qsort(f->entries, kept, sizeof *f->entries, by_path);
	return status;
}

static lat_status read_folder(walker *w, folder *f)
{
	findings found = {false, false};
	int fd = lat_walk_open_folder(w->walk->options->start, f->path + w->walk->start_len);
	if (fd < 0)
		return LAT_E_IO;
	lat_status status = read_entries(w, f, fd, &found);
	if (status != LAT_E_NOMEM &&
	    !lat_ignores_enter(&w->walk->ignores, fd, f->path_len, found.has_git, found.has_rules, &f->rules))
		status = LAT_E_NOMEM;
	lat_status sifted = status == LAT_E_NOMEM ? LAT_OK : sift(w, f, fd);
	if (status == LAT_E_NOMEM)
		f->n = 0;
	close(fd);
	return sifted != LAT_OK ? sifted : status;
}

/* ---- many threads ---- */

/* NULL: all folders have been read, or the walk has failed. */
static folder *next_folder(lat_walk *walk)
{
	pthread_mutex_lock(&walk->lock);
	while (!walk->waiting && walk->busy > 0 && walk->status == LAT_OK)
		pthread_cond_wait(&walk->changed, &walk->lock);
	folder *f = walk->status == LAT_OK ? walk->waiting : NULL;
	if (f) {
		walk->waiting = f->waiting;
		walk->busy++;
	}
	pthread_mutex_unlock(&walk->lock);
	return f;
}

static void hand_in(lat_walk *walk, folder *f, lat_status status)
{
	pthread_mutex_lock(&walk->lock);
	size_t folders = 0;
	for (size_t i = f->n; i-- > 0;) {
		folder *child = f->entries[i].child;
		if (!child)
			continue;
		child->waiting = walk->waiting;
		walk->waiting = child;
		folders++;
	}
	walk->n_kept += f->n - folders;
	walk->busy--;
	walk->unreadable += status == LAT_E_IO;
	if (status == LAT_OK && walk->n_kept > LAT_WALK_MAX_FILES)
		status = LAT_E_LIMIT;
	if (status != LAT_OK && status != LAT_E_IO && walk->status == LAT_OK)
		walk->status = status;
	if (folders > 0 || walk->busy == 0 || walk->status != LAT_OK)
		pthread_cond_broadcast(&walk->changed);
	pthread_mutex_unlock(&walk->lock);
}

static void walk_folders(void *arg)
{
	lat_walk *walk = arg;
	const lat_walk_options *options = walk->options;
	walker w = {.walk = walk, .entries = malloc(ENTRIES_BYTES), .path = LAT_BUF_INIT};
	for (folder *f; (f = next_folder(walk)) != NULL;) {
		lat_status status = w.entries ? read_folder(&w, f) : LAT_E_NOMEM;
		if (options->is_stopped && options->is_stopped(options->arg))
			status = LAT_E_ABORT;
		hand_in(walk, f, status);
	}
	free(w.entries);
	lat_buf_free(&w.path);
}

/* ---- the list ---- */

/* Goes through the folders in the order of paths; files may be NULL; frees each on the way back if told so. */
static void visit(folder *top, lat_walk_file *files, bool frees)
{
	size_t n = 0;
	top->at = 0;
	for (folder *f = top; f;) {
		if (f->at < f->n) {
			entry *e = &f->entries[f->at++];
			if (!e->child) {
				if (files)
					files[n++] = e->file;
				continue;
			}
			f = e->child;
			f->at = 0;
			continue;
		}
		folder *parent = f->parent;
		if (frees)
			free_folder(f);
		f = parent;
	}
}

static lat_status make_list(lat_walk *walk)
{
	walk->files = malloc((walk->n_kept + 1) * sizeof *walk->files);
	if (!walk->files)
		return LAT_E_NOMEM;
	visit(walk->top, walk->files, false);
	walk->count = walk->n_kept;
	return LAT_OK;
}

/* ---- the walk ---- */

/* The start's own absolute path; rules above it can't be told where that isn't known. */
static char *path_of(int fd, size_t *len)
{
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	if (n < 1 || path[0] != '/' || n == sizeof path - 1)
		n = 0;
	*len = (size_t)n;
	return strndup(path, (size_t)n);
}

static lat_status prepare(lat_walk *walk)
{
	size_t len;
	char *path = path_of(walk->options->start, &len);
	if (!path)
		return LAT_E_NOMEM;
	walk->top = new_folder(NULL, path, len);
	lat_status status = walk->top ? LAT_OK : LAT_E_NOMEM;
	if (status == LAT_OK && len > 0 &&
	    !lat_ignores_above(&walk->ignores, walk->options->start, path, walk->options->levels,
	                       &walk->top->rules))
		status = LAT_E_NOMEM;
	free(path);
	if (status == LAT_OK)
		walk->start_len = walk->top->path_len;
	walk->waiting = walk->top;
	return status;
}

static lat_status explain(lat_status status, const lat_walk *walk, lat_error *err)
{
	switch (status) {
	case LAT_OK:
		if (walk->unreadable == 0 || walk->count > 0 || walk->top->n > 0)
			return LAT_OK;
		return lat_fail(err, LAT_E_IO, "the folder can't be read");
	case LAT_E_NOMEM:
		return lat_fail_nomem(err);
	case LAT_E_ABORT:
		return lat_fail(err, status, "the walk was cancelled");
	default:
		return lat_fail(err, status, "more than %d files: start further down", LAT_WALK_MAX_FILES);
	}
}

static lat_walk *make(const lat_walk_options *options)
{
	lat_walk *walk = calloc(1, sizeof *walk);
	if (!walk)
		return NULL;
	walk->options = options;
	if (pthread_mutex_init(&walk->lock, NULL) != 0) {
		free(walk);
		return NULL;
	}
	bool has_changed = pthread_cond_init(&walk->changed, NULL) == 0;
	if (has_changed && lat_ignores_init(&walk->ignores))
		return walk;
	if (has_changed)
		pthread_cond_destroy(&walk->changed);
	pthread_mutex_destroy(&walk->lock);
	free(walk);
	return NULL;
}

lat_walk *lat_walk_new(const lat_walk_options *options, lat_error *err)
{
	lat_walk *walk = make(options);
	if (!walk) {
		lat_fail_nomem(err);
		return NULL;
	}
	lat_status status = prepare(walk);
	if (status == LAT_OK) {
		lat_crew_run(options->threads ? options->threads : lat_crew_size(), walk_folders, walk);
		status = walk->status;
	}
	if (status == LAT_OK)
		status = make_list(walk);
	walk->options = NULL;
	if (explain(status, walk, err) == LAT_OK)
		return walk;
	lat_walk_free(walk);
	return NULL;
}

void lat_walk_free(lat_walk *walk)
{
	if (!walk)
		return;
	if (walk->top)
		visit(walk->top, NULL, true);
	free(walk->files);
	lat_ignores_destroy(&walk->ignores);
	pthread_cond_destroy(&walk->changed);
	pthread_mutex_destroy(&walk->lock);
	free(walk);
}

size_t lat_walk_count(const lat_walk *walk)
{
	return walk->count;
}

const lat_walk_file *lat_walk_files(const lat_walk *walk)
{
	return walk->files;
}

size_t lat_walk_unreadable(const lat_walk *walk)
{
	return walk->unreadable;
}
