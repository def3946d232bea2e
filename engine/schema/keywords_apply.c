/* The keywords that apply subschemas: references, combinations, members and items.
 * Called by the compiler only, on its thread; all memory is the schema's arena. */
#include "schema/compile.h"
#include "schema/equal.h"

#include <string.h>

/* ---- references ---- */

static lat_status resolve(lat_node_builder *b, const char *keyword, const lat_value *v, uint32_t *node,
                          const lat_anchor **anchor)
{
	uint32_t location;
	if (v->type != LAT_STRING)
		return lat_compile_fail(b, keyword, "expected a URI reference in a string, got %s", lat_type_name(v));
	lat_status status = lat_registry_resolve(&b->c->g, b->location, v, &location, anchor);
	if (status != LAT_OK)
		return status;
	if (location == LAT_NODE_NONE)
		return lat_compile_fail(b, keyword,
		                        "\"%.*s\" leads to no schema; nothing is fetched: a document of another "
		                        "URI must be registered",
		                        v->len > 200 ? 200 : (int)v->len, v->u.s);
	return lat_compile_location(b->c, location, node);
}

static lat_status read_ref(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	uint32_t node;
	const lat_anchor *anchor;
	lat_status status = resolve(b, keyword, v, &node, &anchor);
	if (status == LAT_OK)
		status = lat_compile_edge(b->c, b->index, node, true);
	return status == LAT_OK ? lat_compile_insn(b, &(lat_insn){.op = LAT_OP_REF, .a = node}) : status;
}

/* Core section 8.2.3.2: dynamic only where the reference, taken as "$ref", leads to a "$dynamicAnchor". */
static lat_status read_dynamic_ref(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	uint32_t node, name;
	const lat_anchor *anchor;
	lat_status status = resolve(b, keyword, v, &node, &anchor);
	if (status != LAT_OK)
		return status;
	if (!anchor || !anchor->dynamic) {
		status = lat_compile_edge(b->c, b->index, node, true);
		return status == LAT_OK ? lat_compile_insn(b, &(lat_insn){.op = LAT_OP_REF, .a = node}) : status;
	}
	status = lat_compile_name(b->c, anchor->name, &name);
	b->c->schema->has_dynamic = true;
	return status == LAT_OK ? lat_compile_insn(b, &(lat_insn){.op = LAT_OP_DYNAMIC_REF, .a = node, .b = name})
	                        : status;
}

/* ---- combinations ---- */

static lat_status read_list(lat_node_builder *b, const char *keyword, const lat_value *v, bool in_place,
                            uint32_t **out)
{
	if (v->type != LAT_ARRAY || !v->len)
		return lat_compile_fail(b, keyword, "expected a list of at least one schema, got %s",
		                        v->type == LAT_ARRAY ? "an empty list" : lat_type_name(v));
	uint32_t *nodes = lat_compile_alloc(b, v->len * sizeof *nodes);
	lat_status status = nodes ? LAT_OK : lat_compile_nomem(b);
	for (uint32_t i = 0; i < v->len && status == LAT_OK; i++)
		status = lat_compile_child(b, keyword, &v->u.items[i], in_place, &nodes[i]);
	*out = nodes;
	return status;
}

static lat_status read_combination(lat_node_builder *b, const char *keyword, const lat_value *v, lat_op op)
{
	uint32_t *nodes;
	lat_status status = read_list(b, keyword, v, true, &nodes);
	if (status != LAT_OK)
		return status;
	return lat_compile_insn(b, &(lat_insn){.op = (uint8_t)op, .n = v->len, .u.nodes = nodes});
}

static lat_status read_all_of(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return read_combination(b, keyword, v, LAT_OP_ALL);
}

static lat_status read_any_of(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return read_combination(b, keyword, v, LAT_OP_ANY);
}

static lat_status read_one_of(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return read_combination(b, keyword, v, LAT_OP_ONE);
}

static lat_status read_not(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	uint32_t node;
	lat_status status = lat_compile_child(b, keyword, v, true, &node);
	return status == LAT_OK ? lat_compile_insn(b, &(lat_insn){.op = LAT_OP_NOT, .a = node}) : status;
}

