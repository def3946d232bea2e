/* The trace writer: each allocation failed in turn, many threads that write, a process that forks. */
#include "failing_alloc.h"

#include "../../engine/trace/writer.c"

#include <sys/wait.h>

static int passed, failed;
static lat_at_exit *at_exit;

static void check(bool ok, const char *what, int at)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("trace_writer_test.c:%d: not so: %s\n", at, what);
}

#define CHECK(condition) check(condition, #condition, __LINE__)

static char path[] = "/tmp/lattice-trace-XXXXXX";

static size_t lines_in_file(void)
{
	FILE *file = fopen(path, "r");
	size_t n = 0;
	for (int c; file && (c = getc(file)) != EOF;)
		n += c == '\n';
	if (file)
		fclose(file);
	return n;
}

static void empty_file(void)
{
	if (truncate(path, 0) < 0)
		CHECK(!"a file that can be emptied");
}

static void test_each_allocation_failing(void)
{
	lat_trace_options options = {.path = path, .keep = 1};
	bool made = false;
	for (long at = 0; !made && at < 50; at++) {
		lat_error err = {.kind = LAT_OK};
		empty_file();
		allocs_left = at;
		lat_trace_writer *w = lat_trace_writer_new(&options, at_exit, &err);
		bool wrote = w && lat_trace_write(w, "line", 4);
		made = wrote && allocs_left >= 0;
		allocs_left = -1;
		CHECK(w ? err.kind == LAT_OK : err.kind == LAT_E_NOMEM);
		if (w)
			lat_trace_writer_close(w);
		if (w && !wrote)
			CHECK(lat_trace_status_of(w).dropped == 1);
		CHECK(lines_in_file() == (wrote ? 1 : 0));
		lat_trace_writer_free(w);
	}
	CHECK(made);
}

enum { THREADS = 4, LINES = 5000 };

static void *write_many(void *arg)
{
	for (int i = 0; i < LINES; i++)
		lat_trace_write(arg, "{\"some\":\"event\"}", 16);
	return NULL;
}

static void test_many_threads(void)
{
	empty_file();
	lat_trace_options options = {.path = path, .max_queue_bytes = 20000};
	lat_trace_writer *w = lat_trace_writer_new(&options, at_exit, NULL);
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, write_many, w);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(lat_trace_flush(w, (int64_t)60 * NS_PER_S));
	lat_trace_status status = lat_trace_status_of(w);
	CHECK(status.written + status.dropped == THREADS * LINES && status.error[0] == '\0');
	CHECK(lines_in_file() == status.written);
	lat_trace_writer_free(w);
}

/* A forked child has no writer thread: its exit must not wait for one. */
static void test_fork(void)
{
	lat_trace_options options = {.path = path};
	lat_trace_writer *w = lat_trace_writer_new(&options, at_exit, NULL);
	lat_trace_write(w, "parent", 6);
	CHECK(lat_trace_flush(w, (int64_t)60 * NS_PER_S));
	pid_t child = fork();
	if (child == 0) {
		close_at_exit(&w->exit); /* as exit would, but without a sanitizer's own handlers */
		_exit(0);
	}
	int status = -1;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	lat_trace_writer_free(w);
}

int main(void)
{
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	at_exit = lat_at_exit_new(NULL);
	test_each_allocation_failing();
	test_many_threads();
	test_fork();
	lat_at_exit_free(at_exit);
	unlink(path);
	lat_trace_writer_free(NULL);
	printf("%d passed, %d failed\n", passed, failed);
	fflush(stdout);
	return failed != 0;
}
