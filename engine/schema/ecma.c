/* ECMA-262 regular expressions written as PCRE2 means them. Owns nothing; any thread; one pass, no recursion.
 *
 * Where the two read alike the text is copied. What differs (ECMA-262 section 22.2.1): \s, \v and "." have
 * other members, code points are written otherwise, properties have long names, "[" in a class is plain,
 * and everything that only PCRE2 knows (verbs, \A, \h, inline flags, possessive quantifiers) is an error. */
#include "schema/ecma.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SPACE_MEMBERS                                                                                      \
	"\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}" \
	"\\x{feff}"
#define NOT_SPACE_MEMBERS                                                                               \
	"\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}" \
	"\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}"

enum { LONGEST_PROPERTY = 64, LONGEST_NAME = 32, MOST_GROUPS = 10000 };

typedef struct {
	const char *s;
	size_t len, at;
	lat_buf *out;
	lat_error *err;
	bool in_class;
	bool quantifiable; /* the last thing was an atom */
	unsigned groups;
} reader;

static lat_status syntax(reader *r, size_t offset, const char *what)
{
	lat_fail(r->err, LAT_E_SYNTAX, "not an ECMA-262 regular expression: %s at offset %zu", what, offset);
	if (r->err)
		r->err->offset = offset;
	return LAT_E_SYNTAX;
}

static int peek(const reader *r, size_t ahead)
{
	return r->at + ahead < r->len ? (unsigned char)r->s[r->at + ahead] : -1;
}

