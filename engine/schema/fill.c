/* Filling in defaults, once a value is valid. Part of a run (run.h): what is added is copied into its arena.
 *
 * Only nodes from which a default can be reached are walked. An anyOf or oneOf is filled by its first branch
 * that holds, an if by the side that was taken; a failing branch adds nothing. */
#include "schema/run.h"

#include "schema/compile.h"
#include "schema/equal.h"

#include <string.h>

enum { STEPS_PER_DEFAULT = 16 };

static bool fill_insn(lat_run *r, const lat_insn *insn, lat_value *v, const lat_scope *scope)
{
	switch ((lat_op)insn->op) {
	case LAT_OP_REF:
		return lat_run_fill(r, insn->a, v, scope);
	case LAT_OP_DYNAMIC_REF:
		return lat_run_fill(r, lat_run_dynamic_target(r, insn, scope), v, scope);
	case LAT_OP_ALL:
		for (uint32_t i = 0; i < insn->n; i++)
			if (!lat_run_fill(r, insn->u.nodes[i], v, scope))
				return false;
		return true;
	case LAT_OP_ANY:
	case LAT_OP_ONE:
		for (uint32_t i = 0; i < insn->n && r->stop == LAT_OK; i++)
			if (lat_run_quiet(r, insn->u.nodes[i], v, NULL, scope, NULL))
				return lat_run_fill(r, insn->u.nodes[i], v, scope);
		return r->stop == LAT_OK;
	case LAT_OP_IF: {
		bool holds = lat_run_quiet(r, insn->a, v, NULL, scope, NULL);
		uint32_t node = holds ? insn->b : insn->c;
		if (r->stop != LAT_OK || (holds && !lat_run_fill(r, insn->a, v, scope)))
			return false;
		return node == LAT_NODE_NONE || lat_run_fill(r, node, v, scope);
	}
	case LAT_OP_DEPENDENT_SCHEMA:
		return !lat_value_get_n(v, insn->name.s, insn->name.len) || lat_run_fill(r, insn->a, v, scope);
	case LAT_OP_NOT:
	case LAT_OP_CONST:
	case LAT_OP_ENUM:
	case LAT_OP_DEPENDENT_REQUIRED:
		break;
	}
	return true;
}

static bool fill_items(lat_run *r, const lat_array_rules *a, lat_value *v, const lat_scope *scope)
{
	for (uint32_t i = 0; i < v->len; i++) {
		uint32_t node = i < a->prefix_count ? a->prefix[i] : a->items;
		if (node == LAT_NODE_NONE)
			break;
		if (!lat_run_fill(r, node, &v->u.items[i], scope))
			return false;
	}
	return true;
}

static bool fill_member(lat_run *r, const lat_object_rules *o, lat_value *key, const lat_property *p,
                        const lat_scope *scope)
{
	bool known = p && p->node != LAT_NODE_NONE;
	if (known && !lat_run_fill(r, p->node, key + 1, scope))
		return false;
	for (uint32_t i = 0; i < o->pattern_count; i++) {
		if (!lat_run_match(r, o->patterns[i].pattern, key, NULL))
			continue;
		known = true;
		if (!lat_run_fill(r, o->patterns[i].node, key + 1, scope))
			return false;
	}
	return known || o->additional == LAT_NODE_NONE || lat_run_fill(r, o->additional, key + 1, scope);
}

/* A default may lead to further ones, and with a recursive schema to no end: each costs its size in steps. */
static bool pay(lat_run *r, const lat_value *fill)
{
	uint64_t price = STEPS_PER_DEFAULT * lat_value_count(fill);
	if (r->steps < price)
		return lat_run_limit(r, NULL, "the schema's defaults lead to ever more defaults");
	r->steps -= price;
	return true;
}

static bool add_default(lat_run *r, const lat_property *p, lat_value *key, const lat_scope *scope)
{
	if (!pay(r, p->fill))
		return false;
	*key = lat_value_string_view(p->name.s, p->name.len);
	return lat_value_copy(r->arena, p->fill, key + 1) ? lat_run_fill(r, p->node, key + 1, scope)
	                                                  : lat_run_nomem(r);
}

/* Puts the defaults of properties that weren't met behind the members, in the schema's order. */
static bool add_missing(lat_run *r, const lat_object_rules *o, lat_value *v, const lat_scope *scope,
                        const lat_track *met)
{
	uint32_t missing = 0, count = v->len;
	for (uint32_t i = 0; i < o->property_count; i++)
		missing += o->properties[i].fill && !lat_track_has(r, met, i);
	if (!missing)
		return true;
	lat_value *items = lat_arena_alloc(r->arena, ((size_t)v->len + missing) * 2 * sizeof *items);
	if (!items)
		return lat_run_nomem(r);
	if (v->len)
		memcpy(items, v->u.items, (size_t)v->len * 2 * sizeof *items);
	for (uint32_t i = 0; i < o->property_count; i++) {
		if (!o->properties[i].fill || lat_track_has(r, met, i))
			continue;
		if (!add_default(r, &o->properties[i], &items[2 * count], scope))
			return false;
		count++;
	}
	v->u.items = items;
	v->len = count;
	return true;
}

static bool fill_object(lat_run *r, const lat_object_rules *o, lat_value *v, const lat_scope *scope)
{
	lat_track met;
	if (!lat_track_push(r, &met, o->property_count))
		return false;
	bool ok = true;
	for (uint32_t i = 0, hint = 0; i < v->len && ok; i++) {
		const lat_property *p = lat_object_find(o, r->schema->seed, &v->u.items[2 * i], &hint);
		if (p)
			lat_track_mark(r, &met, (uint32_t)(p - o->properties));
		ok = fill_member(r, o, &v->u.items[2 * i], p, scope);
	}
	ok = ok && add_missing(r, o, v, scope, &met);
	lat_track_pop(r, &met);
	return ok;
}

static bool fill_node(lat_run *r, const lat_node *n, lat_value *v, const lat_scope *scope)
{
	for (uint32_t i = 0; i < n->count; i++)
		if (!fill_insn(r, &r->schema->insns[n->first + i], v, scope))
			return false;
	if (v->type == LAT_ARRAY)
		return !n->array || fill_items(r, n->array, v, scope);
	return !n->object || fill_object(r, n->object, v, scope);
}

bool lat_run_fill(lat_run *r, uint32_t node, lat_value *v, const lat_scope *scope)
{
	const lat_node *n = &r->schema->nodes[node];
	lat_scope own;
	if (!(n->flags & LAT_NODE_FILLS) || (v->type != LAT_OBJECT && v->type != LAT_ARRAY))
		return true;
	if (r->depth >= LAT_SCHEMA_MAX_DEPTH)
		return lat_run_limit(r, NULL, "defaults nest too deeply");
	r->depth++;
	bool ok = fill_node(r, n, v, lat_run_enter(r, n, scope, &own));
	r->depth--;
	return ok && r->stop == LAT_OK;
}
