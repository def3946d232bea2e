/* Reading files whole, and base64 (see file.h). The thread that runs the call. */
#include "workspace/file.h"

#include <errno.h>
#include <unistd.h>

ssize_t lat_file_read_at(int fd, void *buf, size_t n, off_t at)
{
	size_t got = 0;
	while (got < n) {
		ssize_t one = pread(fd, (char *)buf + got, n - got, at + (off_t)got);
		if (one < 0 && errno == EINTR)
			continue;
		if (one < 0)
			return -1;
		if (one == 0)
			break;
		got += (size_t)one;
	}
	return (ssize_t)got;
}

int lat_file_read_all(int fd, size_t max, lat_buf *out)
{
	enum { STEP = 64 * 1024 };
	struct stat st;
	size_t begin = out->len;
	if (fstat(fd, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size <= max)
		lat_buf_reserve(out, (size_t)st.st_size + 1);
	for (;;) {
		size_t room = out->cap - out->len;
		if (!lat_buf_ok(out) || (room == 0 && !lat_buf_reserve(out, STEP)))
			return 0; /* the buffer says so */
		room = out->cap - out->len;
		ssize_t n = lat_file_read_at(fd, out->data + out->len, room, (off_t)(out->len - begin));
		if (n < 0)
			return errno;
		out->len += (size_t)n;
		if (out->len - begin > max)
			return EFBIG;
		if ((size_t)n < room)
			return 0;
	}
}

void lat_base64_append(lat_buf *out, const char *bytes, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)bytes;
	if (!lat_buf_reserve(out, (len + 2) / 3 * 4))
		return;
	char *q = out->data + out->len;
	for (; len >= 3; p += 3, len -= 3) {
		*q++ = digits[p[0] >> 2];
		*q++ = digits[(p[0] & 3) << 4 | p[1] >> 4];
		*q++ = digits[(p[1] & 15) << 2 | p[2] >> 6];
		*q++ = digits[p[2] & 63];
	}
	if (len > 0) {
		unsigned second = len == 2 ? p[1] : 0;
		*q++ = digits[p[0] >> 2];
		*q++ = digits[(p[0] & 3) << 4 | second >> 4];
		*q++ = len == 2 ? digits[(second & 15) << 2] : '=';
		*q++ = '=';
	}
	out->len = (size_t)(q - out->data);
}
