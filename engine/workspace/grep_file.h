/* One file of a Grep: descriptor in, lines of output out. See grep.h; private to it. */
#ifndef LAT_WORKSPACE_GREP_FILE_H
#define LAT_WORKSPACE_GREP_FILE_H

#include "workspace/grep.h"

/* What one thread reads and searches with; the window is reused from file to file. */
typedef struct {
	const lat_grep_options *options;
	lat_searcher *searcher;
	char *window;
	size_t cap;
} lat_grep_reader;

bool lat_grep_reader_init(lat_grep_reader *r, const lat_grep_options *options); /* false: out of memory */
void lat_grep_reader_free(lat_grep_reader *r);

/* Appends what the file brings to out and counts it. path stands in the output as it is. LAT_OK or LAT_E_NOMEM;
 * what is wrong with the file is counted. */
lat_status lat_grep_file(lat_grep_reader *r, int fd, const char *path, size_t path_len, lat_buf *out,
                         lat_grep_stats *stats);

#endif
