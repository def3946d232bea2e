/* lat_folder: a private folder for one session, removed when it is over.
 *
 * It is made with mode 0700 under $TMPDIR (or /tmp) and locked (flock) while its owner lives; making one removes
 * those of the same user that a killed process left. Owned by one thread at a time. Those that nobody has freed are
 * removed when the process exits. */
#ifndef LAT_WORKSPACE_FOLDER_H
#define LAT_WORKSPACE_FOLDER_H

#include <stdbool.h>

#include "base/error.h"

typedef struct lat_folder lat_folder;

/* keep: it is never removed, and has a name that says so. */
lat_folder *lat_folder_make(bool keep, lat_error *err);
/* The folder at path, made if it isn't there, with its parents; an existing one is always kept. */
lat_folder *lat_folder_at(const char *path, bool keep, lat_error *err);
const char *lat_folder_path(const lat_folder *f); /* absolute where it was made here, else as it was given */
bool lat_folder_is_kept(const lat_folder *f);
void lat_folder_free(lat_folder *f); /* removes it unless it is kept; follows no link */

#endif
