/* Any bytes as a schema, and the value behind the first NUL byte. What compiles:
 *   gives the same verdict when asked again with the value that came out, which needs nothing more filled in;
 *   tells of at least one error when it refuses, each with clean texts;
 *   judges a copy of itself alike (compile is a function of its text).
 * A file of the shared suite has no NUL byte: it is a list of groups {schema, tests}, and each group is run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/schema.h"
#include "json/read.h"
#include "json/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "fuzz_schema: not so: %s\n", what);
		abort();
	}
}

static void check_text(const char *s)
{
	size_t n = strlen(s);
	demand(lat_utf8_valid_prefix(s, n) == n, "an error's texts are UTF-8");
	for (size_t i = 0; i < n; i++)
		demand((unsigned char)s[i] >= 0x20, "an error's texts have no control bytes");
}

static void check_errors(const lat_schema_errors *errors)
{
	demand(errors->count > 0 && errors->count <= LAT_SCHEMA_MAX_ERRORS + 1, "a refusal tells of errors");
	for (size_t i = 0; i < errors->count; i++) {
		check_text(errors->items[i].path);
		check_text(errors->items[i].expected);
		check_text(errors->items[i].actual);
		check_text(errors->items[i].message);
	}
}

/* Valid values stay valid and unchanged in a second round, unless a default itself isn't valid. */
static void validate_again(const lat_schema *s, const lat_value *value)
{
	lat_buf text = LAT_BUF_INIT;
	lat_arena arena = LAT_ARENA_INIT;
	lat_value again;
	lat_schema_errors errors;
	demand(lat_json_write_value(&text, value, NULL) == LAT_OK, "a validated value can be written");
	lat_status status = lat_schema_validate_text(s, text.data, text.len, &arena, &again, &errors);
	if (status == LAT_E_INVALID)
		check_errors(&errors);
	lat_arena_free(&arena);
	lat_buf_free(&text);
}

static lat_status validate(const lat_schema *s, const lat_value *given)
{
	lat_buf text = LAT_BUF_INIT;
	lat_arena arena = LAT_ARENA_INIT;
	lat_value value;
	lat_schema_errors errors;
	demand(lat_json_write_value(&text, given, NULL) == LAT_OK, "a value can be written");
	lat_status status = lat_schema_validate_text(s, text.data, text.len, &arena, &value, &errors);
	if (status == LAT_E_INVALID)
		check_errors(&errors);
	else if (status == LAT_OK)
		validate_again(s, &value);
	lat_arena_free(&arena);
	lat_buf_free(&text);
	return status;
}

static lat_schema *compile(const lat_value *schema, bool formats)
{
	lat_schema *s = NULL;
	lat_error err = {.kind = LAT_OK};
	lat_schema_options options = {.format_assertion = formats};
	lat_status status = lat_schema_compile(schema, &options, &s, &err);
	demand(status == LAT_OK || (err.kind == status && err.message[0]), "a refusal says why");
	return s;
}

static void run_pair(const lat_value *schema, const lat_value *value)
{
	lat_schema *first = compile(schema, true), *second = compile(schema, true);
	demand(!first == !second, "a schema compiles, or not");
	if (first)
		demand(validate(first, value) == validate(second, value), "and judges alike");
	lat_schema_free(first);
	lat_schema_free(second);
}

static void run_groups(const lat_value *groups)
{
	for (size_t i = 0; groups->type == LAT_ARRAY && i < groups->len; i++) {
		const lat_value *schema = lat_value_get(&groups->u.items[i], "schema");
		const lat_value *tests = lat_value_get(&groups->u.items[i], "tests");
		for (size_t t = 0; schema && tests && tests->type == LAT_ARRAY && t < tests->len; t++) {
			const lat_value *value = lat_value_get(&tests->u.items[t], "data");
			if (value)
				run_pair(schema, value);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = size ? memchr(text, '\0', size) : NULL;
	size_t len = end ? (size_t)(end - text) : size;
	lat_arena arena = LAT_ARENA_INIT;
	lat_value schema, value = lat_value_null();
	if (lat_json_read(&arena, text, len, NULL, &schema, NULL) == LAT_OK) {
		run_groups(&schema);
		if (!end || lat_json_read(&arena, end + 1, size - len - 1, NULL, &value, NULL) == LAT_OK)
			run_pair(&schema, &value);
	}
	lat_arena_free(&arena);
	return 0;
}
