/* lat_reader: the head and the bytes of one reply → a message, or the reason why it is none.
 *
 * The reply may be a stream of events or one JSON text, whatever was asked for: the content type tells,
 * and where it doesn't, the first bytes do.
 *
 * Without `events` a stream is taken in as it comes. With `events` the bytes wait here until somebody
 * takes the events one by one: each is parsed once, for the message and for the taker.
 *
 * Pure: no socket, no clock but for dates in headers. One owner at a time. */
#ifndef LAT_EXCHANGE_READER_H
#define LAT_EXCHANGE_READER_H

#include "messages/assemble.h"
#include "messages/message.h"
#include "messages/reply.h"
#include "messages/sse.h"
#include "transport/headers.h"

enum { LAT_READER_START_BYTES = 512 };

typedef enum {
	LAT_FORM_UNKNOWN, /* nothing came that tells */
	LAT_FORM_STREAM,  /* server-sent events */
	LAT_FORM_WHOLE,   /* a message as one JSON text */
	LAT_FORM_FAILURE, /* a status that says so */
	LAT_FORM_OTHER    /* something else */
} lat_reply_form;

typedef struct {
	/* private */
	bool wants_events;
	lat_secrets secrets; /* borrowed */
	lat_reply_head head;
	lat_reply_form form;
	char start[LAT_READER_START_BYTES]; /* of a stream: shown when it breaks */
	size_t start_len;
	lat_buf now;  /* a stream: bytes for the parser, the event that waits is views into them; else the body */
	size_t used;  /* how much of `now` the parser has had */
	lat_buf next; /* a stream: what came while an event waited */
	lat_sse sse;
	lat_assembly *assembly;
	const lat_value *event; /* the one that waits */
	lat_message *message;   /* of a reply that wasn't a stream */
	bool ended, over, has_problem, out_of_time;
	lat_error cause; /* why the transfer failed; kind LAT_OK: it didn't */
	lat_reply_error problem;
} lat_reader;

/* secrets stay out of every message of an error; they are borrowed. */
lat_status lat_reader_init(lat_reader *reader, bool events, lat_secrets secrets, lat_error *err);
void lat_reader_free(lat_reader *reader); /* one that is all zero is fine */

void lat_reader_head(lat_reader *reader, const lat_head *head, int64_t now_ms);
void lat_reader_bytes(lat_reader *reader, const char *bytes, size_t n);
/* The transfer is over; cause NULL: well; LAT_E_ABORT: events that wait are void, too. out_of_time: its
 * whole time was over, so that another try is no use. */
void lat_reader_end(lat_reader *reader, const lat_error *cause, bool out_of_time);

/* How many bytes wait for somebody to take events. */
size_t lat_reader_waiting(const lat_reader *reader);

/* The event that waits, NULL when none does; it stays until lat_reader_next drops it. */
const lat_value *lat_reader_event(const lat_reader *reader);
void lat_reader_next(lat_reader *reader);

/* What comes of the reply is known; the last events may still wait. */
bool lat_reader_over(const lat_reader *reader);

/* When it is over. The message, to be had once (the caller frees it); NULL when there is a problem. */
lat_message *lat_reader_take(lat_reader *reader);
const lat_reply_error *lat_reader_problem(const lat_reader *reader); /* NULL: none */

#endif
