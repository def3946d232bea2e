/* Where a Glob or a Grep starts: the path that it was given, opened, and how paths below it are written. */
#ifndef LAT_WORKSPACE_START_H
#define LAT_WORKSPACE_START_H

#include "workspace/tool.h"

typedef struct {
	int fd; /* owned; a folder for reading its entries, or a regular file */
	bool is_file;
	size_t levels;  /* folders between it and its root: their .gitignore files count (see walk.h) */
	lat_buf prefix; /* for each path below it, as it can stand in a line; of a file its path. A C string */
} lat_start;

/* Opens path, which is relative to the workspace's folder or absolute. False: the call has its error result. */
bool lat_start_open(lat_tool_call *call, const char *path, size_t len, lat_start *start);
void lat_start_close(lat_start *start);

#endif
