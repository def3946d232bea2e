/* lat_path: see path.h. */
#include "workspace/path.h"

#include <errno.h>
#include <string.h>

typedef struct {
	char *text;
	size_t len, size;
} path_text;

static void pop(path_text *p)
{
	while (p->len > 0 && p->text[p->len - 1] != '/')
		p->len--;
	if (p->len > 0)
		p->len--;
}

static int add(path_text *p, const char *s)
{
	while (*s) {
		size_t n = strcspn(s, "/");
		if (n == 2 && s[0] == '.' && s[1] == '.') {
			pop(p);
		} else if (n > 0 && !(n == 1 && s[0] == '.')) {
			if (n + 1 >= p->size - p->len)
				return ENAMETOOLONG;
			p->text[p->len++] = '/';
			memcpy(p->text + p->len, s, n);
			p->len += n;
		}
		s += n + (s[n] == '/');
	}
	return 0;
}

int lat_path_join(char *out, size_t size, const char *base, const char *path, const char *rest)
{
	path_text p = {out, 0, size};
	int failure = *path == '/' ? 0 : add(&p, base);
	if (failure == 0)
		failure = add(&p, path);
	if (failure == 0)
		failure = add(&p, rest);
	if (p.len == 0)
		p.text[p.len++] = '/';
	p.text[p.len] = '\0';
	return failure;
}

const char *lat_path_beneath(const char *root, const char *path)
{
	size_t n = strlen(root);
	if (n == 1)
		return path + 1; /* "/" */
	if (strncmp(root, path, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	return path + n + (path[n] == '/');
}
