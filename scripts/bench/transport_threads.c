/* Which thread should drive curl? The same exchanges, once by the thread that waits for them, once by a
 * transport thread that hands the chunks over through a locked queue and an eventfd. Prints a table;
 * docs/transport.md tells what was decided by it.
 *
 * Each run is a process of its own; the server is one, too. The consumer does in both cases what an SSE
 * parser can't do without: it looks at every byte once. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reply_server.h"
#include "transport/http.h"

enum { RUNS = 7, NS_PER_MS = 1000000 };

typedef struct {
	const char *name, *path;
	int exchanges;
} scenario;

static const scenario SCENARIOS[] = {
	{"200 small streamed replies, one after another", "/hello/", 200},
	{"1 MB in deltas of 20 bytes, 10 times", "/text/", 10},
};

static char base_url[64];

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "transport_threads: %s\n", what);
	exit(1);
}

/* ---- what both do ---- */

typedef struct {
	size_t bytes, lines;
	bool done;
} consumer;

static void consume(consumer *c, const char *bytes, size_t n)
{
	c->bytes += n;
	const char *end = bytes + n;
	while ((bytes = memchr(bytes, '\n', (size_t)(end - bytes)))) {
		bytes++;
		c->lines++;
	}
}

static lat_http *start(lat_pool *pool, const char *path, const lat_http_sink *sink,
                       const lat_http_source *body)
{
	char url[128];
	snprintf(url, sizeof url, "%s%s", base_url, path);
	const lat_header headers[] = {{"content-type", "application/json", 12, 16, false},
	                              {"x-api-key", "bench", 9, 5, false}};
	const lat_http_request request = {.url = url,
	                                  .headers = headers,
	                                  .header_count = 2,
	                                  .body = body,
	                                  .idle_timeout_ns = 60000LL * NS_PER_MS};
	lat_error err;
	lat_http *http = lat_http_start(pool, &request, sink, &err);
	if (!http)
		fail(err.message);
	return http;
}

static const char BODY[] = "{\"model\":\"m\",\"max_tokens\":10,\"messages\":[]}";

static void read_body(void *self, size_t offset, char *dst, size_t n)
{
	(void)self;
	memcpy(dst, BODY + offset, n);
}

static const lat_http_source SOURCE = {sizeof BODY - 1, read_body, NULL};

static lat_loop *new_loop(void)
{
	lat_loop *loop = lat_loop_new(NULL);
	if (!loop)
		fail("no loop");
	return loop;
}

static void turn(lat_loop *loop)
{
	uint64_t ids[8];
	size_t n;
	if (lat_loop_turn(loop, -1, ids, 8, &n, NULL) != LAT_OK)
		fail("the loop");
}

/* ---- (a) the waiting thread drives ---- */

typedef struct {
	consumer c;
	lat_op op;
} direct;

static lat_http_verdict direct_data(void *self, const char *bytes, size_t n)
{
	consume(&((direct *)self)->c, bytes, n);
	return LAT_HTTP_MORE;
}

static void direct_done(void *self, const lat_error *err)
{
	direct *d = self;
	if (err)
		fail(err->message);
	d->c.done = true;
	lat_loop_notify(&d->op);
}

static void run_direct(const scenario *s)
{
	lat_loop *loop = new_loop();
	lat_pool *pool = lat_http_pool_new(loop, NULL);
	direct d = {.c.done = false};
	lat_op_init(&d.op, loop);
	const lat_http_sink sink = {NULL, direct_data, direct_done, &d};
	for (int i = 0; i < s->exchanges; i++) {
		d.c.done = false;
		lat_http *http = start(pool, s->path, &sink, &SOURCE);
		while (!d.c.done)
			turn(loop);
		lat_http_free(http);
	}
	if (d.c.lines == 0)
		fail("nothing came");
	lat_op_forget(&d.op);
	lat_pool_free(pool);
	lat_loop_free(loop);
}

/* ---- (b) a transport thread drives ---- */

typedef struct chunk chunk;
struct chunk {
	chunk *next;
	size_t n;
	char bytes[];
};

typedef struct {
	pthread_t thread;
	pthread_mutex_t lock;
	chunk *first, **last; /* guarded by lock, as all up to stop */
	bool wanted, done, stop;
	const char *path;
	lat_loop *loop; /* the transport thread's */
	lat_op to_transport, to_user;
} relay;

static lat_http_verdict relay_data(void *self, const char *bytes, size_t n)
{
	relay *r = self;
	chunk *c = malloc(sizeof *c + n);
	if (!c)
		fail("not enough memory");
	c->next = NULL;
	c->n = n;
	memcpy(c->bytes, bytes, n);
	pthread_mutex_lock(&r->lock);
	*r->last = c;
	r->last = &c->next;
	pthread_mutex_unlock(&r->lock);
	lat_loop_post(&r->to_user);
	return LAT_HTTP_MORE;
}

static void relay_done(void *self, const lat_error *err)
{
	relay *r = self;
	if (err)
		fail(err->message);
	pthread_mutex_lock(&r->lock);
	r->done = true;
	pthread_mutex_unlock(&r->lock);
	lat_loop_post(&r->to_user);
}

