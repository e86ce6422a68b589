"""CSV and TSV to rows: what has no quotes is cut at its marks, which is much faster; the rest is read by `csv`."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from ...core.errors import DataError

CSV_FIELD_LIMIT = 64 * 2**20
"""A cell may hold a base64 image; Python's default limit of 128 kB would refuse it."""


def read_delimited(file: Path, delimiter: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, row) of a file with a header; every record must have as many cells as that."""
    csv.field_size_limit(CSV_FIELD_LIMIT)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            delimiter = _delimiter(lines.readline(), delimiter)
            lines.seek(0)
            yield from _rows(_records(lines, delimiter), file.name)
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{file.name} cannot be read: {error}") from None


def _rows(records: Iterator[list[str]], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    header = next(records, [])
    check_header(header, name)
    for number, cells in enumerate(records, 1):
        if len(cells) != len(header):
            much = "more" if len(cells) > len(header) else "fewer"
            raise DataError(f"{name} record {number} has {much} cells than the header")
        yield number, dict(zip(header, cells, strict=True))


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
    if usual in header or usual != ",":
        return usual
    return next((mark for mark in (";", "\t") if mark in header), usual)
