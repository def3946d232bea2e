/* What a child process that a model commands gives up before exec, besides what Landlock takes from it. */
#ifndef LAT_WORKSPACE_PRIVILEGES_H
#define LAT_WORKSPACE_PRIVILEGES_H

/* No program that it runs gains privileges (no_new_privs), and of root's capabilities only those stay that concern
 * its own files and ports: none with which to look into other processes (Linux lets CAP_PERFMON and CAP_SYS_ADMIN
 * read /proc/<pid>/environ past Landlock), to make devices, or to change the system. System calls alone, so that it
 * can be called between fork and exec. 0 or an errno. */
int lat_privileges_drop(void);

#endif
