"""A folder of page images into documents: exact ids, natural page order, gaps and impostors named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...core.errors import DataError

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
_NAME = re.compile(r"(?P<id>.+)_page_(?P<page>\d+)\.(?:png|jpe?g|webp)", re.IGNORECASE)
_MAGIC = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


class PageFile(NamedTuple):
    """One page on disk with what its bytes really are."""

    path: Path
    number: int
    mime: str | None


class PageFolder(NamedTuple):
    """The documents of one variant. `problems` maps a document to why it cannot be asked."""

    root: Path
    documents: dict[str, tuple[PageFile, ...]]
    problems: dict[str, str]


def page_name(document: str, number: int, suffix: str = ".png") -> str:
    """Return `{id}_page_001.png`; numbers above 999 simply grow longer."""
    return f"{document}_page_{number:03d}{suffix}"


def sniff(head: bytes) -> str | None:
    """Return the media type that the first bytes of a file show, or None."""
    for magic, mime in _MAGIC:
        if head.startswith(magic):
            return mime
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def read_pages(folder: Path) -> PageFolder:
    """Read `folder` (or its `images/`); a document with a gap, a doubled page or a non-image is named as a problem."""
    root = folder / "images" if (folder / "images").is_dir() else folder
    if not root.is_dir():
        raise DataError(f"{folder} is not a folder of page images")
    found: dict[str, list[PageFile]] = {}
    for path in sorted(root.iterdir()):
        match = _NAME.fullmatch(path.name)
        if match and path.is_file():
            found.setdefault(match["id"], []).append(PageFile(path, int(match["page"]), _mime(path)))
    documents, problems = {}, {}
    for document, pages in sorted(found.items()):
        pages.sort(key=lambda page: (page.number, page.path.name))
        problem = _problem(pages)
        if problem:
            problems[document] = problem
        else:
            documents[document] = tuple(pages)
    return PageFolder(root, documents, problems)


def find_variants(parent: Path) -> dict[str, Path]:
    """Return every subfolder that holds `images/`, by name; a parent without any is a DataError."""
    if not parent.is_dir():
        raise DataError(f"images folder {parent} does not exist")
    variants = {path.name: path for path in sorted(parent.iterdir()) if (path / "images").is_dir()}
    if not variants:
        raise DataError(f"no subfolder of {parent} holds images/: expected {parent}/VARIANT/images/ID_page_001.png")
    return variants


def _problem(pages: Sequence[PageFile]) -> str:
    numbers = [page.number for page in pages]
    if len(set(numbers)) < len(numbers):
        doubled = min(number for number in numbers if numbers.count(number) > 1)
        return f"page {doubled} exists twice ({', '.join(page.path.name for page in pages if page.number == doubled)})"
    missing = sorted(set(range(min(numbers[0], 1), numbers[-1] + 1)) - set(numbers))
    if missing:
        shown = ", ".join(map(str, missing[:5])) + (" …" if len(missing) > 5 else "")
        return f"page gap: {shown} missing of {numbers[-1]}"
    wrong = [page.path.name for page in pages if page.mime is None]
    return f"{wrong[0]} is not an image whatever its name says" if wrong else ""


def _mime(path: Path) -> str | None:
    with path.open("rb") as stream:
        return sniff(stream.read(16))


def page_size(path: Path) -> tuple[int, int]:
    """Return width and height in pixels from the file's header."""
    from ...data.images.decode import read_header

    header = read_header(path.read_bytes(), path.name)
    return header.width, header.height
