/* The Grep tool: reads the call's input for lat_grep, and makes its result. The thread that runs the call; the
 * search has threads of its own. */
#include <string.h>

#include "workspace/grep.h"
#include "workspace/start.h"
#include "workspace/tool.h"

enum { OUTPUT_MAX = 50000 /* bytes: what a model can be expected to read */, CONTEXT_MAX = 100 };

static bool is_stopped(void *arg)
{
	const lat_tool_call *call = arg;
	return call->is_stopped(call);
}

static bool get_mode(lat_tool_call *call, lat_grep_mode *mode)
{
	static const struct {
		const char *name;
		lat_grep_mode mode;
	} MODES[] = {
		{"content", LAT_GREP_CONTENT},
		{"count", LAT_GREP_COUNT},
		{"files_with_matches", LAT_GREP_FILES},
		{"files", LAT_GREP_FILES},
	};
	*mode = LAT_GREP_FILES;
	const lat_value *v = lat_tool_string(call, "output_mode");
	if (!v)
		return !call->result.is_error;
	for (size_t i = 0; i < sizeof MODES / sizeof MODES[0]; i++)
		if (lat_value_is_string(v, MODES[i].name)) {
			*mode = MODES[i].mode;
			return true;
		}
	lat_tool_fail(call, "output_mode: expected \"files_with_matches\", \"content\" or \"count\"");
	return false;
}

/* "*.c" is held against names, "src/a*.c" against paths below the start; "!" in front leaves files out. */
static bool get_glob(lat_tool_call *call, lat_grep_options *options, lat_glob **glob)
{
	*glob = NULL;
	const lat_value *v = lat_tool_string(call, "glob");
	if (!v || v->len == 0)
		return !call->result.is_error;
	const char *text = v->u.s;
	size_t len = v->len;
	options->glob_excludes = *text == '!';
	if (options->glob_excludes) {
		text++;
		len--;
	}
	options->glob_whole_path = memchr(text, '/', len) != NULL;
	size_t dots = len > 2 && strncmp(text, "./", 2) == 0 ? 2 : len > 1 && *text == '/' ? 1 : 0;
	lat_error err;
	*glob = lat_glob_new(text + dots, len - dots, LAT_GLOB_TOOL, &err);
	options->glob = *glob;
	if (*glob)
		return true;
	if (err.kind == LAT_E_NOMEM)
		lat_tool_fail_nomem(call);
	else
		lat_tool_fail(call, "glob: %s", err.message);
	return false;
}

static lat_search *get_search(lat_tool_call *call, bool multiline)
{
	const lat_value *pattern = lat_tool_string(call, "pattern");
	if (!pattern || pattern->len == 0) {
		if (!call->result.is_error)
			lat_tool_fail(call, "pattern: expected a regular expression, got nothing");
		return NULL;
	}
	lat_search_options options = {
		.case_insensitive = lat_tool_boolean(call, "case_insensitive", false),
		.multiline = multiline,
	};
	lat_error err;
	lat_search *search = lat_search_new(pattern->u.s, pattern->len, &options, &err);
	if (!search && err.kind == LAT_E_NOMEM)
		lat_tool_fail_nomem(call);
	else if (!search)
		lat_tool_fail(call, "pattern: %s", err.message);
	return search;
}

static void report(lat_tool_call *call, const lat_grep_stats *stats)
{
	lat_buf *b = &call->result.text;
	if (b->len > 0 && b->data[b->len - 1] == '\n')
		b->len--;
	if (b->len == 0)
		lat_buf_str(b, "No matches found.");
	if (stats->truncated)
		lat_buf_str(b,
		            "\n(cut here: narrow the pattern, the path or the glob, or ask with another head_limit)");
	if (stats->too_hard > 0)
		lat_buf_printf(b, "\n(%zu files weren't searched to their end: too many steps, or a line too long)",
		               stats->too_hard);
	lat_tool_note_int(call, "files", (int64_t)stats->files);
	lat_tool_note_int(call, "files_matched", (int64_t)stats->files_hit);
	lat_tool_note_int(call, "matches", (int64_t)stats->lines_hit);
	lat_tool_note_int(call, "binary", (int64_t)stats->binary);
	lat_tool_note_int(call, "unreadable", (int64_t)stats->unreadable);
	lat_tool_note_bool(call, "truncated", stats->truncated);
}

static void search_from(lat_tool_call *call, const lat_start *start, lat_grep_options *options)
{
	options->start = start->fd;
	options->is_file = start->is_file;
	options->levels = start->levels;
	options->prefix = start->prefix.len ? start->prefix.data : "";
	lat_error err;
	lat_grep_stats stats;
	lat_status status = lat_grep_run(options, &call->result.text, &stats, &err);
	if (status == LAT_OK)
		report(call, &stats);
	else if (status == LAT_E_NOMEM)
		lat_tool_fail_nomem(call);
	else
		lat_tool_fail(call, "Grep: %s", err.message);
}

void lat_tool_grep(lat_tool_call *call)
{
	lat_grep_options options = {
		.whole_files = lat_tool_boolean(call, "multiline", false),
		.context = (size_t)lat_tool_integer(call, "context", 0, 0, CONTEXT_MAX),
		.max_lines = (size_t)lat_tool_integer(call, "head_limit", 0, 0, INT32_MAX),
		.max_bytes = OUTPUT_MAX,
		.is_stopped = is_stopped,
		.arg = call,
	};
	lat_glob *glob;
	if (!get_mode(call, &options.mode) || !get_glob(call, &options, &glob))
		return;
	lat_search *search = get_search(call, options.whole_files);
	options.search = search;
	const lat_value *path = search ? lat_tool_string(call, "path") : NULL;
	lat_start start;
	if (search && !call->result.is_error &&
	    lat_start_open(call, path ? path->u.s : ".", path ? path->len : 1, &start)) {
		search_from(call, &start, &options);
		lat_start_close(&start);
	}
	lat_search_free(search);
	lat_glob_free(glob);
}
