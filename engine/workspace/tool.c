/* What the built-in tools share: reading their input, filling in their result. Owns nothing but what it puts into
 * the call; the thread that runs the call. */
#include "workspace/tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json/write.h"

/* ---- input ---- */

const lat_value *lat_tool_string(lat_tool_call *call, const char *name)
{
	const lat_value *v = lat_value_get(call->input, name);
	if (!v)
		return NULL;
	if (v->type == LAT_STRING)
		return v;
	lat_tool_fail(call, "%s: expected a string", name);
	return NULL;
}

int64_t lat_tool_integer(const lat_tool_call *call, const char *name, int64_t missing, int64_t least,
                         int64_t most)
{
	const lat_value *v = lat_value_get(call->input, name);
	int64_t n = missing;
	if (v && v->type == LAT_INT)
		n = v->u.i;
	else if (v && v->type == LAT_DOUBLE)
		n = v->u.d >= (double)most ? most : v->u.d > (double)least ? (int64_t)v->u.d : least;
	return n < least ? least : n > most ? most : n;
}

bool lat_tool_boolean(const lat_tool_call *call, const char *name, bool missing)
{
	const lat_value *v = lat_value_get(call->input, name);
	return v && (v->type == LAT_TRUE || v->type == LAT_FALSE) ? v->type == LAT_TRUE : missing;
}

/* ---- metadata ---- */

static lat_buf *member(lat_tool_call *call, const char *name)
{
	lat_buf *b = &call->result.metadata;
	lat_buf_printf(b, "%s\"%s\":", b->len ? "," : "", name);
	return b;
}

void lat_tool_note_int(lat_tool_call *call, const char *name, int64_t value)
{
	lat_json_write_int(member(call, name), value);
}

void lat_tool_note_bool(lat_tool_call *call, const char *name, bool value)
{
	lat_buf_str(member(call, name), value ? "true" : "false");
}

/* A JSON string of any bytes: what isn't UTF-8 becomes U+FFFD. */
static void write_string(lat_buf *b, const char *s, size_t len)
{
	lat_buf_byte(b, '"');
	while (len > 0) {
		size_t n = lat_utf8_valid_prefix(s, len);
		lat_json_write_escaped(b, s, n, NULL);
		if (n == len)
			break;
		lat_buf_str(b, "\xef\xbf\xbd");
		s += n + 1;
		len -= n + 1;
	}
	lat_buf_byte(b, '"');
}

void lat_tool_note_string(lat_tool_call *call, const char *name, const char *value, size_t len)
{
	write_string(member(call, name), value, len);
}

/* ---- failures ---- */

static lat_buf *begin_failure(lat_tool_call *call)
{
	call->result.is_error = true;
	call->result.block = NULL;
	lat_buf_free(&call->result.data);
	lat_buf_clear(&call->result.text);
	return &call->result.text;
}

void lat_tool_fail(lat_tool_call *call, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	lat_buf_str(begin_failure(call), text);
}

void lat_tool_fail_nomem(lat_tool_call *call)
{
	begin_failure(call)->failed = true;
}

static void write_roots(lat_buf *b, const lat_roots *roots, bool *first)
{
	for (size_t i = 0; roots && i < roots->n; i++) {
		const lat_root *root = &roots->root[i];
		lat_buf_str(b, *first ? "{\"path\":" : ",{\"path\":");
		write_string(b, root->path, strlen(root->path));
		lat_buf_str(b, ",\"access\":[");
		lat_buf_str(b, root->access & LAT_ACCESS_READ ? "\"read\"" : "");
		lat_buf_str(b, root->access == (LAT_ACCESS_READ | LAT_ACCESS_WRITE) ? "," : "");
		lat_buf_str(b, root->access & LAT_ACCESS_WRITE ? "\"write\"" : "");
		lat_buf_str(b, "]}");
		*first = false;
	}
}

