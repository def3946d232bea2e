/* lat_process: a child process on the loop: its own session and process group, pipes, exit, time limit.
 *
 *   started ──► running ──────────────── leader exits ──► what is in the pipes is read, they are closed ──► done
 *                  │ time limit: TERM to the group                  ▲
 *                  ▼                                                │ leader and pipes ended, or
 *               stopping ───────────────────────────────────────────┘ the grace is over: KILL to the group
 *   abandon: KILL to the group at once
 *
 * The leader stays a zombie until all signals to its group are sent, so its number can't be another's meanwhile;
 * then it is reaped, always. Children that it left in the background live on (unless the time limit ran out or it
 * was abandoned), but don't hold the call, even if they keep the pipes.
 *
 * All on the thread of the loop; no lock. A process that its owner abandoned belongs to its lat_processes until it
 * has been reaped. */
#ifndef LAT_SCHEDULER_PROCESS_H
#define LAT_SCHEDULER_PROCESS_H

#include <sys/types.h>

#include "base/buf.h"
#include "scheduler/at_exit.h"
#include "scheduler/loop.h"

typedef struct lat_processes lat_processes; /* all children of a loop that aren't reaped yet */
typedef struct lat_process lat_process;

enum {
	LAT_PROCESS_DEFAULT_OUTPUT = 1 << 20,
	LAT_PROCESS_GRACE_MS = 1000,
	LAT_PROCESS_REPORT_MAX = 8192 /* bytes; less than a pipe holds */
};

typedef struct {
	char *const *argv; /* NULL at its end; argv[0] is looked up in this process's PATH */
	char *const *envp; /* NULL at its end: the whole environment of the child */
	const char *cwd;   /* NULL: this process's */
	const char *input; /* copied; NULL: its standard input is empty */
	size_t input_len;
	int64_t timeout_ns; /* 0: none */
	size_t max_output;  /* bytes kept of each pipe (see lat_clip); 0: LAT_PROCESS_DEFAULT_OUTPUT */
	bool merge_stderr;  /* one pipe for both, in the order in which the child wrote */
	bool has_report;    /* its descriptor 3 is a pipe as well, for a few words to us (lat_process_report) */
	/* Runs in the child, right before the program; 0 or an errno, which becomes a failure to start. It shares this
	 * process's memory and must do with calls that a signal handler may make. May be NULL. */
	int (*prepare)(void *arg);
	void *prepare_arg;
} lat_process_options;

typedef struct {
	int status;     /* exit status, -1 when a signal ended it */
	int signal;     /* the signal that ended it, or 0 */
	bool truncated; /* some of its output was left out */
	bool timed_out;
} lat_process_result;

/* At an exit of the process that closes nothing, groups that still run are killed. */
lat_processes *lat_processes_new(lat_loop *loop, lat_at_exit *at_exit, lat_error *err);
void lat_processes_close(
	lat_processes *all); /* kills and reaps what is left: their owners see them aborted */
void lat_processes_free(
	lat_processes *all); /* closes; the memory goes when the last process has let go of it */

/* Failures to start (no such program, no such folder, no descriptors) are LAT_E_IO. */
lat_process *lat_process_start(lat_processes *all, const lat_process_options *options, lat_error *err);
lat_op *lat_process_op(lat_process *p); /* notified when it is done */
pid_t lat_process_pid(const lat_process *p);
bool lat_process_done(const lat_process *p);
/* Once done. Not NULL, what was kept of its output is appended to out and errors. LAT_E_ABORT when its
 * lat_processes was closed before its end. */
lat_status lat_process_result_of(const lat_process *p, lat_process_result *result, lat_buf *out,
                                 lat_buf *errors, lat_error *err);
/* Once done: what it had written to its descriptor 3; empty where it had none. Owned by the process. */
const lat_buf *lat_process_report(const lat_process *p);
void lat_process_abandon(lat_process *p); /* the owner's last word; kills it if it runs */

#endif
