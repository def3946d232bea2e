/* lat_gitignore: see gitignore.h. Owns its rules and their patterns. */
#include "workspace/gitignore.h"

#include <stdlib.h>
#include <string.h>

#include "workspace/glob.h"

typedef struct {
	lat_glob *glob;
	bool includes, folders_only, by_name; /* by_name: no slash in it: the last component alone counts */
} rule;

struct lat_gitignore {
	size_t n, cap;
	rule *rules;
};

/* Spaces at the end don't count, unless a backslash stands before one. */
static size_t without_trailing_spaces(const char *line, size_t len)
{
	size_t kept = 0;
	for (size_t i = 0; i < len; i++) {
		if (line[i] == '\\') {
			if (++i == len)
				return len;
			kept = i + 1;
		} else if (line[i] != ' ') {
			kept = i + 1;
		}
	}
	return kept;
}

static rule *new_rule(lat_gitignore *g)
{
	if (g->n == g->cap) {
		size_t cap = g->cap ? 2 * g->cap : 16;
		rule *rules = realloc(g->rules, cap * sizeof *rules);
		if (!rules)
			return NULL;
		g->rules = rules;
		g->cap = cap;
	}
	return &g->rules[g->n];
}

/* False: out of memory. A pattern that is too long to be compiled matches no path. */
static bool add_rule(lat_gitignore *g, const char *line, size_t len)
{
	rule r = {.glob = NULL};
	if (len > 0 && line[0] == '!') {
		r.includes = true;
		line++;
		len--;
	}
	if (len > 0 && line[len - 1] == '/') {
		r.folders_only = true;
		len--;
	}
	r.by_name = memchr(line, '/', len) == NULL;
	if (len > 0 && line[0] == '/') {
		line++;
		len--;
	}
	if (len == 0 || len > LAT_GLOB_MAX_BYTES)
		return true;
	rule *place = new_rule(g);
	r.glob = place ? lat_glob_new(line, len, LAT_GLOB_GIT, NULL) : NULL;
	if (!r.glob)
		return false;
	*place = r;
	g->n++;
	return true;
}

static bool add_line(lat_gitignore *g, const char *line, size_t len)
{
	if (len > 0 && line[len - 1] == '\r')
		len--;
	const char *nul = len ? memchr(line, '\0', len) : NULL;
	if (nul)
		len = (size_t)(nul - line);
	if (len == 0 || line[0] == '#')
		return true;
	return add_rule(g, line, without_trailing_spaces(line, len));
}

lat_gitignore *lat_gitignore_parse(const char *text, size_t len)
{
	lat_gitignore *g = calloc(1, sizeof *g);
	if (!g)
		return NULL;
	const char *at = text, *end = text + len;
	if (len >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0)
		at += 3;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *line_end = newline ? newline : end;
		if (!add_line(g, at, (size_t)(line_end - at))) {
			lat_gitignore_free(g);
			return NULL;
		}
		at = newline ? newline + 1 : end;
	}
	return g;
}

void lat_gitignore_free(lat_gitignore *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n; i++)
		lat_glob_free(g->rules[i].glob);
	free(g->rules);
	free(g);
}

size_t lat_gitignore_count(const lat_gitignore *g)
{
	return g->n;
}

lat_ignore_verdict lat_gitignore_match(const lat_gitignore *g, const char *path, size_t len, bool is_folder)
{
	const char *slash = memrchr(path, '/', len);
	const char *name = slash ? slash + 1 : path;
	size_t name_len = len - (size_t)(name - path);
	for (size_t i = g->n; i-- > 0;) {
		const rule *r = &g->rules[i];
		if (r->folders_only && !is_folder)
			continue;
		if (lat_glob_match(r->glob, r->by_name ? name : path, r->by_name ? name_len : len))
			return r->includes ? LAT_IGNORE_INCLUDED : LAT_IGNORE_EXCLUDED;
	}
	return LAT_IGNORE_SILENT;
}
