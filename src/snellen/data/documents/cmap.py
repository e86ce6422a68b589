"""A font file's character map into the code points it has: what a face lacks is known, not guessed from its ink."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_UNICODE = ((3, 10), (0, 6), (0, 4), (3, 1), (0, 3), (0, 2), (0, 1), (0, 0))
"""(platform, encoding) of the maps that count in Unicode, the largest first."""


def code_points(data: bytes, index: int = 0) -> frozenset[int] | None:
    """Return what a TrueType or OpenType file (of a collection: the index-th face) has; None if it does not say."""
    try:
        table = _cmap_offset(data, index)
        maps = dict(_maps(data, table)) if table is not None else {}
        found = next((maps[key] for key in _UNICODE if key in maps), None)
        return None if found is None else frozenset(_codes(data, found))
    except (struct.error, IndexError):
        return None


def _cmap_offset(data: bytes, index: int) -> int | None:
    start = 0
    if data[:4] == b"ttcf":
        (start,) = struct.unpack_from(">I", data, 12 + 4 * index)
    (count,) = struct.unpack_from(">H", data, start + 4)
    for entry in range(count):
        tag, _, offset, _ = struct.unpack_from(">4sIII", data, start + 12 + 16 * entry)
        if tag == b"cmap":
            return int(offset)
    return None


def _maps(data: bytes, table: int) -> Iterator[tuple[tuple[int, int], int]]:
    (count,) = struct.unpack_from(">H", data, table + 2)
    for entry in range(count):
        platform, encoding, offset = struct.unpack_from(">HHI", data, table + 4 + 8 * entry)
        if struct.unpack_from(">H", data, table + offset)[0] in (4, 12):
            yield (platform, encoding), table + offset


def _codes(data: bytes, start: int) -> Iterator[int]:
    if struct.unpack_from(">H", data, start)[0] == 4:
        yield from _segments(data, start)
        return
    (groups,) = struct.unpack_from(">I", data, start + 12)
    for group in range(groups):
        first, last, glyph = struct.unpack_from(">III", data, start + 16 + 12 * group)
        yield from range(first + (glyph == 0), last + 1)


def _segments(data: bytes, start: int) -> Iterator[int]:
    """Yield the code points of a map of format 4; those that lead to glyph 0, the box, are not among them."""
    size = struct.unpack_from(">H", data, start + 6)[0]
    ends, firsts = start + 14, start + 16 + size
    for place in range(0, size, 2):
        (last,), (first,) = struct.unpack_from(">H", data, ends + place), struct.unpack_from(">H", data, firsts + place)
        delta, at = struct.unpack_from(">H", data, firsts + size + place)[0], firsts + 2 * size + place
        (shift,) = struct.unpack_from(">H", data, at)
        for code in range(first, min(last, 0xFFFE) + 1):
            glyph = struct.unpack_from(">H", data, at + shift + 2 * (code - first))[0] if shift else code
            if glyph and (glyph + delta) & 0xFFFF:
                yield code
