/* JSON text to a lat_value tree: one strict pass (RFC 8259, UTF-8 by RFC 3629), no recursion on the C stack.
 *
 * Rejects what the RFC rejects, invalid UTF-8, lone surrogates written as \uD800, a BOM, text behind the
 * value, nesting past max_depth and texts past max_bytes. Duplicate keys: the last wins, in the first one's
 * place. Integer literals that fit int64 are LAT_INT; longer ones the nearest double with LAT_V_WIDE_INT;
 * numbers past the range of a double are LAT_E_LIMIT. No tree is deeper than LAT_JSON_DEFAULT_DEPTH, whatever
 * max_depth asks for, so walkers of trees may recurse. Texts past 4 GiB are refused, whatever max_bytes asks
 * for.
 *
 * The tree lives in *arena; strings without escapes are views into `text`, which must outlive the tree
 * (unless LAT_JSON_COPY_STRINGS is given). Pure; any thread. */
#ifndef LAT_JSON_READ_H
#define LAT_JSON_READ_H

#include "base/value.h"

enum { LAT_JSON_DEFAULT_DEPTH = 1000 };

enum { LAT_JSON_COPY_STRINGS = 1 }; /* flags */

typedef struct {
	size_t max_bytes;   /* 0: LAT_JSON_DEFAULT_BYTES */
	unsigned max_depth; /* 0, or past it: LAT_JSON_DEFAULT_DEPTH */
	unsigned flags;
} lat_json_options;

#define LAT_JSON_DEFAULT_BYTES ((size_t)64 << 20)

/* options may be NULL. On failure err has kind, offset (bytes) and a message; *out is untouched. */
lat_status lat_json_read(lat_arena *arena, const char *text, size_t len, const lat_json_options *options,
                         lat_value *out, lat_error *err);

#endif
