/* lat_batch: see batch.h for the picture and for ownership.
 *
 * Conflicts are found as in a database with locks of two sizes: the whole world and one name. On the world a
 * call with "reads *" is a reader, one that writes a name is an intender; readers share, intenders share, and
 * the two exclude each other: `gates` hold the newest group of each. On a name the table holds the last writer
 * and the readers since. "writes *" excludes everybody: it collects all calls since the last barrier and
 * becomes the next one. */
#include "scheduler/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/value.h"

#define NONE UINT32_MAX

typedef enum { WAITING, RUNNING, DONE } call_state;

typedef struct set_entry set_entry;
struct set_entry {
	set_entry *next; /* of the same call */
	const char *name;
	size_t len;
	uint64_t hash;
};

typedef struct {
	set_entry *reads, *writes;
	bool read_all, write_all;
	call_state state;
} call;

typedef struct {
	uint32_t waits_for; /* nodes that aren't done yet */
	uint32_t first_edge;
} node; /* calls are nodes 0 … n-1, gates come behind them */

typedef struct {
	uint32_t to;
	uint32_t next;
} edge;

struct lat_batch {
	size_t n, max, running, started;
	bool sealed, stopped;
	call *calls;
	lat_arena names;
	size_t n_entries;
	uint64_t seed;
	node *nodes;
	edge *edges;
	uint64_t *ready;    /* a bit a call */
	size_t first_ready; /* no word before this one has a bit */
};

/* ---- the sets ---- */

lat_batch *lat_batch_new(size_t n, size_t max_concurrency, lat_error *err)
{
	if (n > LAT_BATCH_MAX_CALLS || max_concurrency == 0) {
		lat_fail(err, LAT_E_INVALID, "expected 0 to %d calls and a max_concurrency of at least 1",
		         LAT_BATCH_MAX_CALLS);
		return NULL;
	}
	lat_batch *b = calloc(1, sizeof *b);
	if (b)
		b->calls = calloc(n ? n : 1, sizeof *b->calls);
	if (!b || !b->calls) {
		free(b);
		lat_fail_nomem(err);
		return NULL;
	}
	b->n = n;
	b->max = max_concurrency;
	/* Names come from a model. Where the batch lies in memory isn't known to it, so neither is the hash. */
	b->seed = (uint64_t)(uintptr_t)b * 0x9E3779B97F4A7C15u;
	return b;
}

void lat_batch_free(lat_batch *b)
{
	if (!b)
		return;
	free(b->calls);
	free(b->nodes);
	free(b->edges);
	free(b->ready);
	lat_arena_free(&b->names);
	free(b);
}

static uint64_t hash_name(uint64_t seed, const char *name, size_t len)
{
	uint64_t h = seed ^ 0xCBF29CE484222325u;
	for (size_t i = 0; i < len; i++) {
		h = (h ^ (unsigned char)name[i]) * 0x100000001B3u; /* FNV-1a */
		h ^= h >> 29;
	}
	h *= 0xFF51AFD7ED558CCDu;
	return h ^ (h >> 33);
}

static bool is_everything(const char *name, size_t len)
{
	return len == 1 && name[0] == '*';
}

static lat_status add_entry(lat_batch *b, set_entry **set, const char *name, size_t len, lat_error *err)
{
	if (b->n_entries >= LAT_BATCH_MAX_NAMES)
		return lat_fail(err, LAT_E_LIMIT, "a batch takes at most %d resource names", LAT_BATCH_MAX_NAMES);
	set_entry *e = lat_arena_alloc(&b->names, sizeof *e);
	char *copy = e ? lat_arena_copy(&b->names, name, len) : NULL;
	if (!copy)
		return lat_fail_nomem(err);
	*e = (set_entry){.next = *set, .name = copy, .len = len, .hash = hash_name(b->seed, name, len)};
	*set = e;
	b->n_entries++;
	return LAT_OK;
}

lat_status lat_batch_read(lat_batch *b, size_t i, const char *name, size_t len, lat_error *err)
{
	if (!is_everything(name, len))
		return add_entry(b, &b->calls[i].reads, name, len, err);
	lat_batch_read_all(b, i);
	return LAT_OK;
}

lat_status lat_batch_write(lat_batch *b, size_t i, const char *name, size_t len, lat_error *err)
{
	if (!is_everything(name, len))
		return add_entry(b, &b->calls[i].writes, name, len, err);
	lat_batch_write_all(b, i);
	return LAT_OK;
}

