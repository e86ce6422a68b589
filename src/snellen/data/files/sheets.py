"""Excel workbooks to rows: the first row of a sheet names the columns (extra `xlsx`)."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from ...core.errors import DataError, MissingExtra, UsageError, did_you_mean
from ...core.text import plural
from .delimited import check_header
from .picture_zip import BAD_ZIP

UNPACKED_LIMIT = 512 * 2**20
"""A workbook is a ZIP of XML; one that unpacks to more is no sheet of questions."""
CHUNK = 2**20
ERROR_CELL = re.compile(rb'<c\b[^>]*\bt="e"[^>]*>(?:(?!</c>).)*?<v>([^<]{0,20})</v>', re.DOTALL)
PERCENT = frozenset({b"9", b"10"})
"""Excel's own formats that show a fraction in percent; others have a % in their code."""
NUMBER_FORMAT = re.compile(rb'\bnumFmtId="(\d+)"')
STYLED_NUMBER = re.compile(
    rb'<c\b(?=[^>]*\bs="(\d+)")(?![^>]*\bt="(?!n"))[^>]*(?<!/)>(?:(?!</c>).)*?<v>([^<]{1,30})</v>', re.DOTALL
)
CELL_NAME = re.compile(rb'\br="([A-Z]{1,3}\d{1,7})"')


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
    header = _header(rows[0], file)
    for number, cells in enumerate(rows[1:], 1):
        if any(cell != "" for cell in cells):
            yield number, _row(header, cells, file, number)


def _header(cells: list[Any], file: Path) -> list[str]:
    header = [str(cell).strip() for cell in cells]
    while header and not header[-1]:
        header.pop()
    check_header([name for name in header if name], file.name)
    return header


def _check_size(file: Path) -> None:
    """Refuse what is no ZIP, or unpacks to more than a table has, before anything else unpacks it."""
    try:
        with zipfile.ZipFile(file) as archive:
            size = 0
            _refuse_drawn(archive.namelist(), file)
            percent: set[bytes] = set()
            for member in archive.infolist():
                size += _unpacked_size(archive, member, UNPACKED_LIMIT - size)
                if size <= UNPACKED_LIMIT and member.filename == "xl/styles.xml":
                    percent = _percent_styles(archive.read(member))
            for member in archive.infolist() if size <= UNPACKED_LIMIT else ():
                if member.filename.startswith("xl/worksheets/"):
                    sheet = archive.read(member)
                    _refuse_errors(sheet, file)
                    _refuse_percent(sheet, percent, file)
    except BAD_ZIP as error:
        raise DataError(f"{file.name} is not a readable workbook: {error}") from None
    if size > UNPACKED_LIMIT:
        raise DataError(f"{file.name} unpacks to more than {UNPACKED_LIMIT >> 20} MB; save it as CSV")


def _refuse_drawn(names: list[str], file: Path) -> None:
    """Refuse pictures that lie on a sheet: they belong to no cell, and the questions would be asked without them."""
    drawn = sum(name.startswith("xl/media/") for name in names)
    if drawn:
        fix = "save them as files and name these in a column, or save the table as CSV if they do not matter"
        raise DataError(f"{file.name} has {plural(drawn, 'picture')} on its sheets and in no cell; {fix}")


def _refuse_errors(sheet: bytes, file: Path) -> None:
    """Refuse a sheet with a cell that could not be reckoned (`#REF!`): it would be read as an empty one."""
    found = ERROR_CELL.search(sheet) if b't="e"' in sheet else None
    if found:
        cell = CELL_NAME.search(found[0])
        where = cell[1].decode() if cell else "a cell"
        said = found[1].decode("utf-8", "replace")
        raise DataError(f"{file.name} cell {where} holds the error {said}; mend it, or write its value")


def _percent_styles(styles: bytes) -> set[bytes]:
    """Return the numbers of the cell styles that show a fraction in percent."""
    codes = re.findall(rb"<numFmt\b[^>]*%[^>]*>", styles)
    shown = PERCENT.union(*(NUMBER_FORMAT.findall(code) for code in codes))
    block = re.search(rb"<cellXfs\b.*?</cellXfs>", styles, re.DOTALL)
    formats = [NUMBER_FORMAT.search(one) for one in re.findall(rb"<xf\b[^>]*>", block[0])] if block else []
    return {b"%d" % number for number, found in enumerate(formats) if found and found[1] in shown}


def _refuse_percent(sheet: bytes, styles: set[bytes], file: Path) -> None:
    """Refuse a number that is shown in percent: it is stored as a fraction, which whoever looks at it does not see."""
    found = next((cell for cell in STYLED_NUMBER.finditer(sheet) if cell[1] in styles), None) if styles else None
    if found:
        cell = CELL_NAME.search(found[0])
        where, stored = cell[1].decode() if cell else "a cell", found[2].decode("utf-8", "replace")
        fix = "save the table as CSV, which has it as shown, or format the cell as a number"
        raise DataError(f"{file.name} cell {where} is shown in percent and holds {stored}; {fix}")


def _unpacked_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> int:
    """Return how much a member really unpacks to, without going on beyond the limit."""
    size = 0
    with archive.open(member) as stream:  # one that lies about its size fails its checksum here
        while size <= limit and (data := stream.read(CHUNK)):
            size += len(data)
    return size


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
        fix = "the first row must name every column; a title above it must go"
        raise DataError(
            f"{file.name} record {number} has more cells than the header: {beyond!r} is in no column; {fix}"
        )
    lost = next((place for place, name in enumerate(header) if place and not name and cells[place] != ""), None)
    if lost is not None:
        fix = "give it one in the first row (of merged cells only the first has a name)"
        raise DataError(f"{file.name} record {number}: the column of {cells[lost]!r} has no name; {fix}")
    return {name: _plain(cell) for name, cell in zip(header, cells, strict=False) if name or cell != ""}


def _plain(cell: Any) -> Any:
    """Return a cell as JSON would have it; Excel knows no whole numbers, and dates only as dates."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    return str(cell) if isinstance(cell, timedelta) else cell
