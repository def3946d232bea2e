/* lat_trace_file: lines at the end of a file that is rotated by size. One owner at a time, any thread. */
#ifndef LAT_TRACE_FILE_H
#define LAT_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/error.h"

typedef struct {
	const char *path; /* borrowed */
	uint64_t max_bytes;
	unsigned keep;
	int fd; /* -1: not open */
	uint64_t size;
	bool torn; /* the file ends in the middle of a line */
} lat_trace_file;

void lat_trace_file_init(lat_trace_file *f, const char *path, uint64_t max_bytes, unsigned keep);
void lat_trace_file_close(lat_trace_file *f);
/* Whether `bytes` more fit before the file must be rotated. */
bool lat_trace_file_fits(const lat_trace_file *f, uint64_t bytes);
/* Opens, or rotates and opens, so that `bytes` fit, if only into an empty file. */
lat_status lat_trace_file_prepare(lat_trace_file *f, uint64_t bytes, lat_error *err);
/* Appends whole lines (each vector is one, with its newline); *written says how many made it. Changes the vectors. */
lat_status lat_trace_file_append(lat_trace_file *f, struct iovec *lines, int n, int *written, lat_error *err);

#endif
