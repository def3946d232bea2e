/* Compiling a schema: documents are scanned for names, then nodes are made from a queue of locations, the
 * nodes' own array, so that neither nesting nor references make the C stack grow.
 *
 * Owned by one thread during lat_schema_compile. The registry's arena holds everything temporary and is freed
 * at the end; the lat_schema holds the rest and is handed out, or freed on failure. */
#include "schema/compile.h"

#include "schema/equal.h"
#include "schema/uri.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_DYNAMIC_NAMES = 64 }; /* each is looked for among all anchors */

/* ---- what keyword readers use ---- */

lat_status lat_compile_nomem(const lat_node_builder *b)
{
	return lat_fail_nomem(b->c->g.err);
}

void *lat_compile_alloc(lat_node_builder *b, size_t n)
{
	void *p = lat_arena_alloc(&b->c->schema->arena, n);
	if (p)
		memset(p, 0, n);
	return p;
}

lat_status lat_compile_fail(lat_node_builder *b, const char *keyword, const char *format, ...)
{
	char message[512];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	return lat_registry_fail(&b->c->g, b->location, keyword, "%s", message);
}

const char *lat_type_name(const lat_value *v)
{
	static const char *const NAMES[] = {"null",     "false",    "true",     "an integer",
	                                    "a number", "a string", "an array", "an object"};
	return NAMES[v->type];
}

lat_status lat_compile_edge(lat_compiler *c, uint32_t from, uint32_t to, bool in_place)
{
	lat_edge *all = lat_array_grow(&c->g.arena, c->edges, sizeof *all, c->edge_count, &c->edge_cap);
	if (!all)
		return lat_fail_nomem(c->g.err);
	c->edges = all;
	all[c->edge_count++] = (lat_edge){from, to, in_place};
	return LAT_OK;
}

static lat_status add_node(lat_compiler *c, uint32_t location, uint32_t *out)
{
	lat_node *nodes = lat_array_grow(&c->g.arena, c->nodes, sizeof *nodes, c->node_count, &c->node_cap);
	uint32_t *places = lat_array_grow(&c->g.arena, c->places, sizeof *places, c->node_count, &c->place_cap);
	if (nodes)
		c->nodes = nodes;
	if (places)
		c->places = places;
	if (!nodes || !places)
		return lat_fail_nomem(c->g.err);
	places[c->node_count] = location;
	nodes[c->node_count] = (lat_node){.types = LAT_T_ANY,
	                                  .unevaluated_items = LAT_NODE_NONE,
	                                  .unevaluated_properties = LAT_NODE_NONE};
	*out = c->node_count++;
	return LAT_OK;
}

lat_status lat_compile_location(lat_compiler *c, uint32_t location, uint32_t *node)
{
	lat_location *at = &c->g.locations[location];
	if (at->node == LAT_NODE_NONE) {
		if (at->schema->type == LAT_TRUE || at->schema->type == LAT_FALSE) {
			at->node = at->schema->type == LAT_TRUE ? LAT_NODE_TRUE : LAT_NODE_FALSE;
		} else {
			lat_status status = add_node(c, location, &at->node);
			if (status != LAT_OK)
				return status;
			c->g.resources[at->resource].used = true;
		}
	}
	*node = at->node;
	return LAT_OK;
}

lat_status lat_compile_child(lat_node_builder *b, const char *keyword, const lat_value *v, bool in_place,
                             uint32_t *node)
{
	uint32_t location = lat_registry_find(&b->c->g, v);
	if (location == LAT_NODE_NONE)
		return lat_compile_fail(b, keyword, "expected a schema (an object or a boolean), got %s",
		                        lat_type_name(v));
	lat_status status = lat_compile_location(b->c, location, node);
	return status == LAT_OK ? lat_compile_edge(b->c, b->index, *node, in_place) : status;
}

lat_status lat_compile_insn(lat_node_builder *b, const lat_insn *insn)
{
	lat_compiler *c = b->c;
	lat_insn *all = lat_array_grow(&c->g.arena, c->insns, sizeof *all, c->insn_count, &c->insn_cap);
	if (!all)
		return lat_compile_nomem(b);
	c->insns = all;
	all[c->insn_count++] = *insn;
	b->node.count++;
	return LAT_OK;
}

