/* See reply_server.h. Replies are built once, before the first connection, and only read afterwards; so the
 * connection threads share them without a lock. Nothing is freed: the server lives as long as its process. */
#include "reply_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	REQUEST_CAP = 8 << 20, /* the longest request that fits */
	EVENT_CAP = 4096,
	THREAD_STACK_BYTES = 128 << 10,
};

typedef struct {
	char *data;
	size_t len, cap;
} text;

static text hello, long_text, tool_call;
enum { AGENT_STEPS = 3 }; /* "agents": tool calls of each conversation */

static int tool_steps;

static const char HEAD[] = "HTTP/1.1 200 OK\r\n"
						   "content-type: text/event-stream; charset=utf-8\r\n"
						   "cache-control: no-cache\r\n"
						   "request-id: req_bench\r\n"
						   "transfer-encoding: chunked\r\n\r\n";

static void append(text *t, const char *data, size_t n)
{
	if (t->cap - t->len < n) {
		t->cap = (t->len + n) * 2;
		t->data = realloc(t->data, t->cap);
		if (!t->data) {
			perror("reply_server");
			exit(1);
		}
	}
	memcpy(t->data + t->len, data, n);
	t->len += n;
}

/* One SSE event in an HTTP chunk of its own, as a server that flushes each event sends it. */
__attribute__((format(printf, 3, 4))) static void event(text *t, const char *name, const char *format, ...)
{
	char body[EVENT_CAP], whole[EVENT_CAP + 128], size[16];
	va_list args;
	va_start(args, format);
	vsnprintf(body, sizeof body, format, args);
	va_end(args);
	int n = snprintf(whole, sizeof whole, "event: %s\ndata: {\"type\":\"%s\"%s}\n\n", name, name, body);
	append(t, size, (size_t)snprintf(size, sizeof size, "%x\r\n", (unsigned)n));
	append(t, whole, (size_t)n);
	append(t, "\r\n", 2);
}

static void begin(text *t, const char *block)
{
	append(t, HEAD, sizeof HEAD - 1);
	event(
		t, "message_start",
		",\"message\":{\"id\":\"msg_bench\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"bench-model\","
		"\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,"
		"\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}");
	event(t, "content_block_start", ",\"index\":0,\"content_block\":%s", block);
	event(t, "ping", "%s", "");
}

static void end(text *t, const char *stop_reason)
{
	event(t, "content_block_stop", ",\"index\":0");
	event(t, "message_delta",
	      ",\"delta\":{\"stop_reason\":\"%s\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":15}",
	      stop_reason);
	event(t, "message_stop", "%s", "");
	append(t, "0\r\n\r\n", 5);
}

static void build_text(text *t, int bytes, int delta_bytes)
{
	static const char WORDS[] = "the quick brown fox jumps over a lazy dog and ";
	begin(t, "{\"type\":\"text\",\"text\":\"\"}");
	for (int sent = 0; sent < bytes; sent += delta_bytes) {
		char piece[1024];
		int n = bytes - sent < delta_bytes ? bytes - sent : delta_bytes;
		for (int i = 0; i < n && i < (int)sizeof piece; i++)
			piece[i] = WORDS[(sent + i) % (int)(sizeof WORDS - 1)];
		event(t, "content_block_delta", ",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%.*s\"}",
		      n, piece);
	}
	end(t, "end_turn");
}

static void build_tool_call(text *t)
{
	static const char *const PIECES[] = {"", "{\\\"path\\\": \\\"src/", "engine/file.c\\\"",
	                                     ", \\\"line\\\": ", "17}"};
	begin(t, "{\"type\":\"tool_use\",\"id\":\"toolu_@@@@@@\",\"name\":\"read_line\",\"input\":{}}");
	for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++)
		event(t, "content_block_delta",
		      ",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"%s\"}", PIECES[i]);
	end(t, "tool_use");
}

static int count(const char *data, size_t len, const char *word)
{
	int n = 0;
	const char *at = data, *stop = data + len;
	while ((at = memmem(at, (size_t)(stop - at), word, strlen(word)))) {
		at += strlen(word);
		n++;
	}
	return n;
}

static int send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
		if (n <= 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Each call has an id of its own, as the service gives. */
static int send_tool_call(int fd, int step)
{
	char reply[EVENT_CAP], id[8];
	memcpy(reply, tool_call.data, tool_call.len);
	snprintf(id, sizeof id, "%06d", step % 1000000);
	char *place = memmem(reply, tool_call.len, "@@@@@@", 6);
	memcpy(place, id, 6);
	return send_all(fd, reply, tool_call.len);
}

static int answer(int fd, const char *head, const char *body, size_t body_len)
{
	bool is_agent = strncmp(head, "POST /agents/", 13) == 0;
	if (is_agent || strncmp(head, "POST /loop/", 11) == 0) {
		int step = count(body, body_len, "\"tool_result\"");
		if (step < (is_agent ? AGENT_STEPS : tool_steps))
			return send_tool_call(fd, step);
	}
	const text *t = strncmp(head, "POST /text/", 11) == 0 ? &long_text : &hello;
	return send_all(fd, t->data, t->len);
}

/* Length of a whole request at the start of data, 0 when more is to come. */
static size_t whole_request(const char *data, size_t len, size_t *head_len)
{
	const char *end_of_head = memmem(data, len, "\r\n\r\n", 4);
	if (!end_of_head)
		return 0;
	*head_len = (size_t)(end_of_head - data) + 4;
	size_t body_len = 0;
	for (const char *line = data; line < end_of_head; line = strstr(line, "\r\n") + 2)
		if (strncasecmp(line, "content-length:", 15) == 0)
			body_len = strtoul(line + 15, NULL, 10);
	return len >= *head_len + body_len ? *head_len + body_len : 0;
}

static void *serve(void *arg)
{
	int fd = (int)(long)arg;
	char *request = mmap(NULL, REQUEST_CAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t len = 0;
	while (request != MAP_FAILED && len < REQUEST_CAP - 1) {
		ssize_t n = recv(fd, request + len, REQUEST_CAP - 1 - len, 0);
		if (n <= 0)
			break;
		len += (size_t)n;
		request[len] = '\0';
		size_t head_len = 0, all = whole_request(request, len, &head_len);
		if (all == 0)
			continue;
		if (answer(fd, request, request + head_len, all - head_len) != 0)
			break;
		memmove(request, request + all, len - all);
		len -= all;
	}
	if (request != MAP_FAILED)
		munmap(request, REQUEST_CAP);
	close(fd);
	return NULL;
}

static void *listen_loop(void *arg)
{
	int listener = (int)(long)arg;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		int on = 1;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		pthread_t thread;
		if (pthread_create(&thread, &attr, serve, (void *)(long)fd) != 0)
			close(fd);
	}
	return NULL;
}

int reply_server_start(const reply_sizes *sizes)
{
	tool_steps = sizes->tool_steps;
	build_text(&hello, 20, 10);
	build_text(&long_text, sizes->text_bytes, sizes->delta_bytes);
	build_tool_call(&tool_call);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t thread;
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, len) != 0 || listen(listener, 128) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &len) != 0 ||
	    pthread_create(&thread, NULL, listen_loop, (void *)(long)listener) != 0)
		return 0;
	return ntohs(address.sin_port);
}
