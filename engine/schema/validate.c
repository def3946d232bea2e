/* Running the program over an instance: nodes and instructions. See run.h for what a run owns.
 *
 * Recursion is bounded: lat_run.depth counts nodes that are open at once (LAT_SCHEMA_MAX_DEPTH). Work is
 * bounded: lat_run.steps counts nodes applied; a schema that branches without end runs into it. */
#include "schema/run.h"

#include "schema/equal.h"
#include "json/read.h"

#include <string.h>

static const uint8_t TYPE_BITS[] = {LAT_T_NULL,   LAT_T_BOOLEAN, LAT_T_BOOLEAN, LAT_T_INTEGER | LAT_T_NUMBER,
                                    LAT_T_NUMBER, LAT_T_STRING,  LAT_T_ARRAY,   LAT_T_OBJECT};

/* ---- instructions ---- */

bool lat_run_quiet(lat_run *r, uint32_t node, lat_value *v, const lat_place *at, const lat_scope *scope,
                   lat_track *track)
{
	bool report = r->report;
	r->report = false;
	bool ok = lat_run_node(r, node, v, at, scope, track);
	r->report = report;
	return ok;
}

/* A branch that may fail: what it evaluated counts only when it holds. */
static bool run_branch(lat_run *r, uint32_t node, lat_value *v, const lat_place *at, const lat_scope *scope,
                       lat_track *track)
{
	lat_track own;
	if (!track)
		return lat_run_quiet(r, node, v, at, scope, NULL);
	if (!lat_track_push(r, &own, track->count))
		return false;
	bool ok = lat_run_quiet(r, node, v, at, scope, &own);
	if (ok)
		lat_track_merge(r, track, &own);
	lat_track_pop(r, &own);
	return ok;
}

static bool run_all(lat_run *r, const lat_insn *insn, lat_value *v, const lat_place *at,
                    const lat_scope *scope, lat_track *track)
{
	bool ok = true;
	for (uint32_t i = 0; i < insn->n && (ok || r->report); i++)
		ok = lat_run_node(r, insn->u.nodes[i], v, at, scope, track) && ok;
	return ok;
}

/* The types that a node takes, looking through references. */
static uint8_t types_of(const lat_run *r, uint32_t node)
{
	enum { MOST_HOPS = 8 };
	uint8_t types = LAT_T_ANY;
	for (unsigned hops = 0; hops < MOST_HOPS; hops++) {
		const lat_node *n = &r->schema->nodes[node];
		types &= n->types;
		if (n->count != 1 || r->schema->insns[n->first].op != LAT_OP_REF)
			break;
		node = r->schema->insns[n->first].a;
	}
	return types;
}

static const lat_node *behind_references(const lat_run *r, uint32_t node)
{
	enum { MOST_HOPS = 8 };
	const lat_node *n = &r->schema->nodes[node];
	for (unsigned hops = 0; hops < MOST_HOPS && n->count == 1; hops++) {
		if (r->schema->insns[n->first].op != LAT_OP_REF)
			break;
		n = &r->schema->nodes[r->schema->insns[n->first].a];
	}
	return n;
}

/* Whether a member that a branch fixes by const or enum ("kind": "circle") rules the branch out. */
static bool is_ruled_out(lat_run *r, uint32_t node, lat_value *v, const lat_scope *scope)
{
	const lat_object_rules *o = behind_references(r, node)->object;
	if (v->type != LAT_OBJECT || !o)
		return false;
	for (uint32_t i = 0, hint = 0; i < v->len; i++) {
		lat_value *key = &v->u.items[2 * i];
		const lat_property *p = lat_object_find(o, r->schema->seed, key, &hint);
		const lat_node *n = p && p->node != LAT_NODE_NONE ? &r->schema->nodes[p->node] : NULL;
		if (!n || n->count != 1)
			continue;
		uint8_t op = r->schema->insns[n->first].op;
		if ((op == LAT_OP_CONST || op == LAT_OP_ENUM) &&
		    !lat_run_quiet(r, p->node, key + 1, NULL, scope, NULL))
			return true;
	}
	return false;
}

