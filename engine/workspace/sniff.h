/* What a file is, by its first bytes. Pure; any thread. */
#ifndef LAT_WORKSPACE_SNIFF_H
#define LAT_WORKSPACE_SNIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAT_SNIFF_BYTES = 8192 }; /* how many of them it looks at */

typedef enum { LAT_SNIFF_TEXT, LAT_SNIFF_IMAGE, LAT_SNIFF_PDF, LAT_SNIFF_BINARY } lat_sniff_kind;

typedef struct {
	lat_sniff_kind kind;
	const char *media_type; /* of an image or a PDF */
	const char *what;       /* in words, of what is binary: "an ELF program or library" */
} lat_sniffed;

lat_sniffed lat_sniff(const char *bytes, size_t len);

/* Width and height of an image in pixels, from all of its bytes; false: they aren't where they should be. */
bool lat_sniff_size(const char *media_type, const char *bytes, size_t len, uint32_t *width, uint32_t *height);

#endif
