/* JSON text → validated input, against cJSON on the same text: `make build/bench/schema_bench`.
 *
 * One thread, one text with six fields as a model would send it, best of several rounds. cJSON does less: it
 * only parses and frees. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/schema.h"
#include "json/read.h"

enum { ROUNDS = 7, TEXTS_PER_ROUND = 200000 };

static const char SCHEMA[] =
	"{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\",\"minLength\":1},"
	"\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},\"ratio\":{\"type\":\"number\"},"
	"\"exact\":{\"type\":\"boolean\"},\"mode\":{\"type\":\"string\",\"enum\":[\"content\",\"files\",\"count\"]},"
	"\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":1}}},"
	"\"required\":[\"query\",\"limit\",\"mode\"],\"additionalProperties\":false}";

static const char TEXT[] =
	"{\"query\": \"how do coroutines yield across C\", \"limit\": 20, \"ratio\": 0.75, "
	"\"exact\": true, \"mode\": \"files\", \"tags\": [\"lua\", \"c\", \"engine\"]}";

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool run_cjson(void *unused)
{
	(void)unused;
	cJSON *tree = cJSON_ParseWithLength(TEXT, sizeof TEXT - 1);
	cJSON_Delete(tree);
	return tree != NULL;
}

typedef struct {
	lat_schema *schema;
	lat_arena arena;
} subject;

static bool run_read(void *p)
{
	subject *s = p;
	lat_value value;
	lat_error err;
	bool ok = lat_json_read(&s->arena, TEXT, sizeof TEXT - 1, NULL, &value, &err) == LAT_OK;
	lat_arena_reset(&s->arena);
	return ok;
}

static bool run_validate(void *p)
{
	subject *s = p;
	lat_value value;
	lat_schema_errors errors;
	bool ok =
		lat_schema_validate_text(s->schema, TEXT, sizeof TEXT - 1, &s->arena, &value, &errors) == LAT_OK;
	lat_arena_reset(&s->arena);
	return ok;
}

/* Texts a second, the best round of all. */
static double measure(bool (*run)(void *), void *with)
{
	double best = 0;
	for (int round = 0; round < ROUNDS; round++) {
		double start = now();
		for (int i = 0; i < TEXTS_PER_ROUND; i++)
			if (!run(with))
				exit(1);
		double rate = TEXTS_PER_ROUND / (now() - start);
		best = rate > best ? rate : best;
	}
	return best;
}

int main(void)
{
	subject s = {NULL, LAT_ARENA_INIT};
	lat_value document;
	lat_error err;
	if (lat_json_read(&s.arena, SCHEMA, sizeof SCHEMA - 1, NULL, &document, &err) != LAT_OK ||
	    lat_schema_compile(&document, NULL, &s.schema, &err) != LAT_OK) {
		fprintf(stderr, "schema_bench: %s\n", err.message);
		return 1;
	}
	double cjson = measure(run_cjson, NULL), text = measure(run_read, &s), valid = measure(run_validate, &s);
	printf("one text: %zu bytes, six fields\n", sizeof TEXT - 1);
	printf("cJSON_Parse + cJSON_Delete   %10.0f texts/s\n", cjson);
	printf("lat_json_read                %10.0f texts/s\n", text);
	printf("read and validate            %10.0f texts/s   %.2f x cJSON\n", valid, valid / cjson);
	lat_schema_free(s.schema);
	lat_arena_free(&s.arena);
	return 0;
}
