/* What the files of the compiler share: the state of one compile and of one node under construction.
 * One thread; everything here dies with the compile, except what was put into schema->arena. */
#ifndef LAT_SCHEMA_COMPILE_H
#define LAT_SCHEMA_COMPILE_H

#include "schema/program.h"
#include "schema/resource.h"

typedef struct {
	uint32_t from, to;
	bool in_place; /* both look at the same value */
} lat_edge;

typedef struct {
	lat_registry g;
	lat_schema *schema;
	bool format_assertion;
	lat_node *nodes;  /* grow in g.arena, copied at the end */
	uint32_t *places; /* of each node: its location */
	uint32_t node_count, node_cap, place_cap;
	lat_insn *insns;
	uint32_t insn_count, insn_cap;
	lat_edge *edges;
	uint32_t edge_count, edge_cap;
	lat_text *names; /* that a "$dynamicRef" looks for; a name's number is its index */
	uint32_t name_count, name_cap;
} lat_compiler;

/* A node while its keywords are read. Rules are made in the schema's arena when first needed. */
typedef struct {
	lat_compiler *c;
	uint32_t location, index; /* of the node */
	const lat_value *schema;
	lat_node node;
	lat_string_rules *string;
	lat_number_rules *number;
	lat_array_rules *array;
	lat_object_rules *object;
	const lat_value *properties, *required; /* as the schema gives them */
	uint32_t if_node, then_node, else_node;
	bool assert_format;
} lat_node_builder;

typedef lat_status (*lat_keyword_reader)(lat_node_builder *b, const char *keyword, const lat_value *v);

typedef struct {
	const char *name;
	uint8_t vocabulary;
	lat_keyword_reader read;
} lat_keyword;

extern const lat_keyword lat_keywords_assert[], lat_keywords_apply[]; /* up to a NULL name */

/* The node of a schema that stands at v (a subschema of b, or any located one); made when new. */
lat_status lat_compile_child(lat_node_builder *b, const char *keyword, const lat_value *v, bool in_place,
                             uint32_t *node);
lat_status lat_compile_location(lat_compiler *c, uint32_t location, uint32_t *node);
lat_status lat_compile_edge(lat_compiler *c, uint32_t from, uint32_t to, bool in_place);
lat_status lat_compile_insn(lat_node_builder *b, const lat_insn *insn);
lat_status lat_compile_name(lat_compiler *c, lat_text name, uint32_t *number);

void *lat_compile_alloc(lat_node_builder *b,
                        size_t n); /* zeroed, in the schema's arena; NULL: nomem is set */
lat_status lat_compile_nomem(const lat_node_builder *b);
lat_status lat_compile_fail(lat_node_builder *b, const char *keyword, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

lat_string_rules *lat_builder_string(lat_node_builder *b);
lat_number_rules *lat_builder_number(lat_node_builder *b);
lat_array_rules *lat_builder_array(lat_node_builder *b);
lat_object_rules *lat_builder_object(lat_node_builder *b);

/* Deep copies into the schema's arena. */
lat_status lat_compile_copy(lat_node_builder *b, const lat_value *v, lat_value *out);
bool lat_value_copy(lat_arena *arena, const lat_value *v, lat_value *out);

lat_status lat_compile_properties(lat_node_builder *b); /* "properties" and "required" together */

/* Checks and facts that need all nodes: loops, leaves, where defaults are, number bounds. */
lat_status lat_compile_link(lat_compiler *c);

const char *lat_type_name(const lat_value *v); /* "an object" … */

#endif
