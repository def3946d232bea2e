/* The benchmarks' server: prints its port, serves until its standard input ends. See reply_server.h. */
#include <stdio.h>
#include <unistd.h>

#include "reply_server.h"

int main(void)
{
	int port =
		reply_server_start(&(reply_sizes){.tool_steps = 200, .text_bytes = 1 << 20, .delta_bytes = 20});
	if (port == 0) {
		perror("serve");
		return 1;
	}
	printf("%d\n", port);
	fflush(stdout);
	char ignored;
	while (read(0, &ignored, 1) > 0)
		;
	return 0;
}