lat_status lat_compile_name(lat_compiler *c, lat_text name, uint32_t *number)
{
	for (*number = 0; *number < c->name_count; ++*number)
		if (c->names[*number].len == name.len && memcmp(c->names[*number].s, name.s, name.len) == 0)
			return LAT_OK;
	if (c->name_count == MOST_DYNAMIC_NAMES)
		return lat_fail(c->g.err, LAT_E_LIMIT, "more than %d names that a $dynamicRef looks for",
		                MOST_DYNAMIC_NAMES);
	lat_text *all = lat_array_grow(&c->g.arena, c->names, sizeof *all, c->name_count, &c->name_cap);
	if (!all)
		return lat_fail_nomem(c->g.err);
	c->names = all;
	all[c->name_count++] = name;
	return LAT_OK;
}

lat_string_rules *lat_builder_string(lat_node_builder *b)
{
	if (!b->string && (b->string = lat_compile_alloc(b, sizeof *b->string)))
		b->string->max_length = UINT64_MAX;
	return b->string;
}

lat_number_rules *lat_builder_number(lat_node_builder *b)
{
	if (!b->number)
		b->number = lat_compile_alloc(b, sizeof *b->number);
	return b->number;
}

lat_array_rules *lat_builder_array(lat_node_builder *b)
{
	if (!b->array && (b->array = lat_compile_alloc(b, sizeof *b->array))) {
		b->array->items = b->array->contains = LAT_NODE_NONE;
		b->array->max_items = b->array->max_contains = UINT64_MAX;
		b->array->min_contains = 1;
	}
	return b->array;
}

lat_object_rules *lat_builder_object(lat_node_builder *b)
{
	if (!b->object && (b->object = lat_compile_alloc(b, sizeof *b->object))) {
		b->object->additional = b->object->names = LAT_NODE_NONE;
		b->object->max_properties = UINT64_MAX;
	}
	return b->object;
}

bool lat_value_copy(lat_arena *arena, const lat_value *v, lat_value *out)
{
	*out = *v;
	if (v->type == LAT_STRING)
		return (out->u.s = lat_arena_copy(arena, v->u.s, v->len)) != NULL;
	if (v->type != LAT_ARRAY && v->type != LAT_OBJECT)
		return true;
	size_t n = v->type == LAT_OBJECT ? (size_t)v->len * 2 : v->len;
	out->u.items = lat_arena_alloc(arena, n * sizeof *out);
	if (!out->u.items)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!lat_value_copy(arena, &v->u.items[i], &out->u.items[i]))
			return false;
	return true;
}

lat_status lat_compile_copy(lat_node_builder *b, const lat_value *v, lat_value *out)
{
	return lat_value_copy(&b->c->schema->arena, v, out) ? LAT_OK : lat_compile_nomem(b);
}

/* ---- one node ---- */

static const lat_keyword *find_keyword(const lat_value *name)
{
	static const lat_keyword *const TABLES[] = {lat_keywords_assert, lat_keywords_apply};
	for (size_t t = 0; t < sizeof TABLES / sizeof *TABLES; t++)
		for (const lat_keyword *k = TABLES[t]; k->name; k++)
			if (lat_value_is_string(name, k->name))
				return k;
	return NULL;
}

static lat_status finish_node(lat_node_builder *b)
{
	lat_status status = LAT_OK;
	if (b->if_node != LAT_NODE_NONE) /* without then and else too: it may leave annotations */
		status = lat_compile_insn(
			b, &(lat_insn){.op = LAT_OP_IF, .a = b->if_node, .b = b->then_node, .c = b->else_node});
	if (status == LAT_OK)
		status = lat_compile_properties(b);
	if (status != LAT_OK)
		return status;
	b->node.string = b->string;
	b->node.number = b->number;
	b->node.array = b->array;
	b->node.object = b->object;
	b->c->nodes[b->index] = b->node;
	return LAT_OK;
}

static lat_status compile_node(lat_compiler *c, uint32_t index)
{
	lat_node_builder b = {.c = c,
	                      .location = c->places[index],
	                      .index = index,
	                      .node = c->nodes[index],
	                      .if_node = LAT_NODE_NONE,
	                      .then_node = LAT_NODE_NONE,
	                      .else_node = LAT_NODE_NONE};
	const lat_location *at = &c->g.locations[b.location];
	uint8_t vocabularies;
	lat_status status = lat_registry_vocabularies(&c->g, at->resource, &vocabularies);
	b.schema = at->schema;
	b.node.resource = at->resource;
	b.node.first = c->insn_count;
	b.assert_format = c->format_assertion || (vocabularies & LAT_VOCABULARY_FORMAT_ASSERTION);
	if (vocabularies & LAT_VOCABULARY_FORMAT_ASSERTION)
		vocabularies |= LAT_VOCABULARY_OTHER;
	for (uint32_t i = 0; i < b.schema->len && status == LAT_OK; i++) {
		const lat_value *key = &b.schema->u.items[2 * i];
		const lat_keyword *keyword = find_keyword(key);
		if (keyword && (keyword->vocabulary & vocabularies))
			status = keyword->read(&b, keyword->name, key + 1);
	}
	return status == LAT_OK ? finish_node(&b) : status;
}

