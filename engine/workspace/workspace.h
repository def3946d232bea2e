/* lat_workspace: which files a session may touch, and how it gets at them.
 *
 * A root is a folder held open by a descriptor (O_PATH), with what may be done beneath it. A path is never looked
 * up from "/": it is matched with a root by name, and the rest is resolved from the root's descriptor, by
 * openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS. What comes out (lat_place) is a descriptor of the
 * folder and the last name in it, which is no link; it is used with O_NOFOLLOW. So nothing that is swapped in
 * between can lead elsewhere: there is no window between check and use.
 *
 *   "src/../a/b.c" ──► /ws/a/b.c ──► root /ws (fd 5) + "a/b.c" ──► openat2(5, "a") = 9 ──► place {9, "b.c"}
 *
 * A link that openat2 can't follow beneath (an absolute one), a last name that is a link, and kernels without
 * openat2 take the component-wise walk: each name opened with O_NOFOLLOW, the text of each link matched with the
 * roots anew. So a link may lead from one root into another, and never out of all of them.
 *
 * A workspace and a set of roots don't change once made (but for the notes of what was read, which have a lock),
 * are counted, and may be used by any thread that holds them. */
#ifndef LAT_WORKSPACE_WORKSPACE_H
#define LAT_WORKSPACE_WORKSPACE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

enum { LAT_PATH_MAX = PATH_MAX }; /* bytes of a path, its NUL too */

/* ---- roots ---- */

enum { LAT_ACCESS_READ = 1, LAT_ACCESS_WRITE = 2 }; /* write alone lets nobody read */

typedef struct {
	int fd;          /* O_PATH | O_DIRECTORY */
	char *path;      /* absolute, without links, as it was when it was opened */
	char *alias;     /* absolute, as it was given; NULL where that is the same */
	unsigned access; /* LAT_ACCESS_… */
} lat_root;

typedef struct {
	atomic_size_t holds;
	size_t n;
	lat_root root[];
} lat_roots;

typedef struct {
	const char *path; /* absolute, or relative to this process's folder */
	unsigned access;
} lat_root_spec;

lat_roots *lat_roots_open(const lat_root_spec *specs, size_t n, lat_error *err); /* held once */
void lat_roots_hold(lat_roots *roots);
void lat_roots_free(lat_roots *roots); /* lets go; the last one closes; NULL is fine */

/* ---- the workspace ---- */

typedef struct lat_workspace lat_workspace;

typedef struct {
	const char *cwd; /* where relative paths start; need not be beneath a root */
	const lat_root_spec *roots;
	size_t n_roots;
	bool walk; /* never use openat2 */
} lat_workspace_options;

lat_workspace *lat_workspace_new(const lat_workspace_options *options, lat_error *err); /* held once */
void lat_workspace_hold(lat_workspace *ws);
void lat_workspace_free(lat_workspace *ws); /* lets go */

const char *lat_workspace_cwd(const lat_workspace *ws); /* absolute, without links */
const lat_roots *lat_workspace_roots(const lat_workspace *ws);
bool lat_workspace_has_openat2(void);

/* ---- paths ---- */

typedef struct {
	int dir;                 /* folder, O_PATH; owned */
	char name[NAME_MAX + 1]; /* what is meant in it: no link when it was looked at; "." for a root itself */
	char path[LAT_PATH_MAX]; /* absolute, as it was asked for, without "." and "..": for messages */
} lat_place;

enum { LAT_PLACE_MAKE_PARENTS = 1 };

/* The place of a path. access: all that must be allowed there; grants (may be NULL) count like further roots.
 * Returns 0 or an errno: EXDEV when no root allows it (a denial), EINVAL for a path that is empty or has a NUL,
 * ENAMETOOLONG, ELOOP (too many links, or one of /proc's that are none). The name itself need not exist. */
int lat_workspace_resolve(const lat_workspace *ws, const lat_roots *grants, const char *path, size_t len,
                          unsigned access, unsigned flags, lat_place *place);
void lat_place_close(lat_place *place); /* twice is fine */

/* Opens what is there, O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK: no FIFO and no device can hold the caller up.
 * A descriptor and its stat, or -1 and errno: EISDIR for a folder, ENODEV for what is neither file nor folder. */
int lat_place_open_file(const lat_place *place, struct stat *st);
int lat_place_open_dir(
	const lat_place *place); /* for reading its entries; ENOTDIR when it is something else */

/* The same file has one canonical name, whatever links lead to it; names that don't exist yet have one too. Writes
 * it to out. The errno of lat_workspace_resolve; then out has the path without "." and "..". */
int lat_workspace_canonical(const lat_workspace *ws, const lat_roots *grants, const char *path, size_t len,
                            char out[LAT_PATH_MAX]);

/* Where what a call reads or changes lies, absolute and without "." and ".."; not looked up. 0 or an errno. */
int lat_workspace_absolute(const lat_workspace *ws, const char *path, size_t len, char out[LAT_PATH_MAX]);

/* ---- what the session has seen of a file ---- */

typedef struct {
	uint64_t dir_dev, dir_ino; /* the folder */
	const char *name;
} lat_file_key;

typedef struct {
	uint64_t ino;
	int64_t size, mtime_ns;
} lat_file_state;

typedef enum { LAT_FILE_UNKNOWN, LAT_FILE_SAME, LAT_FILE_CHANGED } lat_file_verdict;

bool lat_place_key(const lat_place *place, lat_file_key *key); /* false: errno says why */
lat_file_state lat_file_state_of(const struct stat *st);
lat_status lat_workspace_note(lat_workspace *ws, const lat_file_key *key, const lat_file_state *state);
lat_file_verdict lat_workspace_compare(lat_workspace *ws, const lat_file_key *key, const lat_file_state *now);

#endif
