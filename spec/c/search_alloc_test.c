/* Globs, rules of .gitignore, walks, Grep and Bash when memory runs out: each allocation fails in turn. Whatever
 * comes of it, the right answer or LAT_E_NOMEM: nothing crashes, no memory and no descriptor is left behind. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduler/at_exit.h"
#include "workspace/bash.h"
#include "workspace/gitignore.h"
#include "workspace/grep.h"
#include "workspace/landlock.h"
#include "workspace/walk.h"

/* ---- allocation ---- */

static long left = -1; /* allocations until one fails; -1: none does */
static long live;      /* blocks that aren't freed */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

static bool fails(void)
{
	return left >= 0 && left-- == 0;
}

static void *counted(void *p)
{
	live += p != NULL;
	return p;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : counted(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	if (fails())
		return NULL;
	void *moved = __real_realloc(p, n);
	live += !p && moved;
	return moved;
}

void __wrap_free(void *p)
{
	live -= p != NULL;
	__real_free(p);
}

char *__wrap_strndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *copy = __wrap_malloc(len + 1);
	if (copy) {
		memcpy(copy, s, len);
		copy[len] = '\0';
	}
	return copy;
}

char *__wrap_strdup(const char *s)
{
	return __wrap_strndup(s, strlen(s));
}

/* ---- checks ---- */

static int passed, failed;
static char top[64];

static void check(bool ok, const char *what, long at, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("search_alloc_test.c:%d: not so: %s (allocation %ld failed)\n", line, what, at);
}

