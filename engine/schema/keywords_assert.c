/* The keywords of the validation vocabulary: what they ask of a value, read into the node's rules.
 * Called by the compiler only, on its thread; all memory is the schema's arena. */
#include "schema/compile.h"
#include "schema/equal.h"

#include <math.h>
#include <string.h>

enum { FEW_CHOICES = 4 };

/* A count such as maxItems: 3 and 3.0 are both fine; what no value can have counts as the largest. */
static lat_status read_count(lat_node_builder *b, const char *keyword, const lat_value *v, uint64_t *out)
{
	if (v->type == LAT_INT && v->u.i >= 0) {
		*out = (uint64_t)v->u.i;
	} else if (v->type == LAT_DOUBLE && v->u.d >= 0 && floor(v->u.d) == v->u.d) {
		*out = v->u.d < 0x1p63 ? (uint64_t)v->u.d : UINT64_MAX;
	} else {
		return lat_compile_fail(b, keyword, "expected an integer of 0 or more, got %s",
		                        v->type == LAT_INT || v->type == LAT_DOUBLE ? "another number"
		                                                                    : lat_type_name(v));
	}
	return LAT_OK;
}

static uint8_t type_bit(const lat_value *name)
{
	static const struct {
		const char *name;
		uint8_t bit;
	} TYPES[] = {{"null", LAT_T_NULL},     {"boolean", LAT_T_BOOLEAN}, {"integer", LAT_T_INTEGER},
	             {"number", LAT_T_NUMBER}, {"string", LAT_T_STRING},   {"array", LAT_T_ARRAY},
	             {"object", LAT_T_OBJECT}};
	for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
		if (lat_value_is_string(name, TYPES[i].name))
			return TYPES[i].bit;
	return 0;
}

static lat_status bad_type(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	static const char EXPECTED[] =
		"expected one of \"null\", \"boolean\", \"integer\", \"number\", \"string\", \"array\", \"object\"";
	if (v->type == LAT_STRING)
		return lat_compile_fail(b, keyword, "%s, got \"%.*s\"", EXPECTED, v->len > 40 ? 40 : (int)v->len,
		                        v->u.s);
	return lat_compile_fail(b, keyword, "%s or a list of such, got %s", EXPECTED, lat_type_name(v));
}

static lat_status read_type(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	if (v->type == LAT_ARRAY) {
		b->node.types = 0;
		for (uint32_t i = 0; i < v->len; i++) {
			uint8_t bit = type_bit(&v->u.items[i]);
			if (!bit)
				return bad_type(b, keyword, &v->u.items[i]);
			b->node.types |= bit;
		}
		return v->len ? LAT_OK
		              : lat_compile_fail(b, keyword, "expected at least one type, got an empty list");
	}
	b->node.types = type_bit(v);
	return b->node.types ? LAT_OK : bad_type(b, keyword, v);
}

/* ---- any value ---- */

static lat_status read_const(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_value *copy = lat_compile_alloc(b, sizeof *copy);
	(void)keyword;
	if (!copy || lat_compile_copy(b, v, copy) != LAT_OK)
		return lat_compile_nomem(b);
	return lat_compile_insn(b, &(lat_insn){.op = LAT_OP_CONST, .u.value = copy});
}

static bool index_choices(lat_node_builder *b, lat_choices *choices)
{
	lat_schema *s = b->c->schema;
	uint32_t *table = lat_hash_table(&s->arena, choices->count, &choices->mask);
	if (!table)
		return false;
	for (uint32_t i = 0; i < choices->count; i++) {
		uint32_t slot = (uint32_t)lat_value_hash(s->seed, &choices->values[i]) & choices->mask;
		while (table[slot])
			slot = (slot + 1) & choices->mask;
		table[slot] = i + 1;
	}
	choices->table = table;
	return true;
}

static lat_status read_enum(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	if (v->type != LAT_ARRAY)
		return lat_compile_fail(b, keyword, "expected a list of values, got %s", lat_type_name(v));
	lat_choices *choices = lat_compile_alloc(b, sizeof *choices);
	lat_value *copy = lat_compile_alloc(b, sizeof *copy);
	if (!choices || !copy || lat_compile_copy(b, v, copy) != LAT_OK)
		return lat_compile_nomem(b);
	choices->values = copy->u.items;
	choices->count = copy->len;
	if (choices->count > FEW_CHOICES && !index_choices(b, choices))
		return lat_compile_nomem(b);
	return lat_compile_insn(b, &(lat_insn){.op = LAT_OP_ENUM, .u.choices = choices});
}

