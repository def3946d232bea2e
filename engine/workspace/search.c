/* lat_search: see search.h. A search owns its compiled codes; a searcher owns its match data and its JIT stack, and
 * belongs to one thread.
 *
 * There are two codes of a pattern: one for bytes, which is right for ASCII text, where nearly all text is, and
 * quicker; and one with PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF for what has bytes beyond. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "workspace/search.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workspace/pattern_scan.h"

enum {
	JIT_STACK_START = 32 * 1024,
	JIT_STACK_MAX = 1024 * 1024,
	HEAP_LIMIT_KIB = 16 * 1024,
	SHORT_LITERAL =
		2 /* shorter ones are in most lines: running the pattern is cheaper than asking for them */
};

struct lat_search {
	pcre2_code *bytes; /* NULL: the pattern has a meaning beyond ASCII only */
	pcre2_code *utf;
	lat_pattern_scan scan;
	bool multiline;
};

struct lat_searcher {
	const lat_search *search;
	pcre2_match_data *match;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	const char *text;
	size_t len;
	bool is_ascii;     /* the text */
	bool line_by_line; /* for the rest of this text */
};

/* ---- compiling ---- */

static pcre2_code *compile(const char *pattern, size_t len, uint32_t flags, int *failure, size_t *offset)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	if (!context) {
		*failure = PCRE2_ERROR_NOMEMORY;
		return NULL;
	}
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, len, flags, failure, offset, context);
	pcre2_compile_context_free(context);
#ifndef LAT_NO_JIT
	if (code)
		pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without it, the interpreter does */
#endif
	return code;
}

static lat_status explain(int failure, size_t offset, lat_error *err)
{
	PCRE2_UCHAR words[256];
	if (failure == PCRE2_ERROR_NOMEMORY || failure == PCRE2_ERROR_HEAP_FAILED)
		return lat_fail_nomem(err);
	if (pcre2_get_error_message(failure, words, sizeof words) < 0)
		words[0] = '\0';
	lat_fail(err, LAT_E_SYNTAX, "not a regular expression (PCRE2), at byte %zu: %s", offset, (char *)words);
	if (err)
		err->offset = offset;
	return LAT_E_SYNTAX;
}

static lat_status compile_both(lat_search *s, const char *pattern, size_t len, uint32_t flags, lat_error *err)
{
	int failure;
	size_t offset = 0;
	/* What begins with .* may match behind a byte that is no UTF-8, not only at the start of a line. */
	const uint32_t utf = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NO_DOTSTAR_ANCHOR;
	s->utf = compile(pattern, len, flags | utf, &failure, &offset);
	if (!s->utf)
		return explain(failure, offset, err);
	if (s->scan.is_ascii)
		s->bytes = compile(pattern, len, flags, &failure, &offset); /* NULL: \x{100} and the like */
	return LAT_OK;
}

lat_search *lat_search_new(const char *pattern, size_t len, const lat_search_options *options, lat_error *err)
{
	if (len > LAT_SEARCH_MAX_PATTERN) {
		lat_fail(err, LAT_E_LIMIT, "a pattern of %zu bytes: at most %d", len, LAT_SEARCH_MAX_PATTERN);
		return NULL;
	}
	lat_search *s = calloc(1, sizeof *s);
	if (!s) {
		lat_fail_nomem(err);
		return NULL;
	}
	s->multiline = options->multiline;
	lat_pattern_scan_run(pattern, len, options->case_insensitive, &s->scan);
	uint32_t flags = PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
	flags |= options->case_insensitive ? PCRE2_CASELESS : 0;
	flags |= options->multiline ? PCRE2_DOTALL | PCRE2_ALT_CIRCUMFLEX : 0;
	lat_status status = LAT_OK;
	if (s->scan.has_newline && !options->multiline)
		status = lat_fail(err, LAT_E_INVALID,
		                  "the pattern asks for a newline, and lines are searched one by one: set multiline");
	if (status == LAT_OK)
		status = compile_both(s, pattern, len, flags, err);
	if (status == LAT_OK)
		return s;
	lat_search_free(s);
	return NULL;
}

void lat_search_free(lat_search *s)
{
	if (!s)
		return;
	pcre2_code_free(s->bytes);
	pcre2_code_free(s->utf);
	free(s);
}

/* ---- one thread's part ---- */

lat_searcher *lat_searcher_new(const lat_search *search)
{
	lat_searcher *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->search = search;
	s->match = pcre2_match_data_create(1, NULL);
	s->context = pcre2_match_context_create(NULL);
	s->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, NULL);
	if (!s->match || !s->context) {
		lat_searcher_free(s);
		return NULL;
	}
	pcre2_set_match_limit(s->context, LAT_SEARCH_MATCH_LIMIT);
	pcre2_set_heap_limit(s->context, HEAP_LIMIT_KIB);
	if (s->stack)
		pcre2_jit_stack_assign(s->context, NULL, s->stack);
	return s;
}

void lat_searcher_free(lat_searcher *s)
{
	if (!s)
		return;
	pcre2_jit_stack_free(s->stack);
	pcre2_match_context_free(s->context);
	pcre2_match_data_free(s->match);
	free(s);
}

static bool is_ascii(const char *text, size_t len)
{
	enum { BLOCK = 4096 };
	for (size_t at = 0; at < len; at += BLOCK) {
		size_t end = len - at < BLOCK ? len : at + BLOCK;
		unsigned char any = 0;
		for (size_t i = at; i < end; i++)
			any |= (unsigned char)text[i];
		if (any & 0x80)
			return false;
	}
	return true;
}

