/* The walk and the rules of .gitignore, compared with git itself on generated trees: what lat_walk lists is what
 * `git ls-files -co --exclude-standard` lists. SEED=… replays a failure, ROUNDS=… says how many trees. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workspace/walk.h"

static int passed, failed;

static void check(bool ok, const char *what, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("walk_test.c:%d: not so: %s\n", line, what);
}

#define CHECK(condition) check(condition, #condition, __LINE__)

static char top[64]; /* the tree */
static unsigned long long random_state;

static unsigned below(unsigned n)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(random_state >> 33) % n;
}

static void run(const char *format, ...)
{
	char command[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	if (system(command) != 0) {
		printf("failed: %s\n", command);
		exit(1);
	}
}

static void put_file(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "w");
	if (!f)
		return;
	fwrite(text, 1, len, f);
	fclose(f);
}

/* ---- generated trees ---- */

static const char *const NAMES[] = {"a",       "b",     "ab",          "foo", "bar",      "x.c",
                                    "y.c",     "x.o",   ".h",          "a b", "t ",       "[x]",
                                    "a-b",     "a\\b",  "!n",          "#h",  "\xc3\xa9", "A",
                                    "foo.bar", "build", "a.gitignore", "x",   "..a",      "nl\nnl"};
static const char *const PIECES[] = {"*",       "?",   "**",          "[a-c]", "[!a]",   "[^b]", "\\",
                                     "/",       "a",   "b",           "x",     ".c",     ".",    "foo",
                                     " ",       "\\ ", "[[:alpha:]]", "[]-a]", "[x\\]]", "**/",  "/**",
                                     "[",       "o",   "!",           "#",     "***",    "[a-",  "[a-]",
                                     "[a-c-f]", "\t",  "{a,b}",       "\\/"};

#define PICK(list) (list)[below(sizeof(list) / sizeof((list)[0]))]

static void make_tree(const char *folder, unsigned depth)
{
	for (unsigned i = 2 + below(7); i > 0; i--) {
		char path[1024];
		snprintf(path, sizeof path, "%s/%s", folder, PICK(NAMES));
		unsigned kind = below(10);
		if (kind < 4 && depth < 4) {
			if (mkdir(path, 0755) == 0)
				make_tree(path, depth + 1);
		} else if (kind == 4) {
			(void)!symlink(below(2) ? ".." : "nowhere", path);
		} else if (kind == 5 && below(4) == 0) {
			mkfifo(path, 0644);
		} else if (access(path, F_OK) != 0) {
			put_file(path, "x", 1);
		}
	}
}

static size_t add_pattern(char *text, size_t len, size_t max)
{
	char pattern[256] = "";
	if (below(4) == 0)
		strcat(pattern, "!");
	if (below(4) == 0)
		strcat(pattern, "/");
	for (unsigned i = 1 + below(4); i > 0; i--) {
		strcat(pattern, below(2) ? PICK(NAMES) : PICK(PIECES));
		if (below(4) == 0)
			strcat(pattern, "/");
	}
	if (below(5) == 0)
		strcat(pattern, below(2) ? "/" : " ");
	int n = snprintf(text + len, max - len, "%s%s", pattern, below(8) ? "\n" : "\r\n");
	return n > 0 && (size_t)n < max - len ? len + (size_t)n : len;
}

static void make_rules(const char *path, unsigned most)
{
	char text[4096];
	size_t len = 0;
	if (below(8) == 0)
		len = (size_t)snprintf(text, sizeof text, "\xef\xbb\xbf");
	for (unsigned i = 1 + below(most); i > 0; i--)
		len = add_pattern(text, len, sizeof text);
	if (len > 0 && below(4) == 0)
		len--; /* no newline at the end */
	put_file(path, text, len);
}

