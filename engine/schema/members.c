/* What a node asks of strings, arrays and objects. Part of a run (run.h); owns nothing. */
#include "schema/run.h"

#include "schema/equal.h"

#include <string.h>

enum { SMALL_REQUIRED = 64 };

/* ---- strings ---- */

/* Code points of valid UTF-8: bytes that don't continue one. */
static uint64_t count_code_points(const lat_value *s)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < s->len; i++)
		n += (s->u.s[i] & 0xC0) != 0x80;
	return n;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* A code point takes 1 to 4 bytes, so that most strings needn't be counted. */
static bool check_length(lat_run *r, const lat_string_rules *s, const lat_value *v, const lat_place *at)
{
	if ((v->len + 3) / 4 >= s->min_length && v->len <= s->max_length)
		return true;
	uint64_t n = count_code_points(v);
	if (n < s->min_length)
		return lat_report(r, at, v, "string of at least %llu character%s", (unsigned long long)s->min_length,
		                  plural(s->min_length));
	if (n > s->max_length)
		return lat_report(r, at, v, "string of at most %llu character%s", (unsigned long long)s->max_length,
		                  plural(s->max_length));
	return true;
}

bool lat_run_match(lat_run *r, const lat_pattern *p, const lat_value *s, const lat_place *at)
{
	switch (lat_pattern_match(p, &r->matcher, s->u.s, s->len)) {
	case LAT_MATCH_YES:
		return true;
	case LAT_MATCH_LIMIT:
		return lat_run_limit(
			r, at, "the pattern's match limit was reached: this text can't be matched in reasonable time");
	case LAT_MATCH_NOMEM:
		return lat_run_nomem(r);
	case LAT_MATCH_UTF8:
	case LAT_MATCH_NO:
		break;
	}
	return false;
}

static bool check_pattern(lat_run *r, const lat_pattern *p, const lat_value *v, const lat_place *at)
{
	size_t len;
	if (lat_run_match(r, p, v, at))
		return true;
	const char *source = lat_pattern_source(p, &len);
	return lat_report(r, at, v, "string that matches the pattern %.*s", (int)(len > 200 ? 200 : len), source);
}

static bool check_format(lat_run *r, const lat_format *f, const lat_value *v, const lat_place *at)
{
	const char *s = v->len ? v->u.s : "";
	lat_match verdict =
		f->check ? (f->check(s, v->len) ? LAT_MATCH_YES : LAT_MATCH_NO) : lat_pattern_judge(s, v->len);
	if (verdict == LAT_MATCH_NOMEM)
		return lat_run_nomem(r);
	return verdict == LAT_MATCH_YES || lat_report(r, at, v, "%s", f->expected);
}

bool lat_run_string(lat_run *r, const lat_string_rules *s, const lat_value *v, const lat_place *at)
{
	bool ok = check_length(r, s, v, at);
	if (s->pattern && ok) /* not on a string that is too long already */
		ok = check_pattern(r, s->pattern, v, at) && ok;
	if (s->format && (ok || r->report))
		ok = check_format(r, s->format, v, at) && ok;
	return ok;
}

/* ---- arrays ---- */

static bool run_items(lat_run *r, const lat_array_rules *a, lat_value *v, const lat_place *at,
                      const lat_scope *scope, lat_track *track)
{
	bool ok = true;
	uint32_t end = a->items != LAT_NODE_NONE || v->len < a->prefix_count ? v->len : a->prefix_count;
	for (uint32_t i = 0; i < end && (ok || r->report) && r->stop == LAT_OK; i++) {
		lat_place here = {at, NULL, i, false};
		uint32_t node = i < a->prefix_count ? a->prefix[i] : a->items;
		lat_track_mark(r, track, i);
		if (node == LAT_NODE_FALSE)
			ok = lat_report(r, &here, &v->u.items[i], "no item here (at most %u)", a->prefix_count);
		else if (node != LAT_NODE_TRUE)
			ok = lat_run_node(r, node, &v->u.items[i], &here, scope, NULL) && ok;
	}
	return ok;
}