void lat_searcher_begin(lat_searcher *s, const char *text, size_t len)
{
	s->text = text;
	s->len = len;
	s->is_ascii = is_ascii(text, len);
	s->line_by_line = false;
}

/* ---- matching ---- */

typedef struct {
	size_t start, end;
} span;

static lat_hit_outcome match(lat_searcher *s, const char *text, size_t len, size_t from, bool ascii,
                             span *found)
{
	const pcre2_code *code = ascii && s->search->bytes ? s->search->bytes : s->search->utf;
	int n = pcre2_match(code, (PCRE2_SPTR)text, len, from, 0, s->match, s->context);
	if (n < 0)
		return n == PCRE2_ERROR_NOMATCH ? LAT_NO_HIT : LAT_HIT_LIMIT;
	const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(s->match);
	found->start =
		ends[0] < ends[1] ? ends[0] : ends[1]; /* \K in a lookahead can put them the other way round */
	found->end = ends[1];
	return LAT_HIT;
}

static size_t line_start(const lat_searcher *s, size_t from, size_t at)
{
	const char *newline = memrchr(s->text + from, '\n', at - from);
	return newline ? (size_t)(newline - s->text) + 1 : from;
}

static size_t line_end(const lat_searcher *s, size_t at)
{
	const char *newline = at < s->len ? memchr(s->text + at, '\n', s->len - at) : NULL;
	return newline ? (size_t)(newline - s->text) : s->len;
}

static lat_hit_outcome match_line(lat_searcher *s, size_t start, size_t end, lat_hit *hit)
{
	span found;
	const char *line = s->text + start;
	bool ascii = s->is_ascii || (s->search->bytes && is_ascii(line, end - start));
	lat_hit_outcome outcome = match(s, line, end - start, 0, ascii, &found);
	if (outcome == LAT_HIT)
		*hit = (lat_hit){.start = start, .end = end, .match = start + found.start};
	return outcome;
}

static lat_hit_outcome next_by_lines(lat_searcher *s, size_t from, lat_hit *hit)
{
	while (from < s->len) {
		size_t end = line_end(s, from);
		lat_hit_outcome outcome = match_line(s, from, end, hit);
		if (outcome != LAT_NO_HIT)
			return outcome;
		from = end + 1;
	}
	return LAT_NO_HIT;
}

static lat_hit_outcome next_by_literal(lat_searcher *s, size_t from, lat_hit *hit)
{
	const lat_pattern_scan *scan = &s->search->scan;
	while (from < s->len) {
		const char *found = memmem(s->text + from, s->len - from, scan->literal, scan->literal_len);
		if (!found)
			return LAT_NO_HIT;
		size_t at = (size_t)(found - s->text), start = line_start(s, from, at), end = line_end(s, at);
		if (scan->is_literal) {
			*hit = (lat_hit){.start = start, .end = end, .match = at};
			return LAT_HIT;
		}
		lat_hit_outcome outcome = match_line(s, start, end, hit);
		if (outcome != LAT_NO_HIT)
			return outcome;
		from = end + 1;
	}
	return LAT_NO_HIT;
}

/* The leftmost match in the text lies at or before the first line that matches. Within a line it is the line's own;
 * where it goes on beyond, the lines are asked themselves from there on. */
static lat_hit_outcome next_in_text(lat_searcher *s, size_t from, lat_hit *hit)
{
	span found;
	if (from >= s->len)
		return LAT_NO_HIT;
	lat_hit_outcome outcome = match(s, s->text, s->len, from, s->is_ascii, &found);
	if (outcome == LAT_NO_HIT)
		return outcome;
	size_t start = from;
	if (outcome == LAT_HIT) {
		if (found.start == s->len && s->text[s->len - 1] == '\n')
			return LAT_NO_HIT; /* there is no line behind the last newline */
		start = line_start(s, from, found.start);
		size_t end = line_end(s, found.start);
		if (found.end <= end) {
			*hit = (lat_hit){.start = start, .end = end, .match = found.start};
			return LAT_HIT;
		}
	}
	s->line_by_line = true;
	return next_by_lines(s, start, hit);
}

static lat_hit_outcome next_of_text(lat_searcher *s, size_t from, lat_hit *hit)
{
	span found;
	const lat_pattern_scan *scan = &s->search->scan;
	if (from >= s->len)
		return LAT_NO_HIT;
	if (scan->literal_len && !memmem(s->text + from, s->len - from, scan->literal, scan->literal_len))
		return LAT_NO_HIT;
	lat_hit_outcome outcome = match(s, s->text, s->len, from, s->is_ascii, &found);
	if (outcome != LAT_HIT)
		return outcome;
	if (found.start == s->len && s->text[s->len - 1] == '\n')
		return LAT_NO_HIT;
	size_t last = found.end > found.start ? found.end - 1 : found.end;
	*hit = (lat_hit){line_start(s, from, found.start), line_end(s, last), found.start};
	return LAT_HIT;
}

lat_hit_outcome lat_searcher_next(lat_searcher *s, size_t from, lat_hit *hit)
{
	const lat_pattern_scan *scan = &s->search->scan;
	if (s->search->multiline)
		return next_of_text(s, from, hit);
	if (scan->literal_len >= SHORT_LITERAL || scan->is_literal)
		return next_by_literal(s, from, hit);
	if (scan->is_plain && !s->line_by_line)
		return next_in_text(s, from, hit);
	return next_by_lines(s, from, hit);
}
