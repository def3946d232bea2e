/* Fails every allocation of an agent's run in turn: the Nth, for N = 1, 2, 3, … until a run needs fewer.
 *
 * Counted are the engine's allocations (the linker's --wrap), Lua's (its allocator) and libcurl's
 * (curl_global_init_mem). After each run nothing may have crashed, every allocation must have been given back,
 * and the outcome must be a success, an error result or a Lua error; the script also checks that the agent can go
 * on afterwards. The run itself is alloc_failure.lua. Replies come from reply_server.c in a process of its own (forking
 * a process with threads would be unsafe); the runs happen in forked workers, so that a crash is a figure and
 * not the end.
 *
 * Two phases: `load` (making the Lua state and loading the library) and `run` (making an agent and prompting it). Two modes:
 * `once` (only the Nth fails; Lua's second try after its emergency collection too) and `onward` (the Nth and all
 * later ones).
 *
 * ALLOC_FAILURE_STRIDE (default 7): tries every so manieth N, from an offset that SEED gives; 1 tries them all.
 * ALLOC_FAILURE_AT=phase:mode:N tries that one in this process; break on `refuse` to see where it is. */
#include <curl/curl.h>
#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../scripts/bench/reply_server.h"

enum { WORKERS = 2, MAX_FAULTS = 10, RUN_LIMIT_S = 60, WARM_UP_RUNS = 3 };

typedef enum { PHASE_LOAD, PHASE_RUN } phase;
typedef enum { MODE_ONCE, MODE_ONWARD } mode;
static const char *const PHASES[] = {"load", "run"};
static const char *const MODES[] = {"once", "onward"};

/* ---- the allocator ---- */

static struct {
	atomic_bool armed;
	atomic_long count;   /* allocations since it was armed */
	atomic_long fail_at; /* 0: none */
	atomic_long live;    /* allocations that were not given back */
	mode mode;
	const void *retry_ptr; /* Lua tries once more after an emergency collection: that fails too */
	size_t retry_size;
} memory;

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

static __attribute__((noinline)) bool refuse(void)
{
	__asm__ volatile("" ::: "memory"); /* keeps a place for a breakpoint */
	return true;
}

static bool fails(void)
{
	if (!memory.armed)
		return false;
	long n = ++memory.count, at = memory.fail_at;
	return at != 0 && (n == at || (n > at && memory.mode == MODE_ONWARD)) && refuse();
}

static void *counted(void *p)
{
	if (p)
		memory.live++;
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
	return p ? __real_realloc(p, n) : counted(__real_malloc(n));
}

