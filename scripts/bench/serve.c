/* The benchmarks' server: serves while a command runs, and ends with its status. See reply_server.h.
 *     serve COMMAND [ARGUMENT…]
 * The command finds the server's address in BENCH_URL. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reply_server.h"

int main(int argc, char **argv)
{
	int port =
		reply_server_start(&(reply_sizes){.tool_steps = 200, .text_bytes = 1 << 20, .delta_bytes = 20});
	if (port == 0 || argc < 2) {
		fputs("serve: needs a command and a free port\n", stderr);
		return 1;
	}
	char url[64];
	snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
	setenv("BENCH_URL", url, 1);
	pid_t pid = fork();
	if (pid == 0) {
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	int status = 0;
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
