/* Any .gitignore against any path: the path, a NUL, the file. Its last rule that matches decides, so that:
 *   rules put in front change nothing where the rest has spoken;
 *   "!" in front of every rule turns what was excluded into included (where no rule had one);
 *   a file of all that and a last rule for everything excludes it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "workspace/gitignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "fuzz_gitignore: not so: %s\n", what);
		abort();
	}
}

static lat_ignore_verdict ask(const char *text, size_t len, const char *path, bool is_folder)
{
	lat_gitignore *g = lat_gitignore_parse(text, len);
	demand(g != NULL, "any file is taken");
	lat_ignore_verdict v = lat_gitignore_match(g, path, strlen(path), is_folder);
	demand(lat_gitignore_count(g) > 0 || v == LAT_IGNORE_SILENT, "no rule, no verdict");
	lat_gitignore_free(g);
	return v;
}

static lat_ignore_verdict ask_with(const char *before, const char *text, size_t len, const char *after,
                                   const char *path, bool is_folder)
{
	lat_buf b = LAT_BUF_INIT;
	lat_buf_str(&b, before);
	lat_buf_append(&b, text, len);
	lat_buf_str(&b, after);
	lat_ignore_verdict v = ask(b.data ? b.data : "", b.len, path, is_folder);
	lat_buf_free(&b);
	return v;
}

/* Every line that could be a rule begins with "!". */
static void check_negation(const char *text, size_t len, const char *path, bool is_folder,
                           lat_ignore_verdict v)
{
	lat_buf b = LAT_BUF_INIT;
	for (size_t i = 0; i < len;) {
		const char *newline = memchr(text + i, '\n', len - i);
		size_t n = newline ? (size_t)(newline - text) - i + 1 : len - i;
		if (text[i] != '#' && text[i] != '!' && text[i] != '\n' && text[i] != '\0')
			lat_buf_byte(&b, '!');
		lat_buf_append(&b, text + i, n);
		i += n;
	}
	if (!memchr(text, '!', len) && v == LAT_IGNORE_EXCLUDED)
		demand(ask(b.data, b.len, path, is_folder) == LAT_IGNORE_INCLUDED, "\"!\" takes back in");
	lat_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = memchr(data, 0, size);
	if (!nul || nul == data || data[0] == '/' || nul[-1] == '/')
		return 0;
	const char *path = (const char *)data, *text = (const char *)nul + 1;
	size_t len = size - (size_t)(nul + 1 - data);
	for (int is_folder = 0; is_folder < 2; is_folder++) {
		lat_ignore_verdict v = ask(text, len, path, is_folder);
		bool has_bom = len >= 1 && (unsigned char)text[0] == 0xEF;
		lat_ignore_verdict with_more = ask_with("*\n!*\n", text, len, "", path, is_folder);
		if (v != LAT_IGNORE_SILENT && !has_bom)
			demand(with_more == v, "what comes before a rule that matches doesn't count");
		if (v == LAT_IGNORE_SILENT && !has_bom)
			demand(with_more == LAT_IGNORE_INCLUDED, "where no rule matches, those before count");
		demand(ask_with("", text, len, "\n*\n", path, is_folder) == LAT_IGNORE_EXCLUDED,
		       "the last rule decides");
		if (!has_bom)
			check_negation(text, len, path, is_folder, v);
	}
	return 0;
}
