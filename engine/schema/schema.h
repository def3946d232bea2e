/* JSON Schema draft 2020-12: a schema is compiled once to a flat program, then judges values.
 *
 * A lat_schema is immutable after compile: any number of threads may validate with it at once, each with
 * its own instance, arena and errors. It owns all its memory; lat_schema_free drops one reference.
 * Nothing is ever fetched: "$ref" reaches the schema itself, the registered documents and the draft's own
 * metaschemas.
 *
 * Defined limits: nesting of schemas applied to one value (LAT_SCHEMA_MAX_DEPTH), work for one
 * validation (LAT_SCHEMA_BASE_STEPS, more in proportion to the instance), errors told
 * (LAT_SCHEMA_MAX_ERRORS), backtracking of a pattern (pattern.h). Passing one is an error that says so. */
#ifndef LAT_SCHEMA_SCHEMA_H
#define LAT_SCHEMA_SCHEMA_H

#include "base/value.h"

enum {
	LAT_SCHEMA_MAX_DEPTH = 4096,
	LAT_SCHEMA_MAX_ERRORS = 50,
	LAT_SCHEMA_BASE_STEPS = 1000000, /* subschemas applied */
	LAT_SCHEMA_STEPS_PER_VALUE = 64  /* granted on top for each value in a larger instance */
};

typedef struct lat_schema lat_schema;

typedef struct {
	const char *uri; /* NUL-terminated, without fragment */
	const lat_value *document;
} lat_schema_document;

typedef struct {
	const lat_schema_document *documents; /* what "$ref" may reach by URI; borrowed during compile only */
	size_t document_count;
	bool format_assertion; /* "format" is checked, not only noted */
} lat_schema_options;

/* The schema tree is borrowed during the call only. options may be NULL. On failure err has the place in
 * the schema as a JSON pointer and what would be right; *out is untouched. */
lat_status lat_schema_compile(const lat_value *schema, const lat_schema_options *options, lat_schema **out,
                              lat_error *err);

lat_schema *lat_schema_share(lat_schema *s); /* one reference more; returns s */
void lat_schema_free(lat_schema *s);         /* one reference less; NULL is fine */

typedef struct {
	const char *path;     /* JSON pointer to the bad place, "" for the whole value; control bytes as \u00XX */
	const char *expected; /* "integer", "string of at least 1 character" … */
	const char *actual;   /* "string \"abc\"", "nothing" … */
	const char *message;  /* a sentence of both */
} lat_schema_error;

typedef struct {
	lat_schema_error *items; /* in the arena of the validation; NUL-terminated valid UTF-8 */
	size_t count;            /* at most LAT_SCHEMA_MAX_ERRORS + 1: the last then says how many more */
	size_t total;            /* all that were found */
} lat_schema_errors;

/* LAT_OK: *instance is valid, and was completed in place: defaults are filled in, and a number such as 1.0
 * where the schema says integer is the integer 1. LAT_E_INVALID: *errors (in *arena) says why; *instance
 * is equal to what it was. LAT_E_NOMEM: neither. The instance's nodes must be the caller's own to change;
 * what is added lives in *arena or in the schema, which both must outlive the instance. */
lat_status lat_schema_validate(const lat_schema *s, lat_value *instance, lat_arena *arena,
                               lat_schema_errors *errors);

/* The same for one JSON text in one go; *out is the tree (a view into text). A text that isn't JSON is one
 * error with path "" and the reader's message and offset. */
lat_status lat_schema_validate_text(const lat_schema *s, const char *text, size_t len, lat_arena *arena,
                                    lat_value *out, lat_schema_errors *errors);

#endif
