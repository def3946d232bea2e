/* Halves of surrogate pairs in the events of a stream (private to engine/messages). Pure; any thread.
 *
 * A server that cuts text between UTF-16 code units, as many languages let it, may end one delta with
 * "\ud83d" and begin the next with "\ude00". Neither is a character, and JSON with either in it isn't valid
 * Unicode (RFC 8259, section 8.2); together they are one. */
#ifndef LAT_MESSAGES_SURROGATES_H
#define LAT_MESSAGES_SURROGATES_H

#include "base/buf.h"
#include "base/span.h"

/* Writes a JSON text without halves: one that ends a string is kept in *high (0: none is), one that begins
 * a string is joined with it there; any other becomes U+FFFD. A kept half that finds no other is left out.
 * False when the text has none; nothing was written then. Out of memory shows in the buffer. */
bool lat_mend_surrogates(lat_buf *out, lat_span text, unsigned *high);

#endif
