/* lat_grep: see grep.h. The ring of chunks, the numbers and `out` are guarded by the run's lock, a leaf. */
#include "workspace/grep.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workspace/crew.h"
#include "workspace/grep_file.h"
#include "workspace/tool.h"
#include "workspace/walk.h"

enum { RING = 64, CHUNK_MAX = 32, CHUNKS_A_THREAD = 8 };

typedef struct {
	lat_buf text;
	bool done;
} slot;

typedef struct {
	const lat_grep_options *options;
	const lat_walk_file *files;
	size_t n_files, chunk_size, n_chunks, threads;
	pthread_mutex_t lock;
	pthread_cond_t moved; /* `emitted` has grown, or it is over */
	slot ring[RING];
	size_t next, emitted; /* chunks */
	bool over;            /* nobody takes another chunk */
	lat_status status;
	lat_buf *out;
	size_t lines; /* in out */
	lat_grep_stats *stats;
} grep_run;

/* ---- putting together ---- */

/* Whole lines of text, as far as the limits go. */
static void emit(grep_run *run, const char *text, size_t len)
{
	const lat_grep_options *options = run->options;
	if (run->out->len == 0 && len >= 3 && memcmp(text, "--\n", 3) == 0) { /* nothing stands before it */
		text += 3;
		len -= 3;
	}
	while (len > 0) {
		const char *newline = memchr(text, '\n', len);
		size_t n = newline ? (size_t)(newline - text) + 1 : len;
		if ((options->max_lines && run->lines >= options->max_lines) ||
		    run->out->len + n > options->max_bytes) {
			run->stats->truncated = run->over = true;
			return;
		}
		lat_buf_append(run->out, text, n);
		run->lines++;
		text += n;
		len -= n;
	}
}

static void add_stats(lat_grep_stats *all, const lat_grep_stats *some)
{
	all->files += some->files;
	all->files_hit += some->files_hit;
	all->lines_hit += some->lines_hit;
	all->binary += some->binary;
	all->unreadable += some->unreadable;
	all->too_hard += some->too_hard;
}

/* Takes the chunk's text over. */
static void hand_in(grep_run *run, size_t chunk, lat_buf *text, const lat_grep_stats *stats,
                    lat_status status)
{
	pthread_mutex_lock(&run->lock);
	slot *own = &run->ring[chunk % RING];
	*own = (slot){.text = *text, .done = true};
	*text = (lat_buf)LAT_BUF_INIT;
	add_stats(run->stats, stats);
	if (status == LAT_OK && run->stats->too_hard > LAT_GREP_MAX_HARD)
		status = LAT_E_LIMIT;
	if (status != LAT_OK && run->status == LAT_OK)
		run->status = status;
	run->over |= status != LAT_OK;
	for (slot *s; (s = &run->ring[run->emitted % RING])->done; run->emitted++) {
		if (!run->over)
			emit(run, s->text.data, s->text.len);
		lat_buf_free(&s->text);
		s->done = false;
	}
	pthread_cond_broadcast(&run->moved);
	pthread_mutex_unlock(&run->lock);
}

/* False: there is none left. */
static bool take_chunk(grep_run *run, size_t *chunk)
{
	pthread_mutex_lock(&run->lock);
	while (!run->over && run->next < run->n_chunks && run->next - run->emitted >= RING)
		pthread_cond_wait(&run->moved, &run->lock);
	bool taken = !run->over && run->next < run->n_chunks;
	if (taken)
		*chunk = run->next++;
	pthread_mutex_unlock(&run->lock);
	return taken;
}

/* ---- searching ---- */

typedef struct {
	lat_grep_reader reader;
	lat_buf path;
	const char *folder; /* the one that is open; compared by address */
	int folder_fd;
} worker;

