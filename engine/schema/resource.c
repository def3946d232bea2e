/* The registry of one compile: which schemas there are, under which URIs and anchors, and what a reference
 * leads to. All memory is the registry's arena, freed by the compiler; one thread; no recursion: documents
 * are walked with the array of locations as the queue. */
#include "schema/resource.h"

#include "schema/equal.h"
#include "schema/uri.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *lat_array_grow(lat_arena *arena, void *array, size_t size, uint32_t count, uint32_t *cap)
{
	if (count < *cap)
		return array;
	if (*cap > UINT32_MAX / 4)
		return NULL;
	uint32_t wanted = *cap ? *cap * 2 : 16;
	void *grown = lat_arena_alloc(arena, wanted * size);
	if (!grown)
		return NULL;
	if (count)
		memcpy(grown, array, count * size);
	*cap = wanted;
	return grown;
}

/* ---- maps ---- */

static lat_map_slot *map_slot(const lat_map *m, uint64_t hash, const char *s, uint32_t len, uint32_t salt)
{
	uint32_t at = (uint32_t)hash & m->mask;
	for (;; at = (at + 1) & m->mask) {
		lat_map_slot *slot = &m->slots[at];
		if (!slot->s ||
		    (slot->hash == hash && slot->len == len && slot->salt == salt && memcmp(slot->s, s, len) == 0))
			return slot;
	}
}

static bool map_grow(lat_registry *g, lat_map *m)
{
	uint32_t size = m->slots ? (m->mask + 1) * 2 : 32;
	lat_map wider = {lat_arena_alloc(&g->arena, size * sizeof(lat_map_slot)), size - 1, m->count};
	if (!wider.slots)
		return false;
	memset(wider.slots, 0, size * sizeof *wider.slots);
	for (uint32_t i = 0; m->slots && i <= m->mask; i++) {
		const lat_map_slot *old = &m->slots[i];
		if (old->s)
			*map_slot(&wider, old->hash, old->s, old->len, old->salt) = *old;
	}
	*m = wider;
	return true;
}

/* The slot of a key, made when it wasn't there (then *fresh). NULL when out of memory. */
static lat_map_slot *map_put(lat_registry *g, lat_map *m, const char *s, uint32_t len, uint32_t salt,
                             bool *fresh)
{
	if ((!m->slots || m->count * 2 > m->mask) && !map_grow(g, m))
		return NULL;
	uint64_t hash = lat_hash_bytes(g->seed + salt, s, len);
	lat_map_slot *slot = map_slot(m, hash, s, len, salt);
	*fresh = !slot->s;
	if (*fresh) {
		*slot = (lat_map_slot){hash, s, len, salt, 0};
		m->count++;
	}
	return slot;
}

uint32_t lat_map_get(const lat_registry *g, const lat_map *m, const char *s, uint32_t len, uint32_t salt)
{
	if (!m->slots)
		return LAT_NODE_NONE;
	const lat_map_slot *slot = map_slot(m, lat_hash_bytes(g->seed + salt, s, len), s, len, salt);
	return slot->s ? slot->value : LAT_NODE_NONE;
}

/* ---- errors ---- */

static void put_token(lat_buf *b, const char *s, size_t len)
{
	lat_buf_byte(b, '/');
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '~')
			lat_buf_str(b, "~0");
		else if (s[i] == '/')
			lat_buf_str(b, "~1");
		else if (s[i] == '\0')
			lat_buf_str(b, "\\u0000");
		else
			lat_buf_byte(b, s[i]);
	}
}

/* Steps come from the leaf up; they are laid out from the end of a fixed list. */
static void put_path(lat_registry *g, uint32_t location, lat_buf *b)
{
	enum { LONGEST_CHAIN = 64 };
	uint32_t chain[LONGEST_CHAIN];
	size_t n = 0;
	for (uint32_t at = location; at != LAT_NODE_NONE && n < LONGEST_CHAIN; at = g->locations[at].parent)
		chain[n++] = at;
	const lat_location *top = n ? &g->locations[chain[n - 1]] : NULL;
	if (top && top->resource != 0 && top->parent == LAT_NODE_NONE)
		lat_buf_printf(b, "%s#", g->resources[top->resource].uri);
	while (n-- > 0) {
		const lat_location *at = &g->locations[chain[n]];
		if (at->keyword.s)
			put_token(b, at->keyword.s, at->keyword.len);
		if (at->key.s)
			put_token(b, at->key.s, at->key.len);
		if (at->index >= 0)
			lat_buf_printf(b, "/%lld", (long long)at->index);
	}
}

