/* Patterns: ECMA-262 text, translated and compiled by PCRE2, matched within limits.
 *
 * lat_patterns is built by the compiling thread and owns the codes; after that all is read only. Match data
 * is per lat_matcher and lives in the validation's arena, so a match never mallocs on its own. JIT code runs
 * on the machine stack; when that is too small the interpreter, with its own limits, is asked again. */
#include "schema/pattern.h"

#include "base/buf.h"
#include "schema/ecma.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTIONS = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF |
	          PCRE2_NEVER_BACKSLASH_C,
	REMEMBERED = 64 /* so many of the newest patterns are compared with a new one */
};

struct lat_pattern {
	lat_pattern *older;
	pcre2_code *code;
	pcre2_match_context *limits; /* the set's */
	size_t len;
	char source[];
};

struct lat_patterns {
	pcre2_general_context *memory;
	pcre2_compile_context *compile;
	pcre2_match_context *limits;
	lat_pattern *newest;
};

static void *take_memory(size_t n, void *unused)
{
	(void)unused;
	return malloc(n);
}

static void give_memory(void *p, void *unused)
{
	(void)unused;
	free(p);
}

lat_patterns *lat_patterns_new(void)
{
	lat_patterns *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->memory = pcre2_general_context_create(take_memory, give_memory, NULL);
	p->compile = p->memory ? pcre2_compile_context_create(p->memory) : NULL;
	p->limits = p->compile ? pcre2_match_context_create(p->memory) : NULL;
	if (!p->limits) {
		lat_patterns_free(p);
		return NULL;
	}
	pcre2_set_match_limit(p->limits, LAT_PATTERN_MATCH_LIMIT);
	pcre2_set_depth_limit(p->limits, LAT_PATTERN_DEPTH_LIMIT);
	pcre2_set_heap_limit(p->limits, LAT_PATTERN_HEAP_LIMIT_KIB);
	return p;
}

void lat_patterns_free(lat_patterns *p)
{
	if (!p)
		return;
	for (lat_pattern *at = p->newest, *older; at; at = older) {
		older = at->older;
		pcre2_code_free(at->code);
		free(at);
	}
	pcre2_match_context_free(p->limits);
	pcre2_compile_context_free(p->compile);
	pcre2_general_context_free(p->memory);
	free(p);
}

/* NULL with *code the reason when PCRE2 refuses. */
static pcre2_code *compile(const char *source, size_t len, pcre2_compile_context *context, int *why,
                           lat_status *status, lat_error *err)
{
	lat_buf text = LAT_BUF_INIT;
	pcre2_code *code = NULL;
	*why = 0;
	*status = lat_ecma_translate(source, len, &text, err);
	if (*status == LAT_OK) {
		size_t offset = 0;
		code =
			pcre2_compile((PCRE2_SPTR)(text.data ? text.data : ""), text.len, OPTIONS, why, &offset, context);
	}
	lat_buf_free(&text);
	return code;
}

static bool is_nomem(int why)
{
	return why == PCRE2_ERROR_NOMEMORY || why == PCRE2_ERROR_HEAP_FAILED;
}

static lat_status refuse(int why, lat_error *err)
{
	char reason[128];
	if (is_nomem(why))
		return lat_fail_nomem(err);
	if (why == PCRE2_ERROR_LOOKBEHIND_NOT_FIXED_LENGTH)
		return lat_fail(err, LAT_E_SYNTAX, "a lookbehind must have a fixed length");
	if (pcre2_get_error_message(why, (PCRE2_UCHAR *)reason, sizeof reason) < 0)
		reason[0] = '\0';
	return lat_fail(err, LAT_E_SYNTAX, "not an ECMA-262 regular expression: %s", reason);
}

static lat_pattern *find(const lat_patterns *p, const char *source, size_t len)
{
	unsigned seen = 0;
	for (lat_pattern *at = p->newest; at && seen < REMEMBERED; at = at->older, seen++)
		if (at->len == len && memcmp(at->source, source, len) == 0)
			return at;
	return NULL;
}

lat_status lat_patterns_add(lat_patterns *p, const char *source, size_t len, lat_pattern **out,
                            lat_error *err)
{
	int why;
	lat_status status;
	*out = len ? find(p, source, len) : NULL;
	if (*out)
		return LAT_OK;
	pcre2_code *code = compile(source, len, p->compile, &why, &status, err);
	if (!code)
		return status != LAT_OK ? status : refuse(why, err);
	lat_pattern *made = malloc(sizeof *made + len + 1);
	if (!made) {
		pcre2_code_free(code);
		return lat_fail_nomem(err);
	}
	*made = (lat_pattern){.older = p->newest, .code = code, .limits = p->limits, .len = len};
	memcpy(made->source, source, len);
	made->source[len] = '\0';
#ifndef LAT_NO_JIT
	pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without it the interpreter does the same, slower */
#endif
	p->newest = *out = made;
	return LAT_OK;
}

const char *lat_pattern_source(const lat_pattern *p, size_t *len)
{
	*len = p->len;
	return p->source;
}

static void *arena_memory(size_t n, void *arena)
{
	return lat_arena_alloc(arena, n);
}

static void keep_memory(void *p, void *arena)
{
	(void)p;
	(void)arena;
}

static bool prepare(lat_matcher *m)
{
	if (m->data)
		return true;
	pcre2_general_context *memory = pcre2_general_context_create(arena_memory, keep_memory, m->arena);
	m->data = memory ? pcre2_match_data_create(1, memory) : NULL;
	return m->data != NULL;
}

static lat_match outcome(int rc)
{
	if (rc >= 0)
		return LAT_MATCH_YES;
	if (rc == PCRE2_ERROR_NOMATCH)
		return LAT_MATCH_NO;
	if (rc == PCRE2_ERROR_NOMEMORY)
		return LAT_MATCH_NOMEM;
	if (rc <= PCRE2_ERROR_UTF8_ERR1 && rc >= PCRE2_ERROR_UTF8_ERR21)
		return LAT_MATCH_UTF8;
	return LAT_MATCH_LIMIT;
}

lat_match lat_pattern_match(const lat_pattern *p, lat_matcher *m, const char *subject, size_t len)
{
	if (!prepare(m))
		return LAT_MATCH_NOMEM;
	PCRE2_SPTR s = (PCRE2_SPTR)(len ? subject : "");
	int rc = pcre2_match(p->code, s, len, 0, 0, m->data, p->limits);
	if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
		rc = pcre2_match(p->code, s, len, 0, PCRE2_NO_JIT, m->data, p->limits);
	return outcome(rc);
}

lat_match lat_pattern_judge(const char *source, size_t len)
{
	int why;
	lat_status status;
	pcre2_general_context *memory = pcre2_general_context_create(take_memory, give_memory, NULL);
	pcre2_compile_context *context = memory ? pcre2_compile_context_create(memory) : NULL;
	lat_match verdict = LAT_MATCH_NOMEM;
	if (context) {
		pcre2_code *code = compile(source, len, context, &why, &status, NULL);
		if (code || (status == LAT_OK && why == PCRE2_ERROR_LOOKBEHIND_NOT_FIXED_LENGTH))
			verdict = LAT_MATCH_YES;
		else if (status == LAT_E_SYNTAX || (status == LAT_OK && !is_nomem(why)))
			verdict = LAT_MATCH_NO;
		pcre2_code_free(code);
	}
	pcre2_compile_context_free(context);
	pcre2_general_context_free(memory);
	return verdict;
}
