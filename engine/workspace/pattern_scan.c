/* lat_pattern_scan: one pass over a pattern, keeping the longest run of literal characters outside of groups. Owns
 * nothing; any thread. Errs on one side only: a literal that it names is needed, a pattern called plain is plain. */
#include "workspace/pattern_scan.h"

#include <ctype.h>
#include <string.h>

typedef struct {
	const char *at, *end;
	lat_pattern_scan *scan;
	char run[LAT_SCAN_LITERAL_MAX];
	size_t run_len;
	size_t last_atom; /* where in the run the last character began */
	size_t depth;     /* of groups */
	bool whole;       /* so far the run is the whole pattern */
	bool no_literal;
} scanner;

static void end_run(scanner *s)
{
	if (s->run_len > s->scan->literal_len) {
		memcpy(s->scan->literal, s->run, s->run_len);
		s->scan->literal_len = s->run_len;
	}
	s->run_len = s->last_atom = 0;
}

static void break_run(scanner *s)
{
	end_run(s);
	s->whole = false;
}

static void give_up(scanner *s)
{
	s->no_literal = true;
	s->scan->is_plain = false;
	s->whole = false;
}

/* A run that is full stays as it is: its bytes are needed whatever follows. */
static void add_byte(scanner *s, char byte)
{
	if (s->depth > 0)
		return;
	bool continues = ((unsigned char)byte & 0xC0) == 0x80;
	if (!continues)
		s->last_atom = s->run_len;
	if (s->run_len == LAT_SCAN_LITERAL_MAX)
		s->whole = false;
	else
		s->run[s->run_len++] = byte;
}

/* "[" … "]": what follows it. */
static const char *after_set(const char *at, const char *end)
{
	at++;
	if (at < end && *at == '^')
		at++;
	if (at < end && *at == ']')
		at++;
	while (at < end && *at != ']') {
		if (*at == '\\') {
			at++;
		} else if (at + 1 < end && at[0] == '[' && (at[1] == ':' || at[1] == '.' || at[1] == '=')) {
			const char *close = memchr(at + 2, ']', (size_t)(end - at - 2));
			if (close && close[-1] == at[1])
				at = close;
		}
		if (at < end)
			at++;
	}
	return at < end ? at + 1 : end;
}

static void escape(scanner *s)
{
	if (s->at + 1 >= s->end) {
		give_up(s);
		s->at = s->end;
		return;
	}
	unsigned char c = (unsigned char)s->at[1];
	s->at += 2;
	if (c < 128 && !isalnum(c)) {
		add_byte(s, (char)c);
	} else if (c == 't') {
		add_byte(s, '\t');
	} else if (c == 'n') {
		s->scan->has_newline = true;
		add_byte(s, '\n');
	} else if (strchr("bBdDwWsShHvV", c)) {
		break_run(s);
	} else {
		give_up(s); /* it may have an argument, or know of more than the line */
	}
}

/* (?:…) and (?i) leave a pattern plain; everything else behind "(?" doesn't, nor do verbs. */
static void open_group(scanner *s)
{
	break_run(s);
	s->depth++;
	s->at++;
	if (s->at < s->end && *s->at == '*')
		give_up(s);
	if (s->at == s->end || *s->at != '?')
		return;
	s->at++;
	size_t flags = 0;
	while (s->at + flags < s->end && (s->at[flags] == 'i' || s->at[flags] == 's'))
		flags++;
	char close = s->at + flags < s->end ? s->at[flags] : '\0';
	if (close != ':' && (close != ')' || flags == 0))
		give_up(s);
	else if (flags > 0)
		s->no_literal = true;
	s->at += flags;
	if (close == ':')
		s->at++;
}

/* The last character may be missing, or stand again. */
static void quantifier(scanner *s)
{
	bool needed = *s->at == '+';
	if (s->depth == 0 && !needed && s->run_len > 0)
		s->run_len = s->last_atom;
	break_run(s);
	if (*s->at == '{') {
		const char *close = memchr(s->at, '}', (size_t)(s->end - s->at));
		s->at = close ? close : s->end - 1;
	}
	s->at++;
	if (s->at < s->end && *s->at == '+')
		s->scan->is_plain = false; /* possessive */
	if (s->at < s->end && (*s->at == '+' || *s->at == '?'))
		s->at++;
}

static void step(scanner *s)
{
	char c = *s->at;
	if (c == '\\') {
		escape(s);
	} else if (c == '[') {
		break_run(s);
		s->at = after_set(s->at, s->end);
	} else if (c == '(') {
		open_group(s);
	} else if (c == ')') {
		break_run(s);
		if (s->depth > 0)
			s->depth--;
		s->at++;
	} else if (c == '*' || c == '+' || c == '?' ||
	           (c == '{' && s->at + 1 < s->end && (isdigit((unsigned char)s->at[1]) || s->at[1] == ','))) {
		quantifier(s);
	} else if (c == '|') {
		break_run(s);
		if (s->depth == 0)
			s->no_literal = true;
		s->at++;
	} else if (c == '.' || c == '^' || c == '$') {
		break_run(s);
		s->at++;
	} else {
		s->scan->has_newline |= c == '\n';
		add_byte(s, c);
		s->at++;
	}
}

void lat_pattern_scan_run(const char *pattern, size_t len, bool case_insensitive, lat_pattern_scan *scan)
{
	*scan = (lat_pattern_scan){.is_plain = true, .is_ascii = true};
	scanner s = {.at = pattern, .end = pattern + len, .scan = scan, .whole = true};
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)pattern[i] >= 128)
			scan->is_ascii = false;
	while (s.at < s.end)
		step(&s);
	bool whole = s.whole && s.run_len > 0;
	end_run(&s);
	if (s.no_literal || case_insensitive)
		scan->literal_len = 0;
	scan->is_literal = whole && scan->literal_len > 0;
}
