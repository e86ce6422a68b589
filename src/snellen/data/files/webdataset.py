"""WebDataset shards to rows: the members of one name are one row. Nothing is unpacked to disk by its own name."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError
from ..images.frames import MAX_FILE_BYTES

PICTURES = ("png", "jpg", "jpeg", "webp", "gif", "bmp", "tif", "tiff", "pdf")
TEXTS = ("txt", "text", "cls", "caption")
MAX_MEMBERS = 200
"""Members of one row; a shard with more was not written as WebDataset does."""


def read_webdataset(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, row) of a shard: a JSON member's fields are columns, pictures are `image` or `images`.

    Members of a row stand side by side and are named alike up to the first full stop: `007.json`, `007.left.png`.
    """
    number, key, parts = 0, None, dict[str, bytes]()
    for name, data in _members(file):
        before, _, ending = name.rpartition("/")[2].partition(".")
        own = f"{name.rpartition('/')[0]}/{before}" if "/" in name else before
        if own != key and key is not None:
            number += 1
            yield number, _row(key, parts, file)
            parts = {}
        if ending.casefold() in parts or len(parts) >= MAX_MEMBERS:
            raise DataError(f"{file.name}: {name} is there twice, or its row has more than {MAX_MEMBERS} members")
        key = own
        parts[ending.casefold()] = data
    if key is not None:
        yield number + 1, _row(key, parts, file)


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the plain files of an archive, in order, each within the size limit."""
    try:
        with tarfile.open(file, "r|") as archive:
            yield from ((member.name, _content(archive, member, file)) for member in archive if not member.isdir())
    except (tarfile.TarError, OSError, ValueError) as error:
        fix = " (packed with gzip? unpack it)" if _is_gzip(file) else ""
        raise DataError(f"{file.name} is not a readable tar archive: {error}{fix}") from None


def _is_gzip(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, file: Path) -> bytes:
    stream = archive.extractfile(member) if member.isreg() else None
    if stream is None:
        raise DataError(f"{file.name}: {member.name} is no plain file; a shard holds nothing else")
    if member.size > MAX_FILE_BYTES:
        limit = f"the limit is {MAX_FILE_BYTES >> 20} MB"
        raise DataError(f"{file.name}: {member.name} has {member.size >> 20} MB; {limit}")
    data = stream.read()
    if len(data) != member.size:
        raise DataError(f"{file.name} is cut off in {member.name}")
    return data


def _row(key: str, parts: dict[str, bytes], file: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"id": key}
    pictures: list[Any] = []
    for ending, data in sorted(parts.items(), key=lambda part: _by_numbers(part[0])):
        kind = ending.rpartition(".")[2]
        if kind == "json":
            row |= _fields(data, f"{file.name}: {key}.{ending}")
        elif kind in PICTURES:
            pictures.append({"bytes": data, "path": f"{key}.{ending}"})
        elif kind in TEXTS:
            row[ending] = _text(data, f"{file.name}: {key}.{ending}")
        else:
            known = ", ".join(("json", *PICTURES, *TEXTS))
            raise DataError(f"{file.name}: {key}.{ending} is nothing that is read; known endings: {known}")
    if pictures:
        column = "image" if len(pictures) == 1 else "images"
        if row.get(column) is not None and not isinstance(row[column], str | list):
            raise DataError(f"{file.name}: {key} has pictures and a field {column!r} in its JSON; rename the field")
        row[column] = pictures[0] if len(pictures) == 1 else pictures
    return row


def _by_numbers(ending: str) -> list[tuple[int, str]]:
    """Return by what members of a row are put in order: `2.png` comes before `10.png`."""
    return [(int(part) if part.isdecimal() else -1, part) for part in ending.split(".")]


def _fields(data: bytes, where: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{where} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{where} is a {type(value).__name__}, not an object")
    return value


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig").rstrip("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is no text: {error}") from None
