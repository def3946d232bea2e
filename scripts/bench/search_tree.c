/* Grep beside ripgrep on a generated tree: 50 patterns, the same answers, the time of each.
 *   search_tree FOLDER [FILES=100000] [ROUNDS=3] [MODE=count|files]
 * Makes FOLDER unless it is there. Prints a line for each pattern and a JSON summary as the last line; exit status 1
 * when an answer differs. Ripgrep's time is that of its process, ours that of the call with its threads. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workspace/grep.h"
#include "workspace/walk.h"

static const char *const PATTERNS[] = {
	"needle",
	"connection_pool",
	"return",
	"\\bfor\\b",
	"NOTE",
	"lat_[a-z]+_new",
	"^static ",
	"\\breturn\\s+NULL;",
	"[0-9]{5,}",
	"foo|bar|baz",
	"error|warning|failure",
	"(alpha|beta)_gamma",
	"^\\s*if \\(",
	"\\w+_\\w+_\\w+_\\w+",
	"x+y+z",
	"\"[^\"]*\"",
	"'[^']+'",
	"[A-Z]{4,}",
	"\\bint\\s+\\w+\\(",
	"a.c.e",
	".*needle.*",
	"^$",
	"\\}$",
	"e$",
	"^[^ ]+ = ",
	"\\d+\\.\\d+",
	"(?i)Needle",
	"(?i)CONNECTION",
	"0x[0-9a-f]+",
	"\\$\\{?\\w+",
	"<[a-z]+>",
	"\\.\\.\\.",
	"https?://[^ ]+",
	"function\\s*\\w*\\(",
	"local \\w+ = require",
	"[aeiou]{3}",
	"\\bbatch\\b.*\\bresult\\b",
	"result.*batch",
	"(\\w)\\w\\d",
	"needle\\d{3}",
	"\\W{4}",
	"\\S{30}",
	"z",
	"Q",
	"\xc3\xbc",
	"f.r",
	"k\xc3\xb6nnen",
	"\\w*\xc3\xa4\\w*",
	"never_to_be_found_anywhere",
	"[[:upper:]][[:digit:]]",
};

enum { N_PATTERNS = sizeof PATTERNS / sizeof PATTERNS[0], OUTPUT_MAX = 64 << 20 };

/* ---- the tree ---- */

static uint64_t state = 88172645463325252ULL;

