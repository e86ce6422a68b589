"""The least that is an Excel workbook, for tests and benchmarks."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>'
)
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def cell(value: Any) -> str:
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f"<c><v>{value}</v></c>"
    text = escape(str(value))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>' if value else "<c/>"


def write_workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    """Write the least that is a workbook."""
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    numbers = dict(enumerate(sheets, 1))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        parts = "".join(
            f'<Override PartName="/xl/worksheets/s{n}.xml" ContentType="{kind}.worksheet+xml"/>' for n in numbers
        )
        book = f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        default = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        archive.writestr(
            "[Content_Types].xml", f'<Types xmlns="{PACKAGE}/content-types">{default}{book}{parts}</Types>'
        )
        rel = f'<Relationship Id="r" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
        archive.writestr("_rels/.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{rel}</Relationships>')
        named = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in numbers.items())
        main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        archive.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{main}" xmlns:r="{OFFICE}"><sheets>{named}</sheets></workbook>'
        )
        rels = "".join(
            f'<Relationship Id="r{n}" Type="{OFFICE}/worksheet" Target="worksheets/s{n}.xml"/>' for n in numbers
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{rels}</Relationships>'
        )
        for n, name in numbers.items():
            rows = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in sheets[name])
            archive.writestr(f"xl/worksheets/s{n}.xml", SHEET.format(rows))
    return path
