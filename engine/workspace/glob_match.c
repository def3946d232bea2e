/* lat_glob, the matcher: all places of the program that the text so far can have led to, byte by byte. Owns
 * nothing, uses the stack alone; any thread. */
#include <string.h>

#include "workspace/glob_program.h"
#include "workspace/glob_set.h"

typedef struct {
	uint16_t *at;
	size_t n;
} places;

typedef struct {
	const lat_glob *g;
	uint32_t *seen; /* for each node: the turn in which it was added last */
	uint32_t turn;
	uint16_t *pending;
} matcher;

/* Adds a node, and what can be reached from it without a byte. */
static void add(matcher *m, places *list, uint16_t node)
{
	size_t n = 0;
	m->pending[n++] = node;
	while (n > 0) {
		uint16_t at = m->pending[--n];
		if (m->seen[at] == m->turn)
			continue;
		m->seen[at] = m->turn;
		const lat_glob_node *step = &m->g->nodes[at];
		if (step->op == LAT_GLOB_JUMP) {
			m->pending[n++] = step->a;
			continue;
		}
		if (step->op == LAT_GLOB_SPLIT) {
			if (m->seen[step->b] != m->turn)
				m->pending[n++] = step->b;
			m->pending[n++] = step->a;
			continue;
		}
		list->at[list->n++] = at;
		if (step->op == LAT_GLOB_STAR || step->op == LAT_GLOB_DEEP)
			m->pending[n++] = (uint16_t)(at + 1);
	}
}

static bool takes(const lat_glob *g, const lat_glob_node *node, unsigned char byte)
{
	switch ((lat_glob_op)node->op) {
	case LAT_GLOB_BYTE:
		return node->byte == byte;
	case LAT_GLOB_ANY:
	case LAT_GLOB_STAR:
		return byte != '/';
	case LAT_GLOB_SET:
		return lat_glob_set_has(&g->sets[node->a], byte);
	case LAT_GLOB_DEEP:
		return true;
	default:
		return false;
	}
}

static bool run(const lat_glob *g, const char *text, size_t len)
{
	uint32_t seen[g->n_nodes]; /* at most LAT_GLOB_MAX_NODES */
	uint16_t pending[g->n_nodes + 1], at[2][g->n_nodes];
	memset(seen, 0, sizeof seen);
	matcher m = {.g = g, .seen = seen, .turn = 1, .pending = pending};
	places lists[2] = {{at[0], 0}, {at[1], 0}};
	places *now = &lists[0], *next = &lists[1];
	add(&m, now, (uint16_t)g->prefix_len);
	for (size_t i = g->prefix_len; i < len && now->n > 0; i++) {
		m.turn++;
		next->n = 0;
		for (size_t k = 0; k < now->n; k++) {
			const lat_glob_node *node = &g->nodes[now->at[k]];
			if (!takes(g, node, (unsigned char)text[i]))
				continue;
			bool stays = node->op == LAT_GLOB_STAR || node->op == LAT_GLOB_DEEP;
			add(&m, next, (uint16_t)(now->at[k] + (stays ? 0 : 1)));
		}
		places *old = now;
		now = next;
		next = old;
	}
	for (size_t k = 0; k < now->n; k++)
		if (g->nodes[now->at[k]].op == LAT_GLOB_END)
			return true;
	return false;
}

bool lat_glob_match(const lat_glob *g, const char *text, size_t len)
{
	size_t fixed = g->prefix_len + g->suffix_len;
	if (len < fixed || memcmp(text, g->literal, g->prefix_len) != 0 ||
	    memcmp(text + len - g->suffix_len, g->literal + g->prefix_len, g->suffix_len) != 0)
		return false;
	switch (g->middle) {
	case LAT_GLOB_MIDDLE_NOTHING:
		return len == fixed;
	case LAT_GLOB_MIDDLE_STAR:
		return memchr(text + g->prefix_len, '/', len - fixed) == NULL;
	case LAT_GLOB_MIDDLE_DEEP:
		return true;
	case LAT_GLOB_MIDDLE_FOLDERS:
		return len == fixed || text[len - g->suffix_len - 1] == '/';
	default:
		return run(g, text, len);
	}
}
