/* The floor of the benchmarks: libcurl and cJSON doing only the exchange, with nothing around it.
 *
 *     floor cold|loop|text URL        one prompt, run to its end
 *     floor turns URL N               a conversation of N prompts
 *     floor parse TEXT N              cJSON_Parse and cJSON_Delete of TEXT, N times; prints texts per second
 *
 * It does what a client can't leave out: sends the request with the whole history, splits the reply into SSE
 * events, parses each, gathers text and tool input, appends the assistant message and the tool results to the
 * history. No validation, no retries, no limits, no callbacks. One thread; exits on any failure. */
#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
	char *data;
	size_t len, cap;
} text;

typedef struct {
	text pending;   /* bytes of an event that has not ended yet */
	text piece;     /* text or tool input of the open block */
	cJSON *content; /* blocks of the assistant message so far */
	cJSON *block;   /* the open one; belongs to content */
	char stop_reason[32];
} reply;

static const char PREFIX[] =
	"{\"model\":\"bench-model\",\"max_tokens\":4096,\"stream\":true,"
	"\"tools\":[{\"name\":\"read_line\",\"description\":\"Reads one line of a file\","
	"\"input_schema\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
	"\"line\":{\"type\":\"integer\"}},\"required\":[\"path\",\"line\"]}}],\"messages\":[";

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "floor: %s\n", what);
	exit(1);
}

static void append(text *t, const char *data, size_t n)
{
	if (t->cap - t->len < n + 1) {
		t->cap = (t->len + n + 1) * 2;
		t->data = realloc(t->data, t->cap);
		if (!t->data)
			fail("not enough memory");
	}
	memcpy(t->data + t->len, data, n);
	t->len += n;
	t->data[t->len] = '\0';
}

static const char *string_of(const cJSON *object, const char *key)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
	return s ? s : "";
}

/* ---- one event ---- */

static void close_block(reply *r)
{
	const char *type = string_of(r->block, "type");
	if (strcmp(type, "text") == 0) {
		cJSON_ReplaceItemInObjectCaseSensitive(r->block, "text",
		                                       cJSON_CreateString(r->piece.len ? r->piece.data : ""));
	} else if (r->piece.len) {
		cJSON *input = cJSON_ParseWithLength(r->piece.data, r->piece.len);
		if (!input)
			fail("tool input is not JSON");
		cJSON_ReplaceItemInObjectCaseSensitive(r->block, "input", input);
	}
	r->piece.len = 0;
}

static void take_event(reply *r, cJSON *event)
{
	const char *type = string_of(event, "type");
	if (strcmp(type, "content_block_delta") == 0) {
		const cJSON *delta = cJSON_GetObjectItemCaseSensitive(event, "delta");
		const char *more =
			string_of(delta, strcmp(string_of(delta, "type"), "text_delta") == 0 ? "text" : "partial_json");
		append(&r->piece, more, strlen(more));
	} else if (strcmp(type, "content_block_start") == 0) {
		r->block = cJSON_DetachItemFromObjectCaseSensitive(event, "content_block");
		cJSON_AddItemToArray(r->content, r->block);
	} else if (strcmp(type, "content_block_stop") == 0) {
		close_block(r);
	} else if (strcmp(type, "message_delta") == 0) {
		const char *reason = string_of(cJSON_GetObjectItemCaseSensitive(event, "delta"), "stop_reason");
		snprintf(r->stop_reason, sizeof r->stop_reason, "%s", reason);
	}
}

/* ---- bytes → events ---- */

static void take_event_text(reply *r, const char *event, size_t len)
{
	const char *data = memmem(event, len, "data: ", 6);
	if (!data)
		return;
	data += 6;
	cJSON *parsed = cJSON_ParseWithLength(data, len - (size_t)(data - event));
	if (!parsed)
		fail("an event is not JSON");
	take_event(r, parsed);
	cJSON_Delete(parsed);
}

static size_t on_bytes(char *data, size_t size, size_t n, void *user)
{
	reply *r = user;
	append(&r->pending, data, size * n);
	char *at = r->pending.data, *end;
	size_t left = r->pending.len;
	while ((end = memmem(at, left, "\n\n", 2))) {
		take_event_text(r, at, (size_t)(end - at));
		left -= (size_t)(end + 2 - at);
		at = end + 2;
	}
	memmove(r->pending.data, at, left);
	r->pending.len = left;
	return size * n;
}

