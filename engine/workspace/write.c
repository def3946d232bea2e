/* Write: a whole file, new or in place of another. The thread that runs the call. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "workspace/file.h"
#include "workspace/tool.h"

bool lat_tool_may_replace(lat_tool_call *call, const lat_place *place, const lat_file_key *key,
                          const struct stat *st)
{
	const lat_file_state now = lat_file_state_of(st);
	if (lat_workspace_compare(call->ws, key, &now) == LAT_FILE_CHANGED) {
		lat_tool_fail(call, "%s has changed since it was read: read it again before changing it",
		              place->path);
		lat_tool_note_string(call, "code", "changed_since_read", strlen("changed_since_read"));
		return false;
	}
	if (faccessat(place->dir, place->name, W_OK, AT_EACCESS) == 0 || errno == ENOENT)
		return true;
	lat_tool_fail_errno(call, "write", place->path, strlen(place->path), LAT_ACCESS_WRITE, errno);
	return false;
}

bool lat_tool_replace(lat_tool_call *call, const lat_place *place, const lat_file_key *key,
                      const struct stat *old, const char *bytes, size_t len)
{
	lat_replacement r = {.old = old};
	int failure = lat_file_replace(place, bytes, len, &r);
	if (failure == EBUSY) {
		lat_tool_fail(call, "%s was changed by somebody else just now: read it again", place->path);
		return false;
	}
	if (failure) {
		lat_tool_fail_errno(call, "write", place->path, strlen(place->path), LAT_ACCESS_WRITE, failure);
		lat_buf_str(&call->result.text, old ? "; the file is as it was before" : "; no file was made");
		return false;
	}
	const lat_file_state state = lat_file_state_of(&r.now);
	if (lat_workspace_note(call->ws, key, &state) != LAT_OK) {
		lat_tool_fail_nomem(call);
		return false;
	}
	if (r.not_synced)
		lat_tool_note_bool(call, "folder_synced", false);
	return true;
}

static void write_file(lat_tool_call *call, const lat_place *place, const lat_file_key *key,
                       const lat_value *content)
{
	struct stat st;
	bool exists = fstatat(place->dir, place->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	int failure = exists || errno == ENOENT ? 0 : errno;
	if (exists && !S_ISREG(st.st_mode))
		failure = S_ISDIR(st.st_mode) ? EISDIR : S_ISLNK(st.st_mode) ? ELOOP : ENODEV;
	if (failure) {
		lat_tool_fail_errno(call, "write", place->path, strlen(place->path), LAT_ACCESS_WRITE, failure);
		return;
	}
	if (exists && !lat_tool_may_replace(call, place, key, &st))
		return;
	if (!lat_tool_replace(call, place, key, exists ? &st : NULL, content->u.s, content->len))
		return;
	lat_buf_printf(&call->result.text, "%s ", exists ? "Replaced" : "Created");
	lat_tool_append_name(&call->result.text, place->path, strlen(place->path));
	lat_buf_printf(&call->result.text, " (%u bytes)", content->len);
	lat_tool_note_int(call, "bytes", content->len);
	lat_tool_note_bool(call, "created", !exists);
	lat_tool_note_bool(call, "truncated", false);
}

void lat_tool_write(lat_tool_call *call)
{
	lat_place place;
	lat_file_key key;
	const lat_value *content = lat_tool_string(call, "content");
	if (!content && !call->result.is_error)
		lat_tool_fail(call, "content: expected a string, got nothing");
	if (!content)
		return;
	if (!lat_tool_place(call, "file_path", NULL, "write", LAT_ACCESS_WRITE, LAT_PLACE_MAKE_PARENTS, &place))
		return;
	if (lat_place_key(&place, &key)) {
		lat_file_lock(&key);
		write_file(call, &place, &key, content);
		lat_file_unlock(&key);
	} else {
		lat_tool_fail_errno(call, "write", place.path, strlen(place.path), LAT_ACCESS_WRITE, errno);
	}
	lat_place_close(&place);
}