static bool run_contains(lat_run *r, const lat_array_rules *a, lat_value *v, const lat_place *at,
                         const lat_scope *scope, lat_track *track)
{
	uint64_t found = 0;
	for (uint32_t i = 0; i < v->len && r->stop == LAT_OK; i++) {
		lat_place here = {at, NULL, i, false};
		if (lat_run_quiet(r, a->contains, &v->u.items[i], &here, scope, NULL)) {
			lat_track_mark(r, track, i);
			found++;
		}
	}
	if (r->stop != LAT_OK)
		return false;
	if (found < a->min_contains)
		return lat_report(r, at, v, "array with at least %llu item%s that fit%s \"contains\" (has %llu)",
		                  (unsigned long long)a->min_contains, plural(a->min_contains),
		                  a->min_contains == 1 ? "s" : "", (unsigned long long)found);
	if (found > a->max_contains)
		return lat_report(r, at, v, "array with at most %llu item%s that fit%s \"contains\" (has %llu)",
		                  (unsigned long long)a->max_contains, plural(a->max_contains),
		                  a->max_contains == 1 ? "s" : "", (unsigned long long)found);
	return true;
}

static bool check_unique(lat_run *r, const lat_value *v, const lat_place *at)
{
	uint32_t first, second;
	bool nomem = false;
	if (!lat_items_repeat(r->arena, r->schema->seed, v, &first, &second, &nomem))
		return nomem ? lat_run_nomem(r) : true;
	return lat_report(r, at, v, "array without repeated items (items %u and %u are equal)", first, second);
}

bool lat_run_array(lat_run *r, const lat_array_rules *a, lat_value *v, const lat_place *at,
                   const lat_scope *scope, lat_track *track)
{
	bool ok = true;
	if (v->len < a->min_items)
		ok = lat_report(r, at, v, "array of at least %llu item%s", (unsigned long long)a->min_items,
		                plural(a->min_items));
	if (v->len > a->max_items)
		ok = lat_report(r, at, v, "array of at most %llu item%s", (unsigned long long)a->max_items,
		                plural(a->max_items));
	if (ok || r->report)
		ok = run_items(r, a, v, at, scope, track) && ok;
	if (a->contains != LAT_NODE_NONE && (ok || r->report))
		ok = run_contains(r, a, v, at, scope, track) && ok;
	if (a->unique && (ok || r->report))
		ok = check_unique(r, v, at) && ok;
	return ok;
}

/* ---- objects ---- */

static bool is_named(const lat_property *p, const lat_value *key)
{
	return p->name.len == key->len && memcmp(p->name.s, key->u.s, key->len) == 0;
}

/* Members mostly come in the schema's order: *hint is the property that is expected next. */
lat_property *lat_object_find(const lat_object_rules *o, uint64_t seed, const lat_value *key, uint32_t *hint)
{
	if (*hint < o->property_count && is_named(&o->properties[*hint], key))
		return &o->properties[(*hint)++];
	uint32_t slot = (uint32_t)lat_hash_bytes(seed, key->u.s, key->len) & o->mask;
	for (; o->table[slot]; slot = (slot + 1) & o->mask) {
		lat_property *p = &o->properties[o->table[slot] - 1];
		if (is_named(p, key)) {
			*hint = o->table[slot];
			return p;
		}
	}
	return NULL;
}

/* patternProperties: true in *evaluated when one of them speaks of the member. */
static bool run_patterns(lat_run *r, const lat_object_rules *o, lat_value *key, const lat_place *here,
                         const lat_scope *scope, bool *evaluated)
{
	bool ok = true;
	for (uint32_t i = 0; i < o->pattern_count && (ok || r->report) && r->stop == LAT_OK; i++) {
		if (!lat_run_match(r, o->patterns[i].pattern, key, here))
			continue;
		*evaluated = true;
		ok = lat_run_node(r, o->patterns[i].node, key + 1, here, scope, NULL) && ok;
	}
	return ok && r->stop == LAT_OK;
}

static bool run_name(lat_run *r, uint32_t node, lat_value *key, const lat_place *here, const lat_scope *scope)
{
	lat_place name = *here;
	lat_value copy = *key;
	name.is_name = true;
	return lat_run_node(r, node, &copy, &name, scope, NULL);
}