void lat_batch_read_all(lat_batch *b, size_t i)
{
	b->calls[i].read_all = true;
}

void lat_batch_write_all(lat_batch *b, size_t i)
{
	b->calls[i].write_all = true;
}

/* ---- sealing ---- */

typedef struct {
	const set_entry *name; /* NULL: a free place */
	uint32_t epoch;        /* what was noted before the last barrier is void */
	uint32_t writer;       /* last writer or NONE */
	uint32_t first_reader; /* since that writer; into `readers` */
} resource;

typedef struct {
	uint32_t node; /* newest gate or NONE */
	bool awaited;  /* somebody waits for it: it takes no more members */
} gate;

typedef struct {
	lat_batch *b;
	resource *table;
	size_t mask;
	edge *readers; /* linked lists: to = call */
	uint32_t n_readers, n_edges, n_nodes;
	uint32_t epoch;
	uint32_t barrier; /* last call that writes everything, or NONE */
	gate readers_of_all, writers;
} sealer;

static void add_edge(sealer *s, uint32_t from, uint32_t to)
{
	if (from == NONE || from == to)
		return;
	lat_batch *b = s->b;
	b->edges[s->n_edges] = (edge){.to = to, .next = b->nodes[from].first_edge};
	b->nodes[from].first_edge = s->n_edges++;
	b->nodes[to].waits_for++;
}

static void wait_for_gate(sealer *s, gate *g, uint32_t i)
{
	if (g->node == NONE)
		return;
	add_edge(s, g->node, i);
	g->awaited = true;
}

/* A gate that somebody waits for is followed by a new one, which waits for it. */
static void join_gate(sealer *s, gate *g, uint32_t i)
{
	if (g->node == NONE || g->awaited) {
		uint32_t fresh = s->n_nodes++;
		add_edge(s, g->node, fresh);
		*g = (gate){.node = fresh, .awaited = false};
	}
	add_edge(s, i, g->node);
}

static resource *find_resource(sealer *s, const set_entry *name)
{
	size_t at = name->hash & s->mask;
	for (;; at = (at + 1) & s->mask) {
		resource *r = &s->table[at];
		if (!r->name) {
			*r = (resource){.name = name, .epoch = s->epoch, .writer = NONE, .first_reader = NONE};
			return r;
		}
		if (r->name->hash != name->hash || r->name->len != name->len ||
		    memcmp(r->name->name, name->name, name->len) != 0)
			continue;
		if (r->epoch != s->epoch)
			*r = (resource){.name = name, .epoch = s->epoch, .writer = NONE, .first_reader = NONE};
		return r;
	}
}

static void plan_name_write(sealer *s, const set_entry *name, uint32_t i)
{
	resource *r = find_resource(s, name);
	add_edge(s, r->writer, i);
	for (uint32_t k = r->first_reader; k != NONE; k = s->readers[k].next)
		add_edge(s, s->readers[k].to, i);
	r->writer = i;
	r->first_reader = NONE;
}

static void plan_name_read(sealer *s, const set_entry *name, uint32_t i)
{
	resource *r = find_resource(s, name);
	if (r->writer == i)
		return; /* it writes the same name, which says more */
	add_edge(s, r->writer, i);
	s->readers[s->n_readers] = (edge){.to = i, .next = r->first_reader};
	r->first_reader = s->n_readers++;
}

static void plan_barrier(sealer *s, uint32_t i)
{
	uint32_t since = s->barrier == NONE ? 0 : s->barrier;
	for (uint32_t k = since; k < i; k++) {
		const call *c = &s->b->calls[k];
		if (c->reads || c->writes || c->read_all || c->write_all)
			add_edge(s, k, i);
	}
	s->barrier = i;
	s->epoch++;
	s->readers_of_all = s->writers = (gate){.node = NONE, .awaited = false};
}

static void plan_call(sealer *s, uint32_t i)
{
	const call *c = &s->b->calls[i];
	if (c->write_all) {
		plan_barrier(s, i);
		return;
	}
	if (!c->reads && !c->writes && !c->read_all)
		return;
	add_edge(s, s->barrier, i);
	if (c->read_all)
		wait_for_gate(s, &s->writers, i);
	if (c->writes)
		wait_for_gate(s, &s->readers_of_all, i);
	for (const set_entry *e = c->writes; e; e = e->next)
		plan_name_write(s, e, i);
	for (const set_entry *e = c->reads; e; e = e->next)
		plan_name_read(s, e, i);
	if (c->read_all)
		join_gate(s, &s->readers_of_all, i);
	if (c->writes)
		join_gate(s, &s->writers, i);
}

