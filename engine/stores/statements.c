/* lat_statements, lat_rows: see statements.h. Plain data; whoever owns the struct may use it, on any one thread. */
#include "stores/statements.h"

#include <string.h>

/* ---- statements ---- */

static bool copy_scalar(lat_arena *arena, const lat_value *from, lat_value *to)
{
	*to = *from;
	if (from->type == LAT_STRING)
		to->u.s = lat_arena_copy(arena, from->u.s, from->len);
	return from->type != LAT_STRING || to->u.s != NULL;
}

static lat_status copy_one(lat_arena *arena, const lat_value *from, lat_value *to, size_t number,
                           lat_error *err)
{
	if (from->type != LAT_ARRAY || from->len == 0 || from->u.items[0].type != LAT_STRING)
		return lat_fail(err, LAT_E_INVALID, "statement %zu: expected {sql, parameter…}", number);
	if (from->len - 1 > LAT_STATEMENT_PARAMETERS_MAX)
		return lat_fail(err, LAT_E_INVALID, "statement %zu: expected at most %d parameters, got %u", number,
		                LAT_STATEMENT_PARAMETERS_MAX, from->len - 1);
	*to = *from;
	to->u.items = lat_arena_alloc(arena, from->len * sizeof *to->u.items);
	if (!to->u.items)
		return lat_fail_nomem(err);
	for (uint32_t i = 0; i < from->len; i++) {
		if (from->u.items[i].type == LAT_ARRAY || from->u.items[i].type == LAT_OBJECT)
			return lat_fail(err, LAT_E_INVALID, "statement %zu: parameter %u: expected a plain value", number,
			                i);
		if (!copy_scalar(arena, &from->u.items[i], &to->u.items[i]))
			return lat_fail_nomem(err);
	}
	return LAT_OK;
}

lat_status lat_statements_copy(lat_statements *s, const lat_value *from, lat_error *err)
{
	if (from->type != LAT_ARRAY || from->len == 0 || from->len > LAT_STATEMENTS_MAX)
		return lat_fail(err, LAT_E_INVALID, "expected a list of 1 to %d statements", LAT_STATEMENTS_MAX);
	s->list = lat_arena_alloc(&s->arena, from->len * sizeof *s->list);
	if (!s->list)
		return lat_fail_nomem(err);
	for (uint32_t i = 0; i < from->len; i++) {
		lat_status status = copy_one(&s->arena, &from->u.items[i], &s->list[i], (size_t)i + 1, err);
		if (status != LAT_OK)
			return status;
	}
	s->n = from->len;
	return LAT_OK;
}

void lat_statements_free(lat_statements *s)
{
	lat_arena_free(&s->arena);
	*s = (lat_statements){.n = 0};
}

/* ---- results ---- */

lat_status lat_rows_begin(lat_rows *r, uint32_t statements, lat_error *err)
{
	lat_arena_reset(&r->arena);
	lat_buf_clear(&r->rows);
	r->n = 0;
	r->cap = statements;
	r->results = lat_arena_alloc(&r->arena, statements * sizeof *r->results);
	return r->results ? LAT_OK : lat_fail_nomem(err);
}

lat_value *lat_rows_add(lat_rows *r, uint32_t columns)
{
	lat_value row = {.type = LAT_ARRAY, .len = columns};
	row.u.items = lat_arena_alloc(&r->arena, (columns ? columns : 1) * sizeof *row.u.items);
	if (!row.u.items)
		return NULL;
	for (uint32_t i = 0; i < columns; i++)
		row.u.items[i] = lat_value_null();
	lat_buf_append(&r->rows, &row, sizeof row);
	return lat_buf_ok(&r->rows) ? row.u.items : NULL;
}

bool lat_rows_text(lat_rows *r, lat_value *column, const char *text, size_t len)
{
	const char *copy = lat_arena_copy(&r->arena, text, len);
	if (copy)
		*column = lat_value_string_view(copy, len);
	return copy != NULL;
}

bool lat_rows_end(lat_rows *r)
{
	size_t bytes = r->rows.len;
	lat_value *result = &r->results[r->n];
	*result = (lat_value){.type = LAT_ARRAY, .len = (uint32_t)(bytes / sizeof(lat_value))};
	if (r->n >= r->cap || (bytes && !(result->u.items = lat_arena_alloc(&r->arena, bytes))))
		return false;
	if (bytes)
		memcpy(result->u.items, r->rows.data, bytes);
	lat_buf_clear(&r->rows);
	r->n++;
	return true;
}

lat_value lat_rows_value(const lat_rows *r)
{
	return (lat_value){.type = LAT_ARRAY, .len = r->n, .u.items = r->results};
}

void lat_rows_free(lat_rows *r)
{
	lat_arena_free(&r->arena);
	lat_buf_free(&r->rows);
	*r = (lat_rows){.n = 0};
}
