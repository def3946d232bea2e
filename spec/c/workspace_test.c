/* Workspaces against everything that would lead out of them, with openat2 and with the walk. Nothing outside may be
 * read or changed: the world outside is compared byte by byte after each case. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <time.h>

#include "workspace/file.h"
#include "workspace_support.h"

static bool walking;
static lat_workspace *ws;

static bool denied(test_call *t)
{
	return t->call.result.is_error && says(t, "\"code\":\"permission_denied\"") &&
	       says(t, "\"allowed_roots\":[{") && says(t, "\"suggested_next_step\":");
}

typedef enum { REFUSED, DENIED } verdict;

/* Every file tool on one path: none gets anything, none leaves anything. */
static void try_path(const char *path, size_t len, verdict wanted, const char *label)
{
	static const struct {
		void (*run)(lat_tool_call *);
		const char *key;
	} tools[] = {
		{lat_tool_read, "file_path"},
		{lat_tool_write, "file_path"},
		{lat_tool_edit, "file_path"},
		{lat_tool_ls, "path"},
	};
	for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
		test_call t;
		prepare(&t, ws, NULL);
		give_n(&t, tools[i].key, path, len);
		give(&t, "content", "written\n");
		give(&t, "old_string", "secret");
		give(&t, "new_string", "changed");
		tools[i].run(&t.call);
		bool right = t.call.result.is_error && (wanted == REFUSED || denied(&t)) && !says(&t, "the secret");
		if (!right)
			printf("%s, tool %zu, %s: %.*s\n", label, i, walking ? "walk" : "openat2",
			       (int)t.call.result.text.len, t.call.result.text.data);
		CHECK(right);
		end_call(&t);
	}
	CHECK(outside_is_whole());
}

static void try_text(const char *path, verdict wanted)
{
	try_path(path, strlen(path), wanted, path);
}

/* What is tried here must do no harm where the code under test is broken: it is all below a folder of this test's. */
static void test_dots_and_absolute(void)
{
	char path[512];
	try_text("../out/secret", DENIED);
	try_text("..", DENIED);
	try_text("dir/../../out/secret", DENIED);
	try_text("dir/sub/../../../out/dir/file", DENIED);
	try_text("./.././out/secret", DENIED);
	try_text("../ws-not/file", DENIED);
	try_text(at("out/secret"), DENIED);
	try_text(at("out/dir/new/deep/file"), DENIED);
	try_text("/", DENIED);
	snprintf(path, sizeof path, "/%s", at("out//secret"));
	try_text(path, DENIED);
	try_text(at("ws2"), DENIED); /* begins like the root */
}

static void test_links(void)
{
	char path[512];
	make_link("../out", "ws/up");
	make_link(at("out"), "ws/abs");
	make_link("../out/secret", "ws/last");
	make_link("../../out/dir", "ws/dir/middle");
	make_link("up", "ws/chain");
	make_link("loop", "ws/loop");
	make_link("../out/not-there-yet", "ws/dangling");
	make_link("/proc/self/root", "ws/procroot");
	make_link("/proc/self/cwd", "ws/proccwd");
	try_text("up", DENIED);
	try_text("up/secret", DENIED);
	try_text("up/dir/file", DENIED);
	try_text("abs/secret", DENIED);
	try_text("last", DENIED);
	try_text("dir/middle/file", DENIED);
	try_text("chain/secret", DENIED);
	try_text("chain/dir/new", DENIED);
	try_text("dangling", DENIED);
	try_text("loop", REFUSED);
	try_text("loop/file", REFUSED);
	snprintf(path, sizeof path, "procroot%s", at("out/secret"));
	try_text(path, DENIED);
	try_text("proccwd/x", DENIED);
	CHECK(count_entries("out") == 2);
}

static void test_proc(void)
{
	char path[128];
	int fd = open(at("out"), O_RDONLY | O_DIRECTORY);
	snprintf(path, sizeof path, "/proc/self/fd/%d/secret", fd);
	try_text(path, DENIED);
	snprintf(path, sizeof path, "/proc/self/root%.100s", at("out/secret"));
	try_text(path, DENIED);
	lat_workspace *mine = ws;
	ws = open_workspace("/proc", walking); /* the worst root that somebody could give */
	snprintf(path, sizeof path, "self/fd/%d/secret", fd);
	try_text(path, REFUSED);
	snprintf(path, sizeof path, "self/root%.100s", at("out/secret"));
	try_text(path, REFUSED);
	lat_workspace_free(ws);
	ws = mine;
	close(fd);
}

