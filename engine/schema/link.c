/* The last pass of a compile, when all nodes are known: refuses schemas that apply themselves to the same
 * value for ever, works out where defaults can be reached, and lays the program into the schema's arena.
 * On the compiling thread; temporary arrays live in the registry's arena. */
#include "schema/compile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Edges by what they lead to: those to node n are from[start[n]] … from[start[n + 1] - 1]. */
typedef struct {
	uint32_t *start;
	lat_edge *edges;
} reverse_edges;

static bool reverse(lat_compiler *c, reverse_edges *r)
{
	r->start = lat_arena_alloc(&c->g.arena, (c->node_count + 2) * sizeof *r->start);
	r->edges = lat_arena_alloc(&c->g.arena, c->edge_count * sizeof *r->edges);
	if (!r->start || !r->edges)
		return false;
	memset(r->start, 0, (c->node_count + 2) * sizeof *r->start);
	for (uint32_t i = 0; i < c->edge_count; i++)
		r->start[c->edges[i].to + 2]++;
	for (uint32_t n = 2; n < c->node_count + 2; n++)
		r->start[n] += r->start[n - 1];
	for (uint32_t i = 0; i < c->edge_count; i++)
		r->edges[r->start[c->edges[i].to + 1]++] = c->edges[i];
	return true;
}

/* A node on a loop: from `node`, every step along what wasn't peeled off stays unpeeled and so must come round. */
static uint32_t walk_to_loop(const lat_compiler *c, const uint32_t *open, uint32_t node)
{
	enum { STEPS = 64 };
	for (unsigned steps = 0; steps < STEPS; steps++) {
		for (uint32_t i = 0; i < c->edge_count; i++) {
			const lat_edge *e = &c->edges[i];
			if (e->in_place && e->from == node && open[e->to]) {
				node = e->to;
				break;
			}
		}
	}
	return node;
}

/* Peels off nodes that lead in place to nothing (left); what can't be peeled is or leads to a loop. */
static lat_status refuse_loops(lat_compiler *c, const reverse_edges *r)
{
	uint32_t *open = lat_arena_alloc(&c->g.arena, c->node_count * sizeof *open);
	uint32_t *queue = lat_arena_alloc(&c->g.arena, c->node_count * sizeof *queue), head = 0, tail = 0;
	if (!open || !queue)
		return lat_fail_nomem(c->g.err);
	memset(open, 0, c->node_count * sizeof *open);
	for (uint32_t i = 0; i < c->edge_count; i++)
		open[c->edges[i].from] += c->edges[i].in_place;
	for (uint32_t n = 0; n < c->node_count; n++)
		if (!open[n])
			queue[tail++] = n;
	for (; head < tail; head++)
		for (uint32_t i = r->start[queue[head]]; i < r->start[queue[head] + 1]; i++)
			if (r->edges[i].in_place && --open[r->edges[i].from] == 0)
				queue[tail++] = r->edges[i].from;
	for (uint32_t n = 0; n < c->node_count; n++)
		if (open[n])
			return lat_registry_fail(
				&c->g, c->places[walk_to_loop(c, open, n)], NULL,
				"refers to itself without going deeper into the value: it would never end");
	return LAT_OK;
}

/* ---- defaults ---- */

/* A property's default: of its schema, or of what that refers to. */
static const lat_value *default_of(const lat_compiler *c, uint32_t node)
{
	enum { MOST_HOPS = 16 };
	for (unsigned hops = 0; hops < MOST_HOPS && node != LAT_NODE_NONE; hops++) {
		const lat_node *n = &c->nodes[node];
		if (n->fill)
			return n->fill;
		node = n->count && c->insns[n->first].op == LAT_OP_REF ? c->insns[n->first].a : LAT_NODE_NONE;
	}
	return NULL;
}

static bool set_defaults(const lat_compiler *c, const lat_object_rules *o)
{
	bool any = false;
	for (uint32_t i = 0; o && i < o->property_count; i++) {
		o->properties[i].fill = default_of(c, o->properties[i].node);
		any = any || o->properties[i].fill;
	}
	return any;
}

static lat_status mark_fills(lat_compiler *c, const reverse_edges *r)
{
	uint32_t *queue = lat_arena_alloc(&c->g.arena, c->node_count * sizeof *queue), tail = 0;
	if (!queue)
		return lat_fail_nomem(c->g.err);
	for (uint32_t n = 0; n < c->node_count; n++) {
		if (!set_defaults(c, c->nodes[n].object))
			continue;
		c->nodes[n].flags |= LAT_NODE_FILLS;
		queue[tail++] = n;
	}
	bool any = tail > 0;
	for (uint32_t n = 0; any && n < c->node_count; n++) { /* where a dynamic reference leads isn't known */
		lat_node *node = &c->nodes[n];
		for (uint32_t i = node->first; i < node->first + node->count; i++) {
			if (c->insns[i].op == LAT_OP_DYNAMIC_REF && !(node->flags & LAT_NODE_FILLS)) {
				node->flags |= LAT_NODE_FILLS;
				queue[tail++] = n;
			}
		}
	}
	for (uint32_t head = 0; head < tail; head++) {
		for (uint32_t i = r->start[queue[head]]; i < r->start[queue[head] + 1]; i++) {
			uint32_t from = r->edges[i].from;
			if (!(c->nodes[from].flags & LAT_NODE_FILLS)) {
				c->nodes[from].flags |= LAT_NODE_FILLS;
				queue[tail++] = from;
			}
		}
	}
	return LAT_OK;
}

