/* lat_landlock: see landlock.h. The numbers are the kernel's (include/uapi/linux/landlock.h); the headers of the
 * system that this is built on may not have the newer ones. */
#include "workspace/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

enum { CREATE_RULESET_VERSION = 1, RULE_PATH_BENEATH = 1 };

#define FS_EXECUTE     (UINT64_C(1) << 0)
#define FS_WRITE_FILE  (UINT64_C(1) << 1)
#define FS_READ_FILE   (UINT64_C(1) << 2)
#define FS_READ_DIR    (UINT64_C(1) << 3)
#define FS_REMOVE_DIR  (UINT64_C(1) << 4)
#define FS_REMOVE_FILE (UINT64_C(1) << 5)
#define FS_MAKE_CHAR   (UINT64_C(1) << 6)
#define FS_MAKE_DIR    (UINT64_C(1) << 7)
#define FS_MAKE_REG    (UINT64_C(1) << 8)
#define FS_MAKE_SOCK   (UINT64_C(1) << 9)
#define FS_MAKE_FIFO   (UINT64_C(1) << 10)
#define FS_MAKE_BLOCK  (UINT64_C(1) << 11)
#define FS_MAKE_SYM    (UINT64_C(1) << 12)
#define FS_REFER       (UINT64_C(1) << 13)
#define FS_TRUNCATE    (UINT64_C(1) << 14)
#define FS_IOCTL_DEV   (UINT64_C(1) << 15)
#define NET_BIND_TCP   (UINT64_C(1) << 0)
#define NET_CONNECT    (UINT64_C(1) << 1)
#define SCOPE_ABSTRACT (UINT64_C(1) << 0)

#define FS_READS   (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
#define FS_DEVICES (FS_MAKE_CHAR | FS_MAKE_BLOCK)
#define FS_MAKES   (FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_SYM)
#define FS_CHANGES (FS_WRITE_FILE | FS_TRUNCATE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_REFER | FS_MAKES)
#define FS_OF_FILE (FS_EXECUTE | FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

typedef struct {
	uint64_t handled_fs, handled_net, scoped;
} ruleset_attr;

typedef struct {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed)) path_beneath_attr;

int lat_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
	return abi > 0 ? (int)abi : 0;
}

static uint64_t handled(const lat_landlock_options *options)
{
	uint64_t rights = FS_CHANGES | FS_DEVICES | FS_IOCTL_DEV;
	if (options->abi < LAT_LANDLOCK_REFER)
		rights &= ~FS_REFER;
	if (options->abi < LAT_LANDLOCK_TRUNCATE)
		rights &= ~FS_TRUNCATE;
	if (options->abi < LAT_LANDLOCK_IOCTL)
		rights &= ~FS_IOCTL_DEV;
	return options->confine_reads ? rights | FS_READS : rights;
}

int lat_landlock_new(const lat_landlock_options *options)
{
	ruleset_attr attr = {.handled_fs = handled(options)};
	size_t size = sizeof attr.handled_fs;
	if (options->abi >= LAT_LANDLOCK_TCP) {
		attr.handled_net = options->confine_tcp ? NET_BIND_TCP | NET_CONNECT : 0;
		size += sizeof attr.handled_net;
	}
	if (options->abi >= LAT_LANDLOCK_SCOPE) {
		attr.scoped = SCOPE_ABSTRACT;
		size += sizeof attr.scoped;
	}
	return (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
}

static uint64_t rights_of(lat_landlock_access access)
{
	switch (access) {
	case LAT_LANDLOCK_READ:
		return FS_READS;
	case LAT_LANDLOCK_READ_WRITE:
		return FS_READS | FS_CHANGES;
	default:
		return FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV;
	}
}

bool lat_landlock_allow(int ruleset, const lat_landlock_options *options, int fd, lat_landlock_access access)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return false;
	uint64_t rights = rights_of(access) & handled(options);
	if (!S_ISDIR(st.st_mode))
		rights &= FS_OF_FILE;
	if (rights == 0)
		return true;
	path_beneath_attr attr = {.allowed = rights, .parent_fd = fd};
	return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr, 0) == 0;
}

bool lat_landlock_allow_path(int ruleset, const lat_landlock_options *options, const char *path,
                             lat_landlock_access access)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ENXIO;
	bool ok = lat_landlock_allow(ruleset, options, fd, access);
	int failure = errno;
	close(fd);
	errno = failure;
	return ok;
}

int lat_landlock_apply(int ruleset)
{
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? errno : 0;
}
