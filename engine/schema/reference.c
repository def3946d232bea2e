/* What references lead to, and what vocabularies a resource uses: look-ups in the registry of one compile.
 * All memory is the registry's arena; one thread. */
#include "schema/resource.h"

#include "schema/uri.h"
#include "json/read.h"

#include <string.h>

/* ---- references ---- */

static lat_status find_resource(lat_registry *g, const char *uri, uint32_t *out)
{
	*out = lat_map_get(g, &g->by_uri, uri, (uint32_t)strlen(uri), 0);
	const char *text = *out == LAT_NODE_NONE ? lat_metaschema_text(uri) : NULL;
	if (!text)
		return LAT_OK;
	lat_value *document = lat_arena_alloc(&g->arena, sizeof *document);
	if (!document)
		return lat_fail_nomem(g->err);
	lat_status status = lat_json_read(&g->arena, text, strlen(text), NULL, document, g->err);
	if (status == LAT_OK)
		status = lat_registry_add(g, uri, document, out);
	return status;
}

/* One token of a JSON pointer (RFC 6901), unescaped in place. */
static lat_text next_token(char **at, char *end)
{
	char *start = *at, *out = start, *p = start;
	for (; p < end && *p != '/'; p++) {
		char c = *p;
		if (c == '~' && p + 1 < end && (p[1] == '0' || p[1] == '1'))
			c = *++p == '0' ? '~' : '/';
		*out++ = c;
	}
	*at = p < end ? p + 1 : NULL;
	return (lat_text){start, (uint32_t)(out - start)};
}

static const lat_value *step(const lat_value *v, lat_text token)
{
	if (v->type == LAT_OBJECT)
		return lat_value_get_n(v, token.s, token.len);
	if (v->type != LAT_ARRAY || !token.len || token.len > 9)
		return NULL;
	uint32_t index = 0;
	for (uint32_t i = 0; i < token.len; i++) {
		if (token.s[i] < '0' || token.s[i] > '9')
			return NULL;
		index = index * 10 + (uint32_t)(token.s[i] - '0');
	}
	return index < v->len ? &v->u.items[index] : NULL;
}

/* Walks a pointer from a resource's root. What it finds in a place that no keyword makes a schema (an unknown
 * keyword's value) becomes a location of its own. */
static lat_status find_pointer(lat_registry *g, uint32_t resource, char *pointer, size_t len, uint32_t *out)
{
	uint32_t location = g->resources[resource].root;
	const lat_value *v = g->locations[location].schema;
	lat_location made = {.parent = LAT_NODE_NONE, .node = LAT_NODE_NONE, .index = -1};
	char *at = len ? pointer + 1 : NULL, *end = len ? pointer + len : NULL;
	char *whole = lat_arena_copy(&g->arena, pointer, len);
	if (!whole)
		return lat_fail_nomem(g->err);
	while (at && v) {
		v = step(v, next_token(&at, end));
		uint32_t known = v ? lat_registry_find(g, v) : LAT_NODE_NONE;
		if (known != LAT_NODE_NONE)
			location = known;
	}
	*out = LAT_NODE_NONE;
	if (!v || !lat_is_schema(v))
		return LAT_OK;
	if (g->locations[location].schema == v) {
		*out = location;
		return LAT_OK;
	}
	made.schema = v;
	made.resource = g->locations[location].resource;
	made.parent = g->resources[resource].root;
	made.keyword = (lat_text){whole + 1, (uint32_t)len - 1};
	lat_status status = lat_registry_place(g, &made, out);
	return status == LAT_OK ? lat_registry_scan(g, *out) : status;
}

