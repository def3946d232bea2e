/* A process that writes and edits one file is killed (SIGKILL) at random moments: the file is the old or the new one,
 * whole, and what was half written is gone once a workspace is opened again. The seed is printed; SEED=… repeats. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "workspace/file.h"
#include "workspace_support.h"

enum { KILLS = 500, SIZE = 200 * 1000, LONGEST_US = 4000, SWEEP_MAX = 10000 };

static char content[2][SIZE + 1];

static void fill_contents(void)
{
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < SIZE; i++)
			content[k][i] = i % 80 == 79 ? '\n' : (char)('a' + 13 * k + i % 7);
	content[0][SIZE / 2] = 'N'; /* what the edits turn into n and back */
}

static void write_once(lat_workspace *ws, const char *text)
{
	test_call t;
	prepare(&t, ws, NULL);
	give(&t, "file_path", "dir/target");
	give_n(&t, "content", text, SIZE);
	lat_tool_write(&t.call);
	if (t.call.result.is_error)
		_exit(1);
	end_call(&t);
}

static void edit_once(lat_workspace *ws, const char *old, const char *new)
{
	test_call t;
	prepare(&t, ws, NULL);
	give(&t, "file_path", "dir/target");
	give(&t, "old_string", old);
	give(&t, "new_string", new);
	lat_tool_edit(&t.call);
	if (t.call.result.is_error)
		_exit(1);
	end_call(&t);
}

/* The child: tells that it runs, then writes until it is killed. */
static void work(int ready)
{
	lat_workspace *ws = open_workspace(at("ws"), false);
	if (!ws || write(ready, "", 1) != 1)
		_exit(1);
	for (;;) {
		write_once(ws, content[0]);
		edit_once(ws, "N", "n");
		edit_once(ws, "n", "N");
		write_once(ws, content[1]);
	}
}

static bool is_one_of_them(void)
{
	static char got[SIZE + 2];
	int fd = open(at("ws/dir/target"), O_RDONLY);
	ssize_t n = fd >= 0 ? read(fd, got, sizeof got) : -1;
	if (fd >= 0)
		close(fd);
	if (n != SIZE)
		return false;
	if (got[SIZE / 2] == 'n')
		got[SIZE / 2] = 'N';
	return memcmp(got, content[0], SIZE) == 0 || memcmp(got, content[1], SIZE) == 0;
}

static void kill_one(unsigned *seed, int *left_over)
{
	int ready[2];
	if (pipe(ready) != 0)
		abort();
	pid_t pid = fork();
	if (pid == 0)
		work(ready[1]);
	char byte;
	close(ready[1]);
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		abort();
	close(ready[0]);
	const struct timespec moment = {0, 1000L * (rand_r(seed) % LONGEST_US)};
	nanosleep(&moment, NULL); /* the random moment itself */
	int status;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status)); /* no call had failed until then */
	CHECK(is_one_of_them());
	int extra = count_entries("ws/dir") - 3; /* file, sub, target */
	*left_over += extra;
	lat_workspace *ws = open_workspace(at("ws"), false);
	size_t removed = lat_file_sweep(lat_workspace_roots(ws), SWEEP_MAX);
	CHECK((int)removed == extra && count_entries("ws/dir") == 3);
	lat_workspace_free(ws);
}

int main(void)
{
	const char *given = getenv("SEED");
	unsigned seed = given ? (unsigned)atoi(given) : (unsigned)time(NULL);
	int kills = (int)(KILLS * spec_scale()) + 1, left_over = 0;
	printf("SEED=%u\n", seed);
	fill_contents();
	set_scene();
	put("ws/dir/target", "");
	lat_workspace *ws = open_workspace(at("ws"), false);
	write_once(ws, content[0]);
	lat_workspace_free(ws);
	for (int i = 0; i < kills; i++)
		kill_one(&seed, &left_over);
	printf("  %d kills, %d of them left a half-written file for the next start to remove\n", kills,
	       left_over);
	CHECK(kills < 100 || left_over > 0); /* some came in the middle */
	strike_scene();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