static void set_ready(lat_batch *b, size_t i)
{
	size_t word = i / 64;
	b->ready[word] |= (uint64_t)1 << (i % 64);
	if (word < b->first_ready)
		b->first_ready = word;
}

static void plan_all(sealer *s)
{
	lat_batch *b = s->b;
	for (size_t k = 0; k < b->n * 3; k++)
		b->nodes[k].first_edge = NONE;
	for (uint32_t i = 0; i < b->n; i++)
		plan_call(s, i);
	b->first_ready = b->n / 64 + 1;
	for (size_t i = 0; i < b->n; i++)
		if (b->nodes[i].waits_for == 0)
			set_ready(b, i);
	b->sealed = true;
}

lat_status lat_batch_seal(lat_batch *b, lat_error *err)
{
	sealer s = {.b = b, .barrier = NONE, .n_nodes = (uint32_t)b->n};
	s.readers_of_all.node = s.writers.node = NONE;
	size_t places = 16;
	while (places < b->n_entries * 2)
		places *= 2;
	s.mask = places - 1;
	s.table = calloc(places, sizeof *s.table);
	s.readers = calloc(b->n_entries + 1, sizeof *s.readers);
	b->nodes = calloc(b->n * 3 + 1, sizeof *b->nodes);
	b->edges = malloc((b->n_entries * 2 + b->n * 8 + 1) * sizeof *b->edges);
	b->ready = calloc(b->n / 64 + 1, sizeof *b->ready);
	bool ok = s.table && s.readers && b->nodes && b->edges && b->ready;
	if (ok) {
		plan_all(&s);
	} else {
		free(b->nodes);
		free(b->edges);
		free(b->ready);
		b->nodes = NULL;
		b->edges = NULL;
		b->ready = NULL;
	}
	free(s.table);
	free(s.readers);
	return ok ? LAT_OK : lat_fail_nomem(err);
}

bool lat_batch_sealed(const lat_batch *b)
{
	return b->sealed;
}

/* ---- running ---- */

size_t lat_batch_next(lat_batch *b)
{
	if (b->stopped || b->running >= b->max)
		return LAT_BATCH_NONE;
	size_t words = b->n / 64 + 1;
	while (b->first_ready < words && b->ready[b->first_ready] == 0)
		b->first_ready++;
	if (b->first_ready >= words)
		return LAT_BATCH_NONE;
	uint64_t *word = &b->ready[b->first_ready];
	size_t i = b->first_ready * 64 + (size_t)__builtin_ctzll(*word);
	*word &= *word - 1;
	b->calls[i].state = RUNNING;
	b->running++;
	b->started++;
	return i;
}

/* Takes one from each that waits for `from`. A gate that has nothing left to wait for passes it on: gates lead to
 * calls and to the gate after them, so the loop over gates is a walk along one chain. */
static void release(lat_batch *b, uint32_t from)
{
	uint32_t open[4]; /* a call is in two gates, a gate opens at most the next one of its kind */
	size_t n = 0;
	open[n++] = from;
	while (n > 0) {
		uint32_t at = open[--n];
		for (uint32_t k = b->nodes[at].first_edge; k != NONE; k = b->edges[k].next) {
			uint32_t to = b->edges[k].to;
			if (--b->nodes[to].waits_for > 0)
				continue;
			if (to < b->n)
				set_ready(b, to);
			else
				open[n++] = to;
		}
	}
}

bool lat_batch_done(lat_batch *b, size_t i)
{
	if (i >= b->n || b->calls[i].state != RUNNING)
		return false;
	b->calls[i].state = DONE;
	b->running--;
	release(b, (uint32_t)i);
	return true;
}

void lat_batch_stop(lat_batch *b)
{
	b->stopped = true;
}

size_t lat_batch_count(const lat_batch *b)
{
	return b->n;
}

size_t lat_batch_running(const lat_batch *b)
{
	return b->running;
}

size_t lat_batch_pending(const lat_batch *b)
{
	return b->n - b->started;
}
