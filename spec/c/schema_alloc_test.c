/* Each allocation of a compile and of a validation fails in turn: the status is LAT_E_NOMEM, and nothing leaks
 * (the leak check of a sanitizer looks at the end). Linked with --wrap for malloc, calloc, realloc, through which
 * PCRE2 allocates too, and for lat_arena_alloc, since an arena seldom asks malloc. */
#include "schema_support.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__real_lat_arena_alloc(lat_arena *a, size_t n);
void *__wrap_lat_arena_alloc(lat_arena *a, size_t n);

static long allocs_left = -1; /* -1: none fails */

static bool fails(void)
{
	return allocs_left >= 0 && allocs_left-- == 0;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_lat_arena_alloc(lat_arena *a, size_t n)
{
	return fails() ? NULL : __real_lat_arena_alloc(a, n);
}

/* Every kind of keyword, a registered document, the metaschema. */
static const char SCHEMA[] =
	"{\"$id\":\"http://a.example/s\",\"type\":\"object\",\"properties\":{"
	"\"s\":{\"type\":\"string\",\"minLength\":1,\"pattern\":\"^(x|[a-c]+)*$\",\"format\":\"regex\"},"
	"\"e\":{\"enum\":[1,2,3,4,5,{\"a\":[]},\"six\"]},\"c\":{\"const\":{\"k\":[1]}},\"r\":{\"$ref\":\"other#/$defs/n\"},"
	"\"m\":{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"},"
	"\"l\":{\"uniqueItems\":true,\"contains\":{\"type\":\"integer\"},\"prefixItems\":[{},{}],\"unevaluatedItems\":false},"
	"\"d\":{\"default\":{\"deep\":[1,2,3]},\"properties\":{\"x\":{\"default\":\"x\"}}},"
	"\"u\":{\"anyOf\":[{\"type\":\"null\"},{\"properties\":{\"k\":{\"const\":1}},\"required\":[\"k\"]}]}},"
	"\"patternProperties\":{\"^z\":{\"type\":\"integer\"}},\"propertyNames\":{\"maxLength\":20},"
	"\"dependentSchemas\":{\"s\":{\"required\":[\"e\"]}},\"dependentRequired\":{\"e\":[\"s\"]},"
	"\"if\":{\"required\":[\"s\"]},\"then\":{\"maxProperties\":50},\"else\":{\"not\":{\"required\":[\"zz\"]}},"
	"\"required\":[\"s\"],\"unevaluatedProperties\":false,\"$dynamicAnchor\":\"node\",\"allOf\":[{\"$ref\":\"#part\"}],"
	"\"$defs\":{\"part\":{\"$anchor\":\"part\",\"oneOf\":[{\"minProperties\":1},{\"maxProperties\":0}]},"
	"\"t\":{\"items\":{\"$dynamicRef\":\"#node\"}}}}";

static const char OTHER[] = "{\"$defs\":{\"n\":{\"type\":\"number\",\"multipleOf\":0.1,\"maximum\":10}}}";

static const char VALID[] =
	"{\"s\":\"abcx\",\"e\":5,\"c\":{\"k\":[1.0]},\"r\":0.3,\"m\":{\"type\":\"string\",\"properties\":{\"a\":{\"$ref\":\"#\"}}},"
	"\"l\":[1,2],\"u\":{\"k\":1},\"z1\":1,\"z2\":2}";

static const char INVALID[] =
	"{\"s\":\"abcd(\",\"e\":7,\"c\":{\"k\":[2]},\"r\":0.35,\"m\":{\"type\":\"strng\",\"minLength\":-1},"
	"\"l\":[1,1,\"b\",4,5,6,7,8,9,10,1],\"u\":{\"k\":2},\"z1\":\"1\",\"a name that is far too long\":0,"
	"\"d\":{\"x\":\"\\u0000\"}}";

typedef struct {
	lat_arena arena;
	lat_value schema, other;
} documents;

static lat_status compile(const documents *d, lat_schema **out, lat_error *err)
{
	lat_schema_document registered = {"http://a.example/other", &d->other};
	lat_schema_options options = {&registered, 1, true};
	return lat_schema_compile(&d->schema, &options, out, err);
}

/* A failure may be survived (without JIT code a pattern still matches): all of them are gone through. */
static lat_schema *compile_failing(const documents *d)
{
	lat_schema *s = NULL;
	bool failed_one = true;
	long n = 0;
	for (; failed_one; n++) {
		lat_error err;
		lat_error_clear(&err);
		lat_schema_free(s);
		s = NULL;
		allocs_left = n;
		lat_status status = compile(d, &s, &err);
		failed_one = allocs_left < 0;
		allocs_left = -1;
		CHECK(status == LAT_OK ? s != NULL : status == LAT_E_NOMEM && !s && err.kind == LAT_E_NOMEM);
		CHECK(status == LAT_OK || failed_one);
	}
	CHECK(s && n > 200);
	return s;
}

static void validate_failing(const lat_schema *s, const char *text, lat_status expected, size_t errors,
                             long least)
{
	bool failed_one = true;
	long n = 0;
	for (; failed_one; n++) {
		allocs_left = n;
		verdict v = judge(s, text, strlen(text));
		failed_one = allocs_left < 0;
		allocs_left = -1;
		CHECK(v.status == expected || (v.status == LAT_E_NOMEM && failed_one));
		CHECK(v.status != expected || v.errors.count == errors);
		lat_arena_free(&v.arena);
	}
	CHECK(n > least);
}

int main(void)
{
	documents d = {.arena = LAT_ARENA_INIT};
	CHECK(lat_json_read(&d.arena, SCHEMA, strlen(SCHEMA), NULL, &d.schema, NULL) == LAT_OK);
	CHECK(lat_json_read(&d.arena, OTHER, strlen(OTHER), NULL, &d.other, NULL) == LAT_OK);
	lat_schema *s = compile_failing(&d);
	lat_arena_free(&d.arena);
	if (s) {
		verdict v = judge(s, INVALID, strlen(INVALID));
		size_t errors = v.errors.count;
		CHECK(errors > 8);
		lat_arena_free(&v.arena);
		validate_failing(s, VALID, LAT_OK, 0, 10);
		validate_failing(s, INVALID, LAT_E_INVALID, errors, 40);
		validate_failing(s, "{", LAT_E_INVALID, 1, 0);
	}
	lat_schema_free(s);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