lat_status lat_registry_fail(lat_registry *g, uint32_t location, const char *keyword, const char *format, ...)
{
	char message[sizeof g->err->message];
	lat_buf path = LAT_BUF_INIT;
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	put_path(g, location, &path);
	if (keyword)
		lat_buf_printf(&path, "/%s", keyword);
	lat_fail_at(g->err, LAT_E_INVALID, lat_buf_cstr(&path), "%s", message);
	lat_buf_free(&path);
	return LAT_E_INVALID;
}

/* ---- walking a document ---- */

lat_status lat_registry_place(lat_registry *g, const lat_location *made, uint32_t *out)
{
	lat_location *all =
		lat_array_grow(&g->arena, g->locations, sizeof *all, g->location_count, &g->location_cap);
	const lat_value **address = lat_arena_alloc(&g->arena, sizeof *address);
	if (!all || !address)
		return lat_fail_nomem(g->err);
	g->locations = all;
	*address = made->schema;
	bool fresh;
	lat_map_slot *slot = map_put(g, &g->by_value, (const char *)address, sizeof *address, 0, &fresh);
	if (!slot)
		return lat_fail_nomem(g->err);
	if (fresh)
		slot->value = g->location_count;
	if (out)
		*out = g->location_count;
	all[g->location_count++] = *made;
	return LAT_OK;
}

uint32_t lat_registry_find(const lat_registry *g, const lat_value *schema)
{
	return lat_map_get(g, &g->by_value, (const char *)&schema, sizeof schema, 0);
}

static lat_status add_resource(lat_registry *g, const char *uri, uint32_t root, uint32_t *out)
{
	lat_resource *all =
		lat_array_grow(&g->arena, g->resources, sizeof *all, g->resource_count, &g->resource_cap);
	bool fresh;
	lat_map_slot *slot = all ? map_put(g, &g->by_uri, uri, (uint32_t)strlen(uri), 0, &fresh) : NULL;
	if (!slot)
		return lat_fail_nomem(g->err);
	g->resources = all;
	if (fresh) /* the first one has the name: the schema itself before registered documents */
		slot->value = g->resource_count;
	all[g->resource_count] = (lat_resource){.uri = uri, .root = root};
	*out = g->resource_count++;
	return LAT_OK;
}

static lat_status add_anchor(lat_registry *g, uint32_t location, const char *keyword, bool dynamic)
{
	const lat_location *at = &g->locations[location];
	const lat_value *name = lat_value_get(at->schema, keyword);
	if (!name)
		return LAT_OK;
	if (name->type != LAT_STRING || !name->len)
		return lat_registry_fail(g, location, keyword, "expected a name");
	lat_anchor *all = lat_array_grow(&g->arena, g->anchors, sizeof *all, g->anchor_count, &g->anchor_cap);
	bool fresh;
	lat_map_slot *slot = all ? map_put(g, &g->by_anchor, name->u.s, name->len, at->resource, &fresh) : NULL;
	if (!slot)
		return lat_fail_nomem(g->err);
	if (!fresh && g->anchors[slot->value].location != location)
		return lat_registry_fail(g, location, keyword, "this name stands twice in one resource");
	g->anchors = all;
	if (fresh || dynamic) /* one name for both: the dynamic one tells more */
		slot->value = g->anchor_count;
	all[g->anchor_count++] = (lat_anchor){{name->u.s, name->len}, at->resource, location, dynamic};
	return LAT_OK;
}

/* "$id" starts a resource of its own, named relative to the one around it. */
static lat_status enter_resource(lat_registry *g, uint32_t location)
{
	const lat_value *id = lat_value_get(g->locations[location].schema, "$id");
	if (!id)
		return LAT_OK;
	if (id->type != LAT_STRING || memchr(id->u.s, '\0', id->len))
		return lat_registry_fail(g, location, "$id", "expected a URI reference");
	char *uri, *fragment;
	size_t fragment_len;
	const char *base = g->resources[g->locations[location].resource].uri;
	if (!lat_uri_resolve(&g->arena, base, id->u.s, id->len, &uri, &fragment, &fragment_len))
		return lat_fail_nomem(g->err);
	if (fragment_len)
		return lat_registry_fail(g, location, "$id", "a fragment isn't allowed here; use $anchor");
	return add_resource(g, uri, location, &g->locations[location].resource);
}

typedef enum { HOLDS_SCHEMA, HOLDS_LIST, HOLDS_MAP } holding;