static unsigned below(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

static const char *const WORDS[] = {
	"return",
	"static",
	"int",
	"if (",
	"for",
	"while",
	"batch",
	"result",
	"error",
	"needle",
	"value",
	"struct",
	"NULL;",
	"count",
	"+=",
	"=",
	"==",
	"0x1f",
	"3.14",
	"12345678",
	"foo",
	"local",
	"require",
	"length",
	"buffer",
	"\"text\"",
	"'c'",
	"{",
	"}",
	"(",
	");",
	"->",
	"alpha",
	"beta_gamma",
	"lat_buf_new(",
	"connection_pool",
	"NOTE",
	"HTTP",
	"https://x.y/z",
	"...",
	"the",
	"of",
	"and",
	"queue",
	"thread",
	"f\xc3\xbcr",
	"k\xc3\xb6nnen",
	"\xc3\xa4hnlich",
	"snake_case_word_x",
	"Zebra9",
};

static void write_line(FILE *f)
{
	unsigned indent = below(4), words = below(14);
	bool ascii = below(20) != 0;
	fprintf(f, "%*s", (int)indent * 4, "");
	for (unsigned i = 0; i < words; i++) {
		unsigned w = below(sizeof WORDS / sizeof WORDS[0]);
		if ((w == 9 || w == 35 || w == 36) && below(300) != 0) /* some words are rare */
			w = 0;
		if (ascii && w >= 45 && w <= 47)
			w = 40;
		fprintf(f, "%s%s", WORDS[w], below(10) ? " " : "_");
	}
	if (below(50) == 0)
		fprintf(f, "%u", below(100000));
	fputc('\n', f);
}

static void write_file(const char *path)
{
	FILE *f = fopen(path, "w");
	if (!f) {
		perror(path);
		exit(1);
	}
	if (below(100) == 0)
		fwrite("\0\1\2needle", 1, 9, f);
	if (below(200) == 0)
		fputs("caf\xe9 is latin-1\n", f);
	unsigned lines = below(8) == 0 ? below(400) : below(60);
	for (unsigned i = 0; i < lines; i++)
		write_line(f);
	fclose(f);
}

static void make_tree(const char *top, unsigned files)
{
	static const char *const ENDINGS[] = {".c", ".h", ".lua", ".md", ".o", ".log"};
	char path[512];
	mkdir(top, 0755);
	for (unsigned i = 0; i < files; i++) {
		unsigned folder = i / 40;
		int n = snprintf(path, sizeof path, "%s/d%u", top, folder % 17);
		mkdir(path, 0755);
		n += snprintf(path + n, sizeof path - (size_t)n, "/m%u", folder / 17 % 29);
		mkdir(path, 0755);
		n += snprintf(path + n, sizeof path - (size_t)n, "/p%u", folder);
		mkdir(path, 0755);
		snprintf(path + n, sizeof path - (size_t)n, "/file_%u%s", i, ENDINGS[below(6)]);
		write_file(path);
	}
	snprintf(path, sizeof path, "%s/.gitignore", top);
	FILE *f = fopen(path, "w");
	if (f)
		fputs("*.o\n/d3/m1/\n*.log\n!file_1*.log\n", f);
	if (f)
		fclose(f);
}

/* ---- the two ---- */

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double ripgrep(const char *top, const char *pattern, bool count, char *out, size_t *len)
{
	int fds[2];
	double start = now_ms();
	if (pipe(fds) < 0)
		exit(1);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fds[1], 1);
		close(fds[0]);
		close(fds[1]);
		if (chdir(top) == 0)
			execlp("rg", "rg", "--no-config", "--hidden", "--no-require-git", "--no-ignore-dot",
			       "--no-ignore-global", "-g", "!.git", count ? "-c" : "-l", "-e", pattern, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	*len = 0;
	for (ssize_t n; (n = read(fds[0], out + *len, OUTPUT_MAX - *len)) > 0;)
		*len += (size_t)n;
	close(fds[0]);
	int status;
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
		printf("rg failed for %s\n", pattern);
	return now_ms() - start;
}

static double ours(const char *top, const char *pattern, bool count, lat_buf *out)
{
	lat_error err;
	double start = now_ms();
	lat_buf_clear(out);
	lat_search_options search_options = {false, false};
	lat_search *search = lat_search_new(pattern, strlen(pattern), &search_options, &err);
	lat_grep_options options = {
		.start = open(top, O_RDONLY | O_DIRECTORY),
		.prefix = "",
		.search = search,
		.mode = count ? LAT_GREP_COUNT : LAT_GREP_FILES,
		.max_bytes = OUTPUT_MAX,
	};
	lat_grep_stats stats;
	if (!search || lat_grep_run(&options, out, &stats, &err) != LAT_OK)
		printf("%s: %s\n", pattern, err.message);
	close(options.start);
	lat_search_free(search);
	return now_ms() - start;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the lines in place (into a new buffer). */
static char *sorted(char *text, size_t len)
{
	size_t n = 0, cap = 1024;
	char **lines = malloc(cap * sizeof *lines);
	text[len] = '\0';
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (n == cap)
			lines = realloc(lines, (cap *= 2) * sizeof *lines);
		lines[n++] = line;
	}
	qsort(lines, n, sizeof *lines, by_text);
	char *out = malloc(len + 2), *at = out;
	for (size_t i = 0; i < n; i++)
		at += sprintf(at, "%s\n", lines[i]);
	*at = '\0';
	free(lines);
	return out;
}

static bool same(char *theirs, size_t len, lat_buf *mine)
{
	lat_buf_byte(mine, '\0');
	char *a = sorted(theirs, len), *b = sorted(mine->data, mine->len - 1);
	bool equal = strcmp(a, b) == 0;
	if (!equal) {
		size_t i = 0;
		while (a[i] == b[i])
			i++;
		while (i > 0 && a[i - 1] != '\n')
			i--;
		printf("  rg:   %.100s\n  ours: %.100s\n", a + i, b + i);
	}
	free(a);
	free(b);
	return equal;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	unsigned files = argc > 2 ? (unsigned)atoi(argv[2]) : 100000;
	int rounds = argc > 3 ? atoi(argv[3]) : 3;
	bool count = argc <= 4 || strcmp(argv[4], "files") != 0;
	if (access(argv[1], F_OK) != 0)
		make_tree(argv[1], files);
	char *theirs = malloc(OUTPUT_MAX + 1);
	lat_buf mine = LAT_BUF_INIT;
	double rg_all = 0, our_all = 0, worst = 0;
	int differ = 0;
	for (size_t i = 0; i < N_PATTERNS; i++) {
		double rg_best = 1e9, our_best = 1e9;
		size_t len = 0;
		for (int r = 0; r < rounds; r++) {
			double t = ripgrep(argv[1], PATTERNS[i], count, theirs, &len);
			rg_best = t < rg_best ? t : rg_best;
			t = ours(argv[1], PATTERNS[i], count, &mine);
			our_best = t < our_best ? t : our_best;
		}
		bool equal = same(theirs, len, &mine);
		differ += !equal;
		rg_all += rg_best;
		our_all += our_best;
		worst = our_best / rg_best > worst ? our_best / rg_best : worst;
		printf("%-30s rg %7.1f ms  ours %7.1f ms  ratio %.2f%s\n", PATTERNS[i], rg_best, our_best,
		       our_best / rg_best, equal ? "" : "  DIFFERENT");
	}
	lat_buf_free(&mine);
	free(theirs);
	printf(
		"{\"patterns\":%d,\"differ\":%d,\"rg_ms\":%.1f,\"ours_ms\":%.1f,\"ratio\":%.3f,\"worst_ratio\":%.3f}\n",
		(int)N_PATTERNS, differ, rg_all, our_all, our_all / rg_all, worst);
	return differ != 0;
}
