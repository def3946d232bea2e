/* lat_glob, the compiler: pattern → nodes. Owns what lat_glob_new returns until lat_glob_free; any thread.
 *
 * `**` counts as a path component where a "/" or an end stands on both sides; elsewhere it is a `*`, as in git.
 * Braces become splits and jumps, so that {a,b}{a,b}… costs its length and not its expansions. */
#include "workspace/glob.h"

#include <stdlib.h>
#include <string.h>

#include "workspace/glob_program.h"
#include "workspace/glob_set.h"

typedef struct {
	uint16_t split; /* of the alternative that is being read */
	uint16_t jumps; /* of the ones before, chained by their a; 0: none */
	bool at_start;  /* whether the group stands at the start of a component */
} brace;

typedef struct {
	const char *at, *end;
	lat_glob_style style;
	lat_glob *g;
	bool at_start;     /* of a path component */
	bool only_literal; /* so far */
	brace braces[LAT_GLOB_MAX_BRACES];
	size_t depth;
	lat_error *err;
} compiler;

static uint16_t here(const compiler *c)
{
	return (uint16_t)c->g->n_nodes;
}

static uint16_t emit(compiler *c, lat_glob_op op, uint16_t a)
{
	c->g->nodes[c->g->n_nodes] = (lat_glob_node){.op = (uint8_t)op, .a = a};
	return (uint16_t)c->g->n_nodes++;
}

static void emit_byte(compiler *c, char byte)
{
	c->g->nodes[emit(c, LAT_GLOB_BYTE, 0)].byte = (uint8_t)byte;
	c->at_start = byte == '/';
}

/* In git's files a pattern that makes no sense matches nothing; a model is told. */
static lat_status malformed(compiler *c, const char *message)
{
	if (c->style == LAT_GLOB_TOOL)
		return lat_fail(c->err, LAT_E_SYNTAX, "%s", message);
	emit(c, LAT_GLOB_FAIL, 0);
	c->at = c->end;
	return LAT_OK;
}

/* Git compares the literal beginning by itself, and a `**` right behind it as if it stood at the start. */
static bool starts_component(const compiler *c)
{
	return c->at_start || (c->style == LAT_GLOB_GIT && c->only_literal);
}

static bool ends_component(const compiler *c, const char *after)
{
	if (after == c->end || *after == '/')
		return true;
	if (c->depth > 0)
		return *after == ',' || *after == '}';
	return c->style == LAT_GLOB_GIT && after + 1 < c->end && after[0] == '\\' && after[1] == '/';
}

static void stars(compiler *c)
{
	const char *after = c->at;
	while (after < c->end && *after == '*')
		after++;
	bool deep = after - c->at > 1 && starts_component(c) && ends_component(c, after);
	c->at = after;
	if (!deep) {
		emit(c, LAT_GLOB_STAR, 0);
	} else if (after < c->end && *after == '/') {
		uint16_t split = emit(c, LAT_GLOB_SPLIT, 0);
		c->g->nodes[split].b = emit(c, LAT_GLOB_DEEP, 0);
		emit_byte(c, '/');
		c->g->nodes[split].a = here(c);
		c->at++;
		return;
	} else {
		emit(c, LAT_GLOB_DEEP, 0);
	}
	c->at_start = false;
}

static lat_status set(compiler *c)
{
	lat_glob_set *bits = &c->g->sets[c->g->n_sets];
	const char *after = lat_glob_set_parse(c->at, c->end, bits);
	if (!after)
		return malformed(c, "\"[\" without its \"]\", or with an unknown [:class:]: write \\[ for the "
		                    "character itself");
	emit(c, LAT_GLOB_SET, (uint16_t)c->g->n_sets++);
	c->at_start = false;
	c->at = after;
	return LAT_OK;
}

static lat_status open_brace(compiler *c)
{
	if (c->depth == LAT_GLOB_MAX_BRACES)
		return lat_fail(c->err, LAT_E_LIMIT, "braces nested deeper than %d", LAT_GLOB_MAX_BRACES);
	brace *b = &c->braces[c->depth++];
	*b = (brace){.split = emit(c, LAT_GLOB_SPLIT, 0), .at_start = c->at_start};
	c->g->nodes[b->split].a = here(c);
	c->at++;
	return LAT_OK;
}

static void next_alternative(compiler *c)
{
	brace *b = &c->braces[c->depth - 1];
	b->jumps = emit(c, LAT_GLOB_JUMP, b->jumps);
	c->g->nodes[b->split].b = here(c);
	b->split = emit(c, LAT_GLOB_SPLIT, 0);
	c->g->nodes[b->split].a = here(c);
	c->at_start = b->at_start;
	c->at++;
}

static void close_brace(compiler *c)
{
	brace *b = &c->braces[--c->depth];
	c->g->nodes[b->split].b = c->g->nodes[b->split].a;
	for (uint16_t jump = b->jumps, before; jump; jump = before) {
		before = c->g->nodes[jump].a;
		c->g->nodes[jump].a = here(c);
	}
	c->at_start = false;
	c->at++;
}

static lat_status escape(compiler *c)
{
	if (++c->at == c->end)
		return malformed(c, "a \"\\\" at the end: write \\\\ for the character itself");
	emit_byte(c, *c->at++);
	return LAT_OK;
}

