/* Edit: one string of a file in place of another. The thread that runs the call. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "workspace/edit_text.h"
#include "workspace/file.h"
#include "workspace/tool.h"

enum { EDIT_MAX = 64 * 1024 * 1024 /* bytes of a file */, SHOWN_AROUND = 3 };

static void explain_not_found(lat_tool_call *call, const lat_place *place, const lat_edit *edit)
{
	lat_tool_fail(call, "old_string isn't in %s; it must stand there byte by byte, without line numbers.\n",
	              place->path);
	lat_edit_nearest(edit, &call->result.text);
	lat_buf *text = &call->result.text;
	text->len -= text->len > 0; /* the end of the last line */
}

static void say_done(lat_tool_call *call, const lat_place *place, const lat_buf *after,
                     const lat_edit_result *r)
{
	lat_buf *text = &call->result.text;
	lat_buf_str(text, "Edited ");
	lat_tool_append_name(text, place->path, strlen(place->path));
	lat_buf_printf(text, " (%zu replacement%s). %s:\n", r->found, r->found == 1 ? "" : "s",
	               r->found == 1 ? "It reads there now" : "The first of them reads now");
	lat_edit_show(after->data ? after->data : "", after->len, r->first, r->last, SHOWN_AROUND, text);
	text->len -= text->len > 0;
	lat_tool_note_int(call, "bytes", (int64_t)after->len);
	lat_tool_note_int(call, "replacements", (int64_t)r->found);
	lat_tool_note_bool(call, "truncated", false);
}

static void apply(lat_tool_call *call, const lat_place *place, const lat_file_key *key, const struct stat *st,
                  const lat_edit *edit)
{
	lat_buf after = LAT_BUF_INIT;
	lat_edit_result r;
	if (!lat_edit_apply(edit, &after, &r))
		lat_tool_fail_nomem(call);
	else if (r.found == 0)
		explain_not_found(call, place, edit);
	else if (r.found > 1 && !edit->all)
		lat_tool_fail(
			call,
			"old_string is in %s %zu times%s: give more lines around it so that it is unique, or set "
			"replace_all",
			place->path, r.found, r.found == LAT_EDIT_COUNTED ? " or more" : "");
	else if (lat_tool_replace(call, place, key, st, after.data ? after.data : "", after.len))
		say_done(call, place, &after, &r);
	lat_buf_free(&after);
}

static void edit_file(lat_tool_call *call, const lat_place *place, const lat_file_key *key, lat_edit *edit)
{
	struct stat st;
	lat_buf before = LAT_BUF_INIT;
	int fd = lat_place_open_file(place, &st);
	int failure = fd < 0 ? errno : 0;
	if (failure == 0 && lat_tool_may_replace(call, place, key, &st)) {
		failure = lat_file_read_all(fd, EDIT_MAX, &before);
		edit->text = before.data ? before.data : "";
		edit->len = before.len;
		if (failure == 0 && !lat_buf_ok(&before))
			failure = ENOMEM;
		if (failure == 0)
			apply(call, place, key, &st, edit);
	}
	if (failure == EFBIG)
		lat_tool_fail(call, "%s has more than %d bytes: change it with a program", place->path, EDIT_MAX);
	else if (failure)
		lat_tool_fail_errno(call, "edit", place->path, strlen(place->path), LAT_ACCESS_WRITE, failure);
	if (fd >= 0)
		close(fd);
	lat_buf_free(&before);
}

static bool get_edit(lat_tool_call *call, lat_edit *edit)
{
	const lat_value *old = lat_tool_string(call, "old_string");
	const lat_value *new = call->result.is_error ? NULL : lat_tool_string(call, "new_string");
	if (call->result.is_error)
		return false;
	if (!old || !new)
		lat_tool_fail(call, "expected old_string and new_string, got no %s",
		              old ? "new_string" : "old_string");
	else if (old->len == 0)
		lat_tool_fail(
			call, "old_string: expected the text to replace, got an empty string; Write makes whole files");
	else if (old->len == new->len && memcmp(old->u.s, new->u.s, old->len) == 0)
		lat_tool_fail(call, "old_string and new_string are the same: nothing would change");
	if (call->result.is_error)
		return false;
	*edit = (lat_edit){.old = old->u.s, .old_len = old->len, .new = new->u.s, .new_len = new->len};
	edit->all = lat_tool_boolean(call, "replace_all", false);
	return true;
}

void lat_tool_edit(lat_tool_call *call)
{
	lat_edit edit;
	lat_place place;
	lat_file_key key;
	if (!get_edit(call, &edit))
		return;
	if (!lat_tool_place(call, "file_path", NULL, "edit", LAT_ACCESS_READ | LAT_ACCESS_WRITE, 0, &place))
		return;
	if (lat_place_key(&place, &key)) {
		lat_file_lock(&key);
		edit_file(call, &place, &key, &edit);
		lat_file_unlock(&key);
	} else {
		lat_tool_fail_errno(call, "edit", place.path, strlen(place.path), LAT_ACCESS_WRITE, errno);
	}
	lat_place_close(&place);
}
