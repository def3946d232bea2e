/* Files whole: reading one into memory, replacing one so that it is the old or the new one at any moment.
 * The thread that runs the call. */
#ifndef LAT_WORKSPACE_FILE_H
#define LAT_WORKSPACE_FILE_H

#include <sys/types.h>

#include "base/buf.h"
#include "workspace/workspace.h"

ssize_t lat_file_read_at(int fd, void *buf, size_t n,
                         off_t at); /* pread that goes on until n bytes, or the end */
/* Appends all of fd to out. 0 or an errno; EFBIG past max. Out of memory shows in out. */
int lat_file_read_all(int fd, size_t max, lat_buf *out);

void lat_base64_append(lat_buf *out, const char *bytes, size_t len); /* RFC 4648 section 4 */

typedef struct {
	const struct stat *old; /* the file as it was when its content was taken, or NULL: none is expected */
	struct stat now;        /* out: the new file */
	bool not_synced;        /* out: all is written, but the folder could not be synced */
} lat_replacement;

/* Writes a file beside the place's, syncs it, gives it the old one's mode and renames it onto it; syncs the folder.
 * 0 or an errno: then the old file is untouched. EBUSY: the file is no longer `old`. */
int lat_file_replace(const lat_place *place, const char *bytes, size_t len, lat_replacement *r);

/* One writer for each name at a time, in this process. Held between look and rename. */
void lat_file_lock(const lat_file_key *key);
void lat_file_unlock(const lat_file_key *key);

bool lat_file_is_tmp(
	const char *name); /* a name as lat_file_replace gives them to files that aren't ready yet */

/* Removes what a killed process left beneath the roots that may be written: files named like the ones that
 * lat_file_replace makes, and not in use. Looks at no more than max entries; returns how many it removed. */
size_t lat_file_sweep(const lat_roots *roots, size_t max);

#endif