static const struct {
	const char *keyword;
	holding holds;
} APPLICATORS[] = {
	{"$defs", HOLDS_MAP},
	{"additionalProperties", HOLDS_SCHEMA},
	{"allOf", HOLDS_LIST},
	{"anyOf", HOLDS_LIST},
	{"contains", HOLDS_SCHEMA},
	{"contentSchema", HOLDS_SCHEMA},
	{"definitions", HOLDS_MAP},
	{"dependentSchemas", HOLDS_MAP},
	{"else", HOLDS_SCHEMA},
	{"if", HOLDS_SCHEMA},
	{"items", HOLDS_SCHEMA},
	{"not", HOLDS_SCHEMA},
	{"oneOf", HOLDS_LIST},
	{"patternProperties", HOLDS_MAP},
	{"prefixItems", HOLDS_LIST},
	{"properties", HOLDS_MAP},
	{"propertyNames", HOLDS_SCHEMA},
	{"then", HOLDS_SCHEMA},
	{"unevaluatedItems", HOLDS_SCHEMA},
	{"unevaluatedProperties", HOLDS_SCHEMA},
};

bool lat_is_schema(const lat_value *v)
{
	return v->type == LAT_OBJECT || v->type == LAT_TRUE || v->type == LAT_FALSE;
}

/* Wrong types are left for the compiler to tell, which knows whether the keyword is used at all. */
static lat_status add_held(lat_registry *g, uint32_t parent, const lat_value *keyword, holding holds)
{
	const lat_value *held = keyword + 1;
	lat_location made = {.parent = parent,
	                     .resource = g->locations[parent].resource,
	                     .node = LAT_NODE_NONE,
	                     .keyword = {keyword->u.s, keyword->len},
	                     .index = -1};
	lat_status status = LAT_OK;
	if (holds == HOLDS_SCHEMA && lat_is_schema(held)) {
		made.schema = held;
		return lat_registry_place(g, &made, NULL);
	}
	if (holds == HOLDS_LIST && held->type == LAT_ARRAY) {
		for (uint32_t i = 0; i < held->len && status == LAT_OK; i++) {
			made.schema = &held->u.items[i];
			made.index = i;
			if (lat_is_schema(made.schema))
				status = lat_registry_place(g, &made, NULL);
		}
	} else if (holds == HOLDS_MAP && held->type == LAT_OBJECT) {
		for (uint32_t i = 0; i < held->len && status == LAT_OK; i++) {
			const lat_value *key = &held->u.items[2 * i];
			made.schema = key + 1;
			made.key = (lat_text){key->u.s, key->len};
			if (lat_is_schema(made.schema))
				status = lat_registry_place(g, &made, NULL);
		}
	}
	return status;
}

static lat_status scan_one(lat_registry *g, uint32_t location)
{
	const lat_value *schema = g->locations[location].schema;
	if (schema->type != LAT_OBJECT)
		return LAT_OK;
	lat_status status = enter_resource(g, location);
	if (status == LAT_OK)
		status = add_anchor(g, location, "$anchor", false);
	if (status == LAT_OK)
		status = add_anchor(g, location, "$dynamicAnchor", true);
	for (uint32_t i = 0; i < schema->len && status == LAT_OK; i++) {
		const lat_value *key = &schema->u.items[2 * i];
		for (size_t k = 0; k < sizeof APPLICATORS / sizeof *APPLICATORS; k++)
			if (lat_value_is_string(key, APPLICATORS[k].keyword))
				status = add_held(g, location, key, APPLICATORS[k].holds);
	}
	return status;
}

/* Scans a location and everything that it adds behind it. */
lat_status lat_registry_scan(lat_registry *g, uint32_t location)
{
	lat_status status = LAT_OK;
	for (uint32_t i = location; i < g->location_count && status == LAT_OK; i++)
		status = scan_one(g, i);
	return status;
}

lat_status lat_registry_add(lat_registry *g, const char *uri, const lat_value *document, uint32_t *resource)
{
	lat_location root = {.schema = document,
	                     .parent = LAT_NODE_NONE,
	                     .resource = g->resource_count,
	                     .node = LAT_NODE_NONE,
	                     .index = -1};
	uint32_t location;
	lat_status status = lat_registry_place(g, &root, &location);
	if (status == LAT_OK)
		status = add_resource(g, uri, location, resource);
	if (status != LAT_OK || !lat_is_schema(document))
		return status;
	return lat_registry_scan(g, location);
}
