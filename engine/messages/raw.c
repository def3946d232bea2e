/* Raw slices of JSON: see raw.h. Pure. */
#include "messages/raw.h"

#include <string.h>

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return at;
}

static const char *skip_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		if (*at == '\\')
			at++;
	return at < end ? at + 1 : end;
}

static const char *skip_container(const char *at, const char *end)
{
	size_t depth = 0;
	while (at < end) {
		if (*at == '"') {
			at = skip_string(at, end);
			continue;
		}
		if (*at == '{' || *at == '[')
			depth++;
		else if (*at == '}' || *at == ']')
			depth--;
		at++;
		if (depth == 0)
			break;
	}
	return at;
}

static const char *skip_value(const char *at, const char *end)
{
	if (at < end && *at == '"')
		return skip_string(at, end);
	if (at < end && (*at == '{' || *at == '['))
		return skip_container(at, end);
	while (at < end && !strchr(",]} \t\n\r", *at))
		at++;
	return at;
}

lat_raw_walk lat_raw_begin(lat_slice container)
{
	const char *end = container.s + container.len;
	const char *at = skip_space(container.s, end);
	if (at == end || (*at != '{' && *at != '['))
		return (lat_raw_walk){end, end};
	return (lat_raw_walk){at + 1, end};
}

/* Passes over a comma; false at the end of the container. */
static bool more(lat_raw_walk *walk)
{
	walk->at = skip_space(walk->at, walk->end);
	if (walk->at < walk->end && *walk->at == ',')
		walk->at = skip_space(walk->at + 1, walk->end);
	return walk->at < walk->end && *walk->at != '}' && *walk->at != ']';
}

bool lat_raw_next_item(lat_raw_walk *walk, lat_slice *value)
{
	if (!more(walk))
		return false;
	value->s = walk->at;
	walk->at = skip_value(walk->at, walk->end);
	value->len = (size_t)(walk->at - value->s);
	return true;
}

bool lat_raw_next_member(lat_raw_walk *walk, lat_slice *key, lat_slice *value)
{
	if (!lat_raw_next_item(walk, key))
		return false;
	walk->at = skip_space(walk->at, walk->end);
	if (walk->at < walk->end) /* the colon */
		walk->at = skip_space(walk->at + 1, walk->end);
	value->s = walk->at;
	walk->at = skip_value(walk->at, walk->end);
	value->len = (size_t)(walk->at - value->s);
	return true;
}

bool lat_raw_key_is(lat_slice key, const char *name)
{
	size_t len = strlen(name);
	return key.len == len + 2 && memcmp(key.s + 1, name, len) == 0;
}

bool lat_slice_is(lat_slice slice, const char *text)
{
	return slice.len == strlen(text) && memcmp(slice.s, text, slice.len) == 0;
}

bool lat_raw_member(lat_slice object, const char *name, lat_slice *value)
{
	lat_raw_walk walk = lat_raw_begin(object);
	lat_slice key, found;
	bool there = false;
	while (lat_raw_next_member(&walk, &key, &found)) {
		if (lat_raw_key_is(key, name)) {
			*value = found;
			there = true;
		}
	}
	return there;
}
