/* Bracket sets as git reads them: a "]" right at the start is a member, a "-" at either end too, a class is told by
 * its name, and a backslash takes the next byte as it is. Pure; any thread; owns nothing. */
#include "workspace/glob_set.h"

#include <string.h>

static void add(lat_glob_set *set, unsigned from, unsigned to)
{
	for (unsigned byte = from; byte <= to; byte++)
		set->words[byte / 64] |= UINT64_C(1) << (byte % 64);
}

typedef struct {
	const char *name;
	const char *ranges; /* pairs: from, to */
} class_of_bytes;

static const class_of_bytes CLASSES[] = {
	{"alnum", "09AZaz"},   {"alpha", "AZaz"},   {"blank", "  \t\t"}, {"cntrl", "\1\37\177\177"},
	{"digit", "09"},       {"graph", "!~"},     {"lower", "az"},     {"print", " ~"},
	{"punct", "!/:@[`{~"}, {"space", "  \t\r"}, {"upper", "AZ"},     {"xdigit", "09AFaf"},
};

static bool add_class(lat_glob_set *set, const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof CLASSES / sizeof CLASSES[0]; i++) {
		if (strlen(CLASSES[i].name) != len || memcmp(CLASSES[i].name, name, len) != 0)
			continue;
		for (const char *r = CLASSES[i].ranges; *r; r += 2)
			add(set, (unsigned char)r[0], (unsigned char)r[1]);
		return true;
	}
	return false;
}

/* At "[:" … returns what follows ":]"; at itself when it isn't a class; NULL when it has no end or is unknown. */
static const char *read_class(const char *at, const char *end, lat_glob_set *set)
{
	const char *name = at + 2;
	const char *close = name < end ? memchr(name, ']', (size_t)(end - name)) : NULL;
	if (!close)
		return NULL;
	if (close == name || close[-1] != ':' || close - name < 1)
		return at;
	return add_class(set, name, (size_t)(close - name - 1)) ? close + 1 : NULL;
}

/* One member that isn't a class, a backslash resolved; NULL at the end. */
static const char *read_member(const char *at, const char *end, unsigned char *byte)
{
	if (at < end && *at == '\\')
		at++;
	if (at >= end)
		return NULL;
	*byte = (unsigned char)*at;
	return at + 1;
}

typedef struct {
	unsigned char byte;
	bool starts; /* a range may begin with it */
} member;

static const char *read_one(const char *at, const char *end, lat_glob_set *set, member *before)
{
	unsigned char byte;
	if (*at == '-' && before->starts && at + 1 < end && at[1] != ']') {
		at = read_member(at + 1, end, &byte);
		if (at && before->byte <= byte)
			add(set, before->byte, byte);
		before->starts = false;
		return at;
	}
	if (at + 1 < end && at[0] == '[' && at[1] == ':') {
		const char *after = read_class(at, end, set);
		if (after != at) {
			before->starts = false;
			return after;
		}
		byte = '[';
		at++;
	} else {
		at = read_member(at, end, &byte);
	}
	if (at) {
		add(set, byte, byte);
		*before = (member){.byte = byte, .starts = byte != 0};
	}
	return at;
}

const char *lat_glob_set_parse(const char *at, const char *end, lat_glob_set *set)
{
	memset(set, 0, sizeof *set);
	at++;
	bool negated = at < end && (*at == '!' || *at == '^');
	if (negated)
		at++;
	member before = {0, false};
	const char *first = at;
	while (at && at < end && (at == first || *at != ']'))
		at = read_one(at, end, set, &before);
	if (!at || at >= end)
		return NULL;
	for (int i = 0; negated && i < LAT_GLOB_SET_WORDS; i++)
		set->words[i] = ~set->words[i];
	set->words['/' / 64] &= ~(UINT64_C(1) << ('/' % 64));
	return at + 1;
}
