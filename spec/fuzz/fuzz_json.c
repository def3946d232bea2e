/* Any bytes through the reader. What it takes:
 *   comes back equal when it is written and read again, and then is written the same;
 *   is JSON to cJSON too, with the same shape (cJSON takes more than we do, never less, within its abilities:
 *   no \u0000, number literals of at most 63 bytes);
 *   is read the same from copied strings.
 * What it refuses has a kind, a message, and an offset within the text. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/read.h"
#include "json/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CJSON_NUMBER_BYTES = 63 };

static void demand(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "fuzz_json: not so: %s\n", what);
		abort();
	}
}

static size_t nodes(const lat_value *v)
{
	size_t n = 1;
	bool object = v->type == LAT_OBJECT;
	if (object || v->type == LAT_ARRAY)
		for (size_t i = 0; i < v->len; i++)
			n += nodes(&v->u.items[object ? 2 * i + 1 : i]);
	return n;
}

/* Without values under a key that stands again later: cJSON keeps those, we don't. */
static size_t cjson_nodes(const cJSON *c, bool *duplicates)
{
	size_t n = 1;
	for (const cJSON *child = c->child; child; child = child->next) {
		n += cjson_nodes(child, duplicates);
		if (cJSON_IsObject(c))
			for (const cJSON *other = child->next; other; other = other->next)
				*duplicates |= strcmp(child->string, other->string) == 0;
	}
	return n;
}

static bool cjson_can_hold(const char *text, size_t len)
{
	size_t number = 0;
	for (size_t i = 0; i < len; i++) {
		number = memchr("+-0123456789.eE", text[i], 15) ? number + 1 : 0;
		if (number > CJSON_NUMBER_BYTES || (len - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0))
			return false;
	}
	return len < 4096; /* looking for duplicates in pairs takes its time */
}

static void compare_with_cjson(const char *text, size_t len, const lat_value *v)
{
	if (!cjson_can_hold(text, len))
		return;
	cJSON *tree = cJSON_ParseWithLength(text, len);
	demand(tree != NULL, "cJSON reads what we read");
	bool duplicates = false;
	size_t n = cjson_nodes(tree, &duplicates);
	demand(duplicates || n == nodes(v), "cJSON reads as many values");
	cJSON_Delete(tree);
}

static void write_and_read_again(const lat_value *v)
{
	lat_buf first = LAT_BUF_INIT, second = LAT_BUF_INIT;
	lat_arena arena = LAT_ARENA_INIT;
	lat_value again;
	demand(lat_json_write_value(&first, v, NULL) == LAT_OK, "what is read can be written");
	demand(lat_json_read(&arena, first.data, first.len, NULL, &again, NULL) == LAT_OK, "and read");
	demand(lat_value_equal(v, &again), "and is equal then");
	demand(lat_json_write_value(&second, &again, NULL) == LAT_OK, "and can be written again");
	demand(first.len == second.len && memcmp(first.data, second.data, first.len) == 0, "as the same text");
	lat_arena_free(&arena);
	lat_buf_free(&first);
	lat_buf_free(&second);
}

static void read_copied(const char *text, size_t len, const lat_value *v)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_value copied;
	lat_json_options options = {.flags = LAT_JSON_COPY_STRINGS};
	char *passing = malloc(len);
	if (!passing)
		return;
	memcpy(passing, text, len);
	demand(lat_json_read(&arena, passing, len, &options, &copied, NULL) == LAT_OK, "copies are read too");
	free(passing);
	demand(lat_value_equal(v, &copied), "copies are equal");
	lat_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	lat_arena arena = LAT_ARENA_INIT;
	lat_value v;
	lat_error err = {.kind = LAT_OK};
	lat_status status = lat_json_read(&arena, text, size, NULL, &v, &err);
	if (status == LAT_OK) {
		write_and_read_again(&v);
		read_copied(text, size, &v);
		compare_with_cjson(text, size, &v);
	} else {
		demand(status == LAT_E_SYNTAX || status == LAT_E_LIMIT, "a refusal is for syntax or a limit");
		demand(err.kind == status && err.message[0] && err.offset <= size, "a refusal says what and where");
	}
	lat_arena_free(&arena);
	return 0;
}