/* ---- bounds of integers ---- */

typedef struct {
	int64_t min, max;
	bool never;
} range;

static void raise_min(range *r, const lat_value *v, bool exclusive)
{
	int64_t least;
	bool step = exclusive;
	if (v->type == LAT_INT) {
		least = v->u.i;
	} else {
		double whole = floor(v->u.d);
		if (whole < -0x1p63)
			return;
		if (whole >= 0x1p63) {
			r->never = true;
			return;
		}
		least = (int64_t)whole;
		step = exclusive || whole != v->u.d;
	}
	if (step && least == INT64_MAX)
		r->never = true;
	else if (least + step > r->min)
		r->min = least + step;
}

static void lower_max(range *r, const lat_value *v, bool exclusive)
{
	int64_t most;
	bool step = exclusive;
	if (v->type == LAT_INT) {
		most = v->u.i;
	} else {
		double whole = floor(v->u.d);
		if (whole >= 0x1p63)
			return;
		if (whole < -0x1p63) {
			r->never = true;
			return;
		}
		most = (int64_t)whole;
		step = exclusive && whole == v->u.d;
	}
	if (step && most == INT64_MIN)
		r->never = true;
	else if (most - step < r->max)
		r->max = most - step;
}

static void set_integer_bounds(lat_number_rules *n)
{
	range r = {INT64_MIN, INT64_MAX, false};
	if (n->given & LAT_N_MIN)
		raise_min(&r, &n->min, false);
	if (n->given & LAT_N_ABOVE)
		raise_min(&r, &n->above, true);
	if (n->given & LAT_N_MAX)
		lower_max(&r, &n->max, false);
	if (n->given & LAT_N_BELOW)
		lower_max(&r, &n->below, true);
	n->int_min = r.min;
	n->int_max = r.max;
	n->int_never = r.never || r.min > r.max;
}

/* ---- the program's final place ---- */

static int compare_anchors(const void *a, const void *b)
{
	const lat_dynamic_anchor *x = a, *y = b;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->resource > y->resource) - (x->resource < y->resource);
}

/* Sorted, so that one is found by name and resource in few steps. */
static lat_status lay_anchors(lat_compiler *c)
{
	lat_schema *s = c->schema;
	lat_dynamic_anchor *all = lat_arena_alloc(&s->arena, c->g.anchor_count * sizeof *all);
	if (!all)
		return lat_fail_nomem(c->g.err);
	for (uint32_t i = 0; i < c->g.anchor_count; i++) {
		const lat_anchor *a = &c->g.anchors[i];
		uint32_t node = c->g.locations[a->location].node;
		for (uint32_t n = 0; a->dynamic && node != LAT_NODE_NONE && n < c->name_count; n++)
			if (c->names[n].len == a->name.len && memcmp(c->names[n].s, a->name.s, a->name.len) == 0)
				all[s->anchor_count++] = (lat_dynamic_anchor){n, a->resource, node};
	}
	if (s->anchor_count)
		qsort(all, s->anchor_count, sizeof *all, compare_anchors);
	s->anchors = all;
	return LAT_OK;
}

static lat_status lay_program(lat_compiler *c)
{
	lat_schema *s = c->schema;
	s->nodes = lat_arena_alloc(&s->arena, c->node_count * sizeof *s->nodes);
	s->insns = lat_arena_alloc(&s->arena, c->insn_count * sizeof *s->insns);
	if (!s->nodes || !s->insns)
		return lat_fail_nomem(c->g.err);
	for (uint32_t i = 0; i < c->node_count; i++) {
		lat_node *n = &c->nodes[i];
		if (n->number)
			set_integer_bounds(n->number);
		if (!n->count && !n->array && !n->object && n->unevaluated_items == LAT_NODE_NONE &&
		    n->unevaluated_properties == LAT_NODE_NONE)
			n->flags |= LAT_NODE_LEAF;
		s->nodes[i] = *n;
	}
	if (c->insn_count)
		memcpy(s->insns, c->insns, c->insn_count * sizeof *s->insns);
	s->node_count = c->node_count;
	s->insn_count = c->insn_count;
	return lay_anchors(c);
}

lat_status lat_compile_link(lat_compiler *c)
{
	reverse_edges r;
	if (!reverse(c, &r))
		return lat_fail_nomem(c->g.err);
	lat_status status = refuse_loops(c, &r);
	if (status == LAT_OK)
		status = mark_fills(c, &r);
	return status == LAT_OK ? lay_program(c) : status;
}