static lat_status step(compiler *c)
{
	char byte = *c->at;
	bool braces = c->style == LAT_GLOB_TOOL;
	if (byte == '*') {
		stars(c);
	} else if (byte == '?') {
		emit(c, LAT_GLOB_ANY, 0);
		c->at_start = false;
		c->at++;
	} else if (byte == '[') {
		return set(c);
	} else if (byte == '\\') {
		return escape(c);
	} else if (braces && byte == '{') {
		return open_brace(c);
	} else if (c->depth > 0 && byte == ',') {
		next_alternative(c);
	} else if (c->depth > 0 && byte == '}') {
		close_brace(c);
	} else {
		emit_byte(c, byte);
		c->at++;
		return LAT_OK;
	}
	return LAT_OK;
}

static lat_status compile(compiler *c)
{
	lat_status status = LAT_OK;
	while (status == LAT_OK && c->at < c->end) {
		bool special = memchr("*?[\\", *c->at, 4) != NULL;
		status = step(c);
		if (special)
			c->only_literal = false;
	}
	if (status == LAT_OK && c->depth > 0)
		status = malformed(c, "\"{\" without its \"}\": write \\{ for the character itself");
	if (status == LAT_OK)
		emit(c, LAT_GLOB_END, 0);
	return status;
}

/* ---- the literal beginning and end ---- */

static bool has_braces(const lat_glob *g)
{
	for (size_t i = 0; i < g->n_nodes; i++)
		if (g->nodes[i].op == LAT_GLOB_JUMP)
			return true;
	return false;
}

static bool suffix_has_slash(const lat_glob *g, size_t from)
{
	for (size_t i = from; g->nodes[i].op == LAT_GLOB_BYTE; i++)
		if (g->nodes[i].byte == '/')
			return true;
	return false;
}

static lat_glob_middle middle_of(const lat_glob *g, size_t from, size_t to)
{
	if (from == to)
		return LAT_GLOB_MIDDLE_NOTHING;
	if (to - from == 1 && g->nodes[from].op == LAT_GLOB_STAR)
		return LAT_GLOB_MIDDLE_STAR;
	if (to - from == 1 && g->nodes[from].op == LAT_GLOB_DEEP)
		return LAT_GLOB_MIDDLE_DEEP;
	bool folders = to - from >= 3 && g->nodes[from].op == LAT_GLOB_SPLIT && g->nodes[from].a == from + 3 &&
	               g->nodes[from + 1].op == LAT_GLOB_DEEP;
	if (folders && to - from == 3)
		return LAT_GLOB_MIDDLE_FOLDERS;
	if (folders && to - from == 4 && g->nodes[from + 3].op == LAT_GLOB_STAR && !suffix_has_slash(g, to))
		return LAT_GLOB_MIDDLE_DEEP;
	return LAT_GLOB_MIDDLE_OTHER;
}

static void find_literals(lat_glob *g)
{
	size_t last = g->n_nodes - 1, from = 0, to = last;
	while (from < last && g->nodes[from].op == LAT_GLOB_BYTE)
		from++;
	bool any_end = has_braces(g);
	while (!any_end && to > from && g->nodes[to - 1].op == LAT_GLOB_BYTE)
		to--;
	/* The split of a leading `**` jumps over its "/": that one isn't needed, so it doesn't belong to the end. */
	for (size_t i = from; i < to; i++)
		if (g->nodes[i].op == LAT_GLOB_SPLIT && g->nodes[i].a > to)
			to = g->nodes[i].a;
	for (size_t i = 0; i < from; i++)
		g->literal[i] = (char)g->nodes[i].byte;
	for (size_t i = to; i < last; i++)
		g->literal[from + i - to] = (char)g->nodes[i].byte;
	g->prefix_len = from;
	g->suffix_len = last - to;
	g->middle = middle_of(g, from, to);
}

static size_t count(const char *s, size_t len, char byte)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++)
		n += s[i] == byte;
	return n;
}

static lat_glob *make(const char *pattern, size_t len)
{
	lat_glob *g = calloc(1, sizeof *g);
	if (!g)
		return NULL;
	g->nodes = malloc((2 * len + 2) * sizeof *g->nodes);
	g->sets = malloc((count(pattern, len, '[') + 1) * sizeof *g->sets);
	g->literal = malloc(len + 1);
	if (g->nodes && g->sets && g->literal)
		return g;
	lat_glob_free(g);
	return NULL;
}

lat_glob *lat_glob_new(const char *pattern, size_t len, lat_glob_style style, lat_error *err)
{
	if (len > LAT_GLOB_MAX_BYTES) {
		lat_fail(err, LAT_E_LIMIT, "a pattern of %zu bytes: at most %d", len, LAT_GLOB_MAX_BYTES);
		return NULL;
	}
	lat_glob *g = make(pattern, len);
	if (!g) {
		lat_fail_nomem(err);
		return NULL;
	}
	compiler c = {.at = pattern, .end = pattern + len, .style = style, .g = g, .err = err};
	c.at_start = c.only_literal = true;
	if (compile(&c) != LAT_OK) {
		lat_glob_free(g);
		return NULL;
	}
	find_literals(g);
	return g;
}

void lat_glob_free(lat_glob *g)
{
	if (!g)
		return;
	free(g->nodes);
	free(g->sets);
	free(g->literal);
	free(g);
}