static void make_all_rules(void)
{
	char path[1100], line[1024];
	snprintf(path, sizeof path, "%s/.git/info/exclude", top);
	make_rules(path, 2);
	char command[128];
	snprintf(command, sizeof command, "cd %s && find . -name .git -prune -o -type d -print0", top);
	FILE *folders = popen(command, "r");
	size_t n = 0;
	for (int c; folders && (c = fgetc(folders)) != EOF;) {
		line[n++] = (char)c;
		if (c != 0 && n < sizeof line)
			continue;
		n = 0;
		if (below(3) != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s/.gitignore", top, line);
		make_rules(path, 5);
	}
	if (folders)
		pclose(folders);
}

/* ---- the two lists ---- */

static char *git_list(const char *start, size_t *len)
{
	char command[512];
	/* -co sorts the untracked ones by bytes; what it lists of another folder is relative to that folder */
	snprintf(command, sizeof command,
	         "cd '%s/%s' && git -c core.excludesFile=/dev/null -c core.quotePath=off ls-files -co -z "
	         "--exclude-standard | LC_ALL=C sort -z",
	         top, start);
	FILE *f = popen(command, "r");
	char *text = malloc(1 << 20);
	*len = f && text ? fread(text, 1, 1 << 20, f) : 0;
	if (f)
		pclose(f);
	return text;
}

static char *walk_list(const char *start, size_t levels, size_t threads, size_t *len)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", top, start);
	lat_walk_options options = {.start = open(path, O_RDONLY | O_DIRECTORY),
	                            .levels = levels,
	                            .threads = threads};
	lat_error err;
	lat_walk *w = lat_walk_new(&options, &err);
	char *text = malloc(1 << 20);
	*len = 0;
	for (size_t i = 0; w && text && i < lat_walk_count(w); i++) {
		const lat_walk_file *file = &lat_walk_files(w)[i];
		*len += (size_t)sprintf(text + *len, "%s%s", file->folder, file->name) + 1;
	}
	lat_walk_free(w);
	close(options.start);
	return text;
}

static void show(const char *what, const char *list, size_t len)
{
	printf("  %s:\n", what);
	for (size_t i = 0; i < len; i += strlen(list + i) + 1)
		printf("    %s\n", list + i);
}

static bool compare(const char *start, size_t levels, size_t threads)
{
	size_t expected_len, got_len;
	char *expected = git_list(start, &expected_len), *got = walk_list(start, levels, threads, &got_len);
	bool same = expected && got && expected_len == got_len && memcmp(expected, got, got_len) == 0;
	if (!same) {
		show("git", expected, expected_len);
		show("walk", got, got_len);
	}
	free(expected);
	free(got);
	return same;
}

static void test_generated_trees(void)
{
	const char *given = getenv("SEED"), *rounds_given = getenv("ROUNDS");
	unsigned long long seed = given ? strtoull(given, NULL, 10) : (unsigned long long)getpid() * 7919;
	const char *scale = getenv("LATTICE_SPEC_SCALE");
	unsigned rounds = rounds_given ? (unsigned)atoi(rounds_given) : given ? 1 : 60;
	if (scale && !rounds_given && !given)
		rounds = (unsigned)(60 * atof(scale)) + 1;
	printf("first SEED=%llu\n", seed);
	for (unsigned i = 0; i < rounds; i++) {
		random_state = seed + i;
		run("find %s -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +", top);
		make_tree(top, 0);
		make_all_rules();
		bool same = compare("", 0, 1 + i % 3);
		check(same, "git and the walk list the same", __LINE__);
		if (!same) {
			printf("walk_test.c: replay with SEED=%llu (the tree stays in %s)\n", seed + i, top);
			exit(1);
		}
	}
}

/* ---- what has a meaning of its own ---- */

static bool lists(const char *start, size_t levels, const char *expected)
{
	size_t len;
	char *list = walk_list(start, levels, 2, &len);
	for (size_t i = 0; list && i < len; i++)
		if (list[i] == '\0')
			list[i] = '|';
	bool same = list && len == strlen(expected) && memcmp(list, expected, len) == 0;
	if (!same)
		printf("  got %.*s\n", (int)len, list ? list : "");
	free(list);
	return same;
}

static void clear(void)
{
	run("rm -rf %s && mkdir %s", top, top);
}