/* No branch holds: when only one can have been meant, its own errors say most. */
static bool report_branches(lat_run *r, const lat_insn *insn, lat_value *v, const lat_place *at,
                            const lat_scope *scope)
{
	uint32_t meant = LAT_NODE_NONE, candidates = 0;
	uint8_t types = 0;
	if (!r->report)
		return false;
	for (uint32_t i = 0; i < insn->n; i++) {
		uint8_t taken = types_of(r, insn->u.nodes[i]);
		types |= taken;
		if (!(taken & TYPE_BITS[v->type]) || is_ruled_out(r, insn->u.nodes[i], v, scope))
			continue;
		meant = insn->u.nodes[i];
		candidates++;
	}
	if (candidates == 1 && !lat_run_node(r, meant, v, at, scope, NULL))
		return false;
	if (!(types & TYPE_BITS[v->type]))
		return lat_report_type(r, at, v, types);
	return lat_report(r, at, v, "a value that fits one of %u alternatives", insn->n);
}

static bool run_any(lat_run *r, const lat_insn *insn, lat_value *v, const lat_place *at,
                    const lat_scope *scope, lat_track *track)
{
	bool any = false;
	for (uint32_t i = 0; i < insn->n && r->stop == LAT_OK; i++) {
		if (run_branch(r, insn->u.nodes[i], v, at, scope, track)) {
			any = true;
			if (!track)
				break;
		}
	}
	return any || report_branches(r, insn, v, at, scope);
}

static bool run_one(lat_run *r, const lat_insn *insn, lat_value *v, const lat_place *at,
                    const lat_scope *scope, lat_track *track)
{
	uint32_t first = LAT_NODE_NONE;
	for (uint32_t i = 0; i < insn->n && r->stop == LAT_OK; i++) {
		if (!run_branch(r, insn->u.nodes[i], v, at, scope, track))
			continue;
		if (first != LAT_NODE_NONE)
			return lat_report(r, at, v,
			                  "a value that fits exactly one of %u alternatives (it fits number %u and %u)",
			                  insn->n, first + 1, i + 1);
		first = i;
	}
	return first != LAT_NODE_NONE || report_branches(r, insn, v, at, scope);
}

static bool run_if(lat_run *r, const lat_insn *insn, lat_value *v, const lat_place *at,
                   const lat_scope *scope, lat_track *track)
{
	uint32_t node = run_branch(r, insn->a, v, at, scope, track) ? insn->b : insn->c;
	if (r->stop != LAT_OK)
		return false;
	return node == LAT_NODE_NONE || lat_run_node(r, node, v, at, scope, track);
}

static bool run_const(lat_run *r, const lat_insn *insn, const lat_value *v, const lat_place *at)
{
	bool nomem = false;
	if (lat_value_same(r->arena, v, insn->u.value, &nomem))
		return true;
	return nomem ? lat_run_nomem(r) : lat_report_choices(r, at, v, insn->u.value, 1);
}

static bool is_choice(lat_run *r, const lat_choices *c, const lat_value *v, bool *nomem)
{
	if (!c->table) {
		for (uint32_t i = 0; i < c->count; i++)
			if (lat_value_same(r->arena, v, &c->values[i], nomem))
				return true;
		return false;
	}
	uint32_t slot = (uint32_t)lat_value_hash(r->schema->seed, v) & c->mask;
	for (; c->table[slot]; slot = (slot + 1) & c->mask)
		if (lat_value_same(r->arena, v, &c->values[c->table[slot] - 1], nomem))
			return true;
	return false;
}

static bool run_enum(lat_run *r, const lat_insn *insn, const lat_value *v, const lat_place *at)
{
	bool nomem = false;
	const lat_choices *c = insn->u.choices;
	if (is_choice(r, c, v, &nomem))
		return true;
	return nomem ? lat_run_nomem(r) : lat_report_choices(r, at, v, c->values, c->count);
}

static bool has_member(const lat_value *v, const lat_text *name)
{
	return lat_value_get_n(v, name->s, name->len) != NULL;
}

static bool run_dependent_required(lat_run *r, const lat_insn *insn, const lat_value *v, const lat_place *at)
{
	bool ok = true;
	if (v->type != LAT_OBJECT || !has_member(v, &insn->name))
		return true;
	for (uint32_t i = 0; i < insn->n && (ok || r->report); i++)
		if (!has_member(v, &insn->u.names[i]))
			ok = lat_report_missing(r, at, &insn->u.names[i], &insn->name);
	return ok;
}

