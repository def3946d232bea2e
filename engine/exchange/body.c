/* The parts of a model request's body; see body.h. Loop thread only, because of the history's. */
#include "exchange/body.h"

#include <string.h>

/* Anthropic Messages API, "Prompt caching": marks the end of what may be cached. */
static const char CACHE_MARK[] = ",\"cache_control\":{\"type\":\"ephemeral\"}";

lat_status lat_body_make(lat_body *body, lat_span prefix, lat_history *history, lat_span messages,
                         lat_span suffix, bool cache_mark, lat_error *err)
{
	*body = (lat_body){.parts = {prefix, messages, {"", 0}, {"", 0}, {"", 0}, suffix}};
	if (history && lat_history_len(history) > 0) {
		size_t len = lat_history_len(history), mark;
		body->held = lat_history_hold(history);
		if (!body->held)
			return lat_fail_nomem(err);
		body->parts[1] = lat_span_of(NULL, len);
		body->parts[4] = lat_span_str(LAT_HISTORY_CLOSE);
		if (cache_mark && lat_history_cache_mark(history, &mark)) {
			body->parts[1].len = mark;
			body->parts[2] = lat_span_of(CACHE_MARK, sizeof CACHE_MARK - 1);
			body->parts[3] = lat_span_of(NULL, len - mark);
		}
	}
	for (int i = 0; i < LAT_BODY_PARTS; i++)
		body->size += body->parts[i].len;
	return LAT_OK;
}

void lat_body_free(lat_body *body)
{
	lat_history_release(body->held);
	body->held = NULL;
}

static void read_parts(void *self, size_t offset, char *dst, size_t n)
{
	const lat_body *body = self;
	size_t in_history = 0;
	for (int i = 0; i < LAT_BODY_PARTS && n > 0; i++) {
		const lat_span *part = &body->parts[i];
		size_t skip = offset < part->len ? offset : part->len;
		size_t take = part->len - skip < n ? part->len - skip : n;
		if (take && part->s)
			memcpy(dst, part->s + skip, take);
		else if (take)
			lat_history_read(body->held, in_history + skip, dst, take);
		if (!part->s)
			in_history += part->len;
		dst += take;
		n -= take;
		offset -= skip;
	}
}

lat_http_source lat_body_source(lat_body *body)
{
	return (lat_http_source){body->size, read_parts, body};
}
