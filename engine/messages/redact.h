/* Text made fit to be shown: without secrets, printable. Pure; any thread. */
#ifndef LAT_MESSAGES_REDACT_H
#define LAT_MESSAGES_REDACT_H

#include "base/span.h"

enum { LAT_SECRET_MIN_BYTES = 6 }; /* shorter ones stand in too many words that are no secret */

/* Copies text to out (room bytes, NUL-terminated; room > 0), cut between characters. Secrets become
 * "[redacted]", the longest one where several begin (and so does the beginning of one that the text's end
 * cuts off); control characters and line ends become spaces, what isn't UTF-8 U+FFFD. Returns how many
 * bytes of the text were used. */
size_t lat_redact(char *out, size_t room, lat_span text, const lat_span *secrets, size_t count);

#endif