static bool follows(const reader *r, const char *text)
{
	size_t n = strlen(text);
	return r->len - r->at >= n && memcmp(r->s + r->at, text, n) == 0;
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void put_code_point(reader *r, uint32_t code)
{
	lat_buf_printf(r->out, "\\x{%x}", (unsigned)code);
}

/* Reads n hex digits (n = 0: all that stand there, at least one) at r->at. -1 when there aren't. */
static int64_t read_hex(reader *r, unsigned n)
{
	int64_t value = 0;
	unsigned got = 0;
	for (; !n || got < n; got++) {
		int c = peek(r, 0), digit = is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
		if (!is_digit(c) && !((c | 0x20) >= 'a' && (c | 0x20) <= 'f'))
			break;
		value = value * 16 + digit;
		if (value > 0x10FFFF)
			return -1;
		r->at++;
	}
	return got && (!n || got == n) ? value : -1;
}

/* Behind "\u": four digits, a surrogate pair of such, or {digits}. */
static lat_status unicode_escape(reader *r, size_t start)
{
	int64_t code;
	if (peek(r, 0) == '{') {
		r->at++;
		code = read_hex(r, 0);
		if (code < 0 || peek(r, 0) != '}')
			return syntax(r, start, "\\u{…} needs a code point in hex digits");
		r->at++;
	} else {
		code = read_hex(r, 4);
		if (code < 0)
			return syntax(r, start, "\\u needs four hex digits");
		if (code >= 0xD800 && code < 0xDC00 && follows(r, "\\u")) {
			r->at += 2;
			int64_t low = read_hex(r, 4);
			if (low < 0xDC00 || low > 0xDFFF)
				return syntax(r, start, "a lone surrogate");
			code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
		}
	}
	if (code >= 0xD800 && code <= 0xDFFF)
		return syntax(r, start, "a lone surrogate");
	put_code_point(r, (uint32_t)code);
	return LAT_OK;
}

/* Long names of general categories (ECMA-262 table 69) and what PCRE2 calls them. */
static const struct {
	const char *ecma, *pcre;
} CATEGORIES[] = {
	{"Any", "Any"},
	{"Cased_Letter", "L&"},
	{"Close_Punctuation", "Pe"},
	{"Combining_Mark", "M"},
	{"Connector_Punctuation", "Pc"},
	{"Control", "Cc"},
	{"Currency_Symbol", "Sc"},
	{"Dash_Punctuation", "Pd"},
	{"Decimal_Number", "Nd"},
	{"Enclosing_Mark", "Me"},
	{"Final_Punctuation", "Pf"},
	{"Format", "Cf"},
	{"Initial_Punctuation", "Pi"},
	{"LC", "L&"},
	{"Letter", "L"},
	{"Letter_Number", "Nl"},
	{"Line_Separator", "Zl"},
	{"Lowercase_Letter", "Ll"},
	{"Mark", "M"},
	{"Math_Symbol", "Sm"},
	{"Modifier_Letter", "Lm"},
	{"Modifier_Symbol", "Sk"},
	{"Nonspacing_Mark", "Mn"},
	{"Number", "N"},
	{"Open_Punctuation", "Ps"},
	{"Other", "C"},
	{"Other_Letter", "Lo"},
	{"Other_Number", "No"},
	{"Other_Punctuation", "Po"},
	{"Other_Symbol", "So"},
	{"Paragraph_Separator", "Zp"},
	{"Private_Use", "Co"},
	{"Punctuation", "P"},
	{"Separator", "Z"},
	{"Space_Separator", "Zs"},
	{"Spacing_Mark", "Mc"},
	{"Surrogate", "Cs"},
	{"Symbol", "S"},
	{"Titlecase_Letter", "Lt"},
	{"Unassigned", "Cn"},
	{"Uppercase_Letter", "Lu"},
	{"digit", "Nd"},
	{"punct", "P"},
};

static const char *category_name(const char *name)
{
	for (size_t i = 0; i < sizeof CATEGORIES / sizeof *CATEGORIES; i++)
		if (strcmp(CATEGORIES[i].ecma, name) == 0)
			return CATEGORIES[i].pcre;
	return name;
}

static const char *skip_prefix(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);
	return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

static void put_property(reader *r, bool negated, const char *name)
{
	const char *rest;
	if (strcmp(name, "ASCII") == 0) {
		const char *members = negated ? "\\x{80}-\\x{10ffff}" : "\\x{0}-\\x{7f}";
		lat_buf_printf(r->out, r->in_class ? "%s" : "[%s]", members);
		return;
	}
	if ((rest = skip_prefix(name, "Script=")) || (rest = skip_prefix(name, "sc="))) {
		lat_buf_printf(r->out, "\\%c{sc:%s}", negated ? 'P' : 'p', rest);
		return;
	}
	if ((rest = skip_prefix(name, "Script_Extensions=")) || (rest = skip_prefix(name, "scx="))) {
		lat_buf_printf(r->out, "\\%c{scx:%s}", negated ? 'P' : 'p', rest);
		return;
	}
	if ((rest = skip_prefix(name, "General_Category=")) || (rest = skip_prefix(name, "gc=")))
		name = rest;
	lat_buf_printf(r->out, "\\%c{%s}", negated ? 'P' : 'p', category_name(name));
}

/* Behind "\p" or "\P": {Name}, {Name=Value}. */
static lat_status property_escape(reader *r, size_t start, bool negated)
{
	char name[LONGEST_PROPERTY];
	size_t n = 0;
	if (peek(r, 0) != '{')
		return syntax(r, start, "\\p needs a property in braces");
	for (r->at++; peek(r, 0) != '}'; r->at++) {
		int c = peek(r, 0);
		if (!(is_letter(c) || is_digit(c) || c == '_' || c == '=') || n + 1 == sizeof name)
			return syntax(r, start, "\\p needs a property in braces");
		name[n++] = (char)c;
	}
	r->at++;
	name[n] = '\0';
	if (!n)
		return syntax(r, start, "\\p needs a property in braces");
	put_property(r, negated, name);
	return LAT_OK;
}

static lat_status back_reference(reader *r, size_t start)
{
	unsigned group = 0;
	for (; is_digit(peek(r, 0)) && group <= MOST_GROUPS; r->at++)
		group = group * 10 + (unsigned)(peek(r, 0) - '0');
	if (r->in_class)
		return syntax(r, start, "a back reference in a class");
	lat_buf_printf(r->out, "\\g{%u}", group);
	return LAT_OK;
}

static bool read_group_name(reader *r)
{
	size_t start = r->at;
	if (is_digit(peek(r, 0)))
		return false;
	while (is_letter(peek(r, 0)) || is_digit(peek(r, 0)) || peek(r, 0) == '_' || peek(r, 0) == '$')
		r->at++;
	return r->at > start && r->at - start <= LONGEST_NAME && peek(r, 0) == '>';
}

static lat_status named_reference(reader *r, size_t start)
{
	size_t name = r->at + 1;
	r->at++;
	if (r->s[name - 1] != '<' || !read_group_name(r) || r->in_class)
		return syntax(r, start, "\\k needs a group's name in <>");
	lat_buf_printf(r->out, "\\k<%.*s>", (int)(r->at - name), r->s + name);
	r->at++;
	return LAT_OK;
}

static lat_status control_escape(reader *r, size_t start)
{
	int c = peek(r, 0);
	if (!is_letter(c))
		return syntax(r, start, "\\c needs a letter");
	r->at++;
	put_code_point(r, (uint32_t)c % 32);
	return LAT_OK;
}

static lat_status hex_escape(reader *r, size_t start)
{
	int64_t code = read_hex(r, 2);
	if (code < 0)
		return syntax(r, start, "\\x needs two hex digits");
	put_code_point(r, (uint32_t)code);
	return LAT_OK;
}

static void space_escape(reader *r, bool negated)
{
	if (r->in_class)
		lat_buf_str(r->out, negated ? NOT_SPACE_MEMBERS : SPACE_MEMBERS);
	else
		lat_buf_str(r->out, negated ? "[^" SPACE_MEMBERS "]" : "[" SPACE_MEMBERS "]");
}

static lat_status plain_escape(reader *r, size_t start, int c)
{
	if (is_letter(c) || c == '_' || c >= 0x80 || c < 0x20)
		return syntax(r, start, "an escape that means nothing");
	lat_buf_byte(r->out, '\\');
	lat_buf_byte(r->out, (char)c);
	return LAT_OK;
}

static lat_status escape(reader *r)
{
	size_t start = r->at++;
	int c = peek(r, 0);
	if (c < 0)
		return syntax(r, start, "a backslash at the end");
	if (c >= '1' && c <= '9')
		return back_reference(r, start);
	r->at++;
	switch (c) {
	case 'd':
	case 'D':
	case 'w':
	case 'W':
	case 'n':
	case 'r':
	case 't':
	case 'f':
		lat_buf_printf(r->out, "\\%c", c);
		return LAT_OK;
	case 'b':
		lat_buf_str(r->out, "\\b");
		return LAT_OK;
	case 'B':
		if (r->in_class)
			return syntax(r, start, "\\B in a class");
		lat_buf_str(r->out, "\\B");
		return LAT_OK;
	case 's':
	case 'S':
		space_escape(r, c == 'S');
		return LAT_OK;
	case 'v':
		put_code_point(r, 0x0B);
		return LAT_OK;
	case '0':
		if (is_digit(peek(r, 0)))
			return syntax(r, start, "an octal escape");
		put_code_point(r, 0);
		return LAT_OK;
	case 'c':
		return control_escape(r, start);
	case 'x':
		return hex_escape(r, start);
	case 'u':
		return unicode_escape(r, start);
	case 'p':
	case 'P':
		return property_escape(r, start, c == 'P');
	case 'k':
		if (peek(r, 0) < 0)
			return syntax(r, start, "\\k needs a group's name in <>");
		return named_reference(r, start);
	default:
		return plain_escape(r, start, c);
	}
}

/* At "(": plain, (?: (?= (?! (?<= (?<! (?<name>. */
static lat_status open_group(reader *r)
{
	static const char *const HEADS[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!"};
	size_t start = r->at;
	r->quantifiable = false;
	for (size_t i = 0; i < sizeof HEADS / sizeof *HEADS; i++) {
		if (follows(r, HEADS[i])) {
			lat_buf_str(r->out, HEADS[i]);
			r->at += strlen(HEADS[i]);
			return LAT_OK;
		}
	}
	if (++r->groups > MOST_GROUPS)
		return syntax(r, start, "too many groups");
	if (follows(r, "(?<")) {
		r->at += 3;
		if (!read_group_name(r))
			return syntax(r, start, "a group's name is letters, digits and _, at most 32");
		r->at++;
		lat_buf_append(r->out, r->s + start, r->at - start);
		return LAT_OK;
	}
	if (follows(r, "(?") || follows(r, "(*"))
		return syntax(r, start, "an unknown kind of group");
	lat_buf_byte(r->out, '(');
	r->at++;
	return LAT_OK;
}

/* At "{": {n} {n,} {n,m} are quantifiers. 0 when it is none. */
static size_t braces_length(const reader *r)
{
	size_t n = 1;
	while (is_digit(peek(r, n)))
		n++;
	if (n == 1)
		return 0;
	if (peek(r, n) == ',') {
		n++;
		while (is_digit(peek(r, n)))
			n++;
	}
	return peek(r, n) == '}' ? n + 1 : 0;
}

static lat_status quantifier(reader *r, size_t n)
{
	if (!r->quantifiable)
		return syntax(r, r->at, "nothing to repeat");
	lat_buf_append(r->out, r->s + r->at, n);
	r->at += n;
	if (peek(r, 0) == '?') {
		lat_buf_byte(r->out, '?');
		r->at++;
	}
	r->quantifiable = false;
	return LAT_OK;
}

static lat_status open_class(reader *r)
{
	r->in_class = true;
	lat_buf_byte(r->out, '[');
	r->at++;
	if (peek(r, 0) == '^') {
		lat_buf_byte(r->out, '^');
		r->at++;
	}
	return LAT_OK;
}

static lat_status in_class(reader *r)
{
	int c = peek(r, 0);
	if (c == '\\')
		return escape(r);
	if (c == '[')
		lat_buf_byte(r->out, '\\'); /* no POSIX classes here */
	lat_buf_byte(r->out, (char)c);
	r->at++;
	if (c == ']') {
		r->in_class = false;
		r->quantifiable = true;
	}
	return LAT_OK;
}

static lat_status outside(reader *r)
{
	int c = peek(r, 0);
	size_t braces = c == '{' ? braces_length(r) : 0;
	if (braces)
		return quantifier(r, braces);
	switch (c) {
	case '*':
	case '+':
	case '?':
		return quantifier(r, 1);
	case '(':
		return open_group(r);
	case '[':
		return open_class(r);
	case '\\':
		r->quantifiable = peek(r, 1) != 'b' && peek(r, 1) != 'B';
		return escape(r);
	case '.':
		lat_buf_str(r->out, "[^\\n\\r\\x{2028}\\x{2029}]");
		break;
	case '{':
	case '}':
	case ']':
		lat_buf_byte(r->out, '\\');
		lat_buf_byte(r->out, (char)c);
		break;
	default:
		lat_buf_byte(r->out, (char)c);
	}
	r->at++;
	r->quantifiable = c != '|' && c != '^' && c != '$';
	return LAT_OK;
}

lat_status lat_ecma_translate(const char *source, size_t len, lat_buf *out, lat_error *err)
{
	reader r = {.s = source, .len = len, .out = out, .err = err};
	size_t class_start = 0;
	while (r.at < r.len) {
		if (!r.in_class)
			class_start = r.at;
		lat_status status = r.in_class ? in_class(&r) : outside(&r);
		if (status != LAT_OK)
			return status;
	}
	if (r.in_class)
		return syntax(&r, class_start, "a class without its ]");
	return lat_buf_ok(out) ? LAT_OK : lat_fail_nomem(err);
}
