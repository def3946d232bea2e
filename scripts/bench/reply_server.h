/* A tiny HTTP/1.1 server that answers model requests with fixed SSE replies, as fast as it can.
 *
 * It stands behind the benchmarks (a process of its own) and the allocation failure test (a thread of it, which
 * never allocates while it serves). The first part of the path names the scenario: /loop/v1/messages. */
#ifndef LAT_REPLY_SERVER_H
#define LAT_REPLY_SERVER_H

typedef struct {
	int tool_steps;  /* "loop": this many tool_use replies before the text ("agents": 3) */
	int text_bytes;  /* "text": so much text … */
	int delta_bytes; /* … in pieces of so much */
} reply_sizes;

/* Builds the replies, listens on 127.0.0.1 and serves from threads of its own; returns the port, 0 on failure. */
int reply_server_start(const reply_sizes *sizes);

#endif
