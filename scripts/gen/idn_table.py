#!/usr/bin/env python3
"""Writes engine/schema/idn_table.c: which code points a label of an internationalised host name may have.

By the rules of RFC 5892 over the Unicode data of the Python that runs it. Needed only to move to a newer
Unicode version; the table is part of the sources.   scripts/gen/idn_table.py > engine/schema/idn_table.c
"""
import unicodedata as data

PVALID = {0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007}  # section 2.6
CONTEXT = {0xB7, 0x375, 0x5F3, 0x5F4, 0x30FB, 0x200C, 0x200D, *range(0x660, 0x66A), *range(0x6F0, 0x6FA)}
DISALLOWED = {0x640, 0x7FA, 0x302E, 0x302F, *range(0x3031, 0x3036), 0x303B}
IGNORABLE = {0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, 0xFEFF, *range(0x180B, 0x1810),
             *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)}
BLOCKS = [(0x20D0, 0x20FF), (0x1D100, 0x1D1FF), (0x1D200, 0x1D24F),  # section 2.4
          (0x1100, 0x11FF), (0xA960, 0xA97F), (0xD7B0, 0xD7FF)]  # old Hangul, section 2.9
CATEGORIES = {"Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"}
BIDI = {"L": 0, "R": 1, "AL": 1, "AN": 2, "EN": 3, "NSM": 4}
OTHER_BIDI = 5


def is_unstable(c):
    return data.normalize("NFKC", data.normalize("NFKC", c).casefold()) != c


def is_allowed(code):
    c = chr(code)
    if code in DISALLOWED or data.category(c) == "Cn":
        return False
    if code in PVALID or code in CONTEXT or c in "-0123456789abcdefghijklmnopqrstuvwxyz":
        return True
    if is_unstable(c) or code in IGNORABLE or any(a <= code <= b for a, b in BLOCKS):
        return False
    return data.category(c) in CATEGORIES


def bits(code):
    c = chr(code)
    mark = data.category(c) in ("Mn", "Mc", "Me")
    return mark << 22 | (data.combining(c) == 9) << 23 | BIDI.get(data.bidirectional(c), OTHER_BIDI) << 24


def ranges():
    found = []
    for code in range(0x110000):
        if 0xD800 <= code <= 0xDFFF or not is_allowed(code):
            continue
        if found and found[-1][1] == code - 1 and found[-1][2] == bits(code):
            found[-1][1] = code
        else:
            found.append([code, code, bits(code)])
    return found


def folded(found):
    """Joins runs of single code points that stand two apart: letters beside their capitals."""
    out = []
    for first, last, flags in found:
        single = first == last and out and out[-1][1] == first - 2 and out[-1][2] & ~(1 << 21) == flags
        if single and (out[-1][2] >> 21 & 1 or out[-1][0] == out[-1][1]):
            out[-1][1] = last
            out[-1][2] |= 1 << 21
        else:
            out.append([first, last, flags])
    return out


def main():
    rows = folded(ranges())
    print("/* Code points of IDNA 2008 labels (RFC 5892), Unicode %s. Written by scripts/gen/idn_table.py.\n"
          " * Constants only. */\n#include \"schema/format_parts.h\"\n\n/* clang-format off */\n"
          "const lat_idn_range lat_idn_ranges[] = {" % data.unidata_version)
    for at in range(0, len(rows), 5):
        print("\t" + " ".join("{0x%X, 0x%X}," % (a, b | f) for a, b, f in rows[at:at + 5]))
    print("};\n/* clang-format on */\n\nconst size_t lat_idn_range_count = sizeof lat_idn_ranges / sizeof *lat_idn_ranges;")


main()
