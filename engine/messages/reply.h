/* lat_problem: what went wrong with a model request, and whether another try makes sense.
 *
 * Owns its texts. Pure: the caller hands over status, a few headers and the body. Any one thread at a time.
 * Sources: Anthropic Messages API (errors), RFC 9110 (10.2.3 Retry-After, 5.6.7 HTTP-date). */
#ifndef LAT_MESSAGES_REPLY_H
#define LAT_MESSAGES_REPLY_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "messages/raw.h"

typedef struct {
	const char *kind; /* "api": the service said no; "reply": not what was asked; "io", "timeout", "abort" */
	int status;       /* HTTP, or what an error event stands for; 0: none */
	lat_buf type;     /* "overloaded_error" … */
	lat_buf message;
	lat_buf request_id;
	bool retryable;
	int64_t retry_after_ms; /* -1: nothing was said */
} lat_problem;

typedef struct {
	lat_slice content_type, retry_after, retry_after_ms, request_id, should_retry; /* len 0: not there */
	int64_t now_s; /* the time, in seconds since 1970, that a Retry-After date is held against */
} lat_reply_head;

void lat_problem_init(lat_problem *p);
void lat_problem_free(lat_problem *p);

bool lat_status_is_retryable(int status); /* 408, 409, 429, 5xx (529 among them) */

/* A reply with an error status. The body may be the API's error object, one of another make, or anything. */
lat_status lat_problem_of_status(lat_problem *p, int status, const lat_reply_head *head, lat_slice body,
                                 lat_error *err);

/* A reply with status 200 that isn't a message: `what` says why ("an empty body"). Shows content type and the first
 * 200 bytes. */
lat_status lat_problem_of_body(lat_problem *p, int status, const lat_reply_head *head, lat_slice body,
                               const char *what, bool retryable, lat_error *err);

/* An error event inside a stream: its "error" member as JSON. */
lat_status lat_problem_of_event(lat_problem *p, lat_slice error, const lat_reply_head *head, lat_error *err);

/* Milliseconds that the head asks to wait, -1 when it says nothing that can be read. */
int64_t lat_retry_after_ms(const lat_reply_head *head);

/* Blots out each secret (lists end with len 0; shorter than 4 bytes are no secrets). */
void lat_redact(lat_buf *text, const lat_slice *secrets);

#endif