static lat_status read_default(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_value *copy = lat_compile_alloc(b, sizeof *copy);
	(void)keyword;
	if (!copy || lat_compile_copy(b, v, copy) != LAT_OK)
		return lat_compile_nomem(b);
	b->node.fill = copy;
	return LAT_OK;
}

/* ---- strings ---- */

static lat_status read_min_length(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_string_rules *r = lat_builder_string(b);
	return r ? read_count(b, keyword, v, &r->min_length) : lat_compile_nomem(b);
}

static lat_status read_max_length(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_string_rules *r = lat_builder_string(b);
	return r ? read_count(b, keyword, v, &r->max_length) : lat_compile_nomem(b);
}

static lat_status read_pattern(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_error err;
	lat_string_rules *r = lat_builder_string(b);
	if (!r)
		return lat_compile_nomem(b);
	if (v->type != LAT_STRING)
		return lat_compile_fail(b, keyword, "expected a regular expression in a string, got %s",
		                        lat_type_name(v));
	lat_status status = lat_patterns_add(b->c->schema->patterns, v->u.s, v->len, &r->pattern, &err);
	if (status == LAT_E_NOMEM)
		return lat_compile_nomem(b);
	return status == LAT_OK ? LAT_OK : lat_compile_fail(b, keyword, "%s", err.message);
}

static lat_status read_format(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	if (v->type != LAT_STRING)
		return lat_compile_fail(b, keyword, "expected a format's name in a string, got %s", lat_type_name(v));
	const lat_format *format = b->assert_format ? lat_format_find(v->u.s, v->len) : NULL;
	if (!format)
		return LAT_OK;
	lat_string_rules *r = lat_builder_string(b);
	if (!r)
		return lat_compile_nomem(b);
	r->format = format;
	return LAT_OK;
}

/* ---- numbers ---- */

static lat_status read_bound(lat_node_builder *b, const char *keyword, const lat_value *v, uint8_t bit)
{
	lat_number_rules *r = lat_builder_number(b);
	if (!r)
		return lat_compile_nomem(b);
	if (v->type != LAT_INT && v->type != LAT_DOUBLE)
		return lat_compile_fail(b, keyword, "expected a number, got %s", lat_type_name(v));
	lat_value *at = bit == LAT_N_MIN     ? &r->min
	                : bit == LAT_N_MAX   ? &r->max
	                : bit == LAT_N_ABOVE ? &r->above
	                : bit == LAT_N_BELOW ? &r->below
	                                     : &r->multiple;
	r->given |= bit;
	*at = *v;
	return LAT_OK;
}

static lat_status read_minimum(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return read_bound(b, keyword, v, LAT_N_MIN);
}

static lat_status read_maximum(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return read_bound(b, keyword, v, LAT_N_MAX);
}

static lat_status read_exclusive_minimum(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return read_bound(b, keyword, v, LAT_N_ABOVE);
}

static lat_status read_exclusive_maximum(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	return read_bound(b, keyword, v, LAT_N_BELOW);
}

static lat_status read_multiple_of(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	if ((v->type == LAT_INT && v->u.i <= 0) || (v->type == LAT_DOUBLE && !(v->u.d > 0)))
		return lat_compile_fail(b, keyword, "expected a number above 0");
	return read_bound(b, keyword, v, LAT_N_MULTIPLE);
}

/* ---- arrays and objects ---- */

#define COUNT_OF(kind, field)                      \
	lat_##kind##_rules *r = lat_builder_##kind(b); \
	return r ? read_count(b, keyword, v, &r->field) : lat_compile_nomem(b)

static lat_status read_min_items(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	COUNT_OF(array, min_items);
}

static lat_status read_max_items(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	COUNT_OF(array, max_items);
}

static lat_status read_min_contains(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	COUNT_OF(array, min_contains);
}

static lat_status read_max_contains(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	COUNT_OF(array, max_contains);
}

static lat_status read_min_properties(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	COUNT_OF(object, min_properties);
}

static lat_status read_max_properties(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	COUNT_OF(object, max_properties);
}

