"""CSV and TSV to rows, in UTF-8 or UTF-16: what has no quotes is cut at its marks, which is faster than `csv`."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from ...core.errors import DataError

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


CSV_FIELD_LIMIT = 64 * 2**20
"""A cell may hold a base64 image; Python's default limit of 128 kB would refuse it."""
EXCEL_MARK = re.compile(r"sep=(.)", re.IGNORECASE)
"""A first line by which Excel is told what stands between cells."""


def read_delimited(file: Path, delimiter: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, row) of a file with a header; every record must have as many cells as that."""
    csv.field_size_limit(CSV_FIELD_LIMIT)
    try:
        with file.open(encoding=text_encoding(file), newline="") as lines:
            first = lines.readline()
            told = EXCEL_MARK.fullmatch(first.rstrip("\r\n"))
            delimiter = told[1] if told else _delimiter(first, delimiter)
            if not told:
                lines.seek(0)
            yield from _rows(_records(lines, delimiter), file.name)
    except UnicodeDecodeError as error:
        raise DataError(f"{file.name} cannot be read: it {not_utf8(error)}") from None
    except csv.Error as error:
        raise DataError(f"{file.name} cannot be read: {error}; is a quote never closed?") from None


def _rows(records: Iterator[list[str]], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    header = next(records, [])
    check_header([column for column in header if column.strip()], name)
    nameless = [place for place, column in enumerate(header) if place and not column.strip()]
    for number, cells in enumerate(records, 1):
        if len(cells) != len(header):
            much = "more" if len(cells) > len(header) else "fewer"
            fix = "put cells that hold the mark between cells, or a line break, into quotes"
            count = f"{len(cells)} for {len(header)} columns"
            raise DataError(f"{name} record {number} has {much} cells than the header ({count}); {fix}")
        row = dict(zip(header, cells, strict=True))
        yield number, _named(row, cells, nameless, f"{name} record {number}") if nameless else row


def _named(row: dict[str, Any], cells: list[str], nameless: list[int], where: str) -> dict[str, Any]:
    """Return a row without its columns that have no name; one of them that holds something is refused."""
    lost = next((cells[place] for place in nameless if cells[place].strip()), None)
    if lost is not None:
        raise DataError(f"{where}: the column of {lost[:60]!r} has no name; give it one in the first row")
    return {column: cell for column, cell in row.items() if column.strip()}


def _records(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the cells of each record; empty lines are none."""
    rest = iter(lines)
    for line in rest:
        if '"' in line or len(line) > CSV_FIELD_LIMIT:
            # A quoted cell may go on over further lines: the reader takes as many of them as it needs.
            yield next(csv.reader(chain((line,), rest), delimiter=delimiter, strict=True))
            continue
        text = line.rstrip("\n").rstrip("\r")
        if text:
            yield text.split(delimiter)


def check_header(header: list[str], name: str) -> None:
    """Refuse two columns of one name: one of them would be lost."""
    twice = next((column for column, count in Counter(header).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"{name} has two columns {twice!r}: only one of them would be read; rename one")


def _delimiter(header: str, usual: str) -> str:
    """Return what divides the cells of a header: the usual mark, or the semicolon or tab of other countries' sheets."""
    return next((mark for mark in (usual, ";", "\t", ",") if mark in header), usual)
