/* Translation of an ECMA-262 regular expression (u flag) to PCRE2's syntax. Pure; any thread. */
#ifndef LAT_SCHEMA_ECMA_H
#define LAT_SCHEMA_ECMA_H

#include "base/buf.h"
#include "base/error.h"

/* Appends the translation to *out. LAT_E_SYNTAX with the offset when source isn't ECMA-262. */
lat_status lat_ecma_translate(const char *source, size_t len, lat_buf *out, lat_error *err);

#endif
