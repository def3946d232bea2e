/* lat_ignore: which rules hold in a folder: its own .gitignore, those of the folders above it up to the top of the
 * repository, and the repository's .git/info/exclude.
 *
 *   folder's .gitignore ──► parent's ──► … ──► top's ──► .git/info/exclude        the first that speaks decides
 *
 * A chain is made of immutable frames, which all belong to one lat_ignores and die with it; any thread may add to
 * it and ask. Files are opened below descriptors and never through links. */
#ifndef LAT_WORKSPACE_IGNORE_H
#define LAT_WORKSPACE_IGNORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct lat_ignore_frame lat_ignore_frame;

typedef struct {
	pthread_mutex_t lock; /* a leaf */
	lat_ignore_frame *frames;
} lat_ignores;

enum { LAT_IGNORE_MAX_FILE = 4 << 20 /* bytes; a larger file holds no rules */ };

bool lat_ignores_init(lat_ignores *all);
void lat_ignores_destroy(lat_ignores *all);

/* Puts in front of *chain what the folder at fd brings. offset: bytes of a full path that lead to it. has_git: it
 * is the top of a repository: what holds above it doesn't count. False: out of memory. */
bool lat_ignores_enter(lat_ignores *all, int fd, size_t offset, bool has_git, bool has_file,
                       const lat_ignore_frame **chain);

/* The chain of the folders above the one at fd, whose full path is given (no "/" at its end). The `levels` folders
 * right above it count always, those further up only where one of them is the top of a repository. */
bool lat_ignores_above(lat_ignores *all, int fd, const char *path, size_t levels,
                       const lat_ignore_frame **chain);

/* Whether the file or folder with this full path is excluded by the chain of its folder. */
bool lat_ignores_excludes(const lat_ignore_frame *chain, const char *path, size_t len, bool is_folder);

#endif