static bool run_not(lat_run *r, const lat_insn *insn, lat_value *v, const lat_place *at,
                    const lat_scope *scope)
{
	if (!lat_run_quiet(r, insn->a, v, at, scope, NULL))
		return r->stop == LAT_OK;
	return lat_report(r, at, v, "a value that doesn't fit the schema under \"not\"");
}

static bool run_insn(lat_run *r, const lat_insn *insn, lat_value *v, const lat_place *at,
                     const lat_scope *scope, lat_track *track)
{
	switch ((lat_op)insn->op) {
	case LAT_OP_REF:
		return lat_run_node(r, insn->a, v, at, scope, track);
	case LAT_OP_DYNAMIC_REF:
		return lat_run_node(r, lat_run_dynamic_target(r, insn, scope), v, at, scope, track);
	case LAT_OP_ALL:
		return run_all(r, insn, v, at, scope, track);
	case LAT_OP_ANY:
		return run_any(r, insn, v, at, scope, track);
	case LAT_OP_ONE:
		return run_one(r, insn, v, at, scope, track);
	case LAT_OP_NOT:
		return run_not(r, insn, v, at, scope);
	case LAT_OP_IF:
		return run_if(r, insn, v, at, scope, track);
	case LAT_OP_CONST:
		return run_const(r, insn, v, at);
	case LAT_OP_ENUM:
		return run_enum(r, insn, v, at);
	case LAT_OP_DEPENDENT_SCHEMA:
		if (v->type != LAT_OBJECT || !has_member(v, &insn->name))
			return true;
		return lat_run_node(r, insn->a, v, at, scope, track);
	case LAT_OP_DEPENDENT_REQUIRED:
		return run_dependent_required(r, insn, v, at);
	}
	return true;
}

bool lat_run_insns(lat_run *r, const lat_node *n, lat_value *v, const lat_place *at, const lat_scope *scope,
                   lat_track *track)
{
	bool ok = true;
	for (uint32_t i = 0; i < n->count && (ok || r->report) && r->stop == LAT_OK; i++)
		ok = run_insn(r, &r->schema->insns[n->first + i], v, at, scope, track) && ok;
	return ok;
}

/* ---- nodes ---- */

static bool run_unevaluated(lat_run *r, uint32_t node, lat_value *v, const lat_place *at,
                            const lat_scope *scope, const lat_track *track)
{
	bool ok = true, object = v->type == LAT_OBJECT;
	for (uint32_t i = 0; i < v->len && (ok || r->report) && r->stop == LAT_OK; i++) {
		if (lat_track_has(r, track, i))
			continue;
		lat_value *key = object ? &v->u.items[2 * i] : NULL;
		lat_place here = {at, key, i, false};
		lat_value *value = object ? key + 1 : &v->u.items[i];
		if (node != LAT_NODE_FALSE)
			ok = lat_run_node(r, node, value, &here, scope, NULL) && ok;
		else if (object)
			ok = lat_report_unknown(r, &here, value, NULL);
		else
			ok = lat_report(r, &here, value, "no item here");
	}
	return ok;
}

static bool run_tracked(lat_run *r, const lat_node *n, lat_value *v, const lat_place *at,
                        const lat_scope *scope, lat_track *track)
{
	bool ok = lat_run_insns(r, n, v, at, scope, track);
	if ((ok || r->report) && n->array && v->type == LAT_ARRAY)
		ok = lat_run_array(r, n->array, v, at, scope, track) && ok;
	if ((ok || r->report) && n->object && v->type == LAT_OBJECT)
		ok = lat_run_object(r, n->object, v, at, scope, track) && ok;
	return ok && r->stop == LAT_OK;
}

/* A node with unevaluated…: it has a track of its own, since it may only see what its own keywords evaluate. */
static bool run_unevaluated_node(lat_run *r, const lat_node *n, uint32_t unevaluated, lat_value *v,
                                 const lat_place *at, const lat_scope *scope, lat_track *track)
{
	lat_track own;
	if (!lat_track_push(r, &own, v->len))
		return false;
	bool ok = run_tracked(r, n, v, at, scope, &own) && run_unevaluated(r, unevaluated, v, at, scope, &own);
	if (ok && track)
		track->all = true;
	lat_track_pop(r, &own);
	return ok;
}