static void deny(lat_tool_call *call, const char *path, size_t len, unsigned access)
{
	const char *what = access & LAT_ACCESS_WRITE ? "write" : "read";
	lat_buf *b = begin_failure(call);
	lat_buf_str(b, "{\"code\":\"permission_denied\",\"message\":\"Nothing may be ");
	lat_buf_str(b, access & LAT_ACCESS_WRITE ? "written" : "read");
	lat_buf_str(b, " there: the path, or a link in it, leads out of the allowed roots.\",\"path\":");
	write_string(b, path, len);
	lat_buf_printf(b, ",\"access\":\"%s\",\"allowed_roots\":[", what);
	bool first = true;
	write_roots(b, lat_workspace_roots(call->ws), &first);
	write_roots(b, call->grants, &first);
	lat_buf_printf(
		b,
		"],\"suggested_next_step\":\"Use a path beneath one of the allowed roots with %s access, or "
		"ask the user to grant this folder.\"}",
		what);
	lat_tool_note_string(call, "code", "permission_denied", strlen("permission_denied"));
}

static const char *explain(int error)
{
	switch (error) {
	case ENOENT:
		return "there is no such file or folder";
	case EISDIR:
		return "it is a folder, not a file";
	case ENOTDIR:
		return "a part of the path is a file, not a folder";
	case ENODEV:
		return "it is neither a file nor a folder (a FIFO, a socket or a device)";
	case ELOOP:
		return "it leads through too many links, through one of the kernel's own, or was made a link just now";
	case ENAMETOOLONG:
		return "the path or a name in it is too long (at most 255 bytes a name, 4095 in all)";
	case EINVAL:
		return "the path is empty or has a NUL byte";
	case ENOSPC:
		return "no space is left on the file system";
	case EDQUOT:
		return "the disk quota is used up";
	case EROFS:
		return "the file system is read-only";
	case EIO:
		return "the file system reports an input/output error";
	default:
		return strerrordesc_np(error);
	}
}

void lat_tool_fail_errno(lat_tool_call *call, const char *verb, const char *path, size_t len, unsigned access,
                         int error)
{
	if (error == EXDEV) {
		deny(call, path, len, access);
	} else if (error == ENOMEM) {
		lat_tool_fail_nomem(call);
	} else {
		const char *why = explain(error);
		lat_buf *b = begin_failure(call);
		lat_buf_printf(b, "can't %s ", verb);
		lat_tool_append_name(b, path, len);
		lat_buf_printf(b, ": %s", why ? why : "unknown error");
	}
}

/* ---- places ---- */

bool lat_tool_place(lat_tool_call *call, const char *name, const char *missing, const char *verb,
                    unsigned access, unsigned flags, lat_place *place)
{
	place->dir = -1;
	const lat_value *v = lat_tool_string(call, name);
	if (call->result.is_error)
		return false;
	if (!v && !missing) {
		lat_tool_fail(call, "%s: expected a path, got nothing", name);
		return false;
	}
	const char *path = v ? v->u.s : missing;
	size_t len = v ? v->len : strlen(missing);
	int failure = lat_workspace_resolve(call->ws, call->grants, path, len, access, flags, place);
	if (failure == 0)
		return true;
	if (place->path[0])
		lat_tool_fail_errno(call, verb, place->path, strlen(place->path), access, failure);
	else
		lat_tool_fail_errno(call, verb, path, len < 200 ? len : 200, access, failure);
	return false;
}

void lat_tool_append_name(lat_buf *b, const char *name, size_t len)
{
	while (len > 0) {
		size_t n = 0, valid = lat_utf8_valid_prefix(name, len);
		while (n < valid && (unsigned char)name[n] >= ' ' && name[n] != '\\' && name[n] != 127)
			n++;
		lat_buf_append(b, name, n);
		if (n == len)
			return;
		unsigned char c = (unsigned char)name[n];
		if (c == '\\')
			lat_buf_str(b, "\\\\");
		else if (c == '\n')
			lat_buf_str(b, "\\n");
		else
			lat_buf_printf(b, "\\x%02x", c);
		name += n + 1;
		len -= n + 1;
	}
}
