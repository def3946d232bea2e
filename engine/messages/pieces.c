/* A streamed content block: its start, and what its deltas add; see pieces.h. It owns both, lat_pieces_free
 * frees them. One owner at a time, any thread.
 *
 * Pieces are joined as the JSON that will stand in the block, still open: "text… or [item,item…; only the
 * pieces of an input are joined as they are, for they are JSON together and not one by one. */
#include "messages/pieces.h"

#include <stdlib.h>

#include "json/raw.h"
#include "json/read.h"
#include "json/write.h"

/* compaction_delta: the summary that the service's own context management makes. */
enum { TEXT, THINKING, SIGNATURE, CONTENT, CITATIONS, INPUT };

static const struct {
	lat_span delta;   /* the delta's type */
	const char *from; /* its member */
	const char *into; /* the block's member */
} KINDS[LAT_PIECE_KINDS] = {
	[TEXT] = {LAT_SPAN("text_delta"), "text", "text"},
	[THINKING] = {LAT_SPAN("thinking_delta"), "thinking", "thinking"},
	[SIGNATURE] = {LAT_SPAN("signature_delta"), "signature", "signature"},
	[CONTENT] = {LAT_SPAN("compaction_delta"), "content", "content"},
	[CITATIONS] = {LAT_SPAN("citations_delta"), "citation", "citations"},
	[INPUT] = {LAT_SPAN("input_json_delta"), "partial_json", "input"},
};

/* What the wire has for these types of blocks; one of another type takes every piece. */
static const struct {
	lat_span type;
	unsigned taken;
} TYPES[] = {
	{LAT_SPAN("text"), 1 << TEXT | 1 << CITATIONS},
	{LAT_SPAN("thinking"), 1 << THINKING | 1 << SIGNATURE},
	{LAT_SPAN("redacted_thinking"), 0},
	{LAT_SPAN("tool_use"), 1 << INPUT},
	{LAT_SPAN("server_tool_use"), 1 << INPUT},
	{LAT_SPAN("mcp_tool_use"), 1 << INPUT},
};

static unsigned taken_by(lat_span type)
{
	for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
		if (lat_span_equal(type, TYPES[i].type))
			return TYPES[i].taken;
	return ~0u;
}

lat_pieces *lat_pieces_new(lat_span raw, const lat_value *content_block, lat_error *err)
{
	const lat_value *type = lat_value_get(content_block, "type");
	if (!type || type->type != LAT_STRING) {
		lat_fail(err, LAT_E_SYNTAX, "a content block started without a type");
		return NULL;
	}
	lat_pieces *p = calloc(1, sizeof *p);
	if (p)
		lat_buf_append(&p->start, raw.s, raw.len);
	if (!p || !lat_buf_ok(&p->start)) {
		lat_pieces_free(p);
		lat_fail_nomem(err);
		return NULL;
	}
	p->taken = taken_by(lat_span_of(type->u.s, type->len));
	return p;
}

void lat_pieces_free(lat_pieces *p)
{
	if (!p)
		return;
	lat_buf_free(&p->start);
	for (size_t i = 0; i < LAT_PIECE_KINDS; i++)
		lat_buf_free(&p->pieces[i]);
	free(p);
}

/* ---- adding ---- */

/* What the block started with stands before its pieces (a text may start with its first words); but a
 * signature comes whole, so pieces of one replace it. */
static void begin(const lat_pieces *p, size_t kind, lat_buf *into)
{
	lat_span start = lat_json_raw_get(lat_span_of(p->start.data, p->start.len), KINDS[kind].into);
	lat_buf_byte(into, kind == CITATIONS ? '[' : '"');
	if (!start.s || kind == SIGNATURE)
		return;
	if (kind != CITATIONS) {
		if (start.s[0] == '"')
			lat_buf_append(into, start.s + 1, start.len - 2);
		return;
	}
	lat_json_raw walk = lat_json_raw_open(start);
	lat_span key, item;
	while (lat_json_raw_next(&walk, &key, &item)) {
		if (into->len > 1)
			lat_buf_byte(into, ',');
		lat_buf_append(into, item.s, item.len);
	}
}

