"""Which letters a text file is written in: UTF-8, or UTF-16 where it says so itself; anything else is refused."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SAVE_AS = "save it as UTF-8 (in Excel: CSV UTF-8)"


def text_encoding(file: Path) -> str:
    """Return the encoding a file begins with; without a mark it is UTF-8."""
    with file.open("rb") as stream:
        return "utf-16" if stream.read(2) in UTF_16 else "utf-8-sig"


def not_utf8(error: UnicodeDecodeError) -> str:
    """Say of a file what is wrong with its letters and how to mend it."""
    return f"is not {error.encoding.upper()} (byte {error.start}): {SAVE_AS}"


@contextmanager
def open_lines(file: Path) -> Iterator[Iterable[bytes]]:
    """Open a file as its lines in UTF-8; those of one in UTF-16 are written anew."""
    if text_encoding(file) == "utf-16":
        with file.open(encoding="utf-16", newline="\n") as texts:
            yield (text.encode() for text in texts)
        return
    with file.open("rb") as lines:
        yield lines
