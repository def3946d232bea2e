/* What the compiler of globs hands to the matcher: a small program, one node for each step. */
#ifndef LAT_WORKSPACE_GLOB_PROGRAM_H
#define LAT_WORKSPACE_GLOB_PROGRAM_H

#include <stdint.h>

#include "workspace/glob.h"

enum {
	LAT_GLOB_MAX_NODES = 2 * LAT_GLOB_MAX_BYTES + 2, /* a byte of the pattern makes two nodes at most */
	LAT_GLOB_SET_WORDS = 256 / 64
};

typedef enum {
	LAT_GLOB_BYTE,  /* this byte */
	LAT_GLOB_ANY,   /* a byte but "/" */
	LAT_GLOB_SET,   /* a byte of set a */
	LAT_GLOB_STAR,  /* bytes but "/", none too */
	LAT_GLOB_DEEP,  /* any bytes, none too */
	LAT_GLOB_SPLIT, /* goes on at a and at b */
	LAT_GLOB_JUMP,  /* goes on at a */
	LAT_GLOB_FAIL,
	LAT_GLOB_END
} lat_glob_op;

typedef struct {
	uint8_t op, byte;
	uint16_t a, b;
} lat_glob_node;

typedef struct {
	uint64_t words[LAT_GLOB_SET_WORDS];
} lat_glob_set;

/* What stands between a literal beginning and a literal end; the common patterns need no more than that. */
typedef enum {
	LAT_GLOB_MIDDLE_NOTHING, /* "name" */
	LAT_GLOB_MIDDLE_STAR,    /* "*.c" */
	LAT_GLOB_MIDDLE_DEEP,    /* "src/" "**"; "**" "/" "*.c" */
	LAT_GLOB_MIDDLE_FOLDERS, /* "**" "/name" */
	LAT_GLOB_MIDDLE_OTHER    /* run the program */
} lat_glob_middle;

struct lat_glob {
	lat_glob_node *nodes; /* the last one is LAT_GLOB_END */
	size_t n_nodes;
	lat_glob_set *sets;
	size_t n_sets;
	lat_glob_middle middle;
	char *literal; /* the beginning, then the end */
	size_t prefix_len, suffix_len;
};

#endif
