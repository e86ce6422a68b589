"""Cells to pictures: file names, URLs, bytes, base64 with or without its prefix; and which cells look like one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pybase64

from ...core.errors import DataError
from ...core.types import Image
from ..images.embedded import ImageStore
from .row_map import is_picture_struct
from .row_options import parse_literal

PLAIN_PATH = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)*")
"""What is joined to a folder's name as it is; any other path may be absolute, or say a step twice."""
SHORTEST_BASE64 = 65
"""A shorter cell is a name, or the id of another row."""
BASE64_SIGNATURES = ("/9j/", "iVBOR", "R0lG", "UklGR", "Qk", "SUkq", "TU0A", "JVBER")
"""How JPEG, PNG, GIF, WebP, BMP, TIFF and PDF begin in base64."""
BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
SIGNATURES = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF", b"BM", b"II*\0", b"MM\0*", b"%PDF")
PICTURE_NAME = re.compile(r"[^\n]{0,1000}\.(?:png|jpe?g|gif|webp|bmp|tiff?|pdf)", re.IGNORECASE)
PICTURE_COLUMN = re.compile(r"(?:decoded_)?(?:image|img|picture|photo|page)s?(?:_?(?:path|file|url)s?)?_?\d*", re.I)


def picture_values(cell: Any) -> list[Any]:
    """Return the pictures of a cell: its list, the list it writes as text, or itself."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        parsed = parse_literal(cell.strip())
        cell = parsed if isinstance(parsed, list) else cell
    return [one for one in cell if one is not None and one != ""] if isinstance(cell, list) else [cell]


def read_picture(value: Any, root: str, where: str) -> Image:
    """Return the picture of one cell; a name is joined to `root`."""
    if isinstance(value, dict):  # the form in which Parquet files of the hubs carry pictures
        value = value.get("bytes") or value.get("path") or value.get("url")
    if isinstance(value, bytes):
        return Image("data:image/unknown;base64," + pybase64.b64encode(value).decode())
    if not isinstance(value, str) or not value:
        raise DataError(f"{where}: an image must be a file name, not {type(value).__name__}")
    if value.startswith(("data:", "http://", "https://")):
        return Image(value)
    if is_base64(value):
        return Image("data:image/unknown;base64," + value.strip())
    return Image(root + value if PLAIN_PATH.fullmatch(value) else str(Path(root) / value))


def is_base64(text: str) -> bool:
    """Tell whether a text is a whole picture in base64: long, of that alphabet, and beginning as one."""
    if len(text) < SHORTEST_BASE64 or not text.lstrip().startswith(BASE64_SIGNATURES):
        return False
    return BASE64.fullmatch(text) is not None


def looks_like_pictures(column: str, cell: Any, root: str) -> bool:
    """Tell whether a cell that nothing reads holds pictures: by its bytes, by a file that is there, or by its name."""
    if isinstance(cell, str):
        return _text_is_picture(column, cell, root)
    if isinstance(cell, list):
        return any(looks_like_pictures(column, one, root) for one in cell)
    return (
        is_picture_struct(cell) if isinstance(cell, dict) else isinstance(cell, bytes) and cell.startswith(SIGNATURES)
    )


def _text_is_picture(column: str, text: str, root: str) -> bool:
    if len(text) >= SHORTEST_BASE64 and (text.startswith("data:image/") or is_base64(text)):
        return True
    if PICTURE_NAME.fullmatch(text):
        return bool(PICTURE_COLUMN.fullmatch(column)) or _is_file(text, root)
    values = picture_values(text) if text.startswith("[") else []
    return any(looks_like_pictures(column, value, root) for value in values if value != text)


def _is_file(name: str, root: str) -> bool:
    try:
        return (Path(root) / name).is_file()
    except (OSError, ValueError):
        return False


def is_row_name(value: Any) -> bool:
    """Tell whether a cell is short and plain enough to be the id of the row that has the picture."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, str) and 0 < len(value) < SHORTEST_BASE64 and not PICTURE_NAME.fullmatch(value)


class Pictures:
    """Reads the pictures of one file's cells; base64 goes to files, each content once, so samples stay small."""

    def __init__(self, root: str, store: ImageStore) -> None:
        self.root = root
        self._store = store
        self._of_rows: dict[str, tuple[Image, ...]] = {}

    def read(self, values: Iterable[Any], where: str) -> tuple[Image, ...]:
        """Return the pictures of cells."""
        return tuple([self._read(value, where) for value in values])

    def _read(self, value: Any, where: str) -> Image:
        if isinstance(value, str) and is_base64(value):
            return self._store.put_base64("".join(value.split()), where)
        return read_picture(value, self.root, where)

    def remember(self, row: str, images: tuple[Image, ...]) -> None:
        """Keep the pictures of a row, for rows that name it."""
        self._of_rows[row] = images

    def of_row(self, row: str) -> tuple[Image, ...] | None:
        """Return the pictures of a row that was read before, or None."""
        return self._of_rows.get(row)
