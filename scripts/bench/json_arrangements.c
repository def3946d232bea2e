/* Which way to a tree of a JSON text? Three arrangements over the same texts, in one process:
 *   (a) a strict pass that builds nothing, then cJSON_Parse and cJSON_Delete
 *   (b) lat_json_read into an arena, and its reset
 *   (c) cJSON_Parse and cJSON_Delete alone: a floor for (a), though it takes what must be refused
 * The pass of (a) checks all that (b) checks except duplicate keys, and leaves out what it would need
 * besides: marking long integers and NUL characters for cJSON and undoing it. So (a) is flattered.
 *
 * Prints nanoseconds of CPU a text: the least of ROUNDS rounds, in which the arrangements take turns. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "json/read.h"
#include "json/scan.h"

enum { ROUNDS = 15, DEPTH = LAT_JSON_DEFAULT_DEPTH };

/* ---- the strict pass of (a) ---- */

static const char *space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

static bool hex4(const char *p, const char *end, unsigned *code)
{
	char digits[5] = "", *stop;
	if (end - p < 4)
		return false;
	memcpy(digits, p, 4);
	*code = (unsigned)strtoul(digits, &stop, 16);
	return stop == digits + 4;
}

static const char *strict_escape(const char *p, const char *end)
{
	unsigned code, low;
	if (end - p < 2)
		return NULL;
	if (p[1] != 'u')
		return memchr("\"\\/bfnrt", p[1], 8) ? p + 2 : NULL;
	if (!hex4(p + 2, end, &code))
		return NULL;
	if (code < 0xd800 || code > 0xdfff)
		return p + 6;
	bool pair = code < 0xdc00 && end - p >= 12 && p[6] == '\\' && p[7] == 'u' && hex4(p + 8, end, &low);
	return pair && low >= 0xdc00 && low <= 0xdfff ? p + 12 : NULL;
}

/* p: behind the opening quote. */
static const char *strict_string(const char *p, const char *end)
{
	while (p && (p = lat_json_plain_end(p, end)) < end && *p != '"') {
		if (*p == '\\') {
			p = strict_escape(p, end);
		} else {
			size_t n;
			do
				p += n = (unsigned char)*p > 0x7f ? lat_utf8_step(p, end) : 0;
			while (n && p < end && (unsigned char)*p > 0x7f);
			p = n ? p : NULL;
		}
	}
	return p && p < end ? p + 1 : NULL;
}

static const char *digits(const char *p, const char *end)
{
	const char *first = p;
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p > first ? p : NULL;
}

static const char *strict_number(const char *p, const char *end)
{
	p += *p == '-';
	if (p < end && *p == '0')
		p++;
	else
		p = digits(p, end);
	if (p && p < end && *p == '.')
		p = digits(p + 1, end);
	if (p && p < end && (*p | 0x20) == 'e') {
		p++;
		p += p < end && (*p == '-' || *p == '+');
		p = digits(p, end);
	}
	return p;
}

static const char *strict_word(const char *p, const char *end, const char *name)
{
	size_t n = strlen(name);
	return (size_t)(end - p) >= n && memcmp(p, name, n) == 0 ? p + n : NULL;
}

static const char *strict_scalar(const char *p, const char *end)
{
	switch (*p) {
	case '"':
		return strict_string(p + 1, end);
	case 't':
		return strict_word(p, end, "true");
	case 'f':
		return strict_word(p, end, "false");
	case 'n':
		return strict_word(p, end, "null");
	default:
		return strict_number(p, end);
	}
}

static const char *strict_key(const char *p, const char *end)
{
	p = space(p, end);
	p = p < end && *p == '"' ? strict_string(p + 1, end) : NULL;
	p = p ? space(p, end) : NULL;
	return p && p < end && *p == ':' ? p + 1 : NULL;
}

static bool strict_pass(const char *p, size_t len)
{
	const char *end = p + len;
	char closes[DEPTH];
	unsigned depth = 0;
	for (;;) {
		p = space(p, end);
		if (p == end)
			return false;
		if (*p == '{' || *p == '[') {
			if (depth == DEPTH)
				return false;
			char close = *p == '{' ? '}' : ']';
			p = space(p + 1, end);
			if (p == end || *p != close) {
				closes[depth++] = close;
				if (close == '}' && !(p = strict_key(p, end)))
					return false;
				continue;
			}
			p++;
		} else if (!(p = strict_scalar(p, end))) {
			return false;
		}
		while (depth > 0 && (p = space(p, end)) < end && *p == closes[depth - 1]) {
			p++;
			depth--;
		}
		if (depth == 0)
			return space(p, end) == end;
		if (p == end || *p++ != ',')
			return false;
		if (closes[depth - 1] == '}' && !(p = strict_key(p, end)))
			return false;
	}
}

