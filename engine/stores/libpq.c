/* Loads libpq: see libpq.h. The table is filled once (pthread_once) and constant from then on; the library stays
 * loaded. Any thread. */
#include "stores/libpq.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define LIBRARY "libpq.so.5"

static lat_libpq table;
static bool loaded;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

/* POSIX lets a function's address be read as an object's; ISO C has no way to write that. */
static bool find(void *library, const char *name, void *function)
{
	void *address = dlsym(library, name);
	memcpy(function, &address, sizeof address);
	return address != NULL;
}

static void load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	bool all = library != NULL;
#define FIND(name) all = all && find(library, "PQ" #name, &table.name);
	LAT_LIBPQ_FUNCTIONS(FIND)
	loaded = all;
}

const lat_libpq *lat_libpq_load(lat_error *err)
{
	pthread_once(&load_once, load);
	if (loaded)
		return &table;
	lat_fail(err, LAT_E_IO, LIBRARY " can't be loaded: install libpq 14 or later (Debian: libpq5)");
	return NULL;
}
