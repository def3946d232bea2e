/* lat_landlock: confines a child process by the kernel's own means (Linux 5.13 and later, landlock(7)): what it may
 * write, and on request what it may read and whether it may use TCP. What its children do is confined likewise, for
 * good, whoever waits for them.
 *
 * The rules are made in this process; the child only has to call lat_landlock_apply. Any thread. */
#ifndef LAT_WORKSPACE_LANDLOCK_H
#define LAT_WORKSPACE_LANDLOCK_H

#include <stdbool.h>

enum {
	LAT_LANDLOCK_REFER = 2, /* ABIs: moving a file from one folder to another where both may be written; … */
	LAT_LANDLOCK_TRUNCATE = 3, /* before, truncate(2) isn't confined */
	LAT_LANDLOCK_TCP = 4,
	LAT_LANDLOCK_IOCTL = 5,
	LAT_LANDLOCK_SCOPE = 6 /* no abstract Unix sockets of processes outside */
};

int lat_landlock_abi(void); /* 0: this kernel has none, or it is switched off */

typedef struct {
	int abi; /* at most what lat_landlock_abi said */
	bool confine_reads;
	bool confine_tcp; /* from LAT_LANDLOCK_TCP on */
} lat_landlock_options;

typedef enum {
	LAT_LANDLOCK_READ,       /* read and execute what lies beneath */
	LAT_LANDLOCK_READ_WRITE, /* make, change and remove too, but no device nodes */
	LAT_LANDLOCK_DEVICE      /* read and write one device file, or those in a folder */
} lat_landlock_access;

/* A ruleset that allows nothing of what it confines: a descriptor that the caller owns, or -1 with errno. */
int lat_landlock_new(const lat_landlock_options *options);
/* Allows it beneath fd (which may be O_PATH). False with errno. */
bool lat_landlock_allow(int ruleset, const lat_landlock_options *options, int fd, lat_landlock_access access);
bool lat_landlock_allow_path(int ruleset, const lat_landlock_options *options, const char *path,
                             lat_landlock_access access); /* true too when there is no such path */

/* For the child before exec, behind lat_privileges_drop. A system call alone. 0 or an errno. */
int lat_landlock_apply(int ruleset);

#endif