static void test_without_repository(void)
{
	clear();
	run("cd %s && mkdir -p s/t && touch s/t/x.o s/t/x.c s/y.o x.o && printf '*.o\\n!y.o\\n' >.gitignore",
	    top);
	CHECK(lists("", 0, ".gitignore|s/t/x.c|s/y.o|"));
	CHECK(lists("s", 1, "t/x.c|y.o|"));
	CHECK(lists("s/t", 2, "x.c|"));
	CHECK(lists("s/t", 1, "x.c|x.o|")); /* the file with the rules lies above what counts */
}

static void test_in_a_repository(void)
{
	clear();
	run("cd %s && mkdir -p s/t && touch s/t/x.o s/t/x.c s/k && git init -q && echo '*.o' >.gitignore", top);
	run("cd %s && mkdir -p .git/info && echo k >.git/info/exclude", top);
	CHECK(lists("s/t", 0, "x.c|"));
	CHECK(lists("s", 0, "t/x.c|"));
}

static void test_nested_repository(void)
{
	clear();
	run("cd %s && mkdir n && touch n/x.o n/y.c && git init -q n && echo '*.o' >.gitignore && echo '*.c' >n/.gitignore",
	    top);
	CHECK(lists("", 0, ".gitignore|n/.gitignore|n/x.o|"));
}

/* 20 folders with names of 250 bytes in one another, a file in the last. */
static void make_deep(void)
{
	char name[251];
	memset(name, 'd', 250);
	name[250] = '\0';
	int fd = open(top, O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < 20; i++) {
		CHECK(mkdirat(fd, name, 0755) == 0);
		int next = openat(fd, name, O_RDONLY | O_DIRECTORY);
		close(fd);
		fd = next;
	}
	close(openat(fd, "deep", O_CREAT | O_WRONLY, 0644));
	close(fd);
}

static void test_hard_names(void)
{
	clear();
	CHECK(lists("", 0, ""));
	make_deep();
	size_t len;
	char *list = walk_list("", 0, 2, &len);
	CHECK(len == (size_t)20 * 251 + 5); /* deeper than a path of the kernel can be */
	free(list);
	run("rm -rf %s/d*", top);
	run("cd %s && ln -s / out && ln -s . self && mkdir -p closed && touch closed/x", top);
	CHECK(lists("", 0, "closed/x|out|self|"));
	if (geteuid() != 0) {
		run("chmod 0 %s/closed", top);
		CHECK(lists("", 0, "out|self|"));
		run("chmod 755 %s/closed", top);
	}
	run("cd %s && printf 'x\\n' >.gitignore.real && ln -s .gitignore.real .gitignore", top);
	CHECK(lists("", 0, ".gitignore|.gitignore.real|closed/x|out|self|")); /* as git: links hold no rules */
}

static bool stop_at_once(void *arg)
{
	(void)arg;
	return true;
}

static void test_stopping(void)
{
	lat_error err;
	lat_walk_options options = {.start = open("/usr", O_RDONLY | O_DIRECTORY), .is_stopped = stop_at_once};
	CHECK(lat_walk_new(&options, &err) == NULL);
	CHECK(err.kind == LAT_E_ABORT);
	close(options.start);
	options.start = -1;
	CHECK(lat_walk_new(&options, &err) == NULL);
	CHECK(err.kind == LAT_E_IO || err.kind == LAT_E_ABORT);
}

int main(void)
{
	if (system("git --version >/dev/null 2>&1") != 0) {
		printf("git isn't here: nothing compared\n0 passed, 1 failed\n");
		return 1;
	}
	strcpy(top, "/tmp/lattice-walk-XXXXXX");
	if (!mkdtemp(top))
		return 1;
	run("git init -q %s", top);
	test_generated_trees();
	test_without_repository();
	test_in_a_repository();
	test_nested_repository();
	test_hard_names();
	test_stopping();
	run("rm -rf %s", top);
	printf("%d passed, %d failed\n", passed, failed);
	return failed > 0;
}
