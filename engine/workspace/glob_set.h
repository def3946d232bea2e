/* The bracket sets of globs: [a-z], [!…], [^…], [[:digit:]]. Pure; any thread. */
#ifndef LAT_WORKSPACE_GLOB_SET_H
#define LAT_WORKSPACE_GLOB_SET_H

#include "workspace/glob_program.h"

/* Reads the set that begins at "[" and fills set ("/" is never in it). Returns what follows its "]"; NULL: it has
 * none, or an unknown [:class:]. */
const char *lat_glob_set_parse(const char *at, const char *end, lat_glob_set *set);

static inline bool lat_glob_set_has(const lat_glob_set *set, unsigned char byte)
{
	return set->words[byte / 64] >> (byte % 64) & 1;
}

#endif
