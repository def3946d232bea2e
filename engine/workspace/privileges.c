/* See privileges.h. Owns nothing. */
#include "workspace/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (1U << (capability))

/* All of them are in the first word of a set. */
#define KEPT                                                                                      \
	(BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_KILL) | \
	 BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_NET_RAW))

int lat_privileges_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capget, &header, sets) < 0)
		return errno;
	sets[0].effective &= KEPT;
	sets[0].permitted &= KEPT;
	sets[0].inheritable &= KEPT;
	for (int i = 1; i < _LINUX_CAPABILITY_U32S_3; i++)
		sets[i] = (struct __user_cap_data_struct){.effective = 0};
	return syscall(SYS_capset, &header, sets) < 0 ? errno : 0;
}