static bool __attribute__((noinline))
run_branching(lat_run *r, const lat_node *n, lat_value *v, const lat_place *at, const lat_scope *scope,
              lat_track *track)
{
	uint32_t unevaluated = LAT_NODE_NONE;
	lat_scope own;
	if (r->depth >= LAT_SCHEMA_MAX_DEPTH)
		return lat_run_limit(r, at,
		                     "the value is nested too deeply for this schema: validation was given up");
	r->depth++;
	scope = lat_run_enter(r, n, scope, &own);
	if (v->type == LAT_OBJECT)
		unevaluated = n->unevaluated_properties;
	else if (v->type == LAT_ARRAY)
		unevaluated = n->unevaluated_items;
	else
		track = NULL;
	bool ok = unevaluated == LAT_NODE_NONE ? run_tracked(r, n, v, at, scope, track)
	                                       : run_unevaluated_node(r, n, unevaluated, v, at, scope, track);
	r->depth--;
	return ok;
}

/* What may be taken as another type becomes that: 1.0 an integer, an empty table of Lua an array. In the eyes of
 * JSON Schema the value stays the same. */
static bool adapt(lat_value *v, uint8_t types)
{
	if (v->type == LAT_DOUBLE)
		return (types & LAT_T_INTEGER) && lat_number_to_integer(v);
	if (!(v->flags & LAT_V_EITHER) || !(types & (LAT_T_ARRAY | LAT_T_OBJECT)))
		return false;
	v->type = types & LAT_T_ARRAY ? LAT_ARRAY : LAT_OBJECT;
	return true;
}

bool lat_run_node(lat_run *r, uint32_t node, lat_value *v, const lat_place *at, const lat_scope *scope,
                  lat_track *track)
{
	const lat_node *n = &r->schema->nodes[node];
	bool ok = true;
	if (r->steps-- == 0 && !lat_run_more_steps(r, at)) {
		r->steps = 0;
		return false;
	}
	if (!(TYPE_BITS[v->type] & n->types) && !adapt(v, n->types))
		return lat_report_type(r, at, v, n->types);
	if (n->string && v->type == LAT_STRING)
		ok = lat_run_string(r, n->string, v, at);
	else if (n->number && (v->type == LAT_INT || v->type == LAT_DOUBLE))
		ok = lat_run_number(r, n->number, v, at);
	if ((n->flags & LAT_NODE_LEAF) || (!ok && !r->report))
		return ok;
	return run_branching(r, n, v, at, scope, track) && ok;
}

/* ---- the whole ---- */

static lat_status finish(lat_run *r, bool ok)
{
	lat_report_rest(r);
	lat_buf_free(&r->text);
	if (r->stop == LAT_E_NOMEM)
		return LAT_E_NOMEM;
	return ok && r->stop == LAT_OK ? LAT_OK : LAT_E_INVALID;
}

lat_status lat_schema_validate(const lat_schema *s, lat_value *instance, lat_arena *arena,
                               lat_schema_errors *errors)
{
	lat_run r = {.schema = s,
	             .arena = arena,
	             .errors = errors,
	             .root = instance,
	             .steps = LAT_SCHEMA_BASE_STEPS,
	             .matcher = {.arena = arena}};
	*errors = (lat_schema_errors){0};
	bool ok = lat_run_node(&r, s->root, instance, NULL, NULL, NULL);
	if (!ok && r.stop == LAT_OK) {
		r.report = true;
		r.steps = LAT_SCHEMA_BASE_STEPS;
		r.steps_raised = false;
		lat_run_node(&r, s->root, instance, NULL, NULL, NULL);
	} else if (ok && (s->nodes[s->root].flags & LAT_NODE_FILLS)) {
		r.steps = LAT_SCHEMA_BASE_STEPS;
		r.steps_raised = false;
		ok = lat_run_fill(&r, s->root, instance, NULL);
	}
	return finish(&r, ok);
}

lat_status lat_schema_validate_text(const lat_schema *s, const char *text, size_t len, lat_arena *arena,
                                    lat_value *out, lat_schema_errors *errors)
{
	lat_error err;
	*errors = (lat_schema_errors){0};
	lat_status status = lat_json_read(arena, text, len, NULL, out, &err);
	if (status == LAT_OK)
		return lat_schema_validate(s, out, arena, errors);
	return status == LAT_E_NOMEM ? status : lat_report_text(arena, errors, &err);
}
