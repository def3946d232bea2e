/* Removing a folder with all that is in it, links themselves and never what they lead to. Any thread. */
#ifndef LAT_WORKSPACE_REMOVE_H
#define LAT_WORKSPACE_REMOVE_H

#include <stdbool.h>

/* fd: the folder itself, open for reading its entries; name in dir is only removed when it is that one. However deep
 * it is, it takes four descriptors and no recursion. False: some of it is left. */
bool lat_remove_tree(int dir, const char *name, int fd);

#endif
