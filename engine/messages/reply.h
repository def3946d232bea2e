/* What an HTTP reply means: which error it is, whether another try may help, and when.
 *
 * Retried by the wire's rule: 408, 409, 429 and from 500 on (529 is "overloaded"), unless the server says
 * otherwise (x-should-retry). Plain data; pure; any thread. */
#ifndef LAT_MESSAGES_REPLY_H
#define LAT_MESSAGES_REPLY_H

#include <stdint.h>

#include "base/error.h"
#include "base/span.h"
#include "base/value.h"

typedef enum {
	LAT_REPLY_API,    /* the service answered with an error */
	LAT_REPLY_BROKEN, /* something answered, but not with what was asked for */
	LAT_REPLY_TIMEOUT,
	LAT_REPLY_ABORT,
	LAT_REPLY_IO /* no answer, or not all of it: the connection */
} lat_reply_kind;

const char *lat_reply_kind_name(lat_reply_kind kind); /* "api", "reply", "timeout", "abort", "io" */

/* Strings are printable UTF-8, cut between characters; type and request_id may be empty. */
typedef struct {
	lat_reply_kind kind;
	int status; /* of HTTP, or what the error's type stands for; 0: there is none */
	char type[64];
	char message[1024];
	char request_id[128];
	bool retryable;
	int64_t retry_after_ms; /* -1: the service didn't say */
} lat_reply_error;

/* The head of a reply, as far as it matters here: begin with the status, hand each header over. */
typedef struct {
	int status;
	char content_type[128];
	char request_id[128];
	int64_t retry_after_ms; /* from retry-after-ms, else from retry-after; -1: neither came */
	bool retry_after_exact; /* it is from retry-after-ms */
	int should_retry;       /* x-should-retry: 1 true, -1 false, 0 it didn't come */
} lat_reply_head;

/* clang-format off */
#define LAT_REPLY_HEAD_INIT(status) {status, "", "", -1, false, 0}
/* clang-format on */

/* now_ms: milliseconds since 1970, for a retry-after that is a date. */
void lat_reply_header(lat_reply_head *head, lat_span name, lat_span value, int64_t now_ms);

/* Whether the content type is that of an event stream; of JSON. */
bool lat_reply_is_stream(const lat_reply_head *head);
bool lat_reply_is_json(const lat_reply_head *head);

/* What the caller keeps secret: "[redacted]" stands for it wherever a reply repeats it. */
typedef struct {
	const lat_span *list;
	size_t count;
} lat_secrets;

/* A reply with an error status, from its head and the beginning of its body (LAT_REPLY_BODY_BYTES are
 * plenty): the body's own {"error":{"type":…,"message":…}} or one of its relatives, else the body as text. */
enum { LAT_REPLY_BODY_BYTES = 64 * 1024 };
void lat_reply_refused(const lat_reply_head *head, lat_span body, lat_secrets secrets, lat_reply_error *out);

/* A reply with a good status that is no message. `problem` says what is wrong with it ("it is cut JSON");
 * status, content type and the first 200 bytes of the body go into the message. When the body is an error
 * object after all, that error comes out, with its type's status. `broke_off`: it began as it should and
 * then didn't go on so; then another try may help. */
void lat_reply_broken(const lat_reply_head *head, lat_span body, const char *problem, bool broke_off,
                      lat_secrets secrets, lat_reply_error *out);

/* An error object: that of a body, or of an error event in a stream (status 0: what the type stands for,
 * 500 for types that nobody knows). False, and *out as it was, when v is none. Secrets are still in it:
 * lat_reply_redact. */
bool lat_reply_from_value(const lat_value *v, int status, lat_reply_error *out);

/* What the transport says: LAT_E_TIMEOUT, LAT_E_ABORT; anything else is LAT_REPLY_IO. Only LAT_E_IO is
 * retried: a limit or a bad URL stays as it is. */
void lat_reply_from_transport(const lat_error *cause, lat_reply_error *out);

/* The rule above, by status alone. */
bool lat_reply_retryable(int status);

/* Takes the secrets out of the error's strings, and the part of one that was cut at a string's end. */
void lat_reply_redact(lat_reply_error *error, lat_secrets secrets);

#endif
