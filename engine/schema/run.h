/* One validation at work: what the files that run the program share.
 *
 * A lat_run is on the stack of lat_schema_validate; one thread. It allocates in the arena only when a schema
 * asks for it (unevaluated*, large uniqueItems, patterns) or when there is an error to tell. The program runs
 * twice for an invalid value: quietly up to the first fault, then once more to report all of them. */
#ifndef LAT_SCHEMA_RUN_H
#define LAT_SCHEMA_RUN_H

#include "base/buf.h"
#include "schema/program.h"

/* Where in the instance; a chain on the C stack. */
typedef struct lat_place lat_place;
struct lat_place {
	const lat_place *up;  /* NULL: the instance itself */
	const lat_value *key; /* member name; NULL: an item */
	uint32_t index;
	bool is_name; /* the name itself is judged, not the member's value */
};

/* Resources entered, innermost first, each once: for "$dynamicRef" only the outermost counts. */
typedef struct lat_scope lat_scope;
struct lat_scope {
	const lat_scope *outer;
	uint32_t resource;
	uint32_t length; /* links from here outwards */
};

/* Which members or items of one value have been evaluated: a bitmap in lat_run's word stack. */
typedef struct {
	uint32_t at, count;
	bool all;
} lat_track;

typedef struct {
	const lat_schema *schema;
	lat_arena *arena;
	lat_schema_errors *errors;
	const lat_value *root;
	bool report;     /* tell errors; otherwise stop at the first */
	lat_status stop; /* LAT_E_NOMEM or LAT_E_LIMIT: everything returns false from now on */
	uint32_t depth;
	uint64_t steps;    /* left */
	bool steps_raised; /* by the instance's size, already */
	uint64_t *words;   /* stack of bitmaps, in the arena */
	uint32_t word_count, word_cap;
	lat_matcher matcher;
	lat_buf text; /* for messages */
} lat_run;

/* Judges v by a node. In the quiet mode false comes at the first fault; in the report mode faults are told. */
bool lat_run_node(lat_run *r, uint32_t node, lat_value *v, const lat_place *at, const lat_scope *scope,
                  lat_track *track);
/* The same, never reporting. */
bool lat_run_quiet(lat_run *r, uint32_t node, lat_value *v, const lat_place *at, const lat_scope *scope,
                   lat_track *track);
bool lat_run_array(lat_run *r, const lat_array_rules *a, lat_value *v, const lat_place *at,
                   const lat_scope *scope, lat_track *track);
bool lat_run_object(lat_run *r, const lat_object_rules *o, lat_value *v, const lat_place *at,
                    const lat_scope *scope, lat_track *track);
bool lat_run_insns(lat_run *r, const lat_node *n, lat_value *v, const lat_place *at, const lat_scope *scope,
                   lat_track *track);
bool lat_run_string(lat_run *r, const lat_string_rules *s, const lat_value *v, const lat_place *at);
bool lat_run_number(lat_run *r, const lat_number_rules *n, const lat_value *v, const lat_place *at);

uint32_t lat_run_dynamic_target(lat_run *r, const lat_insn *insn, const lat_scope *scope);
/* *own is the scope link to use when the node's resource isn't in scope yet. */
const lat_scope *lat_run_enter(lat_run *r, const lat_node *n, const lat_scope *scope, lat_scope *own);

/* Fills in defaults below v, which the node accepts. False only when stopped. */
bool lat_run_fill(lat_run *r, uint32_t node, lat_value *v, const lat_scope *scope);

lat_property *lat_object_find(const lat_object_rules *o, uint64_t seed, const lat_value *key, uint32_t *hint);

/* The answer of a pattern; a limit that was passed is an error of its own, told in either mode. */
bool lat_run_match(lat_run *r, const lat_pattern *p, const lat_value *s, const lat_place *at);

/* When the steps have run out: more for a large instance, once; else false. */
bool lat_run_more_steps(lat_run *r, const lat_place *at);
bool lat_run_nomem(lat_run *r);                                           /* false */
bool lat_run_limit(lat_run *r, const lat_place *at, const char *message); /* false; tells it in any mode */

/* ---- tracks ---- */

bool lat_track_push(lat_run *r, lat_track *t, uint32_t count);
void lat_track_pop(lat_run *r, const lat_track *t);
void lat_track_merge(lat_run *r, lat_track *into, const lat_track *from); /* both of one value */

static inline void lat_track_mark(lat_run *r, lat_track *t, uint32_t i)
{
	if (t && !t->all)
		r->words[t->at + i / 64] |= (uint64_t)1 << (i % 64);
}

static inline bool lat_track_has(const lat_run *r, const lat_track *t, uint32_t i)
{
	return t->all || (r->words[t->at + i / 64] >> (i % 64) & 1);
}

/* ---- numbers (number.c) ---- */

int lat_number_compare(const lat_value *a, const lat_value *b); /* exact, integers and doubles mixed */
bool lat_number_is_multiple(const lat_value *v, const lat_value *of);
/* A double that is an int64 exactly becomes that integer. */
bool lat_number_to_integer(lat_value *v);

/* ---- telling errors (report.c); all return false, all do nothing in the quiet mode ---- */

bool lat_report(lat_run *r, const lat_place *at, const lat_value *v, const char *expected, ...)
	__attribute__((format(printf, 4, 5)));
bool lat_report_type(lat_run *r, const lat_place *at, const lat_value *v, uint8_t types);
bool lat_report_missing(lat_run *r, const lat_place *at, const lat_text *name, const lat_text *because);
bool lat_report_unknown(lat_run *r, const lat_place *member, const lat_value *v, const lat_object_rules *o);
bool lat_report_choices(lat_run *r, const lat_place *at, const lat_value *v, const lat_value *choices,
                        uint32_t count);
/* A bound such as "at least " with a value behind it. */
bool lat_report_bound(lat_run *r, const lat_place *at, const lat_value *v, const char *words,
                      const lat_value *bound);
bool lat_report_limit(lat_run *r, const lat_place *at, const char *message); /* in the quiet mode too */
void lat_report_rest(lat_run *r); /* the entry that says how many more there are */
lat_status lat_report_text(lat_arena *arena, lat_schema_errors *errors, const lat_error *err);

#endif
