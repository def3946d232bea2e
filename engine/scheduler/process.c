/* lat_process: see process.h for the states and for ownership; all on the loop's thread. */
#include "scheduler/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clip.h"
#include "scheduler/spawn.h"

enum {
	NS_PER_MS = 1000000,
	READ_SIZE = 64 * 1024,
	READS_A_TURN = 4,  /* of one pipe, so that a torrent doesn't hold the loop */
	DRAIN_READS = 16,  /* after the exit: what fits into the largest pipe; a background child may write on */
	FIRST_LOOK_MS = 1, /* without pidfds: how often the exit is looked for, doubled up to … */
	LONGEST_LOOK_MS = 20
};

typedef struct {
	lat_watch watch; /* fd -1: closed */
	lat_process *process;
	lat_clip kept;
} out_pipe;

struct lat_process {
	lat_op op;
	lat_processes *all;
	lat_process *prev, *next; /* in `all` until it is reaped */
	pid_t pid;
	out_pipe out[2];
	lat_watch in;  /* fd -1: closed */
	int report_fd; /* -1: none, or read */
	lat_buf report;
	char *input;
	size_t input_len, input_at;
	lat_watch exit; /* its pidfd, -1: none */
	lat_timer look; /* for the exit, where there are no pidfds */
	int64_t look_ns;
	lat_timer limit; /* time limit, then the grace */
	bool exited, timed_out, aborted, killed, done, abandoned, lost;
	siginfo_t end;
};

struct lat_processes {
	lat_loop *loop;
	size_t holds; /* the maker and each process that isn't freed */
	lat_process *first;
	lat_exit_entry exit;
	pthread_t thread; /* the loop's */
	bool closed;
};

static void settle(lat_process *p);

/* ---- descriptors ---- */

static void close_watch(lat_process *p, lat_watch *watch)
{
	if (watch->fd < 0)
		return;
	lat_watch_remove(p->all->loop, watch);
	close(watch->fd);
	watch->fd = -1;
}

static void close_descriptors(lat_process *p)
{
	for (int i = 0; i < 2; i++)
		close_watch(p, &p->out[i].watch);
	close_watch(p, &p->in);
	close_watch(p, &p->exit);
	if (p->report_fd >= 0)
		close(p->report_fd);
	p->report_fd = -1;
}

