"""Coarse annotations (the Sherlock format, or rows with a mapping) to Sources; the unusable are set aside by reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from ...core.errors import DataError, did_you_mean
from ...core.ids import content_hash
from ...core.types import Image
from ...data.files.rows import Row, read_rows
from ...data.images.decode import read_bytes, read_header
from ...data.loaders.cure import CureSource, PictureFinder, clamp
from ...data.loaders.cure_file import CureBox, CureImage
from .records import SetAside, Source

FIELDS = ("id", "image", "box", "clue", "inference")
SHERLOCK = {
    "id": "instance_id",
    "image": "inputs.image.url",
    "box": "inputs.bboxes",
    "clue": "inputs.clue",
    "inference": "targets.inference",
}
STAGE = "source"


def read_sources(
    path: Path, image_root: Path | None = None, columns: Mapping[str, str] | None = None
) -> Iterator[Source | SetAside]:
    """Yield one record a row: a Source, or why the row cannot be used. A mistyped column is an error at once."""
    find = PictureFinder(CureSource("cure", str(path), str(image_root) if image_root else None), None)
    seen: set[str] = set()
    for number, row in read_rows(path):
        usual = SHERLOCK if "inputs" in row and "targets" in row else {name: name for name in FIELDS}
        mapping = usual | dict(columns or {})
        where = f"{path.name} record {number}"
        for field, column in (columns or {}).items():
            _check_column(field, column, row, where)
        record = _to_source(row, mapping, find, where)
        if record.id in seen:
            record = SetAside(f"{record.id}#{number}", STAGE, f"the id {record.id!r} occurs twice", row)
        seen.add(record.id)
        yield record


def _check_column(field: str, column: str, row: Row, where: str) -> None:
    if field not in FIELDS:
        fields = f"{did_you_mean(field, FIELDS)}; fields: {', '.join(FIELDS)}"
        raise DataError(f"--map {field}={column}: no such field{fields}")
    if column.partition(".")[0] not in row:
        raise DataError(f"{where} has no column {column!r}{did_you_mean(column, row)}; it has: {', '.join(row)}")


def _to_source(row: Row, mapping: Mapping[str, str], find: PictureFinder, where: str) -> Source | SetAside:
    values = {field: _dig(row, column) for field, column in mapping.items()}
    if values["box"] is None:
        values["box"] = _dig(row, "bboxes")
    content = [values["image"], values["box"], values["inference"]]
    name = content_hash(content, 12) if values["id"] in (None, "") else str(values["id"])
    try:
        texts = {field: _text(values[field], field) for field in ("image", "clue", "inference")}
        url = texts["image"]
        source = Source(name, find(url), texts["clue"], texts["inference"], _first_box(values["box"]), url=url)
        return _with_picture(source)
    except DataError as error:
        return SetAside(name, STAGE, f"{where}: {error}", row)


def _with_picture(source: Source) -> Source:
    """Open the picture's header: a dead link is found now, not after an LLM was paid."""
    header = read_header(read_bytes(Image(source.image)), source.image)
    box = source.box
    if box is not None:
        left, top, right, bottom = clamp(CureBox(*box), CureImage(source.url, header.width, header.height))
        box = (left, top, right - left, bottom - top)
    return structs.replace(source, width=header.width, height=header.height, box=box)


def _dig(row: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        row = row.get(part) if isinstance(row, dict) else None
    return row.get("url") if isinstance(row, dict) and "url" in row else row


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{field} is missing or empty")
    return " ".join(value.split())


def _first_box(value: Any) -> tuple[float, float, float, float] | None:
    """Read a box as [left, top, width, height] or an object with these names, alone or first in a list."""
    if value in (None, []):
        return None
    if isinstance(value, list) and isinstance(value[0], dict | list):
        value = value[0]
    numbers = [value.get(name) for name in ("left", "top", "width", "height")] if isinstance(value, dict) else value
    if (
        not isinstance(numbers, list)
        or len(numbers) != 4
        or not all(isinstance(number, int | float) for number in numbers)
    ):
        raise DataError(f"box {value!r} is not left, top, width, height")
    left, top, width, height = map(float, numbers)
    return left, top, width, height
