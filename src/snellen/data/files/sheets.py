"""Excel workbooks to rows: the first row of a sheet names the columns (extra `xlsx`)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from ...core.errors import DataError, MissingExtra, UsageError, did_you_mean
from .picture_zip import BAD_ZIP

UNPACKED_LIMIT = 512 * 2**20
"""A workbook is a ZIP of XML; one that unpacks to more is no sheet of questions."""
CHUNK = 2**20


def read_sheet(file: Path, sheet: str = "") -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, row) of the named sheet, or of the only one that has rows; empty rows are none."""
    try:
        import python_calamine
    except ImportError:
        raise MissingExtra("xlsx", f"reading {file.name}") from None
    _check_size(file)
    try:
        workbook = python_calamine.CalamineWorkbook.from_path(str(file))
        rows = _choose_sheet(workbook, sheet, file)
    except (python_calamine.CalamineError, OSError) as error:
        raise DataError(f"{file.name} is not a readable workbook: {error}") from None
    header = [str(cell).strip() for cell in rows[0]]
    while header and not header[-1]:
        header.pop()
    twice = next((name for place, name in enumerate(header) if name in header[:place]), None)
    if twice is not None:
        raise DataError(f"{file.name} has two columns {twice!r}: only one of them would be read; rename one")
    for number, cells in enumerate(rows[1:], 1):
        if any(cell != "" for cell in cells):
            yield number, _row(header, cells, file, number)


def _check_size(file: Path) -> None:
    """Refuse what is no ZIP, or unpacks to more than a table has, before anything else unpacks it."""
    try:
        with zipfile.ZipFile(file) as archive:
            left = UNPACKED_LIMIT
            for member in archive.infolist():
                with archive.open(member) as stream:  # what lies about its size fails its checksum here
                    while data := stream.read(CHUNK):
                        left -= len(data)
                        if left < 0:
                            limit = f"{UNPACKED_LIMIT >> 20} MB"
                            raise DataError(f"{file.name} unpacks to more than {limit}; save it as CSV")
    except BAD_ZIP as error:
        raise DataError(f"{file.name} is not a readable workbook: {error}") from None


def _choose_sheet(workbook: Any, wanted: str, file: Path) -> list[list[Any]]:
    names = list(workbook.sheet_names)
    if wanted and wanted not in names:
        has = ", ".join(names)
        raise UsageError(f"{file.name} has no sheet {wanted!r}{did_you_mean(wanted, names)}; it has: {has}")
    filled = {name: workbook.get_sheet_by_name(name).to_python() for name in ([wanted] if wanted else names)}
    filled = {name: rows for name, rows in filled.items() if rows}
    if len(filled) > 1:
        raise UsageError(f"{file.name} has several sheets ({', '.join(filled)}): choose one with --sheet")
    if not filled:
        raise DataError(f"{file.name} has no rows")
    return next(iter(filled.values()))


def _row(header: list[str], cells: list[Any], file: Path, number: int) -> dict[str, Any]:
    beyond = next((cell for cell in cells[len(header) :] if cell != ""), None)
    if beyond is not None:
        raise DataError(f"{file.name} record {number} has more cells than the header: {beyond!r} is in no column")
    return {name: _plain(cell) for name, cell in zip(header, cells, strict=False) if name or cell != ""}


def _plain(cell: Any) -> Any:
    """Return a cell as JSON would have it; Excel knows no whole numbers, and dates only as dates."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    return str(cell) if isinstance(cell, timedelta) else cell