/* ---- the arrangements ---- */

static void pass_and_cjson(const lat_buf *text, lat_arena *arena)
{
	(void)arena;
	if (!strict_pass(text->data, text->len))
		abort();
	cJSON_Delete(cJSON_ParseWithLength(text->data, text->len));
}

static void own_reader(const lat_buf *text, lat_arena *arena)
{
	lat_value v;
	if (lat_json_read(arena, text->data, text->len, NULL, &v, NULL) != LAT_OK)
		abort();
	lat_arena_reset(arena);
}

static void cjson_alone(const lat_buf *text, lat_arena *arena)
{
	(void)arena;
	cJSON_Delete(cJSON_ParseWithLength(text->data, text->len));
}

typedef void (*arrangement)(const lat_buf *text, lat_arena *arena);
static const arrangement arrangements[] = {pass_and_cjson, own_reader, cjson_alone};
enum { ARRANGEMENTS = sizeof arrangements / sizeof *arrangements };

/* ---- the texts ---- */

static void six_fields(lat_buf *b)
{
	lat_buf_str(b,
	            "{\"file_path\":\"/srv/project/src/main.lua\",\"offset\":120,\"limit\":2000,\"ratio\":0.75,"
	            "\"recursive\":true,\"mode\":\"files_with_matches\"}");
}

static void delta(lat_buf *b)
{
	lat_buf_str(
		b,
		"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"twenty "
		"bytes of text\"}}");
}

static void code_with_escapes(lat_buf *b)
{
	lat_buf_str(b, "{\"content\":\"");
	for (int i = 0; i < 100; i++)
		lat_buf_str(b, "local function name(a, b)\\n\\treturn a .. \\\"text\\\" .. b\\n");
	lat_buf_str(b, "\"}");
}

static void wide_text(lat_buf *b)
{
	lat_buf_str(b, "{\"content\":\"");
	for (int i = 0; i < 300; i++)
		lat_buf_str(b, "\u4f60\u597d\uff0c\u4e16\u754c ");
	lat_buf_str(b, "\"}");
}

static void numbers(lat_buf *b)
{
	for (int i = 0; i < 1000; i++)
		lat_buf_printf(b, "%c%d,%d.%02d,%.17g", i ? ',' : '[', i * 7919, i, i % 100, i / 7.0 + 0.1);
	lat_buf_byte(b, ']');
}

static void conversation(lat_buf *b)
{
	for (int i = 0; i < 400; i++)
		lat_buf_printf(
			b,
			"%c{\"role\":\"%s\",\"content\":[{\"type\":\"text\",\"text\":\"Message %d says some words "
			"that a model or a person may say, with a line\\nor two.\"},{\"type\":\"tool_use\",\"id\":"
			"\"toolu_%08d\",\"name\":\"search\",\"input\":{\"query\":\"words\",\"limit\":%d}}]}",
			i ? ',' : '[', i % 2 ? "assistant" : "user", i, i, i);
	lat_buf_byte(b, ']');
}

static double cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure(const char *name, void (*build)(lat_buf *))
{
	lat_buf text = LAT_BUF_INIT;
	lat_arena arena = LAT_ARENA_INIT;
	build(&text);
	int runs = (int)(8000000 / (text.len + 100)) + 10;
	double least[ARRANGEMENTS] = {0};
	for (int round = 0; round < ROUNDS; round++) {
		for (int a = 0; a < ARRANGEMENTS; a++) {
			double start = cpu_ns();
			for (int i = 0; i < runs; i++)
				arrangements[a](&text, &arena);
			double each = (cpu_ns() - start) / runs;
			least[a] = round == 0 || each < least[a] ? each : least[a];
		}
	}
	printf("%-28s %8zu %12.0f %12.0f %12.0f %9.2f %9.2f\n", name, text.len, least[0], least[1], least[2],
	       least[0] / least[1], least[2] / least[1]);
	lat_arena_free(&arena);
	lat_buf_free(&text);
}

int main(void)
{
	printf("%-28s %8s %12s %12s %12s %9s %9s\n", "text", "bytes", "(a) ns", "(b) ns", "(c) ns", "a / b",
	       "c / b");
	measure("object of six fields", six_fields);
	measure("stream event", delta);
	measure("code in one string", code_with_escapes);
	measure("Chinese in one string", wide_text);
	measure("3000 numbers", numbers);
	measure("conversation of 400 turns", conversation);
	return 0;
}
