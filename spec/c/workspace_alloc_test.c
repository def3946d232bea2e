/* Each allocation of workspaces and file tools fails in turn: no crash, no leak (run it under ASan), no file half
 * written or left over, and a result that is either right or says that it isn't one. */
#include "workspace_support.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __real_free(void *p);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);

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

void __wrap_free(void *p)
{
	__real_free(p);
}

char *__wrap_strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy = fails() ? NULL : __real_malloc(n);
	return copy ? memcpy(copy, s, n) : NULL;
}

enum { MOST = 1000 };

typedef void (*tool_fn)(lat_tool_call *);

static bool all_well(const lat_tool_result *r)
{
	return lat_buf_ok(&r->text) && lat_buf_ok(&r->data) && lat_buf_ok(&r->metadata) && !r->is_error;
}

/* Runs a tool with the k-th allocation failing, for each k until none fails any more. */
static void run_all(tool_fn tool, const char *before, const char *after)
{
	for (long k = 0; k < MOST; k++) {
		put("ws/dir/target", before);
		lat_workspace *ws = open_workspace(at("ws"), false);
		test_call t;
		prepare(&t, ws, NULL);
		give(&t, "file_path", "dir/target");
		give(&t, "content", after);
		give(&t, "old_string", "old");
		give(&t, "new_string", "new");
		allocs_left = k;
		tool(&t.call);
		bool none_failed = allocs_left >= 0;
		allocs_left = -1;
		bool well = all_well(&t.call.result);
		CHECK(well || !none_failed);
		CHECK(holds("ws/dir/target", before) || holds("ws/dir/target", after));
		CHECK(!well || holds("ws/dir/target", after));
		CHECK(well || !lat_buf_ok(&t.call.result.text) || !lat_buf_ok(&t.call.result.data) ||
		      !lat_buf_ok(&t.call.result.metadata));
		CHECK(count_entries("ws/dir") == 3);
		end_call(&t);
		lat_workspace_free(ws);
		if (none_failed)
			return;
	}
	CHECK(!"it ends");
}

static void open_all(void)
{
	for (long k = 0; k < MOST; k++) {
		const lat_root_spec roots[] = {{at("ws"), LAT_ACCESS_READ}, {at("alias"), LAT_ACCESS_WRITE}};
		const lat_workspace_options options = {.cwd = at("ws"), .roots = roots, .n_roots = 2};
		lat_error err = {.kind = LAT_OK};
		allocs_left = k;
		lat_workspace *ws = lat_workspace_new(&options, &err);
		bool none_failed = allocs_left >= 0;
		allocs_left = -1;
		CHECK(none_failed ? ws != NULL : !ws);
		lat_workspace_free(ws);
		if (none_failed)
			return;
	}
	CHECK(!"it ends");
}

int main(void)
{
	set_scene();
	make_link("out", "alias");
	open_all();
	run_all(lat_tool_write, "old", "new");
	run_all(lat_tool_edit, "an old line\r\nand more\r\n", "an new line\r\nand more\r\n");
	run_all(lat_tool_read, "text\n", "text\n");
	run_all(lat_tool_read, "GIF89a\x10\1\x20\1\1\1\1", "GIF89a\x10\1\x20\1\1\1\1");
	strike_scene();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