static void test_names(void)
{
	static const char nul[] = "dir/a\0b", newline[] = "no\nsuch\nname", invalid[] = "no \xff\xfe name";
	char *longest = malloc(5001);
	if (!longest)
		abort();
	memset(longest, 'x', 5000);
	longest[5000] = '\0';
	try_path(nul, sizeof nul - 1, REFUSED, "NUL");
	try_path("", 0, REFUSED, "empty");
	try_path(longest, 5000, REFUSED, "5000 bytes");
	try_path(longest, 4096, REFUSED, "4096 bytes");
	try_path(longest, 256, REFUSED, "a name of 256 bytes");
	for (int i = 0; i < 5000; i += 2)
		longest[i] = '/';
	try_path(longest, 5000, REFUSED, "2500 names");
	free(longest);
	const char *names[] = {newline, invalid, " ", "-rf", "*", "\\", "a\tb"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		test_call t;
		prepare(&t, ws, NULL);
		give(&t, "file_path", names[i]);
		give(&t, "content", "x");
		lat_tool_write(&t.call);
		CHECK(!t.call.result.is_error);
		end_call(&t);
		char made[300];
		snprintf(made, sizeof made, "ws/%s", names[i]);
		CHECK(holds(made, "x"));
		CHECK(unlink(at(made)) == 0);
	}
	CHECK(outside_is_whole());
}

static void test_no_hang(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%.80s/ws/socket", scene);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
	CHECK(mkfifo(at("ws/fifo"), 0666) == 0);
	try_text("fifo", REFUSED);
	try_text("fifo/x", REFUSED);
	try_text("socket", REFUSED);
	if (mknod(at("ws/tty"), S_IFCHR | 0666, makedev(5, 0)) == 0) { /* needs rights that not everybody has */
		try_text("tty", REFUSED);
		CHECK(unlink(at("ws/tty")) == 0);
	}
	CHECK(unlink(at("ws/fifo")) == 0 && unlink(at("ws/socket")) == 0);
	close(fd);
}

static void test_hard_links(void)
{
	test_call t;
	CHECK(link(at("out/secret"), at("ws/hard")) == 0);
	prepare(&t, ws, NULL);
	give(&t, "file_path", "hard");
	give(&t, "old_string", "secret");
	give(&t, "new_string", "changed");
	lat_tool_edit(&t.call);
	CHECK(!t.call.result.is_error && holds("ws/hard", "the changed of the world outside\n"));
	end_call(&t);
	prepare(&t, ws, NULL);
	give(&t, "file_path", "hard");
	give(&t, "content", "written");
	lat_tool_write(&t.call);
	CHECK(!t.call.result.is_error && holds("ws/hard", "written"));
	end_call(&t);
	CHECK(outside_is_whole());
	CHECK(unlink(at("ws/hard")) == 0);
}

static void test_workspace_that_is_a_link(void)
{
	lat_workspace *mine = ws;
	make_link("ws", "alias");
	ws = open_workspace(at("alias"), walking);
	test_call t;
	prepare(&t, ws, NULL);
	give(&t, "file_path", at("alias/dir/file"));
	lat_tool_read(&t.call);
	CHECK(!t.call.result.is_error && says(&t, "inside dir"));
	end_call(&t);
	prepare(&t, ws, NULL);
	give(&t, "file_path", at("ws/dir/file"));
	lat_tool_read(&t.call);
	CHECK(!t.call.result.is_error);
	end_call(&t);
	try_text("../out/secret", DENIED);
	try_text(at("alias/../out/secret"), DENIED);
	CHECK(unlink(at("alias")) == 0);
	make_link("out", "alias"); /* whoever turns it round gets nothing: the folder is held */
	prepare(&t, ws, NULL);
	give(&t, "file_path", at("alias/secret"));
	lat_tool_read(&t.call);
	CHECK(t.call.result.is_error && !says(&t, "the secret"));
	end_call(&t);
	CHECK(unlink(at("alias")) == 0);
	lat_workspace_free(ws);
	ws = mine;
}