static int descriptors(void)
{
	int n = 0;
	DIR *dir = opendir("/proc/self/fd");
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Runs what with its 1st, 2nd, … allocation failing, until it takes fewer than that. what says whether it did its
 * work, and false only for want of memory. */
static void each_allocation(const char *name, bool (*what)(void))
{
	bool done = false;
	for (long at = 0; !done && at < 100000; at++) {
		long before = live;
		int open_before = descriptors();
		left = at;
		bool ok = what();
		done = left >= 0;
		left = -1;
		check(ok || !done, name, at, __LINE__);
		check(live == before, "no memory is left behind", at, __LINE__);
		check(descriptors() == open_before, "no descriptor is left behind", at, __LINE__);
		check(waitpid(-1, NULL, WNOHANG) < 0, "no child is left behind", at, __LINE__);
	}
	check(done, name, -1, __LINE__);
}

/* ---- what is run ---- */

static bool run_globs(void)
{
	lat_error err;
	lat_glob *g = lat_glob_new("{src,lib}/**/*.[ch]", 19, LAT_GLOB_TOOL, &err);
	bool ok = g && lat_glob_match(g, "src/a/b.c", 9) && !lat_glob_match(g, "src/a/b.o", 9);
	check(g || err.kind == LAT_E_NOMEM, "want of memory is said", -1, __LINE__);
	lat_glob_free(g);
	return ok;
}

static bool run_gitignore(void)
{
	char text[4096];
	size_t len = 0;
	for (int i = 0; i < 40; i++)
		len += (size_t)sprintf(text + len, "*.x%d\n!/keep/%d\n", i, i);
	lat_gitignore *g = lat_gitignore_parse(text, len);
	bool ok = g && lat_gitignore_match(g, "a.x7", 4, false) == LAT_IGNORE_EXCLUDED;
	lat_gitignore_free(g);
	return ok;
}

static bool run_walk(void)
{
	lat_error err;
	lat_walk_options options = {.start = open(top, O_RDONLY | O_DIRECTORY), .threads = 1};
	lat_walk *w = lat_walk_new(&options, &err);
	bool ok = w && lat_walk_count(w) == 41; /* 40 files and .gitignore */
	check(w || err.kind == LAT_E_NOMEM, "want of memory is said", -1, __LINE__);
	lat_walk_free(w);
	close(options.start);
	return ok;
}

static bool run_grep_in(lat_grep_mode mode, bool multiline)
{
	lat_error err = {.kind = LAT_OK};
	lat_search_options search_options = {.multiline = multiline};
	lat_search *search = lat_search_new("ne+dle", 6, &search_options, &err);
	lat_glob *glob = lat_glob_new("*.txt", 5, LAT_GLOB_TOOL, &err);
	lat_buf out = LAT_BUF_INIT;
	lat_grep_stats stats;
	bool ok = false;
	if (search && glob) {
		lat_grep_options options = {
			.start = open(top, O_RDONLY | O_DIRECTORY),
			.prefix = "",
			.search = search,
			.glob = glob,
			.mode = mode,
			.whole_files = multiline,
			.context = 1,
			.max_bytes = 100000,
			.threads = 1,
		};
		ok = lat_grep_run(&options, &out, &stats, &err) == LAT_OK && stats.files_hit == 40;
		close(options.start);
	}
	check(ok || err.kind == LAT_E_NOMEM, "want of memory is said", -1, __LINE__);
	lat_buf_free(&out);
	lat_glob_free(glob);
	lat_search_free(search);
	return ok;
}

static bool run_grep_content(void)
{
	return run_grep_in(LAT_GREP_CONTENT, false);
}

static bool run_grep_count(void)
{
	return run_grep_in(LAT_GREP_COUNT, false);
}

static bool run_grep_multiline(void)
{
	return run_grep_in(LAT_GREP_CONTENT, true);
}

static lat_loop *loop;

static bool run_command(lat_bash *bash, lat_processes *all)
{
	lat_error err = {.kind = LAT_OK};
	lat_buf out = LAT_BUF_INIT;
	lat_bash_result result;
	lat_bash_call *call = lat_bash_start(bash, all, NULL, "cd /; echo out", 0, &err);
	while (call && !lat_process_done(lat_bash_process(call))) {
		uint64_t ids[4];
		size_t n;
		lat_loop_turn(loop, -1, ids, 4, &n, NULL);
	}
	bool ok = call && lat_bash_finish(call, &out, &result, &err) == LAT_OK && out.len > 3 &&
	          memcmp(out.data, "out", 3) == 0;
	check(ok || err.kind == LAT_E_NOMEM || err.kind == LAT_E_IO, "want of memory is said", -1, __LINE__);
	lat_bash_call_free(call);
	lat_buf_free(&out);
	return ok;
}

static lat_processes *all_processes;
static lat_workspace *ws;

static bool run_bash(void)
{
	lat_error err;
	static const char *const secrets[] = {"a secret", "another"};
	lat_bash_options options = {
		.ws = ws, .temp = top, .abi = lat_landlock_abi(), .secrets = secrets, .n_secrets = 2};
	lat_bash *bash = lat_bash_new(&options, &err);
	bool ok = bash && run_command(bash, all_processes) && strcmp(lat_bash_cwd(bash), "/") == 0;
	lat_bash_free(bash);
	return ok;
}

static void make_tree(void)
{
	char path[256];
	strcpy(top, "/tmp/lattice-alloc-XXXXXX");
	if (!mkdtemp(top))
		exit(1);
	for (int i = 0; i < 80; i++) {
		snprintf(path, sizeof path, "%s/folder%d", top, i % 4);
		mkdir(path, 0755);
		snprintf(path, sizeof path, "%s/folder%d/%d.%s", top, i % 4, i, i < 40 ? "txt" : "o");
		FILE *f = fopen(path, "w");
		fprintf(f, "before\na needle in it\nafter\n");
		fclose(f);
	}
	snprintf(path, sizeof path, "%s/.gitignore", top);
	FILE *f = fopen(path, "w");
	fputs("*.o\n", f);
	fclose(f);
}

int main(void)
{
	lat_error err;
	make_tree();
	each_allocation("globs", run_globs);
	each_allocation("rules of .gitignore", run_gitignore);
	each_allocation("a walk", run_walk);
	each_allocation("Grep for lines", run_grep_content);
	each_allocation("Grep for counts", run_grep_count);
	each_allocation("Grep over lines", run_grep_multiline);
	loop = lat_loop_new(&err);
	lat_at_exit *at_exit = lat_at_exit_new(&err);
	all_processes = loop && at_exit ? lat_processes_new(loop, at_exit, &err) : NULL;
	const lat_root_spec root = {.path = top, .access = LAT_ACCESS_READ | LAT_ACCESS_WRITE};
	ws = lat_workspace_new(&(lat_workspace_options){.cwd = top, .roots = &root, .n_roots = 1}, &err);
	if (all_processes && ws) {
		run_bash(); /* what the loop keeps is there now */
		each_allocation("Bash", run_bash);
	}
	check(all_processes && ws, "a workspace", -1, __LINE__);
	lat_workspace_free(ws);
	lat_processes_free(all_processes);
	lat_at_exit_free(at_exit);
	lat_loop_free(loop);
	check(live == 1, "all memory but the exit list, which lives as long as the process, is given back", -1,
	      __LINE__);
	char command[128];
	snprintf(command, sizeof command, "rm -rf %s", top);
	check(system(command) == 0, "the tree is removed", -1, __LINE__);
	printf("%d passed, %d failed\n", passed, failed);
	return failed > 0;
}
