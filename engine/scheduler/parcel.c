/* lat_parcel: see parcel.h for the bytes and for ownership. */
#include "scheduler/parcel.h"

#include <stdlib.h>
#include <string.h>

void lat_parcel_clear(lat_parcel *p)
{
	for (size_t i = 0; i < p->n_flags; i++)
		lat_flag_free(p->flags[i]);
	free(p->flags);
	lat_buf_free(&p->bytes);
	*p = (lat_parcel)LAT_PARCEL_INIT;
}

bool lat_parcel_ok(const lat_parcel *p)
{
	return lat_buf_ok(&p->bytes);
}

void lat_parcel_add(lat_parcel *p, lat_parcel_tag tag)
{
	lat_buf_byte(&p->bytes, (char)tag);
}

static void add_eight(lat_parcel *p, lat_parcel_tag tag, const void *eight)
{
	char bytes[9] = {(char)tag};
	memcpy(bytes + 1, eight, 8);
	lat_buf_append(&p->bytes, bytes, sizeof bytes);
}

void lat_parcel_add_integer(lat_parcel *p, int64_t i)
{
	add_eight(p, LAT_P_INTEGER, &i);
}

void lat_parcel_add_float(lat_parcel *p, double d)
{
	add_eight(p, LAT_P_FLOAT, &d);
}

void lat_parcel_add_string(lat_parcel *p, const char *s, size_t len)
{
	uint64_t n = len;
	add_eight(p, LAT_P_STRING, &n);
	lat_buf_append(&p->bytes, s, len);
}

size_t lat_parcel_open_table(lat_parcel *p, bool array_mark)
{
	lat_parcel_add(p, array_mark ? LAT_P_ARRAY : LAT_P_TABLE);
	return ++p->n_tables;
}

void lat_parcel_add_ref(lat_parcel *p, size_t table)
{
	uint64_t n = table;
	add_eight(p, LAT_P_REF, &n);
	p->has_refs = true;
}

void lat_parcel_add_flag(lat_parcel *p, lat_flag *f)
{
	lat_flag **flags = realloc(p->flags, (p->n_flags + 1) * sizeof(lat_flag *));
	if (!flags) {
		p->bytes.failed = true;
		return;
	}
	uint64_t index = p->n_flags;
	lat_flag_hold(f);
	p->flags = flags;
	p->flags[p->n_flags++] = f;
	add_eight(p, LAT_P_FLAG, &index);
}

static bool take(const lat_parcel *p, size_t *at, void *out, size_t n)
{
	if (p->bytes.len - *at < n)
		return false;
	memcpy(out, p->bytes.data + *at, n);
	*at += n;
	return true;
}

lat_parcel_item lat_parcel_next(const lat_parcel *p, size_t *at)
{
	lat_parcel_item item = {.tag = LAT_P_END};
	char tag;
	uint64_t eight;
	if (!take(p, at, &tag, 1))
		return item;
	if (!strchr("IFSRG", tag)) {
		item.tag = (lat_parcel_tag)tag;
		return item;
	}
	if (!take(p, at, &eight, sizeof eight))
		return item;
	switch (tag) {
	case LAT_P_STRING:
		if (p->bytes.len - *at < eight)
			return item;
		item.u.string.s = p->bytes.data + *at;
		item.u.string.len = (size_t)eight;
		*at += (size_t)eight;
		break;
	case LAT_P_FLAG:
		if (eight >= p->n_flags)
			return item;
		item.u.flag = p->flags[eight];
		break;
	default:
		memcpy(&item.u, &eight, sizeof eight);
	}
	item.tag = (lat_parcel_tag)tag;
	return item;
}
