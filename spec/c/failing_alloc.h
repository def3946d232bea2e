/* Allocation that fails on request, for a test that includes the .c files under test behind this header:
 * their malloc, calloc and realloc count down and fail at zero. Single-threaded tests only. */
#ifndef LAT_SPEC_FAILING_ALLOC_H
#define LAT_SPEC_FAILING_ALLOC_H

#include <stdlib.h>

static long allocs_left = -1; /* -1: none fails */

static inline int alloc_fails(void)
{
	return allocs_left >= 0 && allocs_left-- == 0;
}

static inline void *failing_malloc(size_t n)
{
	return alloc_fails() ? NULL : malloc(n);
}

static inline void *failing_calloc(size_t n, size_t size)
{
	return alloc_fails() ? NULL : calloc(n, size);
}

static inline void *failing_realloc(void *p, size_t n)
{
	return alloc_fails() ? NULL : realloc(p, n);
}

#define malloc  failing_malloc
#define calloc  failing_calloc
#define realloc failing_realloc

#endif
