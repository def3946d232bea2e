/* lat_sniff: see sniff.h. Formats: PNG (W3C PNG 5.2, 11.2.2), GIF89a 18, JPEG (ITU T.81 B.2.2), WebP (RFC 9649
 * section 2), PDF (ISO 32000-1, 7.5.2). */
#include "workspace/sniff.h"

#include <string.h>

typedef struct {
	size_t at;
	const char *magic;
	size_t len;
	const char *what;
} signature;

/* clang-format off */
#define SIGNATURE(at, magic, what) {(at), (magic), sizeof(magic) - 1, (what)}

static const signature BINARIES[] = {
	SIGNATURE(0,
              "\x7f"
              "ELF",
              "an ELF program or library"),
	SIGNATURE(0, "PK\x03\x04", "a ZIP archive (or a document, package or book that is one)"),
	SIGNATURE(0, "PK\x05\x06", "an empty ZIP archive"),
	SIGNATURE(0, "\x1f\x8b", "gzip-compressed data"),
	SIGNATURE(0,
              "\xfd"
              "7zXZ",
              "xz-compressed data"),
	SIGNATURE(0, "\x28\xb5\x2f\xfd", "Zstandard-compressed data"),
	SIGNATURE(0, "BZh", "bzip2-compressed data"),
	SIGNATURE(0, "7z\xbc\xaf\x27\x1c", "a 7z archive"),
	SIGNATURE(257, "ustar", "a tar archive"),
	SIGNATURE(0, "SQLite format 3", "an SQLite database"),
	SIGNATURE(0, "MZ", "a Windows program or library"),
	SIGNATURE(0, "\xca\xfe\xba\xbe", "a Java class file or a Mach-O program"),
	SIGNATURE(0, "\xcf\xfa\xed\xfe", "a Mach-O program or library"),
	SIGNATURE(0, "\0asm", "a WebAssembly module"),
	SIGNATURE(0, "\x1bLua", "compiled Lua"),
	SIGNATURE(0, "!<arch>\n", "a static library or package (ar archive)"),
	SIGNATURE(0, "BM", "a BMP image"),
	SIGNATURE(0, "II*\0", "a TIFF image"),
	SIGNATURE(0, "MM\0*", "a TIFF image"),
	SIGNATURE(0, "\0\0\1\0", "an icon"),
	SIGNATURE(4, "ftyp", "an MP4 or HEIF file"),
	SIGNATURE(8, "WAVE", "a WAV sound"),
	SIGNATURE(8, "AVI ", "an AVI film"),
	SIGNATURE(0, "OggS", "an Ogg sound or film"),
	SIGNATURE(0, "fLaC", "a FLAC sound"),
	SIGNATURE(0, "ID3", "an MP3 sound"),
	SIGNATURE(0, "wOFF", "a WOFF font"),
	SIGNATURE(0, "wOF2", "a WOFF2 font"),
	SIGNATURE(0, "\xff\xfe\0\0", "UTF-32 text: convert it to UTF-8 with iconv first"),
	SIGNATURE(0, "\xff\xfe", "UTF-16 text: convert it to UTF-8 with iconv first"),
	SIGNATURE(0, "\xfe\xff", "UTF-16 text: convert it to UTF-8 with iconv first"),
};
/* clang-format on */

static bool has(const char *bytes, size_t len, size_t at, const char *magic, size_t n)
{
	return len >= at + n && memcmp(bytes + at, magic, n) == 0;
}

static const char *image_type(const char *bytes, size_t len)
{
	if (has(bytes, len, 0, "\x89PNG\r\n\x1a\n", 8))
		return "image/png";
	if (has(bytes, len, 0, "\xff\xd8\xff", 3))
		return "image/jpeg";
	if (has(bytes, len, 0, "GIF87a", 6) || has(bytes, len, 0, "GIF89a", 6))
		return "image/gif";
	if (has(bytes, len, 0, "RIFF", 4) && has(bytes, len, 8, "WEBP", 4))
		return "image/webp";
	return NULL;
}

lat_sniffed lat_sniff(const char *bytes, size_t len)
{
	const char *image = image_type(bytes, len);
	if (image)
		return (lat_sniffed){LAT_SNIFF_IMAGE, image, NULL};
	if (has(bytes, len, 0, "%PDF-", 5))
		return (lat_sniffed){LAT_SNIFF_PDF, "application/pdf", NULL};
	if (!memchr(bytes, '\0', len < LAT_SNIFF_BYTES ? len : LAT_SNIFF_BYTES))
		return (lat_sniffed){LAT_SNIFF_TEXT, NULL, NULL};
	for (size_t i = 0; i < sizeof BINARIES / sizeof BINARIES[0]; i++) {
		const signature *s = &BINARIES[i];
		if (has(bytes, len, s->at, s->magic, s->len))
			return (lat_sniffed){LAT_SNIFF_BINARY, NULL, s->what};
	}
	return (lat_sniffed){LAT_SNIFF_BINARY, NULL, "binary data"};
}

/* ---- sizes ---- */

static uint32_t big(const unsigned char *p, int bytes)
{
	uint32_t n = 0;
	for (int i = 0; i < bytes; i++)
		n = n << 8 | p[i];
	return n;
}

static uint32_t little(const unsigned char *p, int bytes)
{
	uint32_t n = 0;
	for (int i = bytes - 1; i >= 0; i--)
		n = n << 8 | p[i];
	return n;
}

/* Walks the segments to the frame header: any SOF, which C4 (DHT), C8 and CC (DAC) aren't. */
static bool jpeg_size(const unsigned char *p, size_t len, uint32_t *width, uint32_t *height)
{
	for (size_t at = 2; at + 9 <= len;) {
		if (p[at] != 0xff)
			return false;
		unsigned marker = p[at + 1];
		if (marker == 0xff || marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) {
			at += marker == 0xff ? 1 : 2;
			continue;
		}
		if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
			*height = big(p + at + 5, 2);
			*width = big(p + at + 7, 2);
			return true;
		}
		at += 2 + big(p + at + 2, 2);
	}
	return false;
}

static bool webp_size(const unsigned char *p, size_t len, uint32_t *width, uint32_t *height)
{
	if (len < 30)
		return false;
	if (memcmp(p + 12, "VP8X", 4) == 0) {
		*width = little(p + 24, 3) + 1;
		*height = little(p + 27, 3) + 1;
	} else if (memcmp(p + 12, "VP8L", 4) == 0) {
		uint32_t bits = little(p + 21, 4);
		*width = (bits & 0x3fff) + 1;
		*height = (bits >> 14 & 0x3fff) + 1;
	} else if (memcmp(p + 12, "VP8 ", 4) == 0) {
		*width = little(p + 26, 2) & 0x3fff;
		*height = little(p + 28, 2) & 0x3fff;
	} else {
		return false;
	}
	return true;
}

bool lat_sniff_size(const char *media_type, const char *bytes, size_t len, uint32_t *width, uint32_t *height)
{
	const unsigned char *p = (const unsigned char *)bytes;
	if (strcmp(media_type, "image/jpeg") == 0)
		return jpeg_size(p, len, width, height);
	if (strcmp(media_type, "image/webp") == 0)
		return webp_size(p, len, width, height);
	bool png = strcmp(media_type, "image/png") == 0;
	if (len < (png ? 24 : 10))
		return false;
	*width = png ? big(p + 16, 4) : little(p + 6, 2);
	*height = png ? big(p + 20, 4) : little(p + 8, 2);
	return true;
}
