/* lat_buf: a growing byte buffer.
 *
 * Owns its bytes; one owner at a time; whoever has the struct may use it from any one thread.
 * An append that can't get memory sets `failed`, drops that append and all later ones; so a
 * writer appends freely and checks lat_buf_ok once at its end. */
#ifndef LAT_BASE_BUF_H
#define LAT_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
	char *data; /* not NUL-terminated unless lat_buf_cstr was called */
	size_t len;
	size_t cap;
	bool failed;
} lat_buf;

/* clang-format off */
#define LAT_BUF_INIT {NULL, 0, 0, false}
/* clang-format on */

void lat_buf_free(lat_buf *b);              /* frees the bytes; *b is empty and usable again */
void lat_buf_clear(lat_buf *b);             /* keeps the memory, forgets bytes and failure */
bool lat_buf_reserve(lat_buf *b, size_t n); /* room for n more bytes; false when out of memory */
void lat_buf_append(lat_buf *b, const void *data, size_t n);
void lat_buf_byte(lat_buf *b, char c);
void lat_buf_str(lat_buf *b, const char *s); /* a C string, without its NUL */
void lat_buf_printf(lat_buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *lat_buf_cstr(lat_buf *b);        /* NUL-terminates (not counted in len); "" on failure */
char *lat_buf_take(lat_buf *b, size_t *len); /* moves the bytes out; caller frees; NULL if failed or empty */

static inline bool lat_buf_ok(const lat_buf *b)
{
	return !b->failed;
}

#endif
