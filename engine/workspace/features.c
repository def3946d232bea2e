/* lat_features: see features.h. */
#include "workspace/features.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <linux/landlock.h>
#include <pcre2.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

int lat_features_landlock(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
	return abi > 0 ? (int)abi : 0;
}

bool lat_features_pcre2_jit(void)
{
	uint32_t jit = 0;
	return pcre2_config(PCRE2_CONFIG_JIT, &jit) == 0 && jit != 0;
}