/* ---- the whole ---- */

/* A name that "$dynamicRef" looks for may be found in any resource that takes part. */
static lat_status compile_dynamic_anchors(lat_compiler *c)
{
	for (uint32_t i = 0; i < c->g.anchor_count; i++) {
		const lat_anchor *a = &c->g.anchors[i];
		if (!a->dynamic || !c->g.resources[a->resource].used)
			continue;
		for (uint32_t n = 0; n < c->name_count; n++) {
			uint32_t node;
			if (c->names[n].len != a->name.len || memcmp(c->names[n].s, a->name.s, a->name.len) != 0)
				continue;
			lat_status status = lat_compile_location(c, a->location, &node);
			if (status != LAT_OK)
				return status;
		}
	}
	return LAT_OK;
}

static lat_status compile_nodes(lat_compiler *c)
{
	for (uint32_t done = LAT_NODE_FIRST; done < c->node_count;) {
		for (; done < c->node_count; done++) {
			lat_status status = compile_node(c, done);
			if (status != LAT_OK)
				return status;
		}
		lat_status status = compile_dynamic_anchors(c); /* may add nodes */
		if (status != LAT_OK)
			return status;
	}
	return LAT_OK;
}

static lat_status add_documents(lat_compiler *c, const lat_value *schema, const lat_schema_options *options)
{
	uint32_t resource;
	lat_status status = lat_registry_add(&c->g, "", schema, &resource);
	for (size_t i = 0; options && i < options->document_count && status == LAT_OK; i++) {
		const lat_schema_document *d = &options->documents[i];
		char *uri, *fragment;
		size_t len;
		if (!lat_uri_resolve(&c->g.arena, "", d->uri, strlen(d->uri), &uri, &fragment, &len))
			return lat_fail_nomem(c->g.err);
		status = lat_registry_add(&c->g, uri, d->document, &resource);
	}
	return status;
}

static lat_status compile_all(lat_compiler *c, const lat_value *schema, const lat_schema_options *options)
{
	uint32_t unused;
	if (schema->type != LAT_OBJECT && schema->type != LAT_TRUE && schema->type != LAT_FALSE)
		return lat_fail(c->g.err, LAT_E_INVALID, "expected a schema (an object or a boolean), got %s",
		                lat_type_name(schema));
	lat_status status = add_node(c, LAT_NODE_NONE, &unused);
	if (status == LAT_OK)
		status = add_node(c, LAT_NODE_NONE, &unused);
	if (status != LAT_OK)
		return status;
	c->nodes[LAT_NODE_FALSE].types = 0;
	status = add_documents(c, schema, options);
	if (status == LAT_OK)
		status = lat_compile_location(c, 0, &c->schema->root);
	if (status == LAT_OK)
		status = compile_nodes(c);
	return status == LAT_OK ? lat_compile_link(c) : status;
}

static lat_schema *schema_new(void)
{
	lat_schema *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	atomic_init(&s->references, 1);
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	s->seed = lat_hash_mix((uint64_t)(uintptr_t)s, (uint64_t)now.tv_nsec);
	s->patterns = lat_patterns_new();
	if (!s->patterns) {
		free(s);
		return NULL;
	}
	return s;
}

lat_status lat_schema_compile(const lat_value *schema, const lat_schema_options *options, lat_schema **out,
                              lat_error *err)
{
	lat_error unasked;
	lat_compiler c = {.schema = schema_new(), .format_assertion = options && options->format_assertion};
	c.g.err = err ? err : &unasked;
	if (!c.schema)
		return lat_fail_nomem(err);
	c.g.seed = c.schema->seed;
	lat_status status = compile_all(&c, schema, options);
	lat_arena_free(&c.g.arena);
	if (status == LAT_OK)
		*out = c.schema;
	else
		lat_schema_free(c.schema);
	return status;
}

lat_schema *lat_schema_share(lat_schema *s)
{
	atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
	return s;
}

void lat_schema_free(lat_schema *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1)
		return;
	lat_patterns_free(s->patterns);
	lat_arena_free(&s->arena);
	free(s);
}
