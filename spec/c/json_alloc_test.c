/* Reading and writing with each allocation failed in turn: the status is LAT_E_NOMEM, and nothing leaks
 * (the leak check of a sanitizer looks at the end). The sources are included behind malloc that fails. */
#include "failing_alloc.h"

#include "../../engine/base/buf.c"
#include "../../engine/base/value.c"
#include "../../engine/json/members.c"
#include "../../engine/json/read.c"

#include "json/write.h"

static int passed, failed;

static void check(bool ok, const char *what, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("json_alloc_test.c:%d: not so: %s\n", line, what);
}

#define CHECK(condition) check(condition, #condition, __LINE__)

/* Needs every kind of memory: the stack of values, hashed members, copies, strings with escapes. */
static void build_text(lat_buf *b)
{
	lat_buf_byte(b, '[');
	for (int i = 0; i < 500; i++)
		lat_buf_printf(b, "\"string %d \\n with an escape\",", i);
	for (int i = 0; i < 200; i++)
		lat_buf_printf(b, "%s\"key %d\":[%d]", i ? "," : "{", i, i);
	lat_buf_str(b, "}]");
}

static lat_status read_and_write(const lat_buf *text, bool *same)
{
	lat_arena arena = LAT_ARENA_INIT;
	lat_buf out = LAT_BUF_INIT;
	lat_value v;
	lat_error err = {.kind = LAT_OK};
	lat_json_options copy = {.flags = LAT_JSON_COPY_STRINGS};
	lat_status status = lat_json_read(&arena, text->data, text->len, &copy, &v, &err);
	if (status == LAT_OK)
		status = lat_json_write_value(&out, &v, &err);
	if (status == LAT_OK && !lat_buf_ok(&out))
		status = lat_fail_nomem(&err);
	*same = status == LAT_OK && out.len == text->len && memcmp(out.data, text->data, out.len) == 0;
	CHECK(status == LAT_OK || (err.kind == status && err.message[0]));
	lat_buf_free(&out);
	lat_arena_free(&arena);
	return status;
}

int main(void)
{
	lat_buf text = LAT_BUF_INIT;
	build_text(&text);
	lat_status status = LAT_E_NOMEM;
	bool same = false;
	long n = 0;
	for (; n < 10000 && status == LAT_E_NOMEM; n++) {
		allocs_left = n;
		status = read_and_write(&text, &same);
		allocs_left = -1;
		CHECK(status == LAT_OK || status == LAT_E_NOMEM);
	}
	CHECK(same);
	CHECK(n > 10);
	lat_buf_free(&text);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
