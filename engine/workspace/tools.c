/* The one table of the built-in tools. Constant; any thread. */
#include <string.h>

#include "workspace/tool.h"

/* clang-format off */
static const lat_tool TOOLS[] = {
	{"Edit", lat_tool_edit},
	{"Glob", lat_tool_glob},
	{"Grep", lat_tool_grep},
	{"LS", lat_tool_ls},
	{"Read", lat_tool_read},
	{"Write", lat_tool_write},
};
/* clang-format on */

const lat_tool *lat_tool_find(const char *name)
{
	for (size_t i = 0; i < sizeof TOOLS / sizeof TOOLS[0]; i++)
		if (strcmp(TOOLS[i].name, name) == 0)
			return &TOOLS[i];
	return NULL;
}