static lat_status read_if(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return lat_compile_child(b, keyword, v, true, &b->if_node);
}

static lat_status read_then(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return lat_compile_child(b, keyword, v, true, &b->then_node);
}

static lat_status read_else(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return lat_compile_child(b, keyword, v, true, &b->else_node);
}

static lat_status expect_map(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	if (v->type == LAT_OBJECT)
		return LAT_OK;
	return lat_compile_fail(b, keyword, "expected an object of schemas, got %s", lat_type_name(v));
}

static lat_status read_dependent_schemas(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_status status = expect_map(b, keyword, v);
	for (uint32_t i = 0; status == LAT_OK && i < v->len; i++) {
		const lat_value *key = &v->u.items[2 * i];
		lat_insn insn = {.op = LAT_OP_DEPENDENT_SCHEMA};
		lat_value name;
		status = lat_compile_child(b, keyword, key + 1, true, &insn.a);
		if (status == LAT_OK)
			status = lat_compile_copy(b, key, &name);
		if (status != LAT_OK)
			break;
		insn.name = (lat_text){name.u.s, name.len};
		status = lat_compile_insn(b, &insn);
	}
	return status;
}

/* ---- arrays ---- */

static lat_status read_prefix_items(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_array_rules *r = lat_builder_array(b);
	uint32_t *nodes;
	if (!r)
		return lat_compile_nomem(b);
	lat_status status = read_list(b, keyword, v, false, &nodes);
	r->prefix = nodes;
	r->prefix_count = status == LAT_OK ? v->len : 0;
	return status;
}

static lat_status read_items(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_array_rules *r = lat_builder_array(b);
	if (!r)
		return lat_compile_nomem(b);
	if (v->type == LAT_ARRAY)
		return lat_compile_fail(b, keyword,
		                        "expected a schema, got a list; draft 2020-12 calls that prefixItems");
	return lat_compile_child(b, keyword, v, false, &r->items);
}

static lat_status read_contains(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_array_rules *r = lat_builder_array(b);
	return r ? lat_compile_child(b, keyword, v, false, &r->contains) : lat_compile_nomem(b);
}

static lat_status read_unevaluated_items(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return lat_compile_child(b, keyword, v, false, &b->node.unevaluated_items);
}

/* ---- objects ---- */

static lat_status read_pattern_properties(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_status status = expect_map(b, keyword, v);
	lat_object_rules *r = status == LAT_OK ? lat_builder_object(b) : NULL;
	lat_pattern_property *all = r ? lat_compile_alloc(b, v->len * sizeof *all) : NULL;
	if (!all)
		return status == LAT_OK ? lat_compile_nomem(b) : status;
	for (uint32_t i = 0; i < v->len && status == LAT_OK; i++) {
		const lat_value *key = &v->u.items[2 * i];
		lat_error err;
		status = lat_patterns_add(b->c->schema->patterns, key->u.s, key->len, &all[i].pattern, &err);
		if (status == LAT_E_NOMEM)
			return lat_compile_nomem(b);
		if (status != LAT_OK)
			return lat_compile_fail(b, keyword, "\"%.*s\" is %s", key->len > 200 ? 200 : (int)key->len,
			                        key->u.s, err.message);
		status = lat_compile_child(b, keyword, key + 1, false, &all[i].node);
	}
	r->patterns = all;
	r->pattern_count = v->len;
	return status;
}

static lat_status read_properties(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_status status = expect_map(b, keyword, v);
	if (status == LAT_OK && !lat_builder_object(b))
		status = lat_compile_nomem(b);
	b->properties = v;
	return status;
}

static lat_status read_additional(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_object_rules *r = lat_builder_object(b);
	return r ? lat_compile_child(b, keyword, v, false, &r->additional) : lat_compile_nomem(b);
}

static lat_status read_property_names(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_object_rules *r = lat_builder_object(b);
	return r ? lat_compile_child(b, keyword, v, false, &r->names) : lat_compile_nomem(b);
}

static lat_status read_unevaluated_properties(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return lat_compile_child(b, keyword, v, false, &b->node.unevaluated_properties);
}

/* ---- properties and required, joined ---- */

