/* lat_edit: replacing a string in a text, whatever its line endings. Pure; any thread.
 *
 * A line break is one thing here, written \n or \r\n: "a\nb" is found where the file has a\r\nb. What is put in gets
 * the breaks of what it replaces; where that has none, those that the file has more of. All other bytes stay as
 * they are, a BOM too. */
#ifndef LAT_WORKSPACE_EDIT_TEXT_H
#define LAT_WORKSPACE_EDIT_TEXT_H

#include "base/buf.h"

typedef struct {
	const char *text; /* the whole file */
	size_t len;
	const char *old; /* not empty */
	size_t old_len;
	const char *new;
	size_t new_len;
	bool all;
} lat_edit;

enum { LAT_EDIT_COUNTED = 1000 }; /* without `all`, counting ends there */

typedef struct {
	size_t found;       /* places where old stands; those that overlap count too, unless `all` */
	size_t first, last; /* the first replacement in the new text, bytes */
} lat_edit_result;

/* Appends the edited text to out when old was found once, or at all with `all`; else leaves out as it is. False when
 * out of memory. */
bool lat_edit_apply(const lat_edit *edit, lat_buf *out, lat_edit_result *result);

/* For an old that isn't there: appends the lines of text that are most like it, with their numbers; nothing where
 * none is. */
void lat_edit_nearest(const lat_edit *edit, lat_buf *out);

/* Appends the lines of text that hold the bytes first to last, and `around` more on both sides, with numbers. */
void lat_edit_show(const char *text, size_t len, size_t first, size_t last, int around, lat_buf *out);

#endif
