/* Paths as text: joining them and taking out "." and "..". Pure; any thread. */
#ifndef LAT_WORKSPACE_PATH_H
#define LAT_WORKSPACE_PATH_H

#include <stddef.h>

/* Writes base (absolute) + "/" + path, or path alone where it is absolute, then rest behind it, to out: without
 * ".", "..", doubled and trailing slashes, with a NUL. ".." of "/" is "/". 0, or ENAMETOOLONG. */
int lat_path_join(char *out, size_t size, const char *base, const char *path, const char *rest);

/* What lies behind root in path ("" for root itself), or NULL: path isn't beneath. Both without "." and "..". */
const char *lat_path_beneath(const char *root, const char *path);

#endif
