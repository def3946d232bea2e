/* lat_gitignore: the rules of one .gitignore file, with git's own meaning (gitignore(5)).
 *
 *   name      at any depth below the file's folder      !name    takes a path back in
 *   /name     in the file's folder only                 name/    folders only
 *   a/b       a slash within anchors it as well         \        takes the next character as it is
 *
 * The last rule that matches decides. That nothing below an excluded folder can be taken back in is the walk's
 * part: it doesn't go there. Pure; immutable once parsed: any number of threads may ask. */
#ifndef LAT_WORKSPACE_GITIGNORE_H
#define LAT_WORKSPACE_GITIGNORE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct lat_gitignore lat_gitignore;

typedef enum {
	LAT_IGNORE_SILENT, /* no rule matches: ask the file of the folder above */
	LAT_IGNORE_EXCLUDED,
	LAT_IGNORE_INCLUDED
} lat_ignore_verdict;

lat_gitignore *lat_gitignore_parse(const char *text, size_t len); /* NULL: out of memory */
void lat_gitignore_free(lat_gitignore *g);
size_t lat_gitignore_count(const lat_gitignore *g); /* rules */

/* path: relative to the folder of the file, without a "/" at either end. */
lat_ignore_verdict lat_gitignore_match(const lat_gitignore *g, const char *path, size_t len, bool is_folder);

#endif
