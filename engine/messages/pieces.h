/* lat_pieces: a content block that is coming in pieces (private to engine/messages). */
#ifndef LAT_MESSAGES_PIECES_H
#define LAT_MESSAGES_PIECES_H

#include "messages/block.h"

enum { LAT_PIECE_KINDS = 6 };

typedef struct {
	bool has_text;                   /* a piece of text had something to see in it */
	unsigned taken;                  /* kinds of pieces that go into a block of this type, as bits */
	lat_buf start;                   /* content_block as it came */
	lat_buf pieces[LAT_PIECE_KINDS]; /* of each kind, joined */
} lat_pieces;

/* From content_block of content_block_start. LAT_E_SYNTAX: it has no type. */
lat_pieces *lat_pieces_new(lat_span raw, const lat_value *content_block, lat_error *err);
void lat_pieces_free(lat_pieces *pieces);

/* Takes the delta of a content_block_delta. `event` is the event's text. Deltas of a kind that nobody
 * knows, or that isn't for blocks of this type, change nothing. LAT_E_SYNTAX: the delta isn't what its type
 * says. */
lat_status lat_pieces_add(lat_pieces *pieces, lat_span event, const lat_value *delta, lat_error *err);

/* Puts the block into the message. The pieces are no more afterwards; only lat_pieces_free is left. */
lat_status lat_pieces_close(lat_pieces *pieces, lat_message *message, lat_error *err);

#endif
