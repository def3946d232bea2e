/* lat_grep: searches the files below a folder, or one file, for a pattern; several threads, one order.
 *
 *   walk ──► files, sorted ──► chunks ──► threads: open, read, search ──► chunks' text, in order ──► out
 *
 * A thread takes the next chunk, at most RING chunks ahead of the first that isn't finished, so memory is bounded;
 * when the limits of the output are reached, nobody takes another one. What comes out is the same on each run. */
#ifndef LAT_WORKSPACE_GREP_H
#define LAT_WORKSPACE_GREP_H

#include "base/buf.h"
#include "workspace/glob.h"
#include "workspace/search.h"

typedef enum {
	LAT_GREP_FILES,  /* path */
	LAT_GREP_COUNT,  /* path:lines that match */
	LAT_GREP_CONTENT /* path:number:line, of context path-number-line, "--" between groups */
} lat_grep_mode;

typedef struct {
	int start;          /* folder, open for reading; or a regular file */
	bool is_file;       /* it is a file */
	size_t levels;      /* see walk.h */
	const char *prefix; /* stands before each path; of a file, its whole path */
	const lat_search *search;
	const lat_glob *glob; /* or NULL: all files */
	bool glob_whole_path; /* it is held against the path below the start, not against the name */
	bool glob_excludes;   /* files that it matches are left out */
	bool whole_files;     /* the search is multiline: a file is searched as one text */
	lat_grep_mode mode;
	size_t context;                /* lines before and after */
	size_t max_lines;              /* of output; 0: no limit */
	size_t max_bytes;              /* of output */
	size_t threads;                /* 0: lat_crew_size() */
	bool (*is_stopped)(void *arg); /* any thread; or NULL */
	void *arg;
} lat_grep_options;

typedef struct {
	size_t files; /* searched */
	size_t files_hit;
	size_t lines_hit;  /* in mode files, each file counts one */
	size_t binary;     /* files left out: a NUL byte in the first block */
	size_t unreadable; /* files and folders */
	size_t too_hard;   /* files in which the pattern took too many steps: not searched to the end */
	bool truncated; /* a limit of the output was reached: the numbers are of what was searched up to then */
} lat_grep_stats;

enum {
	LAT_GREP_MAX_LINE = 500,                /* bytes shown of a line */
	LAT_GREP_BINARY_LOOK = 64 * 1024,       /* bytes of a file that are looked at for a NUL */
	LAT_GREP_WINDOW = 1024 * 1024,          /* bytes of a file in memory at once … */
	LAT_GREP_MAX_WINDOW = 64 * 1024 * 1024, /* … unless a line, or a multiline search, needs more */
	LAT_GREP_MAX_HARD = 20                  /* so many files that are too hard end the search */
};

/* LAT_E_NOMEM, LAT_E_ABORT, LAT_E_IO (the start can't be read), LAT_E_LIMIT (too many files; the pattern takes too
 * many steps); what is in out then doesn't count. */
lat_status lat_grep_run(const lat_grep_options *options, lat_buf *out, lat_grep_stats *stats, lat_error *err);

#endif
