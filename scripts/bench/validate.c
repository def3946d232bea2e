/* JSON text to validated input in C, texts per second: validate SCHEMA_TEXT JSON_TEXT N
 * What the engine does before a tool's input goes to Lua. One thread; ends with 1 on any failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/schema.h"
#include "json/read.h"

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fputs("usage: validate SCHEMA_TEXT JSON_TEXT N\n", stderr);
		return 2;
	}
	lat_arena arena = LAT_ARENA_INIT;
	lat_value tree;
	lat_schema *schema;
	lat_error err;
	if (lat_json_read(&arena, argv[1], strlen(argv[1]), NULL, &tree, &err) != LAT_OK ||
	    lat_schema_compile(&tree, NULL, &schema, &err) != LAT_OK) {
		fprintf(stderr, "validate: %s\n", err.message);
		return 1;
	}
	const size_t len = strlen(argv[2]);
	const long times = atol(argv[3]);
	double begun = cpu_seconds();
	for (long i = 0; i < times; i++) {
		lat_schema_errors errors;
		lat_arena_reset(&arena);
		if (lat_schema_validate_text(schema, argv[2], len, &arena, &tree, &errors) != LAT_OK) {
			fputs("validate: the text does not fit the schema\n", stderr);
			return 1;
		}
	}
	printf("%.0f\n", (double)times / (cpu_seconds() - begun));
	lat_schema_free(schema);
	lat_arena_free(&arena);
	return 0;
}
