/* Where subschemas stand and what they are called: documents, "$id", "$anchor", "$dynamicAnchor", references.
 *
 * Lives during one compile, in one arena that the compiler owns and frees; one thread. */
#ifndef LAT_SCHEMA_RESOURCE_H
#define LAT_SCHEMA_RESOURCE_H

#include "base/buf.h"
#include "schema/program.h"

/* Vocabularies that a resource's metaschema turns on. */
enum {
	LAT_VOCABULARY_CORE = 1,
	LAT_VOCABULARY_APPLICATOR = 2,
	LAT_VOCABULARY_UNEVALUATED = 4,
	LAT_VOCABULARY_VALIDATION = 8,
	LAT_VOCABULARY_OTHER = 16, /* annotations: known, nothing to do */
	LAT_VOCABULARY_FORMAT_ASSERTION = 32,
	LAT_VOCABULARY_STANDARD = 31
};

/* One place where a schema stands. Its path is the chain of steps from the document's root. */
typedef struct {
	const lat_value *schema;
	uint32_t parent; /* location; LAT_NODE_NONE for a root */
	uint32_t resource;
	uint32_t node; /* LAT_NODE_NONE until compiled */
	lat_text keyword, key;
	int64_t index; /* -1: none */
} lat_location;

typedef struct {
	const char *uri; /* absolute where the document has one; no fragment */
	uint32_t root;   /* location */
	uint8_t vocabularies;
	bool vocabularies_known, used;
} lat_resource;

typedef struct {
	lat_text name;
	uint32_t resource, location;
	bool dynamic;
} lat_anchor;

typedef struct {
	uint64_t hash;
	const char *s; /* NULL: a free slot */
	uint32_t len, salt, value;
} lat_map_slot;

/* Bytes and a number to a number. */
typedef struct {
	lat_map_slot *slots;
	uint32_t mask, count;
} lat_map;

typedef struct {
	lat_arena arena;
	uint64_t seed;
	lat_error *err;
	lat_location *locations;
	uint32_t location_count, location_cap;
	lat_resource *resources;
	uint32_t resource_count, resource_cap;
	lat_anchor *anchors;
	uint32_t anchor_count, anchor_cap;
	lat_map by_value;  /* address of a schema → location */
	lat_map by_uri;    /* → resource */
	lat_map by_anchor; /* name, salted with the resource → anchor */
} lat_registry;

/* Notes a document and all schemas in it. uri may be "". */
lat_status lat_registry_add(lat_registry *g, const char *uri, const lat_value *document, uint32_t *resource);

/* What "$ref" in a schema of `from` (a location) leads to. *anchor is the anchor when the fragment named one. */
lat_status lat_registry_resolve(lat_registry *g, uint32_t from, const lat_value *reference,
                                uint32_t *location, const lat_anchor **anchor);

/* The vocabularies of a resource, by its "$schema". */
lat_status lat_registry_vocabularies(lat_registry *g, uint32_t resource, uint8_t *vocabularies);

/* The location of a schema that the scan found, LAT_NODE_NONE otherwise. */
uint32_t lat_registry_find(const lat_registry *g, const lat_value *schema);

/* Fails with the path of a location, then "/" and keyword where that isn't NULL. */
lat_status lat_registry_fail(lat_registry *g, uint32_t location, const char *keyword, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Room for one more of `size` bytes at the end of an array in the arena; the array or NULL. */
void *lat_array_grow(lat_arena *arena, void *array, size_t size, uint32_t count, uint32_t *cap);

/* ---- shared by resource.c and reference.c ---- */

bool lat_is_schema(const lat_value *v); /* an object or a boolean */
uint32_t lat_map_get(const lat_registry *g, const lat_map *m, const char *s, uint32_t len, uint32_t salt);
/* A new location; its number in *out, which may be NULL. */
lat_status lat_registry_place(lat_registry *g, const lat_location *made, uint32_t *out);
/* Notes the names and the subschemas of a location that was placed last, and of all that adds. */
lat_status lat_registry_scan(lat_registry *g, uint32_t location);

/* The draft's own documents; NULL when uri names none. */
const char *lat_metaschema_text(const char *uri);

#endif
