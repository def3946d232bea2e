/* lat_features: see features.h. */
#include "workspace/features.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>

bool lat_features_pcre2_jit(void)
{
	uint32_t jit = 0;
	return pcre2_config(PCRE2_CONFIG_JIT, &jit) == 0 && jit != 0;
}
