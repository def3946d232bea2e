/* lat_bash: the Bash tool: commands of one session, each in a shell of its own, on the loop (see process.h).
 *
 *   lat_bash_start ──► ruleset, environment, /bin/bash -c ──► loop: output, exit, time limit ──► lat_bash_finish
 *        ▲                                                                                         │ working folder
 *        └─────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * The shell says at its exit in which folder it is; the next command starts there. A command may write beneath the
 * workspace's roots with write access, the grants and its temporary folder, where the kernel has Landlock; so may
 * what it leaves in the background.
 *
 * All on the thread of the loop. A lat_bash holds its workspace; its calls hold it. */
#ifndef LAT_WORKSPACE_BASH_H
#define LAT_WORKSPACE_BASH_H

#include "scheduler/process.h"
#include "workspace/workspace.h"

enum {
	LAT_BASH_TIMEOUT_MS = 120000,
	LAT_BASH_TIMEOUT_MAX_MS = 600000,
	LAT_BASH_OUTPUT = 32 * 1024 /* bytes of output that a model sees: the head and the tail */
};

typedef enum { LAT_BASH_BEST_EFFORT, LAT_BASH_REQUIRED, LAT_BASH_OFF } lat_bash_confinement;

typedef struct {
	lat_workspace *ws;
	const char *temp; /* the private folder for temporary files; absolute */
	lat_bash_confinement confinement;
	bool confine_reads;         /* to the roots, the grants, and the folders of the system */
	bool confine_network;       /* no TCP; needs confinement */
	int abi;                    /* of Landlock: lat_landlock_abi(), or less */
	const char *const *secrets; /* copied; see bash_environment.h */
	size_t n_secrets;
} lat_bash_options;

typedef struct lat_bash lat_bash;

/* NULL: LAT_E_INVALID when confinement is required and this kernel lacks what it takes; LAT_E_NOMEM. */
lat_bash *lat_bash_new(const lat_bash_options *options, lat_error *err);
void lat_bash_free(lat_bash *bash); /* the memory goes with its last call; NULL is fine */
const char *lat_bash_cwd(const lat_bash *bash);
/* What of the confinement that was asked for this kernel can't do: a sentence, or NULL. */
const char *lat_bash_lacks(const lat_bash *bash);
bool lat_bash_is_confined(const lat_bash *bash);

typedef struct lat_bash_call lat_bash_call;

/* timeout_ms 0: LAT_BASH_TIMEOUT_MS. command is a C string. NULL: LAT_E_IO, LAT_E_NOMEM, LAT_E_CLOSED. */
lat_bash_call *lat_bash_start(lat_bash *bash, lat_processes *all, const lat_roots *grants,
                              const char *command, int64_t timeout_ms, lat_error *err);
lat_process *lat_bash_process(const lat_bash_call *call); /* owned by the call */

typedef struct {
	lat_process_result process;
	int64_t duration_ns;
	bool is_error; /* the status isn't 0, a signal ended it, or its time was over */
} lat_bash_result;

/* Once the process is done: text for the model is appended to out; the session's working folder moves. */
lat_status lat_bash_finish(lat_bash_call *call, lat_buf *out, lat_bash_result *result, lat_error *err);
void lat_bash_call_free(lat_bash_call *call); /* kills what runs; NULL is fine */

#endif
