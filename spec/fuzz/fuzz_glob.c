/* Any pattern against any text: a style byte, the pattern, a NUL, the text.
 *   What the matcher says is what a plain recursive matcher of the same rules says, where that one gets to an end.
 *   Braces: one alternative matches, or the pattern doesn't.
 *   A malformed pattern has an error with words for a model, and matches nothing in git's style. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workspace/glob.h"
#include "workspace/glob_set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS = 20000, TEXT_MAX = 64, PATTERN_MAX = 256 };

static void demand(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "fuzz_glob: not so: %s\n", what);
		abort();
	}
}

/* ---- the reference: without braces; it backtracks, and gives up after STEPS ---- */

typedef struct {
	const char *pattern, *pattern_end, *text_end;
	size_t steps;
	bool malformed;
} reference;

static bool matches(reference *r, const char *p, const char *t);

static bool skip_text(reference *r, const char *after, const char *t, bool deep)
{
	for (;; t++) {
		if (matches(r, after, t))
			return true;
		if (t == r->text_end || (!deep && *t == '/'))
			return false;
	}
}

static bool match_stars(reference *r, const char *p, const char *t)
{
	const char *after = p;
	while (after < r->pattern_end && *after == '*')
		after++;
	bool starts = p == r->pattern || p[-1] == '/';
	bool ends = after == r->pattern_end || *after == '/';
	if (after - p < 2 || !starts || !ends)
		return skip_text(r, after, t, false);
	if (after == r->pattern_end)
		return true;
	if (matches(r, after + 1, t))
		return true;
	for (; t < r->text_end; t++)
		if (*t == '/' && matches(r, after + 1, t + 1))
			return true;
	return false;
}

static bool matches(reference *r, const char *p, const char *t)
{
	if (r->steps == 0 || --r->steps == 0)
		return false;
	for (; p < r->pattern_end; t++) {
		if (*p == '*')
			return match_stars(r, p, t);
		if (t == r->text_end)
			return false;
		if (*p == '[') {
			lat_glob_set set;
			p = lat_glob_set_parse(p, r->pattern_end, &set);
			if (!p || !lat_glob_set_has(&set, (unsigned char)*t))
				return false;
			continue;
		}
		if (*p == '?' ? *t == '/' : *p == '\\' ? ++p == r->pattern_end || *p != *t : *p != *t)
			return false;
		p++;
	}
	return t == r->text_end;
}

static bool is_escaped_star(const char *pattern, size_t len)
{
	for (size_t i = 0; i + 1 < len;
	     i++) /* a backslash in front of stars or a slash moves what stands beside them */
		if (pattern[i] == '\\' && (pattern[i + 1] == '*' || pattern[i + 1] == '/'))
			return true;
	return false;
}

static void compare(const char *pattern, size_t len, const char *text, size_t text_len, bool got)
{
	reference r = {.pattern = pattern,
	               .pattern_end = pattern + len,
	               .text_end = text + text_len,
	               .steps = STEPS};
	bool expected = matches(&r, pattern, text);
	if (r.steps > 0)
		demand(expected == got, "the reference says the same");
}

/* {a,b} of plain names: matches what a or b matches. */
static void check_braces(const char *pattern, size_t len, const char *text, size_t text_len)
{
	char joined[2 * PATTERN_MAX + 8];
	lat_error err;
	if (memchr(pattern, '{', len) || memchr(pattern, '}', len) || memchr(pattern, ',', len))
		return;
	int n = snprintf(joined, sizeof joined, "{%.*s,x/%.*s}", (int)len, pattern, (int)len, pattern);
	lat_glob *both = lat_glob_new(joined, (size_t)n, LAT_GLOB_TOOL, &err);
	lat_glob *first = lat_glob_new(pattern, len, LAT_GLOB_TOOL, &err);
	lat_glob *second = lat_glob_new(joined + len + 2, len + 2, LAT_GLOB_TOOL, &err);
	if (both && first && second && !memchr(pattern, '\\', len) && !memchr(pattern, '[', len) && len > 0)
		demand(lat_glob_match(both, text, text_len) ==
		           (lat_glob_match(first, text, text_len) || lat_glob_match(second, text, text_len)),
		       "braces match what one of their parts matches");
	lat_glob_free(both);
	lat_glob_free(first);
	lat_glob_free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	lat_glob_style style = data[0] & 1 ? LAT_GLOB_TOOL : LAT_GLOB_GIT;
	const char *pattern = (const char *)data + 1;
	size_t len = strnlen(pattern, size - 1), rest = size - 1 - len;
	const char *text = rest > 0 ? pattern + len + 1 : pattern + len;
	size_t text_len = rest > 0 ? rest - 1 : 0;
	lat_error err = {.kind = LAT_OK};
	lat_glob *g = lat_glob_new(pattern, len, style, &err);
	if (!g) {
		demand(err.kind != LAT_OK && err.message[0], "a refusal has words");
		demand(style == LAT_GLOB_TOOL || len > LAT_GLOB_MAX_BYTES, "git's patterns are never refused");
		return 0;
	}
	bool got = lat_glob_match(g, text, text_len);
	bool plain = style == LAT_GLOB_TOOL && !memchr(pattern, '{', len) && !is_escaped_star(pattern, len);
	if (plain && text_len <= TEXT_MAX && len <= PATTERN_MAX)
		compare(pattern, len, text, text_len, got);
	if (style == LAT_GLOB_TOOL && len <= PATTERN_MAX)
		check_braces(pattern, len, text, text_len);
	lat_glob_free(g);
	return 0;
}
