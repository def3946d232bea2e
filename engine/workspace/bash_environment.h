/* The environment of a command that a model runs: this process's, without secrets. Any thread, as long as nobody
 * changes the environment of the process meanwhile. */
#ifndef LAT_WORKSPACE_BASH_ENVIRONMENT_H
#define LAT_WORKSPACE_BASH_ENVIRONMENT_H

#include "base/buf.h"

typedef struct {
	const char *const
		*secrets; /* values, such as the key of the agent: no variable with one in it is passed on */
	size_t n_secrets;
	const char *temp; /* becomes TMPDIR */
	const char *cwd;  /* becomes PWD */
} lat_bash_environment;

/* NAME=value, each with its NUL, one behind the other, appended to out. */
void lat_bash_environment_write(const lat_bash_environment *e, lat_buf *out);

/* Whether a value looks like a secret whatever its name is: the beginnings that services give to their keys, a
 * private key, a URL with a password. */
bool lat_bash_environment_looks_secret(const char *value);

#endif
