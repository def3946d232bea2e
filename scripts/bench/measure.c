/* Runs a command and prints what it took: wall seconds, CPU seconds (user + system), peak RSS in KiB.
 *     measure COMMAND [ARGUMENT…]
 * A small program of its own, because a child's peak RSS never shows less than its parent's before exec. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs("measure: give a command\n", stderr);
		return 2;
	}
	double begun = now();
	pid_t pid = fork();
	if (pid == 0) {
		dup2(2, 1); /* standard output is for the figures */
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	int status;
	struct rusage usage;
	while (pid > 0 && wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return 1;
	if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "measure: %s failed\n", argv[1]);
		return 1;
	}
	printf("%.6f %.6f %ld\n", now() - begun, seconds(usage.ru_utime) + seconds(usage.ru_stime),
	       usage.ru_maxrss);
	return 0;
}
