/* lat_walk: the files below a folder, as `git ls-files -co --exclude-standard` lists them in a fresh repository:
 * regular files and links (never followed), hidden ones too, without what .gitignore files exclude, without .git.
 * A .gitignore counts whether or not there is a repository; one of a nested repository starts afresh.
 *
 * Folders are read by several threads at once; the list comes out sorted by the bytes of the path all the same.
 * A walk belongs to the thread that made it; once made it doesn't change. */
#ifndef LAT_WORKSPACE_WALK_H
#define LAT_WORKSPACE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { LAT_WALK_MAX_FILES = 4000000 };

typedef struct lat_walk lat_walk;

typedef struct {
	const char *folder; /* its path below the start, with a "/" at its end, or "" */
	const char *name;   /* NUL-terminated, as is folder */
	uint32_t folder_len, name_len;
	bool is_link;
	int64_t stamp; /* what keep has put there, or 0 */
} lat_walk_file;

typedef struct {
	int start; /* descriptor of the folder, open for reading */
	size_t
		levels; /* folders above the start whose .gitignore files count though they belong to no repository */
	size_t threads; /* 0: lat_crew_size() */
	/* Asked by any of the threads; each may be NULL. keep is asked about each file, with the descriptor of its
	 * folder and its path below the start; where it says no, the file isn't listed. */
	bool (*keep)(void *arg, int folder_fd, const char *path, size_t len, lat_walk_file *file);
	bool (*is_stopped)(void *arg);
	void *arg;
} lat_walk_options;

/* NULL: LAT_E_NOMEM, LAT_E_ABORT, LAT_E_LIMIT (too many files), LAT_E_IO (the start can't be read). */
lat_walk *lat_walk_new(const lat_walk_options *options, lat_error *err);
void lat_walk_free(lat_walk *w);
size_t lat_walk_count(const lat_walk *w);
const lat_walk_file *lat_walk_files(const lat_walk *w); /* sorted by path */
size_t lat_walk_unreadable(const lat_walk *w);          /* folders that couldn't be opened or read */

/* Opens a folder below another, no link on the way; "" or a path with a "/" at its end. -1 with errno. */
int lat_walk_open_folder(int start, const char *path);

#endif
