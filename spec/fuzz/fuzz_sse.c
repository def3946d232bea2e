/* Any bytes through the event stream parser: whole, byte by byte, and cut where the first byte says, they
 * give the same events and the same failure; no event breaks the bound; an id holds no NUL, a name no line
 * end. */
#include <stdio.h>
#include <stdlib.h>

#include "messages/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 64 };

static void demand(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "fuzz_sse: not so: %s\n", what);
		abort();
	}
}

static void note(lat_buf *out, const lat_sse_event *e)
{
	demand(e->data.s && e->data.len <= MAX_BYTES && e->name.len > 0,
	       "an event has a name, and data within the bound");
	demand(!memchr(e->name.s, '\n', e->name.len) && !memchr(e->name.s, '\r', e->name.len),
	       "a name is one line");
	demand(e->id.len == 0 || !memchr(e->id.s, '\0', e->id.len), "an id holds no NUL");
	lat_buf_printf(out, "%zu %zu %zu:", e->name.len, e->data.len, e->id.len);
	lat_buf_append(out, e->name.s, e->name.len);
	lat_buf_append(out, e->data.s, e->data.len);
	lat_buf_append(out, e->id.s, e->id.len);
}

static lat_status feed(lat_sse *sse, const uint8_t *bytes, size_t n, lat_buf *out)
{
	char *piece = malloc(n ? n : 1); /* of its own, so that a view that outlives it is seen */
	if (!piece)
		return LAT_E_NOMEM;
	memcpy(piece, bytes, n);
	lat_span left = lat_span_of(piece, n);
	lat_status status = LAT_OK;
	for (bool found = true; status == LAT_OK && found;) {
		lat_sse_event event;
		status = lat_sse_next(sse, &left, &event, &found, NULL);
		if (status == LAT_OK && found)
			note(out, &event);
	}
	demand(status != LAT_OK || left.len == 0, "the piece is used up");
	free(piece);
	return status;
}

/* step 0: all at once */
static lat_status run(const uint8_t *data, size_t size, size_t step, lat_buf *out)
{
	lat_sse sse;
	lat_sse_init(&sse, MAX_BYTES);
	lat_status status = LAT_OK;
	for (size_t from = 0; from < size && status == LAT_OK;) {
		size_t len = step && step < size - from ? step : size - from;
		status = feed(&sse, data + from, len, out);
		from += len;
	}
	lat_buf_printf(out, "retry %lld", (long long)sse.retry_ms);
	lat_sse_free(&sse);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	lat_buf whole = LAT_BUF_INIT;
	if (size == 0)
		return 0;
	size_t steps[] = {1, (size_t)data[0] % 16 + 2};
	lat_status status = run(data + 1, size - 1, 0, &whole);
	demand(status == LAT_OK || status == LAT_E_LIMIT, "only the bound is a reason to fail");
	for (int i = 0; i < 2; i++) {
		lat_buf cut = LAT_BUF_INIT;
		demand(run(data + 1, size - 1, steps[i], &cut) == status, "cutting doesn't change the outcome");
		demand(cut.len == whole.len && memcmp(cut.data, whole.data, cut.len) == 0, "nor the events");
		lat_buf_free(&cut);
	}
	lat_buf_free(&whole);
	return 0;
}