static lat_status add_string(lat_pieces *p, size_t kind, const lat_value *piece, lat_error *err)
{
	lat_buf *into = &p->pieces[kind];
	if (!piece || piece->type == LAT_NULL)
		return LAT_OK;
	if (piece->type != LAT_STRING)
		return lat_fail(err, LAT_E_SYNTAX, "%s of %s must be a string", KINDS[kind].from,
		                KINDS[kind].delta.s);
	if (kind == INPUT) {
		lat_buf_append(into, piece->u.s, piece->len);
		return LAT_OK;
	}
	if (into->len == 0)
		begin(p, kind, into);
	if (kind == TEXT && !p->has_text)
		p->has_text = !lat_text_is_blank(piece->u.s, piece->len);
	return lat_json_write_escaped(into, piece->u.s, piece->len, err);
}

static void add_citation(lat_pieces *p, lat_span citation)
{
	lat_buf *into = &p->pieces[CITATIONS];
	if (!citation.s)
		return;
	if (into->len == 0)
		begin(p, CITATIONS, into);
	if (into->len > 1)
		lat_buf_byte(into, ',');
	lat_buf_append(into, citation.s, citation.len);
}

lat_status lat_pieces_add(lat_pieces *p, lat_span event, const lat_value *delta, lat_error *err)
{
	const lat_value *type = lat_value_get(delta, "type");
	if (!type || type->type != LAT_STRING)
		return lat_fail(err, LAT_E_SYNTAX, "content_block_delta has no delta with a type");
	size_t kind = 0;
	while (kind < LAT_PIECE_KINDS && !lat_span_equal(KINDS[kind].delta, lat_span_of(type->u.s, type->len)))
		kind++;
	if (kind == LAT_PIECE_KINDS || !(p->taken & 1u << kind))
		return LAT_OK;
	lat_status status = LAT_OK;
	if (kind == CITATIONS)
		add_citation(p, lat_json_raw_get(lat_json_raw_get(event, "delta"), "citation"));
	else
		status = add_string(p, kind, lat_value_get(delta, KINDS[kind].from), err);
	return status == LAT_OK && !lat_buf_ok(&p->pieces[kind]) ? lat_fail_nomem(err) : status;
}

/* ---- closing ---- */

static lat_status close_pieces(lat_pieces *p, lat_block_source *source, lat_patch *patches, lat_error *err)
{
	for (size_t kind = 0; kind < INPUT; kind++) {
		lat_buf *b = &p->pieces[kind];
		if (b->len == 0)
			continue;
		lat_buf_byte(b, kind == CITATIONS ? ']' : '"');
		if (!lat_buf_ok(b))
			return lat_fail_nomem(err);
		patches[source->patch_count++] = (lat_patch){KINDS[kind].into, {b->data, b->len}};
	}
	source->patches = patches;
	return LAT_OK;
}

lat_status lat_pieces_close(lat_pieces *p, lat_message *message, lat_error *err)
{
	lat_patch patches[LAT_PIECE_KINDS];
	const lat_buf *input = &p->pieces[INPUT];
	lat_block_source source = {
		.raw = {p->start.data, p->start.len},
		.input = {input->data, input->len},
		.has_text = p->has_text,
	};
	lat_status status = close_pieces(p, &source, patches, err);
	if (status != LAT_OK)
		return status;
	lat_arena arena = LAT_ARENA_INIT;
	lat_json_options options = {.max_bytes = SIZE_MAX};
	lat_value v;
	source.value = &v;
	status = lat_json_read(&arena, p->start.data, p->start.len, &options, &v, err);
	if (status == LAT_OK)
		status = lat_message_add(message, &source, err);
	lat_arena_free(&arena);
	return status;
}