/* What lies in the pipe: nobody writes on while it is awaited. */
static void read_report(lat_process *p)
{
	char bytes[1024];
	ssize_t n;
	while (p->report_fd >= 0 && p->report.len < LAT_PROCESS_REPORT_MAX &&
	       ((n = read(p->report_fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)))
		if (n > 0)
			lat_buf_append(&p->report, bytes, (size_t)n);
}

/* Reads up to `reads` times, closes at the end of the stream. */
static void read_pipe(out_pipe *o, int reads)
{
	char bytes[READ_SIZE];
	while (o->watch.fd >= 0 && reads-- > 0) {
		ssize_t n = read(o->watch.fd, bytes, sizeof bytes);
		if (n > 0)
			lat_clip_append(&o->kept, bytes, (size_t)n);
		else if (n < 0 && errno == EAGAIN)
			return;
		else if (n == 0 || errno != EINTR)
			close_watch(o->process, &o->watch);
	}
}

static void out_ready(lat_watch *self, unsigned events)
{
	(void)events;
	out_pipe *o = (out_pipe *)((char *)self - offsetof(out_pipe, watch));
	read_pipe(o, READS_A_TURN);
	settle(o->process);
}

/* write without the signal that a pipe without reader raises in this thread. */
static ssize_t write_quietly(int fd, const char *data, size_t n)
{
	sigset_t sigpipe, pending, before;
	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	sigpending(&pending);
	bool was_pending = sigismember(&pending, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
	ssize_t written = write(fd, data, n);
	int failure = errno;
	if (written < 0 && failure == EPIPE && !was_pending) {
		const struct timespec at_once = {0, 0};
		while (sigtimedwait(&sigpipe, NULL, &at_once) < 0 && errno == EINTR)
			continue;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = failure;
	return written;
}

static void write_input(lat_process *p)
{
	while (p->in.fd >= 0 && p->input_at < p->input_len) {
		ssize_t n = write_quietly(p->in.fd, p->input + p->input_at, p->input_len - p->input_at);
		if (n >= 0)
			p->input_at += (size_t)n;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			break; /* it doesn't read any more: its own business */
	}
	close_watch(p, &p->in);
}

static void in_ready(lat_watch *self, unsigned events)
{
	(void)events;
	write_input((lat_process *)((char *)self - offsetof(lat_process, in)));
}

/* ---- ending ---- */

static void signal_group(lat_process *p, int signal)
{
	if (p->end.si_pid == 0 && !p->lost) /* once reaped, its number may be another's */
		kill(-p->pid, signal);
}

static void reap(lat_process *p)
{
	siginfo_t end = {.si_pid = 0};
	while (waitid(P_PID, (id_t)p->pid, &end, WEXITED) < 0 && errno == EINTR)
		continue;
	p->end = end;
	if (end.si_pid == 0)
		p->lost = true; /* SIGCHLD is ignored, or somebody else has reaped it */
	lat_processes *all = p->all;
	if (all->first == p)
		all->first = p->next;
	else
		p->prev->next = p->next;
	if (p->next)
		p->next->prev = p->prev;
}

static void let_go(lat_processes *all)
{
	if (--all->holds > 0)
		return;
	lat_loop_free(all->loop);
	free(all);
}

static void destroy(lat_process *p)
{
	lat_op_forget(&p->op);
	for (int i = 0; i < 2; i++)
		lat_clip_free(&p->out[i].kept);
	lat_buf_free(&p->report);
	free(p->input);
	let_go(p->all);
	free(p);
}

/* The leader has exited (or must be waited for): reaps it. */
static void finish(lat_process *p)
{
	read_report(p);
	close_descriptors(p);
	lat_timer_disarm(p->all->loop, &p->limit);
	lat_timer_disarm(p->all->loop, &p->look);
	reap(p);
	p->done = true;
	if (p->abandoned)
		destroy(p);
	else
		lat_loop_notify(&p->op);
}

static void kill_group(lat_process *p)
{
	p->killed = true;
	signal_group(p, SIGKILL);
}

/* Looks whether all is over. May free p when nobody owns it. */
static void settle(lat_process *p)
{
	bool pipes_ended = p->out[0].watch.fd < 0 && p->out[1].watch.fd < 0;
	if (pipes_ended && !p->exited && p->exit.fd < 0 && p->look.slot) {
		p->look_ns = FIRST_LOOK_MS * NS_PER_MS;                                 /* likely soon */
		lat_timer_arm(p->all->loop, &p->look, lat_now_ns() + p->look_ns, NULL); /* armed: takes no memory */
	}
	if (p->done || !p->exited)
		return;
	if (p->timed_out && !p->killed && !pipes_ended)
		return; /* others of the group have their grace too */
	if (p->timed_out && !p->killed)
		kill_group(p);
	for (int i = 0; i < 2; i++)
		read_pipe(&p->out[i], DRAIN_READS);
	finish(p);
}

static void exit_ready(lat_watch *self, unsigned events)
{
	(void)events;
	lat_process *p = (lat_process *)((char *)self - offsetof(lat_process, exit));
	p->exited = true;
	close_watch(p, &p->exit);
	settle(p);
}

static void look_for_exit(lat_timer *self)
{
	lat_process *p = (lat_process *)((char *)self - offsetof(lat_process, look));
	siginfo_t end = {.si_pid = 0};
	int looked = waitid(P_PID, (id_t)p->pid, &end, WEXITED | WNOHANG | WNOWAIT);
	p->exited = end.si_pid != 0 || (looked < 0 && errno != EINTR);
	p->look_ns = p->look_ns * 2 < LONGEST_LOOK_MS * NS_PER_MS ? p->look_ns * 2 : LONGEST_LOOK_MS * NS_PER_MS;
	if (p->exited)
		settle(p);
	else
		lat_timer_arm(p->all->loop, self, lat_now_ns() + p->look_ns,
		              NULL); /* in the place that it just left */
}

static void limit_over(lat_timer *self)
{
	lat_process *p = (lat_process *)((char *)self - offsetof(lat_process, limit));
	if (p->timed_out) {
		kill_group(p);
		settle(p);
		return;
	}
	p->timed_out = true;
	signal_group(p, SIGTERM);
	signal_group(p, SIGCONT); /* a stopped process must run to take the signal */
	lat_timer_arm(p->all->loop, self, lat_now_ns() + (int64_t)LAT_PROCESS_GRACE_MS * NS_PER_MS, NULL);
}

/* ---- starting ---- */

static void kill_at_exit(lat_exit_entry *self)
{
	lat_processes *all = (lat_processes *)((char *)self - offsetof(lat_processes, exit));
	if (!pthread_equal(all->thread, pthread_self()))
		return; /* the exit is another thread's: this loop may be at work */
	for (lat_process *p = all->first; p; p = p->next)
		kill_group(p);
}

lat_processes *lat_processes_new(lat_loop *loop, lat_at_exit *at_exit, lat_error *err)
{
	lat_processes *all = calloc(1, sizeof *all);
	if (!all) {
		lat_fail_nomem(err);
		return NULL;
	}
	lat_loop_hold(loop);
	*all = (lat_processes){.loop = loop, .holds = 1, .thread = pthread_self()};
	lat_at_exit_add(at_exit, &all->exit, kill_at_exit);
	return all;
}

static lat_process *make(lat_processes *all, const lat_process_options *options, lat_error *err)
{
	lat_process *p = calloc(1, sizeof *p);
	if (p && options->input)
		p->input = malloc(options->input_len + 1);
	if (!p || (options->input && !p->input)) {
		free(p);
		lat_fail_nomem(err);
		return NULL;
	}
	if (options->input)
		memcpy(p->input, options->input, options->input_len);
	p->input_len = options->input_len;
	p->all = all;
	all->holds++;
	lat_op_init(&p->op, all->loop);
	for (int i = 0; i < 2; i++) {
		p->out[i] = (out_pipe){.watch = {.fd = -1, .ready = out_ready}, .process = p};
		lat_clip_init(&p->out[i].kept,
		              options->max_output ? options->max_output : LAT_PROCESS_DEFAULT_OUTPUT);
	}
	p->in = (lat_watch){.fd = -1, .ready = in_ready};
	p->report_fd = -1;
	p->exit = (lat_watch){.fd = -1, .ready = exit_ready};
	p->look.fire = look_for_exit;
	p->limit.fire = limit_over;
	return p;
}

/* The exit shows at a pidfd (Linux 5.3), else it is looked for. */
static lat_status watch_exit(lat_process *p, lat_error *err)
{
	p->exit.fd = pidfd_open(p->pid, 0);
	if (p->exit.fd >= 0) {
		if (lat_watch_set(p->all->loop, &p->exit, LAT_READABLE, err) == LAT_OK)
			return LAT_OK;
		close_watch(p, &p->exit);
	}
	p->look_ns = FIRST_LOOK_MS * NS_PER_MS;
	return lat_timer_arm(p->all->loop, &p->look, lat_now_ns() + p->look_ns, err);
}

static lat_status watch_all(lat_process *p, const lat_process_options *options, lat_error *err)
{
	lat_loop *loop = p->all->loop;
	lat_status status = watch_exit(p, err);
	if (status == LAT_OK && options->timeout_ns > 0)
		status = lat_timer_arm(loop, &p->limit, lat_now_ns() + options->timeout_ns, err);
	for (int i = 0; i < 2; i++)
		if (status == LAT_OK && p->out[i].watch.fd >= 0)
			status = lat_watch_set(loop, &p->out[i].watch, LAT_READABLE, err);
	if (status == LAT_OK && p->in.fd >= 0)
		write_input(p);
	if (status == LAT_OK && p->in.fd >= 0)
		status = lat_watch_set(loop, &p->in, LAT_WRITABLE, err);
	return status;
}

lat_process *lat_process_start(lat_processes *all, const lat_process_options *options, lat_error *err)
{
	if (all->closed) {
		lat_fail(err, LAT_E_CLOSED, "the loop is closing");
		return NULL;
	}
	lat_process *p = make(all, options, err);
	if (!p)
		return NULL;
	lat_spawned child;
	if (lat_spawn(options, &child, err) != LAT_OK) {
		destroy(p);
		return NULL;
	}
	p->pid = child.pid;
	p->in.fd = child.in;
	p->report_fd = child.report;
	p->out[0].watch.fd = child.out[0];
	p->out[1].watch.fd = child.out[1];
	p->next = all->first;
	if (all->first)
		all->first->prev = p;
	all->first = p;
	if (watch_all(p, options, err) == LAT_OK)
		return p;
	p->abandoned = true; /* out of memory or descriptors: it can't be waited for but here */
	kill_group(p);
	finish(p);
	return NULL;
}

/* ---- the owner's side ---- */

lat_op *lat_process_op(lat_process *p)
{
	return &p->op;
}

pid_t lat_process_pid(const lat_process *p)
{
	return p->pid;
}

bool lat_process_done(const lat_process *p)
{
	return p->done;
}

lat_status lat_process_result_of(const lat_process *p, lat_process_result *result, lat_buf *out,
                                 lat_buf *errors, lat_error *err)
{
	if (p->aborted)
		return lat_fail(err, LAT_E_ABORT, "the process was killed when its loop closed");
	if (p->lost)
		return lat_fail(err, LAT_E_IO,
		                "the exit status is lost: SIGCHLD is ignored, or other code has waited");
	if (!lat_clip_ok(&p->out[0].kept) || !lat_clip_ok(&p->out[1].kept))
		return lat_fail_nomem(err);
	*result = (lat_process_result){
		.status = p->end.si_code == CLD_EXITED ? p->end.si_status : -1,
		.signal = p->end.si_code == CLD_EXITED ? 0 : p->end.si_status,
		.truncated = lat_clip_truncated(&p->out[0].kept) || lat_clip_truncated(&p->out[1].kept),
		.timed_out = p->timed_out,
	};
	if (out)
		lat_clip_write(&p->out[0].kept, out);
	if (errors)
		lat_clip_write(&p->out[1].kept, errors);
	return LAT_OK;
}

const lat_buf *lat_process_report(const lat_process *p)
{
	return &p->report;
}

void lat_process_abandon(lat_process *p)
{
	if (p->done) {
		destroy(p);
		return;
	}
	lat_op_forget(&p->op);
	p->abandoned = true;
	for (int i = 0; i < 2; i++)
		close_watch(p, &p->out[i].watch);
	close_watch(p, &p->in);
	kill_group(p);
	settle(p);
}

void lat_processes_close(lat_processes *all)
{
	all->closed = true;
	lat_process *next;
	for (lat_process *p = all->first; p; p = next) {
		next = p->next;
		p->aborted = true;
		kill_group(p);
		finish(p);
	}
}

void lat_processes_free(lat_processes *all)
{
	if (!all)
		return;
	lat_at_exit_remove(&all->exit);
	lat_processes_close(all);
	let_go(all);
}
