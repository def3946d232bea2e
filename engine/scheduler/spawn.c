/* lat_spawn: see spawn.h for ownership.
 *
 * posix_spawn shares the memory of this process with the child until exec (vfork's way), so that its cost doesn't
 * grow with the memory in use, and reports a failed exec as its own error. The child gets default signal
 * actions, no blocked signals, and no descriptor above 2. */
#include "scheduler/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STDIO_END = 3 };

typedef struct {
	int parent, child;
} pipe_ends;

#define NO_PIPE \
	{           \
		-1, -1  \
	}

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

static int add_files(posix_spawn_file_actions_t *files, const lat_process_options *options,
                     const pipe_ends pipes[3])
{
	int failure = pipes[0].child >= 0 ? posix_spawn_file_actions_adddup2(files, pipes[0].child, 0)
	                                  : posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
	if (failure == 0)
		failure = posix_spawn_file_actions_adddup2(files, pipes[1].child, 1);
	if (failure == 0)
		failure = posix_spawn_file_actions_adddup2(files, pipes[options->merge_stderr ? 1 : 2].child, 2);
	if (failure == 0)
		failure = posix_spawn_file_actions_addclosefrom_np(files, STDIO_END);
	if (failure == 0 && options->cwd)
		failure = posix_spawn_file_actions_addchdir_np(files, options->cwd);
	return failure;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t all, none;
	sigfillset(&all);
	sigemptyset(&none);
	int failure = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
	                                                       POSIX_SPAWN_SETSIGMASK);
	if (failure == 0)
		failure = posix_spawnattr_setsigdefault(attributes, &all);
	return failure ? failure : posix_spawnattr_setsigmask(attributes, &none);
}

static int spawn_with(const lat_process_options *options, const pipe_ends pipes[3], pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int failure = posix_spawn_file_actions_init(&files);
	if (failure)
		return failure;
	failure = posix_spawnattr_init(&attributes);
	if (failure == 0) {
		failure = add_files(&files, options, pipes);
		if (failure == 0)
			failure = set_attributes(&attributes);
		if (failure == 0)
			failure = posix_spawnp(pid, options->argv[0], &files, &attributes, options->argv, options->envp);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
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
	pipe_ends pipes[3] = {NO_PIPE, NO_PIPE, NO_PIPE};
	lat_status status = options->input ? open_pipe(&pipes[0], true, err) : LAT_OK;
	if (status == LAT_OK)
		status = open_pipe(&pipes[1], false, err);
	if (status == LAT_OK && !options->merge_stderr)
		status = open_pipe(&pipes[2], false, err);
	int failure = status == LAT_OK ? spawn_with(options, pipes, &child->pid) : 0;
	if (failure)
		status = explain(options, failure, err);
	for (int i = 0; i < 3; i++)
		if (status == LAT_OK)
			close_end(&pipes[i].child);
		else
			close_pipe(&pipes[i]);
	child->in = pipes[0].parent;
	child->out[0] = pipes[1].parent;
	child->out[1] = pipes[2].parent;
	return status;
}