/* What isn't a named property, and what holds for every member. */
static bool __attribute__((noinline))
run_other(lat_run *r, const lat_object_rules *o, lat_value *key, const lat_place *here,
          const lat_scope *scope, bool *evaluated)
{
	bool ok = true;
	if (o->pattern_count)
		ok = run_patterns(r, o, key, here, scope, evaluated);
	if (!*evaluated && o->additional != LAT_NODE_NONE && (ok || r->report)) {
		*evaluated = true;
		if (o->additional == LAT_NODE_FALSE)
			ok = lat_report_unknown(r, here, key + 1, o);
		else if (o->additional != LAT_NODE_TRUE)
			ok = lat_run_node(r, o->additional, key + 1, here, scope, NULL) && ok;
	}
	if (o->names != LAT_NODE_NONE && (ok || r->report))
		ok = run_name(r, o->names, key, here, scope) && ok;
	return ok;
}

static bool run_members(lat_run *r, const lat_object_rules *o, lat_value *v, const lat_place *at,
                        const lat_scope *scope, lat_track *track, uint64_t *seen, uint32_t *met)
{
	bool ok = true, others = o->pattern_count || o->names != LAT_NODE_NONE || o->additional != LAT_NODE_NONE;
	uint32_t hint = 0;
	for (uint32_t i = 0; i < v->len && (ok || r->report) && r->stop == LAT_OK; i++) {
		lat_value *key = &v->u.items[2 * i];
		lat_place here = {at, key, i, false};
		const lat_property *p = lat_object_find(o, r->schema->seed, key, &hint);
		bool evaluated = p && p->node != LAT_NODE_NONE;
		if (p && p->required >= 0) {
			uint64_t bit = (uint64_t)1 << (p->required % 64), *word = &seen[p->required / 64];
			*met += !(*word & bit);
			*word |= bit;
		}
		if (evaluated)
			ok = lat_run_node(r, p->node, key + 1, &here, scope, NULL) && ok;
		if (others && (!evaluated || o->pattern_count || o->names != LAT_NODE_NONE))
			ok = ((ok || r->report) && run_other(r, o, key, &here, scope, &evaluated)) && ok;
		if (evaluated)
			lat_track_mark(r, track, i);
	}
	return ok;
}

static bool report_required(lat_run *r, const lat_object_rules *o, const uint64_t *seen, const lat_place *at)
{
	for (uint32_t i = 0; i < o->property_count; i++) {
		const lat_property *p = &o->properties[i];
		if (p->required >= 0 && !(seen[p->required / 64] >> (p->required % 64) & 1))
			lat_report_missing(r, at, &p->name, NULL);
	}
	return false;
}

static bool run_object_seen(lat_run *r, const lat_object_rules *o, lat_value *v, const lat_place *at,
                            const lat_scope *scope, lat_track *track, uint64_t *seen)
{
	uint32_t met = 0;
	bool ok = run_members(r, o, v, at, scope, track, seen, &met);
	if (met < o->required_count && (ok || r->report))
		ok = report_required(r, o, seen, at);
	if (v->len < o->min_properties)
		ok = lat_report(r, at, v, "object with at least %llu member%s", (unsigned long long)o->min_properties,
		                plural(o->min_properties));
	if (v->len > o->max_properties)
		ok = lat_report(r, at, v, "object with at most %llu member%s", (unsigned long long)o->max_properties,
		                plural(o->max_properties));
	return ok;
}

static bool __attribute__((noinline))
run_object_many(lat_run *r, const lat_object_rules *o, lat_value *v, const lat_place *at,
                const lat_scope *scope, lat_track *track)
{
	size_t bytes = (o->required_count / 64 + 1) * sizeof(uint64_t);
	uint64_t *seen = lat_arena_alloc(r->arena, bytes);
	if (!seen)
		return lat_run_nomem(r);
	memset(seen, 0, bytes);
	return run_object_seen(r, o, v, at, scope, track, seen);
}

bool lat_run_object(lat_run *r, const lat_object_rules *o, lat_value *v, const lat_place *at,
                    const lat_scope *scope, lat_track *track)
{
	uint64_t seen = 0;
	if (o->required_count > SMALL_REQUIRED)
		return run_object_many(r, o, v, at, scope, track);
	return run_object_seen(r, o, v, at, scope, track, &seen);
}
