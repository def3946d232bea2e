/* Processes, with and without pidfds: the exit is seen, everything is reaped, whoever lets go first; what memory
 * that runs out leaves behind. What a command may do is in spec/process_spec.lua. */
#include "failing_alloc.h"

#include <errno.h>
#include <sys/pidfd.h>

static int has_pidfds = 1;

static int maybe_pidfd_open(int pid, unsigned flags)
{
	if (has_pidfds)
		return pidfd_open(pid, flags);
	errno = ENOSYS;
	return -1;
}

#define pidfd_open maybe_pidfd_open

#include "../../engine/base/clip.c"
#include "../../engine/scheduler/process.c"

#include <stdio.h>

static int passed, failed;
static lat_at_exit *at_exit;

static void check(bool ok, const char *what, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("process_test.c:%d: not so: %s\n", line, what);
}

#define CHECK(condition) check(condition, #condition, __LINE__)

static lat_process *start(lat_processes *all, const char *command, const char *input, lat_error *err)
{
	static char *const nothing[] = {NULL};
	char *argv[] = {"/bin/sh", "-c", (char *)command, NULL};
	lat_process_options options = {
		.argv = argv,
		.envp = nothing,
		.input = input,
		.input_len = input ? strlen(input) : 0,
		.timeout_ns = (int64_t)3600 * 1000 * NS_PER_MS,
	};
	return lat_process_start(all, &options, err);
}

static void turn(lat_loop *loop)
{
	uint64_t ids[8];
	size_t n;
	lat_loop_turn(loop, -1, ids, 8, &n, NULL);
}

static bool no_child_left(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static void test_exit(lat_loop *loop, lat_processes *all)
{
	lat_process *p = start(all, "cat; echo wrong >&2; exit 7", "hello", NULL);
	while (!lat_process_done(p))
		turn(loop);
	lat_process_result r;
	lat_buf out = LAT_BUF_INIT, errors = LAT_BUF_INIT;
	CHECK(lat_process_result_of(p, &r, &out, &errors, NULL) == LAT_OK);
	CHECK(r.status == 7 && r.signal == 0 && !r.truncated && !r.timed_out);
	CHECK(strcmp(lat_buf_cstr(&out), "hello") == 0 && strcmp(lat_buf_cstr(&errors), "wrong\n") == 0);
	CHECK(no_child_left());
	lat_buf_free(&out);
	lat_buf_free(&errors);
	lat_process_abandon(p);
}

/* Both pipes end long before the process: only its exit shows. */
static void test_exit_without_pipes(lat_loop *loop, lat_processes *all)
{
	lat_process *p = start(all, "exec >&- 2>&-; sleep 0.05; exit 3", NULL, NULL);
	while (!lat_process_done(p))
		turn(loop);
	lat_process_result r;
	CHECK(lat_process_result_of(p, &r, NULL, NULL, NULL) == LAT_OK && r.status == 3);
	lat_process_abandon(p);
	CHECK(no_child_left());
}

static void test_abandon(lat_loop *loop, lat_processes *all)
{
	lat_process_abandon(start(all, "sleep 60", NULL, NULL));
	while (all->first)
		turn(loop);
	CHECK(no_child_left());
}

static void test_close(lat_loop *loop)
{
	lat_processes *all = lat_processes_new(loop, at_exit, NULL);
	lat_process *owned = start(all, "sleep 60", NULL, NULL);
	lat_process_abandon(start(all, "sleep 60", NULL, NULL));
	lat_processes_free(all);
	CHECK(no_child_left() && lat_process_done(owned));
	lat_error err;
	lat_process_result r;
	CHECK(lat_process_result_of(owned, &r, NULL, NULL, &err) == LAT_E_ABORT);
	lat_process_abandon(owned);
}

static void test_each_allocation_failing(lat_loop *loop)
{
	bool made = false;
	for (long at = 0; !made && at < 100; at++) {
		lat_error err = {.kind = LAT_OK};
		allocs_left = at;
		lat_processes *all = lat_processes_new(loop, at_exit, &err);
		lat_process *p = all ? start(all, "true", "input", &err) : NULL;
		made = p && allocs_left >= 0;
		allocs_left = -1;
		if (!made)
			CHECK(err.kind == LAT_E_NOMEM);
		if (p)
			lat_process_abandon(p);
		lat_processes_free(all);
		CHECK(no_child_left());
	}
	CHECK(made);
}

static void test_clip(void)
{
	static const char digits[] = "01234567890123456789012345678901234567890123456789";
	for (size_t max = 1; max < 40; max++) {
		for (size_t step = 1; step < 40; step += 3) {
			lat_clip c;
			lat_clip_init(&c, max);
			for (size_t at = 0; at < 200; at += step)
				lat_clip_append(&c, &digits[at % 10], step);
			lat_buf out = LAT_BUF_INIT;
			lat_clip_write(&c, &out);
			size_t total = (200 + step - 1) / step * step, tail = max - max / 2;
			bool right = lat_clip_truncated(&c) && c.total == total && c.tail.len <= 2 * tail;
			for (size_t i = 0; i < tail; i++) /* the last bytes of the stream, in order */
				right = right && out.data[out.len - 1 - i] == (char)('0' + (total - 1 - i) % 10);
			for (size_t i = 0; i < max / 2; i++)
				right = right && out.data[i] == (char)('0' + i % 10);
			CHECK(right);
			lat_buf_free(&out);
			lat_clip_free(&c);
		}
	}
}

int main(void)
{
	lat_loop *loop = lat_loop_new(NULL);
	at_exit = lat_at_exit_new(NULL);
	lat_processes *all = lat_processes_new(loop, at_exit, NULL);
	for (has_pidfds = 1; has_pidfds >= 0; has_pidfds--) {
		test_exit(loop, all);
		test_exit_without_pipes(loop, all);
		test_abandon(loop, all);
		test_close(loop);
		test_each_allocation_failing(loop);
	}
	test_clip();
	lat_processes_free(all);
	lat_at_exit_free(at_exit);
	lat_loop_free(loop);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