/* The property's place in the table: its own slot, or the free one that is to be its. */
static uint32_t *property_slot(const lat_node_builder *b, const lat_object_rules *r, uint32_t *table,
                               const lat_value *name)
{
	uint32_t slot = (uint32_t)lat_hash_bytes(b->c->schema->seed, name->u.s, name->len) & r->mask;
	for (; table[slot]; slot = (slot + 1) & r->mask) {
		const lat_text *other = &r->properties[table[slot] - 1].name;
		if (other->len == name->len && memcmp(other->s, name->u.s, name->len) == 0)
			break;
	}
	return &table[slot];
}

static lat_status add_property(lat_node_builder *b, uint32_t *table, const lat_value *name,
                               lat_property **out)
{
	lat_object_rules *r = b->object;
	uint32_t *slot = property_slot(b, r, table, name);
	if (!*slot) {
		const char *copy = lat_arena_copy(&b->c->schema->arena, name->u.s, name->len);
		if (!copy)
			return lat_compile_nomem(b);
		r->properties[r->property_count++] = (lat_property){{copy, name->len}, LAT_NODE_NONE, -1, NULL};
		*slot = r->property_count;
	}
	*out = &r->properties[*slot - 1];
	return LAT_OK;
}

lat_status lat_compile_properties(lat_node_builder *b)
{
	lat_object_rules *r = b->object;
	if (!r)
		return LAT_OK;
	uint32_t from_map = b->properties ? b->properties->len : 0;
	uint32_t from_list = b->required ? b->required->len : 0;
	lat_property *all = lat_compile_alloc(b, (from_map + from_list) * sizeof *all);
	uint32_t *table = all ? lat_hash_table(&b->c->schema->arena, from_map + from_list, &r->mask) : NULL;
	if (!table)
		return lat_compile_nomem(b);
	r->properties = all;
	r->table = table;
	lat_status status = LAT_OK;
	lat_property *p = NULL;
	for (uint32_t i = 0; i < from_map && status == LAT_OK; i++) {
		const lat_value *key = &b->properties->u.items[2 * i];
		status = add_property(b, table, key, &p);
		if (status == LAT_OK)
			status = lat_compile_child(b, "properties", key + 1, false, &p->node);
	}
	for (uint32_t i = 0; i < from_list && status == LAT_OK; i++) {
		status = add_property(b, table, &b->required->u.items[i], &p);
		if (status == LAT_OK && p && p->required < 0)
			p->required = (int32_t)r->required_count++;
	}
	return status;
}

const lat_keyword lat_keywords_apply[] = {
	{"$dynamicRef", LAT_VOCABULARY_CORE, read_dynamic_ref},
	{"$ref", LAT_VOCABULARY_CORE, read_ref},
	{"additionalProperties", LAT_VOCABULARY_APPLICATOR, read_additional},
	{"allOf", LAT_VOCABULARY_APPLICATOR, read_all_of},
	{"anyOf", LAT_VOCABULARY_APPLICATOR, read_any_of},
	{"contains", LAT_VOCABULARY_APPLICATOR, read_contains},
	{"dependentSchemas", LAT_VOCABULARY_APPLICATOR, read_dependent_schemas},
	{"else", LAT_VOCABULARY_APPLICATOR, read_else},
	{"if", LAT_VOCABULARY_APPLICATOR, read_if},
	{"items", LAT_VOCABULARY_APPLICATOR, read_items},
	{"not", LAT_VOCABULARY_APPLICATOR, read_not},
	{"oneOf", LAT_VOCABULARY_APPLICATOR, read_one_of},
	{"patternProperties", LAT_VOCABULARY_APPLICATOR, read_pattern_properties},
	{"prefixItems", LAT_VOCABULARY_APPLICATOR, read_prefix_items},
	{"properties", LAT_VOCABULARY_APPLICATOR, read_properties},
	{"propertyNames", LAT_VOCABULARY_APPLICATOR, read_property_names},
	{"then", LAT_VOCABULARY_APPLICATOR, read_then},
	{"unevaluatedItems", LAT_VOCABULARY_UNEVALUATED, read_unevaluated_items},
	{"unevaluatedProperties", LAT_VOCABULARY_UNEVALUATED, read_unevaluated_properties},
	{NULL, 0, NULL},
};