static int open_file(worker *w, const lat_grep_options *options, const lat_walk_file *file)
{
	if (w->folder != file->folder) {
		if (w->folder_fd >= 0)
			close(w->folder_fd);
		w->folder_fd = lat_walk_open_folder(options->start, file->folder);
		w->folder = file->folder;
	}
	if (w->folder_fd < 0)
		return -1;
	return openat(w->folder_fd, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

static lat_status search_one(worker *w, const lat_grep_options *options, const lat_walk_file *file,
                             lat_buf *text, lat_grep_stats *stats)
{
	int fd = open_file(w, options, file);
	if (fd < 0) {
		stats->unreadable++;
		return LAT_OK;
	}
	lat_buf_clear(&w->path);
	lat_buf_str(&w->path, options->prefix);
	lat_tool_append_name(&w->path, file->folder, file->folder_len);
	lat_tool_append_name(&w->path, file->name, file->name_len);
	lat_status status = LAT_E_NOMEM;
	if (lat_buf_ok(&w->path))
		status = lat_grep_file(&w->reader, fd, w->path.data, w->path.len, text, stats);
	close(fd);
	return status;
}

static void search_chunk(grep_run *run, worker *w, size_t chunk)
{
	const lat_grep_options *options = run->options;
	lat_grep_stats stats = {.files = 0};
	lat_buf text = LAT_BUF_INIT;
	lat_status status = LAT_OK;
	size_t end = (chunk + 1) * run->chunk_size;
	for (size_t i = chunk * run->chunk_size; i < end && i < run->n_files && status == LAT_OK; i++) {
		if (options->is_stopped && options->is_stopped(options->arg))
			status = LAT_E_ABORT;
		else if (text.len <= options->max_bytes) /* what comes behind could never be shown */
			status = search_one(w, options, &run->files[i], &text, &stats);
	}
	hand_in(run, chunk, &text, &stats, status);
	lat_buf_free(&text);
}

static void search_chunks(void *arg)
{
	grep_run *run = arg;
	worker w = {.path = LAT_BUF_INIT, .folder_fd = -1};
	bool ready = lat_grep_reader_init(&w.reader, run->options);
	for (size_t chunk; take_chunk(run, &chunk);) {
		lat_buf none = LAT_BUF_INIT;
		const lat_grep_stats no_stats = {.files = 0};
		if (ready)
			search_chunk(run, &w, chunk);
		else
			hand_in(run, chunk, &none, &no_stats, LAT_E_NOMEM);
	}
	if (ready)
		lat_grep_reader_free(&w.reader);
	lat_buf_free(&w.path);
	if (w.folder_fd >= 0)
		close(w.folder_fd);
}

static lat_status explain(lat_status status, lat_error *err)
{
	if (status == LAT_E_NOMEM)
		return lat_fail_nomem(err);
	if (status == LAT_E_ABORT)
		return lat_fail(err, status, "the search was cancelled");
	if (status == LAT_E_LIMIT)
		return lat_fail(
			err, status,
			"the pattern takes too many steps in too many files: write it so that it backtracks less "
			"(no nested quantifiers)");
	return status;
}

static lat_status search_files(grep_run *run, lat_error *err)
{
	if (pthread_mutex_init(&run->lock, NULL) != 0)
		return lat_fail_nomem(err);
	if (pthread_cond_init(&run->moved, NULL) != 0) {
		pthread_mutex_destroy(&run->lock);
		return lat_fail_nomem(err);
	}
	size_t chunk = run->n_files / (run->threads * CHUNKS_A_THREAD);
	run->chunk_size = chunk < 1 ? 1 : chunk > CHUNK_MAX ? CHUNK_MAX : chunk;
	run->n_chunks = (run->n_files + run->chunk_size - 1) / run->chunk_size;
	lat_crew_run(run->threads < run->n_chunks ? run->threads : run->n_chunks, search_chunks, run);
	for (size_t i = 0; i < RING; i++)
		lat_buf_free(&run->ring[i].text);
	pthread_cond_destroy(&run->moved);
	pthread_mutex_destroy(&run->lock);
	return run->status == LAT_OK && !lat_buf_ok(run->out) ? lat_fail_nomem(err) : explain(run->status, err);
}

/* ---- which files ---- */

static bool is_wanted(void *arg, int folder_fd, const char *path, size_t len, lat_walk_file *file)
{
	(void)folder_fd;
	const lat_grep_options *options = arg;
	if (file->is_link)
		return false;
	if (!options->glob)
		return true;
	bool matches = options->glob_whole_path ? lat_glob_match(options->glob, path, len)
	                                        : lat_glob_match(options->glob, file->name, file->name_len);
	return matches != options->glob_excludes;
}

static bool walk_is_stopped(void *arg)
{
	const lat_grep_options *options = arg;
	return options->is_stopped && options->is_stopped(options->arg);
}

static lat_status search_start(grep_run *run, lat_error *err)
{
	lat_grep_reader reader;
	lat_buf text = LAT_BUF_INIT;
	if (!lat_grep_reader_init(&reader, run->options))
		return lat_fail_nomem(err);
	const char *path = run->options->prefix;
	lat_status status = lat_grep_file(&reader, run->options->start, path, strlen(path), &text, run->stats);
	if (status == LAT_OK)
		emit(run, text.data, text.len);
	lat_grep_reader_free(&reader);
	lat_buf_free(&text);
	return status == LAT_OK && lat_buf_ok(run->out) ? LAT_OK : lat_fail_nomem(err);
}

lat_status lat_grep_run(const lat_grep_options *options, lat_buf *out, lat_grep_stats *stats, lat_error *err)
{
	size_t threads = options->threads ? options->threads : lat_crew_size();
	*stats = (lat_grep_stats){.files = 0};
	grep_run run = {.options = options, .threads = threads, .out = out, .stats = stats};
	if (options->is_file)
		return search_start(&run, err);
	lat_walk_options walk_options = {
		.start = options->start,
		.levels = options->levels,
		.threads = threads,
		.keep = is_wanted,
		.is_stopped = walk_is_stopped,
		.arg = (void *)options,
	};
	lat_walk *walk = lat_walk_new(&walk_options, err);
	if (!walk)
		return err ? err->kind : LAT_E_IO;
	run.files = lat_walk_files(walk);
	run.n_files = lat_walk_count(walk);
	lat_status status = search_files(&run, err);
	stats->unreadable += lat_walk_unreadable(walk);
	lat_walk_free(walk);
	return status;
}
