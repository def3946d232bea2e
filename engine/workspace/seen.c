/* What a session has seen of files: who edits one that changed meanwhile is told so. One table for each workspace,
 * guarded by its lock, which is a leaf; any thread. */
#include <stdlib.h>
#include <string.h>

#include "workspace/private.h"

enum { SEEN_FIRST = 64, SEEN_MAX = 1 << 16 };

struct lat_seen_entry {
	char *name; /* NULL: free */
	uint64_t dev, ino;
	uint64_t at; /* when it was noted, on the table's clock */
	lat_file_state state;
};

static size_t hash(const lat_file_key *key)
{
	uint64_t h = key->dir_ino * 0x9e3779b97f4a7c15u ^ key->dir_dev;
	for (const char *s = key->name; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return (size_t)(h ^ h >> 29);
}

/* The entry of the key, or the free one where it belongs. There is always a free one. */
static struct lat_seen_entry *find(struct lat_seen_entry *entries, size_t cap, const lat_file_key *key)
{
	for (size_t i = hash(key) & (cap - 1);; i = (i + 1) & (cap - 1)) {
		struct lat_seen_entry *e = &entries[i];
		if (!e->name || (e->dev == key->dir_dev && e->ino == key->dir_ino && strcmp(e->name, key->name) == 0))
			return e;
	}
}

/* Moves what was noted at `since` or later to a table of `cap`. */
static bool rebuild(lat_seen *seen, size_t cap, uint64_t since)
{
	struct lat_seen_entry *entries = calloc(cap, sizeof *entries);
	if (!entries)
		return false;
	size_t n = 0;
	for (size_t i = 0; i < seen->cap; i++) {
		struct lat_seen_entry *e = &seen->entries[i];
		if (!e->name)
			continue;
		if (e->at < since) {
			free(e->name);
			continue;
		}
		const lat_file_key key = {e->dev, e->ino, e->name};
		*find(entries, cap, &key) = *e;
		n++;
	}
	free(seen->entries);
	seen->entries = entries;
	seen->cap = cap;
	seen->n = n;
	return true;
}

static bool make_room(lat_seen *seen)
{
	if (seen->n < seen->cap / 2)
		return true;
	if (seen->cap < SEEN_MAX)
		return rebuild(seen, seen->cap ? seen->cap * 2 : SEEN_FIRST, 0);
	return rebuild(seen, seen->cap, seen->clock - seen->cap / 4);
}

lat_status lat_workspace_note(lat_workspace *ws, const lat_file_key *key, const lat_file_state *state)
{
	lat_status status = LAT_E_NOMEM;
	pthread_mutex_lock(&ws->lock);
	lat_seen *seen = &ws->seen;
	if (make_room(seen)) {
		struct lat_seen_entry *e = find(seen->entries, seen->cap, key);
		if (!e->name && (e->name = strdup(key->name)) != NULL)
			seen->n++;
		if (e->name) {
			e->dev = key->dir_dev;
			e->ino = key->dir_ino;
			e->at = seen->clock++;
			e->state = *state;
			status = LAT_OK;
		}
	}
	pthread_mutex_unlock(&ws->lock);
	return status;
}

lat_file_verdict lat_workspace_compare(lat_workspace *ws, const lat_file_key *key, const lat_file_state *now)
{
	lat_file_verdict verdict = LAT_FILE_UNKNOWN;
	pthread_mutex_lock(&ws->lock);
	const struct lat_seen_entry *e = ws->seen.cap ? find(ws->seen.entries, ws->seen.cap, key) : NULL;
	if (e && e->name) {
		bool same =
			e->state.ino == now->ino && e->state.size == now->size && e->state.mtime_ns == now->mtime_ns;
		verdict = same ? LAT_FILE_SAME : LAT_FILE_CHANGED;
	}
	pthread_mutex_unlock(&ws->lock);
	return verdict;
}

lat_file_state lat_file_state_of(const struct stat *st)
{
	return (lat_file_state){
		.ino = st->st_ino,
		.size = st->st_size,
		.mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
	};
}

void lat_seen_free(lat_seen *seen)
{
	for (size_t i = 0; i < seen->cap; i++)
		free(seen->entries[i].name);
	free(seen->entries);
	*seen = (lat_seen){.cap = 0};
}