static void test_links_that_stay(void)
{
	test_call t;
	make_link("dir/file", "ws/soft");
	make_link(at("ws/dir"), "ws/absdir");
	make_link("../dir/sub", "ws/dir/back");
	prepare(&t, ws, NULL);
	give(&t, "file_path", "soft");
	give(&t, "content", "through\n");
	lat_tool_write(&t.call);
	CHECK(!t.call.result.is_error && holds("ws/dir/file", "through\n"));
	struct stat st;
	CHECK(lstat(at("ws/soft"), &st) == 0 && S_ISLNK(st.st_mode));
	end_call(&t);
	prepare(&t, ws, NULL);
	give(&t, "file_path", "absdir/back/file");
	lat_tool_read(&t.call);
	CHECK(!t.call.result.is_error && says(&t, "inside sub"));
	end_call(&t);
	char name[LAT_PATH_MAX], same[LAT_PATH_MAX];
	CHECK(lat_workspace_canonical(ws, NULL, "absdir/back/file", 16, name) == 0);
	CHECK(lat_workspace_canonical(ws, NULL, "dir/sub/file", 12, same) == 0 && strcmp(name, same) == 0);
	CHECK(lat_workspace_canonical(ws, NULL, "absdir/new/x", 12, name) == 0);
	CHECK(lat_workspace_canonical(ws, NULL, "dir/new/x", 9, same) == 0 && strcmp(name, same) == 0);
	CHECK(unlink(at("ws/soft")) == 0 && unlink(at("ws/absdir")) == 0 && unlink(at("ws/dir/back")) == 0);
	put("ws/dir/file", "inside dir\n");
}

static void test_access(void)
{
	const lat_root_spec readable = {at("out"), LAT_ACCESS_READ};
	lat_roots *grants = lat_roots_open(&readable, 1, NULL);
	test_call t;
	prepare(&t, ws, grants);
	give(&t, "file_path", at("out/secret"));
	lat_tool_read(&t.call);
	CHECK(!t.call.result.is_error && says(&t, "the secret"));
	end_call(&t);
	prepare(&t, ws, grants);
	give(&t, "file_path", at("out/secret"));
	give(&t, "content", "x");
	lat_tool_write(&t.call);
	CHECK(denied(&t) && says(&t, "\"access\":\"write\""));
	end_call(&t);
	make_link("../out", "ws/granted"); /* a link may lead to another root, with that one's access */
	prepare(&t, ws, grants);
	give(&t, "file_path", "granted/secret");
	lat_tool_read(&t.call);
	CHECK(!t.call.result.is_error);
	end_call(&t);
	prepare(&t, ws, grants);
	give(&t, "file_path", "granted/secret");
	give(&t, "content", "x");
	lat_tool_write(&t.call);
	CHECK(denied(&t));
	end_call(&t);
	CHECK(unlink(at("ws/granted")) == 0);
	lat_roots_free(grants);
	CHECK(outside_is_whole());
}

/* ---- swapped while the call runs ---- */

static atomic_bool racing;

static void exchange(const char *a, const char *b)
{
	syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2 /* RENAME_EXCHANGE */);
}

/* Turns a file, a folder and a folder in the middle into links to the outside, and back, as fast as it can. */
static void *race(void *arg)
{
	(void)arg;
	char names[6][LAT_PATH_MAX];
	const char *all[] = {"ws/race", "ws/race.link", "ws/racedir", "ws/racedir.link", "ws/a/b", "ws/a/b.link"};
	for (int i = 0; i < 6; i++)
		snprintf(names[i], LAT_PATH_MAX, "%s", at(all[i]));
	while (atomic_load(&racing))
		for (int i = 0; i < 6; i += 2)
			exchange(names[i], names[i + 1]);
	return NULL;
}

static void one_round(unsigned i, size_t *done, size_t *refused)
{
	static const char *const paths[] = {"race", "racedir/file", "a/b/file", "a/b/new"};
	static void (*const tools[])(lat_tool_call *) = {lat_tool_read, lat_tool_write, lat_tool_edit};
	test_call t;
	prepare(&t, ws, NULL);
	give(&t, "file_path", paths[i % 4]);
	give(&t, "content", "inside written\n");
	give(&t, "old_string", i % 8 < 4 ? "secret" : "inside");
	give(&t, "new_string", i % 8 < 4 ? "changed" : "inside inside");
	tools[i / 4 % 3](&t.call);
	if (says(&t, "the secret"))
		CHECK(!"something outside was read");
	*done += !t.call.result.is_error;
	*refused += t.call.result.is_error;
	end_call(&t);
}

