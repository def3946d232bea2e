/* Resolution of URI references (RFC 3986 section 5.2). Owns nothing; the caller's arena holds the results;
 * any thread. URIs are compared as bytes afterwards: no case or percent normalisation. */
#include "schema/uri.h"

#include <string.h>

typedef struct {
	const char *s;
	size_t len;
	bool given;
} part;

typedef struct {
	part scheme, authority, path, query, fragment;
} parts;

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_scheme_char(char c)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

/* Takes what stands before the first of `stops` (or all) off *rest. */
static part take_until(part *rest, const char *stops)
{
	size_t n = 0;
	while (n < rest->len && !strchr(stops, rest->s[n]))
		n++;
	part head = {rest->s, n, true};
	rest->s += n;
	rest->len -= n;
	return head;
}

static part take_after(part *rest, char mark, const char *stops)
{
	if (!rest->len || *rest->s != mark)
		return (part){0};
	rest->s++;
	rest->len--;
	return take_until(rest, stops);
}

/* Splits as appendix B does. A NUL byte in the reference ends a part like any other stop; it matches nothing. */
static parts split(const char *s, size_t len)
{
	parts p = {0};
	part rest = {s, len, true};
	size_t n = 0;
	if (len && is_alpha(*s)) {
		while (n < len && is_scheme_char(s[n]))
			n++;
		if (n < len && s[n] == ':') {
			p.scheme = (part){s, n, true};
			rest = (part){s + n + 1, len - n - 1, true};
		}
	}
	if (rest.len >= 2 && rest.s[0] == '/' && rest.s[1] == '/') {
		rest.s += 2;
		rest.len -= 2;
		p.authority = take_until(&rest, "/?#");
	}
	p.path = take_until(&rest, "?#");
	p.query = take_after(&rest, '?', "#");
	p.fragment = take_after(&rest, '#', "");
	return p;
}

/* Section 5.2.4 in place: drops "." and ".." segments. */
static size_t remove_dot_segments(char *path, size_t len)
{
	size_t out = 0, in = 0;
	bool absolute = len && path[0] == '/';
	while (in < len) {
		size_t start = in + (path[in] == '/'), end = start;
		while (end < len && path[end] != '/')
			end++;
		size_t n = end - start;
		bool last = end == len;
		if (n == 1 && path[start] == '.') {
			if (last && (out || absolute))
				path[out++] = '/';
		} else if (n == 2 && path[start] == '.' && path[start + 1] == '.') {
			while (out && path[--out] != '/')
				;
			if (last && (out || absolute))
				path[out++] = '/';
		} else {
			memmove(path + out, path + in, end - in);
			out += end - in;
		}
		in = end;
	}
	if (!absolute && out && path[0] == '/') { /* "./b" is "b" */
		memmove(path, path + 1, out - 1);
		out--;
	}
	return out;
}

static char *put(char *at, const char *s, size_t len)
{
	if (len)
		memcpy(at, s, len);
	return at + len;
}

static char *put_part(char *at, const char *before, part p, const char *after)
{
	if (!p.given)
		return at;
	at = put(at, before, strlen(before));
	at = put(at, p.s, p.len);
	return put(at, after, strlen(after));
}

/* Section 5.2.3: the reference's path behind the base's last "/". */
static char *put_merged(char *at, const parts *b, part path)
{
	size_t keep = b->path.len;
	while (keep && b->path.s[keep - 1] != '/')
		keep--;
	if (b->authority.given && !b->path.len)
		at = put(at, "/", 1);
	at = put(at, b->path.s, keep);
	return put(at, path.s, path.len);
}

static char *put_path(char *at, const parts *b, const parts *r, part *query)
{
	*query = r->query;
	if (r->scheme.given || r->authority.given)
		return put(at, r->path.s, r->path.len);
	if (r->path.len == 0) {
		if (!r->query.given)
			*query = b->query;
		return put(at, b->path.s, b->path.len);
	}
	if (r->path.s[0] == '/')
		return put(at, r->path.s, r->path.len);
	return put_merged(at, b, r->path);
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t percent_decode(char *s, size_t len)
{
	size_t out = 0;
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '%' && i + 2 < len && hex(s[i + 1]) >= 0 && hex(s[i + 2]) >= 0) {
			s[out++] = (char)(hex(s[i + 1]) * 16 + hex(s[i + 2]));
			i += 2;
		} else {
			s[out++] = s[i];
		}
	}
	return out;
}

static bool copy_fragment(lat_arena *arena, part p, char **fragment, size_t *len)
{
	*fragment = NULL;
	*len = 0;
	if (!p.given)
		return true;
	*fragment = lat_arena_copy(arena, p.s, p.len);
	if (*fragment) {
		*len = percent_decode(*fragment, p.len);
		(*fragment)[*len] = '\0';
	}
	return *fragment != NULL;
}

bool lat_uri_resolve(lat_arena *arena, const char *base, const char *reference, size_t len, char **uri,
                     char **fragment, size_t *fragment_len)
{
	parts b = split(base, strlen(base)), r = split(reference, len);
	char *text = lat_arena_alloc(arena, strlen(base) + len + 8), *at = text;
	if (!text || !copy_fragment(arena, r.fragment, fragment, fragment_len))
		return false;
	at = put_part(at, "", r.scheme.given ? r.scheme : b.scheme, ":");
	bool own = r.scheme.given || r.authority.given;
	at = put_part(at, "//", own ? r.authority : b.authority, "");
	part query;
	char *path = at;
	at = put_path(at, &b, &r, &query);
	if (own || r.path.len)
		at = path + remove_dot_segments(path, (size_t)(at - path));
	at = put_part(at, "?", query, "");
	*at = '\0';
	*uri = text;
	return true;
}