lat_status lat_registry_resolve(lat_registry *g, uint32_t from, const lat_value *reference,
                                uint32_t *location, const lat_anchor **anchor)
{
	char *uri, *fragment;
	size_t len;
	uint32_t resource;
	const char *base = g->resources[g->locations[from].resource].uri;
	*location = LAT_NODE_NONE;
	*anchor = NULL;
	if (!lat_uri_resolve(&g->arena, base, reference->u.s, reference->len, &uri, &fragment, &len))
		return lat_fail_nomem(g->err);
	lat_status status = LAT_OK;
	resource = g->locations[from].resource;
	if (strcmp(uri, base) != 0)
		status = find_resource(g, uri, &resource);
	if (status != LAT_OK || resource == LAT_NODE_NONE)
		return status;
	if (!len || *fragment == '/')
		return find_pointer(g, resource, fragment, len, location);
	uint32_t found = lat_map_get(g, &g->by_anchor, fragment, (uint32_t)len, resource);
	if (found != LAT_NODE_NONE) {
		*anchor = &g->anchors[found];
		*location = (*anchor)->location;
	}
	return LAT_OK;
}

/* ---- vocabularies ---- */

static uint8_t vocabulary_bit(const lat_value *uri)
{
	static const struct {
		const char *name;
		uint8_t bit;
	} KNOWN[] = {
		{"core", LAT_VOCABULARY_CORE},
		{"applicator", LAT_VOCABULARY_APPLICATOR},
		{"unevaluated", LAT_VOCABULARY_UNEVALUATED},
		{"validation", LAT_VOCABULARY_VALIDATION},
		{"meta-data", LAT_VOCABULARY_OTHER},
		{"content", LAT_VOCABULARY_OTHER},
		{"format-annotation", LAT_VOCABULARY_OTHER},
		{"format-assertion", LAT_VOCABULARY_FORMAT_ASSERTION},
	};
	static const char BASE[] = "https://json-schema.org/draft/2020-12/vocab/";
	size_t n = sizeof BASE - 1;
	if (uri->len <= n || memcmp(uri->u.s, BASE, n) != 0)
		return 0;
	lat_value name = lat_value_string_view(uri->u.s + n, uri->len - n);
	for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
		if (lat_value_is_string(&name, KNOWN[i].name))
			return KNOWN[i].bit;
	return 0;
}

/* Reads the "$vocabulary" of the metaschema that root's "$schema" names. A metaschema that isn't registered,
 * an older draft's for instance, counts as the standard one. */
static lat_status read_vocabularies(lat_registry *g, uint32_t root, uint8_t *bits)
{
	const lat_value *name = lat_value_get(g->locations[root].schema, "$schema");
	*bits = LAT_VOCABULARY_STANDARD;
	if (!name)
		return LAT_OK;
	if (name->type != LAT_STRING)
		return lat_registry_fail(g, root, "$schema", "expected a URI");
	uint32_t meta = lat_map_get(g, &g->by_uri, name->u.s, name->len, 0);
	if (meta == LAT_NODE_NONE)
		return LAT_OK;
	const lat_value *listed = lat_value_get(g->locations[g->resources[meta].root].schema, "$vocabulary");
	if (!listed || listed->type != LAT_OBJECT)
		return LAT_OK;
	*bits = LAT_VOCABULARY_CORE;
	for (uint32_t i = 0; i < listed->len; i++) {
		const lat_value *uri = &listed->u.items[2 * i];
		uint8_t bit = vocabulary_bit(uri);
		if (!bit && uri[1].type == LAT_TRUE)
			return lat_registry_fail(g, root, "$schema",
			                         "its metaschema requires the vocabulary %.*s, which isn't known",
			                         (int)uri->len, uri->u.s);
		*bits |= bit;
	}
	return LAT_OK;
}

lat_status lat_registry_vocabularies(lat_registry *g, uint32_t resource, uint8_t *vocabularies)
{
	uint32_t root = g->resources[resource].root;
	lat_status status = LAT_OK;
	if (!g->resources[resource].vocabularies_known) {
		uint32_t parent = g->locations[root].parent;
		bool own = lat_value_get(g->locations[root].schema, "$schema") || parent == LAT_NODE_NONE;
		uint8_t bits = 0;
		if (own)
			status = read_vocabularies(g, root, &bits);
		else
			status = lat_registry_vocabularies(g, g->locations[parent].resource, &bits);
		g->resources[resource].vocabularies = bits;
		g->resources[resource].vocabularies_known = status == LAT_OK;
	}
	*vocabularies = g->resources[resource].vocabularies;
	return status;
}
