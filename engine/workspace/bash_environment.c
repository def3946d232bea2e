/* See bash_environment.h. Owns nothing. */
#include "workspace/bash_environment.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "scheduler/environment.h"

extern char **environ;

/* Set anew, or of no use to a command: what would make a shell read files, and answers of a terminal. */
static const char *const LEFT_OUT[] = {"TMPDIR", "PWD",       "OLDPWD", "BASH_ENV", "ENV", "TERM",
                                       "PAGER",  "GIT_PAGER", "SHLVL",  "_",        "PS1", "SSH_AUTH_SOCK"};

/* Endings of names beyond lat_environment_is_secret: a command that a model runs can do without. */
static const char *const SECRET_ENDINGS[] = {"_KEY",    "_PASS", "_PWD",     "_AUTH",      "_DSN",
                                             "_COOKIE", "_JWT",  "_SECRETS", "_CREDENTIAL"};

/* As services mark their keys; each is followed by at least KEY_LEAST characters of a key. */
static const char *const KEY_STARTS[] = {
	"sk-",         "sk_live_", "rk_live_", "sk_test_", "ghp_",    "gho_", "ghs_",       "ghu_",
	"github_pat_", "glpat-",   "xoxb-",    "xoxp-",    "xapp-",   "AKIA", "ASIA",       "AIza",
	"ya29.",       "npm_",     "pypi-",    "hf_",      "dop_v1_", "SG.",  "eyJhbGciOi",
};

enum { KEY_LEAST = 12 };

static bool is_key_byte(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.' || c == '/' || c == '+' || c == '=';
}

static bool starts_key(const char *at)
{
	for (size_t i = 0; i < sizeof KEY_STARTS / sizeof KEY_STARTS[0]; i++) {
		size_t len = strlen(KEY_STARTS[i]);
		if (strncmp(at, KEY_STARTS[i], len) != 0)
			continue;
		size_t more = 0;
		while (more < KEY_LEAST && is_key_byte(at[len + more]))
			more++;
		if (more == KEY_LEAST)
			return true;
	}
	return false;
}

/* scheme://user:password@host */
static bool has_password(const char *value)
{
	for (const char *at = value; (at = strstr(at, "://")) != NULL;) {
		at += 3;
		size_t authority = strcspn(at, "/?# \t\n");
		const char *host = memrchr(at, '@', authority);
		const char *colon = host ? memchr(at, ':', (size_t)(host - at)) : NULL;
		if (colon && colon + 1 < host)
			return true;
	}
	return false;
}

bool lat_bash_environment_looks_secret(const char *value)
{
	for (const char *at = value; *at; at++)
		if ((at == value || !is_key_byte(at[-1]) || at[-1] == '=') && starts_key(at))
			return true;
	return strstr(value, "PRIVATE KEY-----") != NULL || has_password(value);
}

static bool has_any(const char *value, const lat_bash_environment *e)
{
	for (size_t i = 0; i < e->n_secrets; i++)
		if (e->secrets[i][0] && strstr(value, e->secrets[i]))
			return true;
	return false;
}

static bool has_secret_name(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof SECRET_ENDINGS / sizeof SECRET_ENDINGS[0]; i++) {
		size_t n = strlen(SECRET_ENDINGS[i]);
		if (len > n && strncasecmp(name + len - n, SECRET_ENDINGS[i], n) == 0)
			return true;
	}
	return lat_environment_is_secret(name, len);
}

static bool is_left_out(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof LEFT_OUT / sizeof LEFT_OUT[0]; i++)
		if (strlen(LEFT_OUT[i]) == len && memcmp(LEFT_OUT[i], name, len) == 0)
			return true;
	return false;
}

static void set(lat_buf *out, const char *name, const char *value)
{
	lat_buf_str(out, name);
	lat_buf_byte(out, '=');
	lat_buf_append(out, value, strlen(value) + 1);
}

void lat_bash_environment_write(const lat_bash_environment *e, lat_buf *out)
{
	for (char **at = environ; at && *at; at++) {
		const char *equals = strchr(*at, '=');
		if (!equals || equals == *at)
			continue;
		size_t len = (size_t)(equals - *at);
		if (!is_left_out(*at, len) && !has_secret_name(*at, len) && !has_any(equals + 1, e) &&
		    !lat_bash_environment_looks_secret(equals + 1))
			lat_buf_append(out, *at, strlen(*at) + 1);
	}
	set(out, "TMPDIR", e->temp);
	set(out, "PWD", e->cwd);
	set(out, "TERM", "dumb");
	set(out, "PAGER", "cat"); /* nobody is there to turn the page, or to type a name */
	set(out, "GIT_PAGER", "cat");
	set(out, "GIT_TERMINAL_PROMPT", "0");
}