static void test_race(double seconds)
{
	make_dir("ws/racedir");
	make_dir("ws/a");
	make_dir("ws/a/b");
	put("ws/race", "inside\n");
	put("ws/racedir/file", "inside\n");
	put("ws/a/b/file", "inside\n");
	make_link("../out/secret", "ws/race.link");
	make_link("../out/dir", "ws/racedir.link");
	make_link(at("out/dir"), "ws/a/b.link");
	pthread_t racer;
	atomic_store(&racing, true);
	if (pthread_create(&racer, NULL, race, NULL) != 0)
		abort();
	struct timespec begin, now;
	size_t done = 0, refused = 0;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned i = 0;
	     i % 64 ||
	     (clock_gettime(CLOCK_MONOTONIC, &now),
	      (double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
	     i++)
		one_round(i, &done, &refused);
	atomic_store(&racing, false);
	pthread_join(racer, NULL);
	CHECK(outside_is_whole());
	CHECK(done > 0 && refused > 0); /* it was a race */
	printf("  %s: %zu calls got through inside, %zu were refused\n", walking ? "walk" : "openat2", done,
	       refused);
}

/* ---- what is left over ---- */

static void test_sweep(void)
{
	put("ws/dir/.lattice-0123456789abcdef.tmp", "half");
	put("ws/dir/.lattice-0123456789abcdeX.tmp", "somebody's");
	put("out/dir/.lattice-0123456789abcdef.tmp", "half");
	make_link("../out/dir", "ws/sweeplink");
	make_link("file", "ws/.lattice-fedcba9876543210.tmp");
	int held = open(at("ws/dir/.lattice-0123456789abcdef.tmp"), O_RDONLY);
	CHECK(flock(held, LOCK_EX | LOCK_NB) == 0); /* as long as its writer lives */
	CHECK(lat_file_sweep(lat_workspace_roots(ws), 1000) == 0);
	close(held);
	CHECK(lat_file_sweep(lat_workspace_roots(ws), 1000) == 1);
	CHECK(!holds("ws/dir/.lattice-0123456789abcdef.tmp", "half"));
	CHECK(holds("ws/dir/.lattice-0123456789abcdeX.tmp", "somebody's"));
	CHECK(holds("out/dir/.lattice-0123456789abcdef.tmp", "half"));
	CHECK(unlink(at("out/dir/.lattice-0123456789abcdef.tmp")) == 0);
	CHECK(unlink(at("ws/.lattice-fedcba9876543210.tmp")) == 0 && unlink(at("ws/sweeplink")) == 0);
}

static void test_seen(void)
{
	lat_file_state state = {1, 2, 3};
	bool right = true;
	for (uint64_t i = 0; i < 100000; i++) {
		const lat_file_key key = {1, i, "name"};
		state.ino = i;
		right = right && lat_workspace_note(ws, &key, &state) == LAT_OK &&
		        lat_workspace_compare(ws, &key, &state) == LAT_FILE_SAME;
	}
	const lat_file_key last = {1, 99999, "name"}, other = {1, 99999, "nam"};
	state.size++;
	CHECK(right && lat_workspace_compare(ws, &last, &state) == LAT_FILE_CHANGED);
	CHECK(lat_workspace_compare(ws, &other, &state) == LAT_FILE_UNKNOWN);
}

static void test_all(bool walk, double seconds)
{
	walking = walk;
	set_scene();
	ws = open_workspace(at("ws"), walk);
	test_dots_and_absolute();
	test_links();
	test_proc();
	test_names();
	test_no_hang();
	test_hard_links();
	test_workspace_that_is_a_link();
	test_links_that_stay();
	test_access();
	test_sweep();
	test_race(seconds);
	test_seen();
	lat_workspace_free(ws);
	strike_scene();
}

int main(void)
{
	enum { RACE_SECONDS = 10 };
	double seconds = RACE_SECONDS * spec_scale();
	if (lat_workspace_has_openat2())
		test_all(false, seconds);
	test_all(true, seconds);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
