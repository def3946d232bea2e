/* The book-keeping of a run: limits, what has been evaluated, the dynamic scope. See run.h for who owns what. */
#include "schema/run.h"

#include "schema/equal.h"

#include <string.h>

enum { LINKS_PER_STEP = 16 };

bool lat_run_nomem(lat_run *r)
{
	r->stop = LAT_E_NOMEM;
	return false;
}

bool lat_run_limit(lat_run *r, const lat_place *at, const char *message)
{
	if (r->stop == LAT_OK && lat_report_limit(r, at, message) == false && r->stop == LAT_OK)
		r->stop = LAT_E_LIMIT;
	return false;
}

/* ---- steps ---- */

bool lat_run_more_steps(lat_run *r, const lat_place *at)
{
	if (r->stop != LAT_OK)
		return false;
	if (r->steps_raised)
		return lat_run_limit(r, at,
		                     "the schema asks for too much work on this value: validation was given up");
	r->steps_raised = true;
	r->steps = lat_value_count(r->root) * LAT_SCHEMA_STEPS_PER_VALUE;
	return true;
}

/* ---- tracks ---- */

bool lat_track_push(lat_run *r, lat_track *t, uint32_t count)
{
	uint32_t words = count / 64 + 1;
	if (r->word_cap - r->word_count < words) {
		uint64_t cap = (uint64_t)r->word_cap * 2 + words;
		uint64_t *wider = cap > UINT32_MAX ? NULL : lat_arena_alloc(r->arena, cap * sizeof *wider);
		if (!wider)
			return lat_run_nomem(r);
		if (r->word_count)
			memcpy(wider, r->words, r->word_count * sizeof *wider);
		r->words = wider;
		r->word_cap = (uint32_t)cap;
	}
	*t = (lat_track){r->word_count, count, false};
	memset(r->words + t->at, 0, words * sizeof *r->words);
	r->word_count += words;
	return true;
}

void lat_track_pop(lat_run *r, const lat_track *t)
{
	r->word_count = t->at;
}

void lat_track_merge(lat_run *r, lat_track *into, const lat_track *from)
{
	into->all = into->all || from->all;
	for (uint32_t w = 0; !into->all && w < from->count / 64 + 1; w++)
		r->words[into->at + w] |= r->words[from->at + w];
}

/* ---- scope ---- */

/* Looking through a long scope costs steps too. */
static void pay_for_scope(lat_run *r, uint32_t links)
{
	uint32_t price = links / LINKS_PER_STEP;
	r->steps -= r->steps < price ? r->steps : price;
}

const lat_scope *lat_run_enter(lat_run *r, const lat_node *n, const lat_scope *scope, lat_scope *own)
{
	uint32_t links = 0;
	if (!r->schema->has_dynamic)
		return scope;
	for (const lat_scope *s = scope; s; s = s->outer, links++)
		if (s->resource == n->resource)
			break;
	pay_for_scope(r, links);
	if (scope && links < scope->length)
		return scope;
	*own = (lat_scope){scope, n->resource, links + 1};
	return own;
}

static const lat_dynamic_anchor *find_anchor(const lat_schema *s, uint32_t name, uint32_t resource)
{
	uint32_t low = 0, high = s->anchor_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const lat_dynamic_anchor *a = &s->anchors[middle];
		if (a->name == name && a->resource == resource)
			return a;
		if (a->name < name || (a->name == name && a->resource < resource))
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

uint32_t lat_run_dynamic_target(lat_run *r, const lat_insn *insn, const lat_scope *scope)
{
	uint32_t target = insn->a;
	pay_for_scope(r, scope ? scope->length : 0);
	for (const lat_scope *s = scope; s; s = s->outer) {
		const lat_dynamic_anchor *a = find_anchor(r->schema, insn->b, s->resource);
		if (a)
			target = a->node;
	}
	return target;
}