void __wrap_free(void *p)
{
	if (p)
		memory.live--;
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

static void *lua_memory(void *user, void *p, size_t old_size, size_t n)
{
	(void)user;
	if (n == 0) {
		__wrap_free(p);
		return NULL;
	}
	if (p && n <= old_size) /* Lua takes it for granted that shrinking works */
		return __real_realloc(p, n);
	if (memory.retry_size == n && memory.retry_ptr == p) {
		memory.retry_size = 0;
		return NULL;
	}
	void *q = __wrap_realloc(p, n);
	if (!q) {
		memory.retry_ptr = p;
		memory.retry_size = n;
	}
	return q;
}

/* ---- one run ---- */

int luaopen_lattice_core(lua_State *L);

static char base_url[64];

static int arm(lua_State *L)
{
	(void)L;
	memory.count = 0;
	memory.armed = true;
	return 0;
}

static int disarm(lua_State *L)
{
	(void)L;
	memory.armed = false;
	memory.retry_size = 0;
	return 0;
}

/* Everything that may raise; returns the script's word. */
static int protected_run(lua_State *L)
{
	const phase *p = lua_touserdata(L, 1);
	luaL_openlibs(L);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
	lua_pushcfunction(L, luaopen_lattice_core);
	lua_setfield(L, -2, "lattice.core");
	if (luaL_loadfile(L, "spec/c/alloc_failure.lua") != LUA_OK)
		return lua_error(L);
	lua_pushstring(L, base_url);
	lua_pushcfunction(L, arm);
	lua_pushcfunction(L, disarm);
	lua_pushstring(L, PHASES[*p]);
	lua_pushstring(L, MODES[memory.mode]);
	lua_call(L, 5, 1);
	return 1;
}

/* Fills outcome with a word or a sentence that begins with "broken". */
static void run_script(phase p, char *outcome, size_t size)
{
	if (p == PHASE_LOAD)
		arm(NULL);
	lua_State *L = lua_newstate(lua_memory, NULL);
	if (!L) {
		snprintf(outcome, size, "raised");
		return;
	}
	lua_pushcfunction(L, protected_run);
	lua_pushlightuserdata(L, &p);
	int status = lua_pcall(L, 1, 1, 0);
	disarm(L);
	const char *message = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "no string";
	if (status != LUA_OK && memory.fail_at == 0)
		snprintf(outcome, size, "broken: a run with memory raised: %s", message);
	else
		snprintf(outcome, size, "%s", status == LUA_OK ? message : "raised");
	lua_close(L);
}

/* Returns false and says why on stderr when the Nth failure breaks something. *reached: the run got as far as N. */
static bool survives(phase p, mode m, long n, long baseline, bool *reached)
{
	char outcome[512];
	memory.mode = m;
	memory.fail_at = n;
	alarm(RUN_LIMIT_S);
	run_script(p, outcome, sizeof outcome);
	alarm(0);
	disarm(NULL);
	*reached = n != 0 && memory.count >= n;
	memory.fail_at = 0;
	const char *why = NULL;
	if (strncmp(outcome, "broken", 6) == 0)
		why = outcome;
	else if (!*reached && strcmp(outcome, "success") != 0)
		why = "nothing failed, and yet it is no success";
	else if (baseline >= 0 && memory.live != baseline)
		why = memory.live > baseline ? "memory was not given back" : "memory was given back twice";
	if (why)
		fprintf(stderr, "allocation %s:%s:%ld: %s (outcome %s, %+ld allocations)\n", PHASES[p], MODES[m], n,
		        why, outcome, baseline >= 0 ? (long)memory.live - baseline : 0);
	return why == NULL;
}

/* ---- workers ---- */

typedef struct {
	atomic_long current; /* the N that the worker is at */
	atomic_long runs;
	atomic_long faults;
	atomic_bool done;
} progress;

/* Runs with memory first: what the process keeps from its first run on is the baseline. */
static long warm_up(phase p)
{
	bool reached;
	if (curl_global_init_mem(CURL_GLOBAL_DEFAULT, __wrap_malloc, __wrap_free, __wrap_realloc, __wrap_strdup,
	                         __wrap_calloc) != CURLE_OK)
		return -1;
	for (int i = 0; i < WARM_UP_RUNS; i++)
		if (!survives(p, MODE_ONCE, 0, -1, &reached))
			return -1;
	return memory.live;
}

static void work(phase p, mode m, progress *pr, long first, long step)
{
	pr->current = first;
	long baseline = warm_up(p);
	bool reached = true;
	if (baseline < 0) {
		pr->faults++;
		reached = false;
	}
	for (long n = first; reached && pr->faults < MAX_FAULTS; n += step) {
		pr->current = n;
		if (!survives(p, m, n, baseline, &reached)) {
			pr->faults++;
			baseline = memory.live;
		}
		pr->runs++;
	}
	pr->done = true;
	exit(0);
}

/* Keeps one worker going until it is done; a crash counts as a fault, and the next one starts behind it. */
static void drive(phase p, mode m, progress *pr, pid_t *pid, long *first, long step)
{
	if (*pid != 0) {
		int status;
		while (waitpid(*pid, &status, 0) < 0 && errno == EINTR)
			;
		*pid = 0;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
			fprintf(stderr, "allocation %s:%s:%ld: %s %d\n", PHASES[p], MODES[m], (long)pr->current,
			        WIFSIGNALED(status) ? "ended by signal" : "exit status",
			        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
			pr->faults++;
			*first = pr->current + step;
		}
	}
	if (pr->done || pr->faults >= MAX_FAULTS)
		return;
	fflush(NULL);
	*pid = fork();
	if (*pid == 0)
		work(p, m, pr, *first, step);
}

static bool check(phase p, mode m, long stride, long offset)
{
	progress *all =
		mmap(NULL, WORKERS * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[WORKERS] = {0};
	long first[WORKERS], runs = 0, faults = 0, last = 0;
	if (all == MAP_FAILED)
		return false;
	for (int i = 0; i < WORKERS; i++) {
		first[i] = 1 + offset + i * stride;
		drive(p, m, &all[i], &pids[i], &first[i], WORKERS * stride);
	}
	for (int i = 0; i < WORKERS; i++) {
		while (pids[i] > 0)
			drive(p, m, &all[i], &pids[i], &first[i], WORKERS * stride);
		runs += all[i].runs;
		faults += all[i].faults;
		last = all[i].current > last ? (long)all[i].current : last;
	}
	munmap(all, WORKERS * sizeof *all);
	printf("%s, %s: %ld runs, up to allocation %ld, %ld faults\n", PHASES[p], MODES[m], runs, last, faults);
	return faults == 0 && runs > 0;
}

static int check_one(const char *where)
{
	char phase_name[8], mode_name[8];
	long n;
	if (sscanf(where, "%7[a-z]:%7[a-z]:%ld", phase_name, mode_name, &n) != 3) {
		fputs("ALLOC_FAILURE_AT: expected phase:mode:N, such as run:once:17\n", stderr);
		return 2;
	}
	phase p = strcmp(phase_name, "load") == 0 ? PHASE_LOAD : PHASE_RUN;
	bool reached;
	long baseline = warm_up(p);
	bool good = survives(p, strcmp(mode_name, "once") == 0 ? MODE_ONCE : MODE_ONWARD, n, baseline, &reached);
	printf("%s, %s\n", good ? "good" : "bad", reached ? "reached" : "not reached");
	return good ? 0 : 1;
}

/* Starts the server in a child, which ends when this process does: then its end of the pipe closes. */
static int start_server(void)
{
	int port_pipe[2], life_pipe[2], port = 0;
	if (pipe(port_pipe) != 0 || pipe(life_pipe) != 0)
		return 0;
	pid_t pid = fork();
	if (pid == 0) {
		char ignored;
		close(life_pipe[1]);
		port = reply_server_start(&(reply_sizes){.tool_steps = 2, .text_bytes = 100, .delta_bytes = 10});
		bool told = write(port_pipe[1], &port, sizeof port) == (ssize_t)sizeof port;
		_exit(told && read(life_pipe[0], &ignored, 1) == 0 ? 0 : 1);
	}
	close(port_pipe[1]);
	close(life_pipe[0]);
	return pid > 0 && read(port_pipe[0], &port, sizeof port) == (ssize_t)sizeof port ? port : 0;
}

int main(void)
{
	const char *stride_text = getenv("ALLOC_FAILURE_STRIDE"), *seed_text = getenv("SEED"),
			   *at = getenv("ALLOC_FAILURE_AT");
	long stride = stride_text ? atol(stride_text) : 7;
	long seed = seed_text ? atol(seed_text) : (long)time(NULL);
	setenv("LUA_PATH", "./lua/?.lua;./lua/?/init.lua;;", 0);
	int port = start_server();
	if (port == 0 || stride < 1) {
		fputs("alloc_failure_test: needs a free port and a stride of at least 1\n", stderr);
		return 2;
	}
	snprintf(base_url, sizeof base_url, "http://127.0.0.1:%d/loop", port);
	if (at)
		return check_one(at);
	printf("every allocation fails in turn; stride %ld, SEED=%ld\n", stride, seed);
	int passed = 0, failed = 0;
	for (int p = PHASE_LOAD; p <= PHASE_RUN; p++)
		for (int m = MODE_ONCE; m <= MODE_ONWARD; m++)
			*(check((phase)p, (mode)m, stride, seed % stride) ? &passed : &failed) += 1;
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
