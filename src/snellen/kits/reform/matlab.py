"""MATLAB level-5 files to plain lists: the numbers, texts, cells and structs that dataset labels are made of."""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path
from typing import Any

from ...core.errors import DataError

HEADER_BYTES = 128
UNPACKED_LIMIT = 32 * 2**20
"""Labels are smaller; a list of numbers takes up to eight times the bytes it is stored in."""
DEPTH_LIMIT = 32
MATRIX, COMPRESSED = 14, 15
CELL, STRUCT, CHAR = 1, 2, 4
NUMBER_FORMATS = {1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "f", 9: "d", 12: "q", 13: "Q"}
TEXT_ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16-le", 16: "utf-8", 17: "utf-16-le"}

Element = tuple[int, bytes, int]
"""Type, payload, place behind it."""


def read_matrices(path: Path) -> dict[str, Any]:
    """Return variable name -> value: numbers as a flat list in column order, text as str, structs as lists of dicts."""
    if path.stat().st_size > UNPACKED_LIMIT:
        raise DataError(f"{path} is larger than {UNPACKED_LIMIT // 2**20} MB: save the labels without the pictures")
    data = path.read_bytes()
    if len(data) < HEADER_BYTES or data[126:128] != b"IM":
        raise DataError(f"{path} is not a little-endian MATLAB level-5 file (save it with -v6 or -v7)")
    try:
        return dict(_matrix(payload) for kind, payload in _elements(data, HEADER_BYTES) if kind == MATRIX)
    except (struct.error, zlib.error, LookupError, ValueError, TypeError, RecursionError, OverflowError) as error:
        content = "something else than numbers, text, cells and structs"
        raise DataError(f"{path} is cut off or holds {content}: {error}") from None


def _elements(data: bytes, at: int) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    left = UNPACKED_LIMIT
    while at + 8 <= len(data):
        kind, payload, at = _element(data, at)
        if kind != COMPRESSED:
            found.append((kind, payload))
            continue
        plain = _unpack(payload, left)
        left -= len(plain)
        found += _plain_elements(plain)
    return found


def _plain_elements(data: bytes) -> list[tuple[int, bytes]]:
    found, at = list[tuple[int, bytes]](), 0
    while at + 8 <= len(data):
        kind, payload, at = _element(data, at)
        if kind == COMPRESSED:
            raise ValueError("a packed element holds another packed one")
        found.append((kind, payload))
    return found


def _unpack(payload: bytes, left: int) -> bytes:
    reader = zlib.decompressobj()
    plain = reader.decompress(payload, left + 1)
    if len(plain) > left:
        raise ValueError(f"it unpacks to more than {UNPACKED_LIMIT // 2**20} MB")
    if not reader.eof:
        raise zlib.error("a packed element is cut off")
    return plain


def _element(data: bytes, at: int) -> Element:
    kind, size = struct.unpack_from("<II", data, at)
    if kind >> 16:  # the small form keeps type, size and up to four bytes in one word
        return kind & 0xFFFF, data[at + 4 : at + 4 + (kind >> 16)], at + 8
    end = at + 8 + size
    if end > len(data):
        raise struct.error("an element is longer than the file")
    return kind, data[at + 8 : end], end if kind == COMPRESSED else end + (-size) % 8


def _matrix(payload: bytes, depth: int = 0) -> tuple[str, Any]:
    if depth > DEPTH_LIMIT:
        raise ValueError(f"cells in cells, {DEPTH_LIMIT} deep")
    parts = _elements(payload, 0)
    flags = struct.unpack_from("<I", parts[0][1])[0] & 0xFF
    cells = math.prod(struct.unpack(f"<{len(parts[1][1]) // 4}i", parts[1][1]))
    name, rest = parts[2][1].decode("latin-1"), parts[3:]
    if flags == CELL:
        return name, [_matrix(body, depth + 1)[1] for _, body in rest]
    if flags == STRUCT:
        return name, _struct(rest, cells, depth + 1)
    if flags == CHAR:
        return name, rest[0][1].decode(TEXT_ENCODINGS[rest[0][0]]) if rest else ""
    return name, _numbers(*rest[0])


def _struct(parts: list[tuple[int, bytes]], cells: int, depth: int) -> list[dict[str, Any]]:
    width = struct.unpack("<i", parts[0][1])[0]
    if width < 1:
        raise ValueError(f"field names of {width} bytes")
    names = [parts[1][1][at : at + width].split(b"\0")[0].decode() for at in range(0, len(parts[1][1]), width)]
    if cells < 0 or cells * len(names) != len(parts) - 2 or (cells and not names):
        raise ValueError(f"a struct of {cells} × {len(names)} values holds {len(parts) - 2}")
    values = [_matrix(body, depth)[1] for _, body in parts[2:]]
    return [dict(zip(names, values[at * len(names) : (at + 1) * len(names)], strict=True)) for at in range(cells)]


def _numbers(kind: int, payload: bytes) -> list[float]:
    code = NUMBER_FORMATS[kind]
    return list(struct.unpack(f"<{len(payload) // struct.calcsize(code)}{code}", payload))