/* ---- the exchange ---- */

static void add_message(text *history, cJSON *message)
{
	char *json = cJSON_PrintUnformatted(message);
	if (!json)
		fail("not enough memory");
	if (history->len)
		append(history, ",", 1);
	append(history, json, strlen(json));
	free(json);
	cJSON_Delete(message);
}

static void add_user_text(text *history, const char *words)
{
	cJSON *message = cJSON_CreateObject();
	cJSON_AddStringToObject(message, "role", "user");
	cJSON *block = cJSON_CreateObject();
	cJSON_AddStringToObject(block, "type", "text");
	cJSON_AddStringToObject(block, "text", words);
	cJSON_AddItemToArray(cJSON_AddArrayToObject(message, "content"), block);
	add_message(history, message);
}

/* Adds the assistant's message and, when it called tools, their results. Returns whether the loop goes on. */
static int add_reply(text *history, reply *r)
{
	cJSON *results = cJSON_CreateArray(), *block;
	cJSON_ArrayForEach(block, r->content)
	{
		if (strcmp(string_of(block, "type"), "tool_use") != 0)
			continue;
		cJSON *result = cJSON_CreateObject();
		cJSON_AddStringToObject(result, "type", "tool_result");
		cJSON_AddStringToObject(result, "tool_use_id", string_of(block, "id"));
		cJSON_AddStringToObject(result, "content", "int main(void)");
		cJSON_AddItemToArray(results, result);
	}
	cJSON *message = cJSON_CreateObject();
	cJSON_AddStringToObject(message, "role", "assistant");
	cJSON_AddItemToObject(message, "content", r->content);
	add_message(history, message);
	if (cJSON_GetArraySize(results) == 0) {
		cJSON_Delete(results);
		return 0;
	}
	message = cJSON_CreateObject();
	cJSON_AddStringToObject(message, "role", "user");
	cJSON_AddItemToObject(message, "content", results);
	add_message(history, message);
	return 1;
}

static int exchange(CURL *curl, text *history)
{
	reply r = {.content = cJSON_CreateArray()};
	text body = {0};
	append(&body, PREFIX, sizeof PREFIX - 1);
	append(&body, history->data, history->len);
	append(&body, "]}", 2);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &r);
	long status = 0;
	if (curl_easy_perform(curl) != CURLE_OK)
		fail("the request failed");
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200 || !r.stop_reason[0])
		fail("the reply is not whole");
	int goes_on = add_reply(history, &r);
	free(body.data);
	free(r.pending.data);
	free(r.piece.data);
	return goes_on;
}

static int converse(const char *base_url, int prompts)
{
	char url[512];
	snprintf(url, sizeof url, "%s/v1/messages", base_url);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	CURL *curl = curl_easy_init();
	struct curl_slist *headers = curl_slist_append(NULL, "content-type: application/json");
	headers = curl_slist_append(headers, "anthropic-version: 2023-06-01");
	headers = curl_slist_append(headers, "x-api-key: bench");
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
	text history = {0};
	for (int i = 0; i < prompts; i++) {
		add_user_text(&history, "Read the file line by line.");
		while (exchange(curl, &history))
			;
	}
	free(history.data);
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	curl_global_cleanup();
	return 0;
}

static int parse(const char *json, long times)
{
	struct timespec from, to;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (long i = 0; i < times; i++) {
		cJSON *value = cJSON_Parse(json);
		if (!value)
			fail("the text is not JSON");
		cJSON_Delete(value);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	double taken = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	printf("%.0f\n", (double)times / taken);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "parse") == 0)
		return parse(argv[2], atol(argv[3]));
	if (argc == 4 && strcmp(argv[1], "turns") == 0)
		return converse(argv[2], atoi(argv[3]));
	if (argc == 3)
		return converse(argv[2], 1);
	fputs("usage: floor cold|loop|text URL, floor turns URL N, floor parse TEXT N\n", stderr);
	return 2;
}
