/* What this kernel and these libraries can do. Any thread. */
#ifndef LAT_WORKSPACE_FEATURES_H
#define LAT_WORKSPACE_FEATURES_H

#include <stdbool.h>

int lat_features_landlock(void); /* the version of its ABI; 0: this kernel has none, or it is switched off */
bool lat_features_pcre2_jit(void);

#endif
