/* The flat program that a schema is compiled to. Shared by the files of this folder, by nobody else.
 *
 * One lat_node a subschema, in one array; nodes name each other by index. What a node asks of a string, a
 * number, an array or an object stands in a rules struct of its own, absent where it asks nothing; what
 * looks at any value (references, anyOf, enum …) is a run of instructions in one array. */
#ifndef LAT_SCHEMA_PROGRAM_H
#define LAT_SCHEMA_PROGRAM_H

#include "schema/format.h"
#include "schema/pattern.h"
#include "schema/schema.h"

#include <stdatomic.h>

#define LAT_NODE_NONE UINT32_MAX
enum { LAT_NODE_TRUE = 0, LAT_NODE_FALSE = 1, LAT_NODE_FIRST = 2 };

enum {
	LAT_T_NULL = 1,
	LAT_T_BOOLEAN = 2,
	LAT_T_INTEGER = 4,
	LAT_T_NUMBER = 8,
	LAT_T_STRING = 16,
	LAT_T_ARRAY = 32,
	LAT_T_OBJECT = 64,
	LAT_T_ANY = 127
};

typedef enum {
	LAT_OP_REF,         /* a: node */
	LAT_OP_DYNAMIC_REF, /* a: node where no scope says otherwise, b: anchor name */
	LAT_OP_ALL,         /* nodes, n */
	LAT_OP_ANY,
	LAT_OP_ONE,
	LAT_OP_NOT,               /* a: node */
	LAT_OP_IF,                /* a: if, b: then, c: else; b and c may be LAT_NODE_NONE */
	LAT_OP_CONST,             /* value */
	LAT_OP_ENUM,              /* choices */
	LAT_OP_DEPENDENT_SCHEMA,  /* name, a: node */
	LAT_OP_DEPENDENT_REQUIRED /* name, names, n */
} lat_op;

typedef struct {
	const char *s;
	uint32_t len;
} lat_text; /* a borrowed string */

typedef struct {
	const lat_value *values;
	uint32_t count;
	uint32_t mask;         /* of the table; 0: no table, compare one by one */
	const uint32_t *table; /* index + 1 by lat_value_hash */
} lat_choices;

typedef struct {
	uint8_t op; /* lat_op */
	uint32_t n, a, b, c;
	lat_text name;
	union {
		const uint32_t *nodes;
		const lat_text *names;
		const lat_value *value;
		const lat_choices *choices;
	} u;
} lat_insn;

typedef struct {
	uint64_t min_length, max_length; /* code points */
	lat_pattern *pattern;            /* NULL: any */
	const lat_format *format;        /* NULL: any, or not asserted */
} lat_string_rules;

enum { LAT_N_MIN = 1, LAT_N_MAX = 2, LAT_N_ABOVE = 4, LAT_N_BELOW = 8, LAT_N_MULTIPLE = 16 };

typedef struct {
	uint8_t given;                              /* LAT_N_… */
	int64_t int_min, int_max;                   /* all four bounds together, for integers */
	bool int_never;                             /* no integer is within them */
	lat_value min, max, above, below, multiple; /* as the schema gives them */
} lat_number_rules;

typedef struct {
	const uint32_t *prefix;
	uint32_t prefix_count;
	uint32_t items; /* behind the prefix */
	uint32_t contains;
	bool unique;
	uint64_t min_items, max_items, min_contains, max_contains;
} lat_array_rules;

typedef struct {
	lat_text name;
	uint32_t node;         /* LAT_NODE_NONE: only required */
	int32_t required;      /* its bit, -1 when not required */
	const lat_value *fill; /* the default; NULL */
} lat_property;

typedef struct {
	lat_pattern *pattern;
	uint32_t node;
} lat_pattern_property;

typedef struct {
	lat_property *properties;
	uint32_t property_count, required_count;
	uint32_t mask;         /* of the table; 0: no table */
	const uint32_t *table; /* index + 1 by lat_hash_bytes of the name */
	const lat_pattern_property *patterns;
	uint32_t pattern_count;
	uint32_t additional, names; /* nodes */
	uint64_t min_properties, max_properties;
} lat_object_rules;

enum {
	LAT_NODE_LEAF = 1, /* only types and string or number rules: no further nodes, no instructions */
	LAT_NODE_FILLS = 2 /* a default may be reached from here */
};

typedef struct {
	uint8_t types; /* LAT_T_… */
	uint8_t flags;
	uint32_t resource; /* of the dynamic scope */
	uint32_t first, count;
	const lat_string_rules *string;
	lat_number_rules *number;
	const lat_array_rules *array;
	const lat_object_rules *object;
	uint32_t unevaluated_items, unevaluated_properties;
	const lat_value *fill; /* its "default" */
} lat_node;

typedef struct {
	uint32_t name, resource, node;
} lat_dynamic_anchor;

struct lat_schema {
	atomic_uint references;
	lat_arena arena; /* everything below */
	lat_node *nodes;
	lat_insn *insns;
	uint32_t node_count, insn_count, root;
	const lat_dynamic_anchor *anchors;
	uint32_t anchor_count;
	bool has_dynamic; /* a "$dynamicRef" that looks at the scope */
	uint64_t seed;    /* of every hash table */
	lat_patterns *patterns;
};

#endif
