/* lat_spawn: see spawn.h for ownership.
 *
 * The child shares the memory of this process until exec (vfork's way, on a stack of its own), so that its cost
 * doesn't grow with the memory in use, and what failed in it shows here at once; this thread waits meanwhile. The
 * child gets default signal actions, no blocked signals, and no descriptor above 2 (3 where it reports). What runs
 * in it makes system calls and nothing else: no lock, no allocation. */
#include "scheduler/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STDIO_END = 3,
	REPORT = 3,            /* the child's descriptor */
	STACK_BASE = 64 * 1024 /* bytes; execvpe needs some for a path, and for a copy of the arguments */
};

typedef struct {
	int parent, child;
} pipe_ends;

#define NO_PIPE \
	{           \
		-1, -1  \
	}

enum { IN, OUT, ERROR, REPORTED, N_PIPES };

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_pipe(pipe_ends *p)
{
	close_end(&p->parent);
	close_end(&p->child);
}

/* Above 2, so that moving one end to its place in the child can't overwrite another (a host may have closed its
 * own standard descriptors). */
static bool lift(int *fd)
{
	if (*fd >= STDIO_END)
		return true;
	int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, STDIO_END);
	if (lifted < 0)
		return false;
	close(*fd);
	*fd = lifted;
	return true;
}

static lat_status open_pipe(pipe_ends *p, bool parent_writes, lat_error *err)
{
	int fds[2];
	bool ok = pipe2(fds, O_CLOEXEC) == 0;
	if (ok) {
		p->parent = fds[parent_writes ? 1 : 0];
		p->child = fds[parent_writes ? 0 : 1];
		ok = lift(&p->parent) && lift(&p->child) && fcntl(p->parent, F_SETFL, O_NONBLOCK) == 0;
	}
	return ok ? LAT_OK : lat_fail(err, LAT_E_IO, "can't make a pipe: %s", strerror(errno));
}

/* ThreadSanitizer's own memory must not be the child's too. */
#if defined(__SANITIZE_THREAD__)
#define SHARE_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SHARE_MEMORY 0
#endif
#endif
#ifndef SHARE_MEMORY
#define SHARE_MEMORY CLONE_VM
#endif

/* ---- the child ---- */

typedef struct {
	const lat_process_options *options;
	const pipe_ends *pipes;
	volatile int
		*failure; /* an errno, for the parent; at the end of the child's stack, which both can always see */
} plan;

static void reset_signals(void)
{
	struct sigaction initial = {.sa_handler = SIG_DFL};
	sigset_t none;
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &initial, NULL); /* some are nobody's to change */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool put(int fd, int place)
{
	if (fd == place)
		return fcntl(fd, F_SETFD, 0) == 0;
	return dup2(fd, place) >= 0;
}

static bool put_descriptors(const plan *p)
{
	int in = p->pipes[IN].child >= 0 ? p->pipes[IN].child : open("/dev/null", O_RDONLY);
	int error = p->pipes[p->options->merge_stderr ? OUT : ERROR].child;
	return in >= 0 && put(in, STDIN_FILENO) && put(p->pipes[OUT].child, STDOUT_FILENO) &&
	       put(error, STDERR_FILENO);
}

static bool prepare(const plan *p)
{
	const lat_process_options *o = p->options;
	if (o->cwd && chdir(o->cwd) < 0)
		return false;
	int failure = o->prepare ? o->prepare(o->prepare_arg) : 0;
	if (failure)
		errno = failure;
	return failure == 0;
}

/* On a stack of its own, which AddressSanitizer doesn't know: it would warn of it at the exit. */
__attribute__((no_sanitize_address)) static int run_child(void *arg)
{
	plan *p = arg;
	const lat_process_options *o = p->options;
	if (setsid() >= 0 && put_descriptors(p) && prepare(p) &&
	    (!o->has_report || put(p->pipes[REPORTED].child, REPORT))) {
		closefrom(o->has_report ? REPORT + 1 : STDIO_END);
		reset_signals();
		execvpe(o->argv[0], o->argv, o->envp);
	}
	*p->failure = errno;
	_exit(127);
}

/* ---- this side ---- */

static size_t stack_size(char *const *argv)
{
	size_t arguments = 0;
	while (argv[arguments])
		arguments++;
	size_t size = STACK_BASE + (arguments + 2) * sizeof *argv, page = (size_t)sysconf(_SC_PAGESIZE);
	return (size + page - 1) / page * page;
}

/* Signals wait until the child is on its own: a handler of ours must not run in it. 0 or an errno. */
static int start_child(plan *p, pid_t *pid)
{
	size_t size = stack_size(p->options->argv);
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return errno;
	p->failure = (volatile int *)stack;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	*pid = clone(run_child, stack + size, SHARE_MEMORY | CLONE_VFORK | SIGCHLD, p);
	int failure = *pid < 0 ? errno : *p->failure;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	munmap(stack, size);
	return failure;
}

/* 0 or an errno. */
static int spawn_with(const lat_process_options *options, const pipe_ends *pipes, pid_t *pid)
{
	plan p = {.options = options, .pipes = pipes};
	*pid = -1;
	int failure = start_child(&p, pid);
	if (failure && *pid > 0)
		while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	return failure;
}

/* A missing folder and a missing program look alike in the error number. */
static lat_status explain(const lat_process_options *options, int failure, lat_error *err)
{
	if (failure == ENOMEM)
		return lat_fail_nomem(err);
	struct stat st;
	if (options->cwd && stat(options->cwd, &st) < 0)
		return lat_fail(err, LAT_E_IO, "can't start in \"%.200s\": %s", options->cwd, strerror(errno));
	if (options->cwd && !S_ISDIR(st.st_mode))
		return lat_fail(err, LAT_E_IO, "can't start in \"%.200s\": not a folder", options->cwd);
	return lat_fail(err, LAT_E_IO, "can't start \"%.200s\": %s", options->argv[0], strerror(failure));
}

lat_status lat_spawn(const lat_process_options *options, lat_spawned *child, lat_error *err)
{
	pipe_ends pipes[N_PIPES] = {NO_PIPE, NO_PIPE, NO_PIPE, NO_PIPE};
	const bool wanted[N_PIPES] = {options->input != NULL, true, !options->merge_stderr, options->has_report};
	lat_status status = LAT_OK;
	for (int i = 0; i < N_PIPES && status == LAT_OK; i++)
		if (wanted[i])
			status = open_pipe(&pipes[i], i == IN, err);
	int failure = status == LAT_OK ? spawn_with(options, pipes, &child->pid) : 0;
	if (failure)
		status = explain(options, failure, err);
	for (int i = 0; i < N_PIPES; i++)
		if (status == LAT_OK)
			close_end(&pipes[i].child);
		else
			close_pipe(&pipes[i]);
	child->in = pipes[IN].parent;
	child->out[0] = pipes[OUT].parent;
	child->out[1] = pipes[ERROR].parent;
	child->report = pipes[REPORTED].parent;
	return status;
}
