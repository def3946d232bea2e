/* lat_trace_file: see file.h. Owns its descriptor. */
#include "trace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void lat_trace_file_init(lat_trace_file *f, const char *path, uint64_t max_bytes, unsigned keep)
{
	*f = (lat_trace_file){.path = path, .max_bytes = max_bytes, .keep = keep, .fd = -1};
}

void lat_trace_file_close(lat_trace_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

static bool ends_in_newline(const char *path, off_t size)
{
	char last = '\n';
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	if (pread(fd, &last, 1, size - 1) != 1)
		last = '\n';
	close(fd);
	return last == '\n';
}

static lat_status open_file(lat_trace_file *f, lat_error *err)
{
	f->fd = open(f->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
	if (f->fd < 0)
		return lat_fail(err, LAT_E_IO, "can't open %.150s: %s", f->path, strerror(errno));
	struct stat st;
	bool regular = fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode);
	f->size = regular ? (uint64_t)st.st_size : 0;
	f->torn = regular && st.st_size > 0 && !ends_in_newline(f->path, st.st_size);
	return LAT_OK;
}

static bool name_of(const lat_trace_file *f, unsigned number, char *out, size_t cap)
{
	int n = number ? snprintf(out, cap, "%s.%u", f->path, number) : snprintf(out, cap, "%s", f->path);
	return n > 0 && (size_t)n < cap;
}

static lat_status rotate(lat_trace_file *f, lat_error *err)
{
	char from[PATH_MAX], to[PATH_MAX];
	lat_trace_file_close(f);
	if (f->keep == 0) {
		if (unlink(f->path) < 0 && errno != ENOENT)
			return lat_fail(err, LAT_E_IO, "can't remove %.150s: %s", f->path, strerror(errno));
		return LAT_OK;
	}
	for (unsigned i = f->keep; i > 0; i--) {
		errno = ENAMETOOLONG;
		if (!name_of(f, i - 1, from, sizeof from) || !name_of(f, i, to, sizeof to) ||
		    (rename(from, to) < 0 && errno != ENOENT))
			return lat_fail(err, LAT_E_IO, "can't rotate %.150s: %s", f->path, strerror(errno));
	}
	return LAT_OK;
}

bool lat_trace_file_fits(const lat_trace_file *f, uint64_t bytes)
{
	return f->max_bytes == 0 || f->size + bytes <= f->max_bytes;
}

lat_status lat_trace_file_prepare(lat_trace_file *f, uint64_t bytes, lat_error *err)
{
	lat_status status = f->fd < 0 ? open_file(f, err) : LAT_OK;
	if (status != LAT_OK || f->size == 0 || lat_trace_file_fits(f, bytes))
		return status;
	status = rotate(f, err); /* when it fails, the old file grows on rather than that lines are lost */
	lat_status opened = f->fd < 0 ? open_file(f, status == LAT_OK ? err : NULL) : LAT_OK;
	return opened != LAT_OK ? opened : status;
}

static lat_status end_torn_line(lat_trace_file *f, lat_error *err)
{
	if (f->torn && write(f->fd, "\n", 1) == 1) {
		f->torn = false;
		f->size++;
	}
	return f->torn ? lat_fail(err, LAT_E_IO, "can't write %.150s: %s", f->path, strerror(errno)) : LAT_OK;
}

/* Counts the lines that n bytes end, and leaves the rest in the vectors. */
static int advance(lat_trace_file *f, struct iovec **lines, int *n, size_t bytes)
{
	int whole = 0;
	f->size += bytes;
	while (*n > 0 && bytes >= (*lines)->iov_len) {
		bytes -= (*lines)->iov_len;
		(*lines)++;
		(*n)--;
		whole++;
		f->torn = false;
	}
	if (bytes > 0) {
		(*lines)->iov_base = (char *)(*lines)->iov_base + bytes;
		(*lines)->iov_len -= bytes;
		f->torn = true;
	}
	return whole;
}

lat_status lat_trace_file_append(lat_trace_file *f, struct iovec *lines, int n, int *written, lat_error *err)
{
	*written = 0;
	lat_status status = end_torn_line(f, err);
	while (status == LAT_OK && n > 0) {
		ssize_t bytes = writev(f->fd, lines, n);
		if (bytes >= 0)
			*written += advance(f, &lines, &n, (size_t)bytes);
		else if (errno != EINTR)
			status = lat_fail(err, LAT_E_IO, "can't write %.150s: %s", f->path, strerror(errno));
	}
	return status;
}
