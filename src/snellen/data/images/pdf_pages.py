"""Pages of a PDF to pictures: each drawn once and kept, named by what the PDF holds (extra `pdf`)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ...core.errors import DataError, MissingExtra
from ...core.types import Image
from .decode import encode_png
from .embedded import write_picture
from .frames import PictureError, check_pixels

MOST_PAGES = 100
"""A PDF with more pages is no picture unless somebody says which pages are meant."""
PAGE_RANGE = re.compile(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?")


class PdfPages:
    """Draws pages into a folder."""

    def __init__(self, folder: Path, dpi: int) -> None:
        self._folder = folder
        self._dpi = dpi
        self._digests: dict[tuple[str, int, int], str] = {}

    def pages_of(self, pdf: str | bytes, wanted: Any, where: str) -> tuple[Image, ...] | None:
        """Return pictures of the wanted pages (all of them for None) of a file, or of a whole PDF as bytes.

        None for a file that is not there or is damaged: like any such picture it costs its own rows, not the table.
        """
        try:
            import pypdfium2
        except ImportError:
            raise MissingExtra("pdf", f"{where}: showing the pages of a PDF") from None
        name = pdf if isinstance(pdf, str) else "a PDF in a cell"
        try:
            digest = hashlib.sha256(pdf).hexdigest() if isinstance(pdf, bytes) else self._digest(pdf)
            with closing(pypdfium2.PdfDocument(pdf)) as document:
                numbers = page_numbers(wanted, len(document), f"{where}: {name}")
                return tuple([self._draw(document, number, digest, f"{where}: {name}") for number in numbers])
        except (pypdfium2.PdfiumError, OSError, ValueError):
            return None

    def _digest(self, path: str) -> str:
        status = Path(path).stat()
        key = path, status.st_mtime_ns, status.st_size
        if key not in self._digests:
            with Path(path).open("rb") as stream:
                self._digests[key] = hashlib.file_digest(stream, "sha256").hexdigest()
        return self._digests[key]

    def _draw(self, document: Any, number: int, digest: str, where: str) -> Image:
        path = self._folder / f"{digest}-{number}-{self._dpi}.png"
        if not path.exists():
            page = document[number - 1]
            scale = self._dpi / 72
            try:
                check_pixels(round(page.get_width() * scale), round(page.get_height() * scale))
            except PictureError as error:
                raise DataError(f"{where}: page {number} {error}; lower -p dataset.pdf_dpi") from None
            write_picture(path, encode_png(page.render(scale=scale, rev_byteorder=True).to_pil().convert("RGB")))
        return Image(str(path), page=number)


def page_numbers(wanted: Any, count: int, where: str) -> Sequence[int]:
    """Return page numbers from 1: of `3`, `"1-3,5"` or a list of these; all pages for None."""
    if wanted is None:
        if count > MOST_PAGES:
            raise DataError(f"{where} has {count} pages: say which are meant in a column `pages` (1-3,5)")
        return range(1, count + 1)
    parts = wanted if isinstance(wanted, list) else str(wanted).strip("[]").split(",")
    ranges = list(map(_page_range, map(str, parts)))
    if None in ranges:
        raise DataError(f"{where}: pages {wanted!r} are not written as 1-3,5 or as a list of numbers")
    numbers = [page for pages in ranges for page in pages or [0]]
    if min(numbers, default=0) < 1 or max(numbers) > count:
        raise DataError(f"{where}: pages {wanted!r} are not among its pages 1 to {count}")
    return numbers


def _page_range(text: str) -> range | None:
    """Return the pages of `3` or `1-3`, none of them for `3-1`; None for what is neither."""
    match = PAGE_RANGE.fullmatch(text)
    return range(int(match[1]), int(match[2] or match[1]) + 1) if match else None
