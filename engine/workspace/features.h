/* What the libraries can do that this was linked with. Any thread. */
#ifndef LAT_WORKSPACE_FEATURES_H
#define LAT_WORKSPACE_FEATURES_H

#include <stdbool.h>

bool lat_features_pcre2_jit(void);

#endif