static lat_status read_unique_items(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	if (v->type != LAT_TRUE && v->type != LAT_FALSE)
		return lat_compile_fail(b, keyword, "expected a boolean, got %s", lat_type_name(v));
	lat_array_rules *r = v->type == LAT_TRUE ? lat_builder_array(b) : NULL;
	if (r)
		r->unique = true;
	return r || v->type == LAT_FALSE ? LAT_OK : lat_compile_nomem(b);
}

static lat_status check_names(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	if (v->type != LAT_ARRAY)
		return lat_compile_fail(b, keyword, "expected a list of property names, got %s", lat_type_name(v));
	for (uint32_t i = 0; i < v->len; i++)
		if (v->u.items[i].type != LAT_STRING)
			return lat_compile_fail(b, keyword, "expected property names, got %s at index %u",
			                        lat_type_name(&v->u.items[i]), i);
	return LAT_OK;
}

/* The names themselves join the properties when the node is finished. */
static lat_status read_required(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	lat_status status = check_names(b, keyword, v);
	if (status == LAT_OK && !lat_builder_object(b))
		status = lat_compile_nomem(b);
	b->required = v;
	return status;
}

static lat_status read_dependent(lat_node_builder *b, const char *keyword, const lat_value *key)
{
	lat_status status = check_names(b, keyword, key + 1);
	if (status != LAT_OK)
		return status;
	const lat_value *list = key + 1;
	lat_text *names = lat_compile_alloc(b, list->len * sizeof *names);
	lat_value copy, name;
	if (!names || lat_compile_copy(b, list, &copy) != LAT_OK || lat_compile_copy(b, key, &name) != LAT_OK)
		return lat_compile_nomem(b);
	for (uint32_t i = 0; i < copy.len; i++)
		names[i] = (lat_text){copy.u.items[i].u.s, copy.u.items[i].len};
	return lat_compile_insn(b, &(lat_insn){.op = LAT_OP_DEPENDENT_REQUIRED,
	                                       .name = {name.u.s, name.len},
	                                       .n = copy.len,
	                                       .u.names = names});
}

static lat_status read_dependent_required(lat_node_builder *b, const char *keyword, const lat_value *v)
{
	if (v->type != LAT_OBJECT)
		return lat_compile_fail(b, keyword, "expected an object of name lists, got %s", lat_type_name(v));
	lat_status status = LAT_OK;
	for (uint32_t i = 0; i < v->len && status == LAT_OK; i++)
		status = read_dependent(b, keyword, &v->u.items[2 * i]);
	return status;
}

const lat_keyword lat_keywords_assert[] = {
	{"const", LAT_VOCABULARY_VALIDATION, read_const},
	{"default", LAT_VOCABULARY_OTHER, read_default},
	{"dependentRequired", LAT_VOCABULARY_VALIDATION, read_dependent_required},
	{"enum", LAT_VOCABULARY_VALIDATION, read_enum},
	{"exclusiveMaximum", LAT_VOCABULARY_VALIDATION, read_exclusive_maximum},
	{"exclusiveMinimum", LAT_VOCABULARY_VALIDATION, read_exclusive_minimum},
	{"format", LAT_VOCABULARY_OTHER, read_format},
	{"maxContains", LAT_VOCABULARY_VALIDATION, read_max_contains},
	{"maxItems", LAT_VOCABULARY_VALIDATION, read_max_items},
	{"maxLength", LAT_VOCABULARY_VALIDATION, read_max_length},
	{"maxProperties", LAT_VOCABULARY_VALIDATION, read_max_properties},
	{"maximum", LAT_VOCABULARY_VALIDATION, read_maximum},
	{"minContains", LAT_VOCABULARY_VALIDATION, read_min_contains},
	{"minItems", LAT_VOCABULARY_VALIDATION, read_min_items},
	{"minLength", LAT_VOCABULARY_VALIDATION, read_min_length},
	{"minProperties", LAT_VOCABULARY_VALIDATION, read_min_properties},
	{"minimum", LAT_VOCABULARY_VALIDATION, read_minimum},
	{"multipleOf", LAT_VOCABULARY_VALIDATION, read_multiple_of},
	{"pattern", LAT_VOCABULARY_VALIDATION, read_pattern},
	{"required", LAT_VOCABULARY_VALIDATION, read_required},
	{"type", LAT_VOCABULARY_VALIDATION, read_type},
	{"uniqueItems", LAT_VOCABULARY_VALIDATION, read_unique_items},
	{NULL, 0, NULL},
};
