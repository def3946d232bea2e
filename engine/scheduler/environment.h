/* Which environment variables a child process doesn't inherit. Pure; any thread. */
#ifndef LAT_SCHEDULER_ENVIRONMENT_H
#define LAT_SCHEDULER_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Names that hold secrets by what they are called, in any case: TOKEN, PASSWORD, … or such a word behind a "_"
 * (ANTHROPIC_API_KEY, GITHUB_TOKEN, AWS_SECRET_ACCESS_KEY). A command that an agent runs gets them only from a
 * script that passes them on by name. */
bool lat_environment_is_secret(const char *name, size_t len);

#endif
