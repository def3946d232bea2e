/* lat_environment: a list of endings; owns nothing. */
#include "scheduler/environment.h"

#include <string.h>
#include <strings.h>

static const char *const SECRET_WORDS[] = {
	"API_KEY",     "APIKEY",   "TOKEN",  "SECRET",     "SECRET_KEY",  "ACCESS_KEY",
	"PRIVATE_KEY", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS",
};

bool lat_environment_is_secret(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof SECRET_WORDS / sizeof SECRET_WORDS[0]; i++) {
		size_t n = strlen(SECRET_WORDS[i]);
		if (len < n || strncasecmp(name + (len - n), SECRET_WORDS[i], n) != 0)
			continue;
		if (len == n || name[len - n - 1] == '_')
			return true;
	}
	return false;
}