static void *drive(void *arg)
{
	relay *r = arg;
	lat_pool *pool = lat_http_pool_new(r->loop, NULL);
	const lat_http_sink sink = {NULL, relay_data, relay_done, r};
	lat_http *http = NULL;
	for (;;) {
		turn(r->loop);
		pthread_mutex_lock(&r->lock);
		bool wanted = r->wanted, stop = r->stop;
		r->wanted = false;
		pthread_mutex_unlock(&r->lock);
		if (wanted || stop)
			lat_http_free(http);
		if (stop)
			break;
		if (wanted)
			http = start(pool, r->path, &sink, &SOURCE);
	}
	lat_pool_free(pool);
	return NULL;
}

static void ask(relay *r, bool stop)
{
	pthread_mutex_lock(&r->lock);
	r->wanted = !stop;
	r->stop = stop;
	r->done = false;
	pthread_mutex_unlock(&r->lock);
	lat_loop_post(&r->to_transport);
}

static bool take_chunks(relay *r, consumer *c)
{
	pthread_mutex_lock(&r->lock);
	chunk *list = r->first;
	r->first = NULL;
	r->last = &r->first;
	bool done = r->done;
	pthread_mutex_unlock(&r->lock);
	for (chunk *next; list; list = next) {
		next = list->next;
		consume(c, list->bytes, list->n);
		free(list);
	}
	return done;
}

static void run_relayed(const scenario *s)
{
	lat_loop *loop = new_loop();
	relay r = {.path = s->path, .loop = new_loop(), .last = &r.first};
	pthread_mutex_init(&r.lock, NULL);
	lat_op_init(&r.to_transport, r.loop);
	lat_op_init(&r.to_user, loop);
	if (pthread_create(&r.thread, NULL, drive, &r) != 0)
		fail("no thread");
	consumer c = {.bytes = 0};
	for (int i = 0; i < s->exchanges; i++) {
		ask(&r, false);
		while (!take_chunks(&r, &c))
			turn(loop);
	}
	if (c.lines == 0)
		fail("nothing came");
	ask(&r, true);
	pthread_join(r.thread, NULL);
	lat_op_forget(&r.to_transport);
	lat_op_forget(&r.to_user);
	lat_loop_free(r.loop);
	lat_loop_free(loop);
}

/* ---- measuring ---- */

typedef struct {
	double wall_ms, user_ms, system_ms;
} figures;

static double to_ms(struct timeval t)
{
	return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

static figures measure(void (*run)(const scenario *), const scenario *s)
{
	struct rusage usage;
	int status;
	int64_t begun = lat_now_ns();
	pid_t pid = fork();
	if (pid == 0) {
		run(s);
		_exit(0);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0)
		fail("a run failed");
	return (figures){(double)(lat_now_ns() - begun) / NS_PER_MS, to_ms(usage.ru_utime),
	                 to_ms(usage.ru_stime)};
}

static int by_cpu(const void *a, const void *b)
{
	const figures *x = a, *y = b;
	double d = x->user_ms + x->system_ms - y->user_ms - y->system_ms;
	return (d > 0) - (d < 0);
}

static void print_row(const char *who, figures *runs)
{
	qsort(runs, RUNS, sizeof *runs, by_cpu);
	const figures *m = &runs[RUNS / 2];
	printf("  %-28s %8.1f %8.1f %8.1f %8.1f\n", who, m->user_ms + m->system_ms, m->user_ms, m->system_ms,
	       m->wall_ms);
}

static pid_t start_server(void)
{
	int ends[2], port = 0;
	if (pipe(ends) != 0)
		fail("no pipe");
	pid_t pid = fork();
	if (pid == 0) {
		port = reply_server_start(&(reply_sizes){.tool_steps = 0, .text_bytes = 1 << 20, .delta_bytes = 20});
		if (write(ends[1], &port, sizeof port) == sizeof port)
			for (;;)
				pause();
		_exit(1);
	}
	if (pid < 0 || read(ends[0], &port, sizeof port) != sizeof port || port == 0)
		fail("no server");
	snprintf(base_url, sizeof base_url, "http://127.0.0.1:%d", port);
	return pid;
}

int main(void)
{
	pid_t server = start_server();
	printf("median of %d runs by CPU, ms\n", RUNS);
	for (size_t i = 0; i < sizeof SCENARIOS / sizeof *SCENARIOS; i++) {
		const scenario *s = &SCENARIOS[i];
		figures direct_runs[RUNS], relayed_runs[RUNS];
		for (int k = 0; k < RUNS; k++) { /* in turn, so that a busy minute hits both */
			direct_runs[k] = measure(run_direct, s);
			relayed_runs[k] = measure(run_relayed, s);
		}
		printf("%-30s %8s %8s %8s %8s\n", s->name, "CPU", "user", "system", "wall");
		print_row("the waiting thread", direct_runs);
		print_row("a transport thread", relayed_runs);
	}
	kill(server, SIGTERM);
	return 0;
}
