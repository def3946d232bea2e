/* lat_bash: see bash.h. A call owns its process; the session is counted by its calls. */
#include "workspace/bash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workspace/bash_environment.h"
#include "workspace/landlock.h"
#include "workspace/privileges.h"

enum { NS_PER_MS = 1000000 };

/* The shell reports its folder when it exits, on descriptor 3, behind a NUL: what the command may have written there
 * comes before. On one line with the command, so that the shell's messages name the command's lines. */
#define SCRIPT_HEAD "trap '{ printf \"\\000\"; pwd -P; } >&3 2>/dev/null' EXIT; "

static const char *const SHELLS[] = {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh"};

/* What programs need to read when reads are confined. */
static const char *const SYSTEM_FOLDERS[] = {"/usr",
                                             "/bin",
                                             "/sbin",
                                             "/lib",
                                             "/lib64",
                                             "/lib32",
                                             "/libx32",
                                             "/etc",
                                             "/opt",
                                             "/proc",
                                             "/sys",
                                             "/nix",
                                             "/run/systemd/resolve",
                                             "/var/lib/dpkg"};
/* No terminals: the user's is among them. */
static const char *const DEVICES[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                      "/dev/random", "/dev/urandom", "/dev/tty"};

struct lat_bash {
	size_t holds; /* the maker and each call */
	lat_workspace *ws;
	const char *shell;
	char *cwd, *temp;
	char **secrets;
	size_t n_secrets;
	lat_bash_confinement confinement;
	lat_landlock_options landlock; /* abi 0: not confined */
	const char *lacks;
};

struct lat_bash_call {
	lat_bash *bash;
	lat_process *process;
	int64_t started_ns, timeout_ms;
	char *lost_cwd; /* the folder that was gone; NULL: none */
};

/* ---- the session ---- */

static void let_go(lat_bash *bash)
{
	if (--bash->holds > 0)
		return;
	for (size_t i = 0; i < bash->n_secrets; i++)
		free(bash->secrets[i]);
	free(bash->secrets);
	free(bash->cwd);
	free(bash->temp);
	lat_workspace_free(bash->ws);
	free(bash);
}

void lat_bash_free(lat_bash *bash)
{
	if (bash)
		let_go(bash);
}

static const char *find_shell(void)
{
	size_t i = 0;
	while (i + 1 < sizeof SHELLS / sizeof SHELLS[0] && access(SHELLS[i], X_OK) != 0)
		i++;
	return SHELLS[i];
}

static const char *missing(const lat_bash_options *o)
{
	if (o->confinement == LAT_BASH_OFF)
		return o->confine_network || o->confine_reads
		           ? "confinement of Bash is off: reads and network are open"
		           : NULL;
	if (o->abi == 0)
		return "this kernel has no Landlock: commands of Bash can write outside the workspace";
	if (o->confine_network && o->abi < LAT_LANDLOCK_TCP)
		return "this kernel's Landlock doesn't know of TCP: commands of Bash can use the network";
	if (o->abi < LAT_LANDLOCK_TRUNCATE)
		return "this kernel's Landlock doesn't know of truncate: commands of Bash can empty files outside";
	return NULL;
}

static bool copy_secrets(lat_bash *bash, const lat_bash_options *o)
{
	bash->secrets = calloc(o->n_secrets + 1, sizeof *bash->secrets);
	if (!bash->secrets)
		return false;
	for (; bash->n_secrets < o->n_secrets; bash->n_secrets++) {
		char *copy = strdup(o->secrets[bash->n_secrets]);
		if (!copy)
			return false;
		bash->secrets[bash->n_secrets] = copy;
	}
	return true;
}

lat_bash *lat_bash_new(const lat_bash_options *o, lat_error *err)
{
	const char *lacks = missing(o);
	if (o->confinement == LAT_BASH_REQUIRED && lacks) {
		lat_fail(err, LAT_E_INVALID, "confinement is required, but %s", lacks);
		return NULL;
	}
	lat_bash *bash = calloc(1, sizeof *bash);
	if (!bash) {
		lat_fail_nomem(err);
		return NULL;
	}
	bash->holds = 1;
	bash->ws = o->ws;
	lat_workspace_hold(o->ws);
	bash->cwd = strdup(lat_workspace_cwd(o->ws));
	bash->temp = strdup(o->temp);
	bash->shell = find_shell();
	bash->confinement = o->confinement;
	bash->landlock = (lat_landlock_options){
		.abi = o->confinement == LAT_BASH_OFF ? 0 : o->abi,
		.confine_reads = o->confine_reads,
		.confine_tcp = o->confine_network,
	};
	bash->lacks = lacks;
	if (copy_secrets(bash, o) && bash->cwd && bash->temp)
		return bash;
	let_go(bash);
	lat_fail_nomem(err);
	return NULL;
}

const char *lat_bash_cwd(const lat_bash *bash)
{
	return bash->cwd;
}

const char *lat_bash_lacks(const lat_bash *bash)
{
	return bash->lacks;
}

bool lat_bash_is_confined(const lat_bash *bash)
{
	return bash->landlock.abi > 0;
}

/* ---- the rules of a call ---- */

static bool allow_roots(const lat_bash *bash, int ruleset, const lat_roots *roots)
{
	for (size_t i = 0; roots && i < roots->n; i++) {
		const lat_root *root = &roots->root[i];
		bool writes = (root->access & LAT_ACCESS_WRITE) != 0;
		if (!lat_landlock_allow(ruleset, &bash->landlock, root->fd,
		                        writes ? LAT_LANDLOCK_READ_WRITE : LAT_LANDLOCK_READ))
			return false;
	}
	return true;
}

static bool allow_system(const lat_bash *bash, int ruleset)
{
	for (size_t i = 0; i < sizeof DEVICES / sizeof DEVICES[0]; i++)
		if (!lat_landlock_allow_path(ruleset, &bash->landlock, DEVICES[i], LAT_LANDLOCK_DEVICE))
			return false;
	for (size_t i = 0; bash->landlock.confine_reads && i < sizeof SYSTEM_FOLDERS / sizeof SYSTEM_FOLDERS[0];
	     i++)
		if (!lat_landlock_allow_path(ruleset, &bash->landlock, SYSTEM_FOLDERS[i], LAT_LANDLOCK_READ))
			return false;
	return lat_landlock_allow_path(ruleset, &bash->landlock, bash->temp, LAT_LANDLOCK_READ_WRITE);
}

/* -1: none is needed. A failure is one of the call: a command never runs with less than was promised. */
static lat_status make_ruleset(const lat_bash *bash, const lat_roots *grants, int *ruleset, lat_error *err)
{
	*ruleset = -1;
	if (bash->landlock.abi == 0)
		return LAT_OK;
	*ruleset = lat_landlock_new(&bash->landlock);
	if (*ruleset >= 0 && allow_system(bash, *ruleset) &&
	    allow_roots(bash, *ruleset, lat_workspace_roots(bash->ws)) && allow_roots(bash, *ruleset, grants))
		return LAT_OK;
	lat_status status =
		lat_fail(err, LAT_E_IO, "can't make the rules that confine a command: %s", strerror(errno));
	if (*ruleset >= 0)
		close(*ruleset);
	*ruleset = -1;
	return status;
}

typedef struct {
	int ruleset; /* -1: none */
	bool off;
} child_rules;

/* In the child: system calls alone. No core dumps: they would lie around in the workspace with all that the command
 * had in memory. */
static int confine(void *arg)
{
	const child_rules *rules = arg;
	const struct rlimit none = {0, 0};
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return errno;
	int failure = rules->off ? 0 : lat_privileges_drop();
	return failure == 0 && rules->ruleset >= 0 ? lat_landlock_apply(rules->ruleset) : failure;
}

/* ---- a call ---- */

static char **pointers_to(lat_buf *strings)
{
	size_t n = 0;
	for (size_t i = 0; i < strings->len; i++)
		n += strings->data[i] == '\0';
	char **list = calloc(n + 1, sizeof *list);
	char *at = strings->data;
	for (size_t i = 0; list && i < n; i++) {
		list[i] = at;
		at += strlen(at) + 1;
	}
	return list;
}

static lat_status start_shell(lat_bash_call *call, lat_processes *all, const lat_roots *grants,
                              lat_buf *script, char **envp, lat_error *err)
{
	lat_bash *bash = call->bash;
	child_rules rules = {.off = bash->confinement == LAT_BASH_OFF};
	lat_status status = make_ruleset(bash, grants, &rules.ruleset, err);
	if (status != LAT_OK)
		return status;
	char *argv[] = {(char *)bash->shell, "-c", script->data, NULL};
	lat_process_options options = {
		.argv = argv,
		.envp = envp,
		.cwd = bash->cwd,
		.timeout_ns = call->timeout_ms * NS_PER_MS,
		.max_output = LAT_BASH_OUTPUT,
		.merge_stderr = true,
		.has_report = true,
		.prepare = confine,
		.prepare_arg = &rules,
	};
	call->started_ns = lat_now_ns();
	call->process = lat_process_start(all, &options, err);
	if (rules.ruleset >= 0)
		close(rules.ruleset);
	return call->process ? LAT_OK : err->kind;
}

static lat_status start_with(lat_bash_call *call, lat_processes *all, const lat_roots *grants,
                             const char *command, lat_error *err)
{
	const lat_bash *bash = call->bash;
	lat_buf script = LAT_BUF_INIT, strings = LAT_BUF_INIT;
	const lat_bash_environment environment = {
		.secrets = (const char *const *)bash->secrets,
		.n_secrets = bash->n_secrets,
		.temp = bash->temp,
		.cwd = bash->cwd,
	};
	lat_buf_str(&script, SCRIPT_HEAD);
	lat_buf_append(&script, command, strlen(command) + 1);
	lat_bash_environment_write(&environment, &strings);
	char **envp = lat_buf_ok(&strings) ? pointers_to(&strings) : NULL;
	lat_status status = envp && lat_buf_ok(&script) ? start_shell(call, all, grants, &script, envp, err)
	                                                : lat_fail_nomem(err);
	free(envp);
	lat_buf_free(&script);
	lat_buf_free(&strings);
	return status;
}

/* A working folder that is gone, or was never one: the workspace's then, and the model is told. */
static bool settle_cwd(lat_bash_call *call)
{
	lat_bash *bash = call->bash;
	struct stat st;
	if (stat(bash->cwd, &st) == 0 && S_ISDIR(st.st_mode) && access(bash->cwd, X_OK) == 0)
		return true;
	char *home = strdup(lat_workspace_cwd(bash->ws));
	if (!home)
		return false;
	call->lost_cwd = bash->cwd;
	bash->cwd = home;
	return true;
}

lat_bash_call *lat_bash_start(lat_bash *bash, lat_processes *all, const lat_roots *grants,
                              const char *command, int64_t timeout_ms, lat_error *err)
{
	lat_error own;
	lat_error *said = err ? err : &own;
	lat_bash_call *call = calloc(1, sizeof *call);
	if (!call) {
		lat_fail_nomem(said);
		return NULL;
	}
	call->bash = bash;
	bash->holds++;
	call->timeout_ms = timeout_ms <= 0                        ? LAT_BASH_TIMEOUT_MS
	                   : timeout_ms > LAT_BASH_TIMEOUT_MAX_MS ? LAT_BASH_TIMEOUT_MAX_MS
	                                                          : timeout_ms;
	if (!settle_cwd(call))
		lat_fail_nomem(said);
	else if (start_with(call, all, grants, command, said) == LAT_OK)
		return call;
	lat_bash_call_free(call);
	return NULL;
}

lat_process *lat_bash_process(const lat_bash_call *call)
{
	return call->process;
}

void lat_bash_call_free(lat_bash_call *call)
{
	if (!call)
		return;
	if (call->process)
		lat_process_abandon(call->process);
	free(call->lost_cwd);
	let_go(call->bash);
	free(call);
}

/* ---- the result ---- */

/* What the shell said of its folder at its exit; false: out of memory. No word, or nonsense: it stays. */
static bool move_cwd(lat_bash_call *call, bool *moved)
{
	const lat_buf *report = lat_process_report(call->process);
	const char *start = report->len ? memrchr(report->data, '\0', report->len) : NULL;
	*moved = false;
	if (!lat_buf_ok(report))
		return false;
	if (!start)
		return true;
	start++;
	size_t len = report->len - (size_t)(start - report->data);
	if (len < 2 || start[0] != '/' || start[len - 1] != '\n' || len > LAT_PATH_MAX)
		return true;
	len--;
	if (strlen(call->bash->cwd) == len && memcmp(call->bash->cwd, start, len) == 0)
		return true;
	char *cwd = strndup(start, len);
	if (!cwd)
		return false;
	free(call->bash->cwd);
	call->bash->cwd = cwd;
	*moved = true;
	return true;
}

/* A remark stands on a line of its own below the output. */
static void begin_remark(lat_buf *out, size_t start)
{
	if (out->len > start && out->data[out->len - 1] != '\n')
		lat_buf_byte(out, '\n');
}

static void write_end(const lat_bash_call *call, const lat_bash_result *r, lat_buf *out, size_t start)
{
	if (r->process.timed_out) {
		begin_remark(out, start);
		lat_buf_printf(
			out,
			"[timed out after %lld ms: the command and the processes of its group were ended; what takes "
			"longer needs a higher timeout_ms (at most %d), or \"&\" and a look at it later]",
			(long long)call->timeout_ms, LAT_BASH_TIMEOUT_MAX_MS);
	} else if (r->process.signal) {
		const char *name = sigabbrev_np(r->process.signal);
		begin_remark(out, start);
		lat_buf_printf(out, "[ended by signal %d%s%s]", r->process.signal, name ? ", SIG" : "",
		               name ? name : "");
	} else if (r->process.status != 0) {
		begin_remark(out, start);
		lat_buf_printf(out, "[exit status %d]", r->process.status);
	}
}

static void write_folders(const lat_bash_call *call, bool moved, lat_buf *out, size_t start)
{
	if (call->lost_cwd) {
		begin_remark(out, start);
		lat_buf_str(out, "[the working folder was gone; this ran in the workspace's]");
	}
	if (moved) {
		begin_remark(out, start);
		lat_buf_printf(out, "[the working folder is now %s]", call->bash->cwd);
	}
}

lat_status lat_bash_finish(lat_bash_call *call, lat_buf *out, lat_bash_result *result, lat_error *err)
{
	size_t start = out->len;
	bool moved;
	lat_status status = lat_process_result_of(call->process, &result->process, out, NULL, err);
	if (status != LAT_OK)
		return status;
	if (!move_cwd(call, &moved))
		return lat_fail_nomem(err);
	result->duration_ns = lat_now_ns() - call->started_ns;
	result->is_error =
		result->process.timed_out || result->process.signal != 0 || result->process.status != 0;
	while (out->len > start && out->data[out->len - 1] == '\n')
		out->len--;
	write_end(call, result, out, start);
	write_folders(call, moved, out, start);
	if (out->len == start)
		lat_buf_str(out, "(no output)");
	return lat_buf_ok(out) ? LAT_OK : lat_fail_nomem(err);
}
