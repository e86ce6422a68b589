"""Files of benchmark authors whose rows are not rows yet, read by a function that a card names (`reader = "amber"`).

A card is data; what a table cannot say (questions nested by video, answers in a second file) is a function here, tested
beside the others, and never a language in the card.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...core.errors import DataError, not_among
from ...core.message_parts import write_marker
from ..files.rows import NumberedRow, Row, read_rows
from ..images.decode import mask_runs

CAPTION = re.compile(r"(?m)^(?:Option|Sentence|Caption|Description|Statement) \w{1,2}: (.*)$")
"""A caption that TempCompass offers, after its name."""
ReadFile = Callable[[Path, str], Iterator[NumberedRow]]
"""Reads the rows of a file, of a workbook those of one sheet."""
HUB_FILE = re.compile(r"^https?://[^/]+/datasets/[^/]+/[^/]+/resolve/[^/]+/")
"""What a hub's address of a file begins with; the rest is its place in the dataset."""


NUMBERED_PICTURE = re.compile(r"<(image_\d+)>")
IMAGE_COLUMN = re.compile(r"image_\d+")
PICTURE_FILE = re.compile(r"\.(?:jpe?g|png)\Z", re.IGNORECASE)


def read_amber(file: Path, sheet: str) -> Iterator[NumberedRow]:
    """Yield AMBER's questions with what its annotations say of them: `truth` and `type`."""
    if file.suffix != ".json":
        yield from read_rows(file, sheet)
        return
    places = (file.parent / "annotations.json", file.parent.parent / "annotations.json")
    beside = next((place for place in places if place.is_file()), None)
    if beside is None:
        raise DataError(f"{file.name} has questions alone: lay annotations.json of AMBER's `data` folder beside it")
    known = {str(row["id"]): row for _, row in read_rows(beside)}
    for number, row in read_rows(file, sheet):
        told = known.get(str(row.get("id")))
        if told is None:
            raise DataError(f"{file.name} record {number}: {beside.name} says nothing of {row.get('id')!r}")
        yield number, {**told, **row}


def read_cmmmu(file: Path, sheet: str) -> Iterator[NumberedRow]:
    """Yield CMMMU's rows as its hub's table has them: a list of pictures becomes numbered columns."""
    for number, row in read_rows(file, sheet):
        pictures = row.get("img_list")
        if not isinstance(pictures, list):
            yield number, row
            continue
        kept = {name: value for name, value in row.items() if name != "img_list"}
        for place, name in enumerate(pictures, 1):
            kept[f"image_{place}"] = kept[f"image_{place}_filename"] = name
        yield number, kept


def read_mmvu(file: Path, sheet: str) -> Iterator[NumberedRow]:
    """Yield MMVU's rows with the places of their videos below `videos` in place of the hub's addresses."""
    for number, row in read_rows(file, sheet):
        video = row.get("video")
        place = HUB_FILE.sub("", video).removeprefix("videos/") if isinstance(video, str) else video
        yield number, {**row, "video": place}


def read_tempcompass(file: Path, sheet: str) -> Iterator[NumberedRow]:
    """Yield TempCompass's questions, which its authors keep by video and by dimension, as rows of their own."""
    count = 0
    for number, row in read_rows(file, sheet):
        dimensions = {name: asked for name, asked in row.items() if _are_questions(asked)}
        if not dimensions:
            yield number, {**row, **_captions(row)}
            continue
        video = str(row.get("id"))
        for dimension, asked in dimensions.items():
            for place, one in enumerate(asked):
                count += 1
                own = {"id": f"{video}/{dimension}/{place}", "video_id": video, "dim": dimension}
                yield count, {**own, **one, **_captions(one)}


def _captions(row: Row) -> Row:
    """Return the captions between which a row asks as its options, and the right one, without their names."""
    offered, right = (CAPTION.findall(str(row.get(name) or "")) for name in ("question", "answer"))
    return {"options": offered} | ({"answer": right[0]} if right else {}) if len(offered) > 1 else {}


def _are_questions(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and "question" in one for one in value)


def read_mm_vet_v2(file: Path, sheet: str) -> Iterator[NumberedRow]:
    """Yield MM-Vet v2's rows with markers where `<IMG>` stands: before a file's name, or before `<image_0>`."""
    for number, row in read_rows(file, sheet):
        shown: list[Any] = []
        words = ""
        for part in str(row.get("question") or "").split("<IMG>"):
            column = NUMBERED_PICTURE.match(part)
            picture = row.get(column[1]) if column else part.strip() if PICTURE_FILE.search(part.strip()) else None
            shown += [] if picture is None else [picture]
            marker = "" if picture is None else write_marker(len(shown))
            words += marker + (part[column.end() :] if column else "" if picture is not None else part)
        kept = {name: value for name, value in row.items() if not IMAGE_COLUMN.fullmatch(name)}
        pictures = {f"image_{place}": picture for place, picture in enumerate(shown, 1)}
        yield number, {**kept, "question": words, **pictures}


def read_odinw(file: Path, sheet: str) -> Iterator[NumberedRow]:
    """Yield ODinW-13's rows: the classes to look for as the question, boxes with their labels as the answer."""
    for number, row in read_rows(file, sheet):
        boxes = [[label, list(map(float, box))] for label, box in zip(row["labels"], row["bboxes"], strict=True)]
        kept = {name: value for name, value in row.items() if name not in ("labels", "bboxes", "categories")}
        yield number, {**kept, "question": ", ".join(map(str, row["categories"])), "answer": json.dumps(boxes)}


def read_refspatial(file: Path, sheet: str) -> Iterator[NumberedRow]:
    """Yield RefSpatial-Bench's rows with the mask of the right place as runs of its pixels, which scoring can read."""
    for number, row in read_rows(file, sheet):
        mask = row.get("mask")
        if not isinstance(mask, dict) or not mask.get("bytes"):
            raise DataError(f"{file.name} record {number}: no mask; the hub's own tables have one")
        kept = {name: value for name, value in row.items() if name != "mask"}
        yield number, {**kept, "answer": mask_runs(mask["bytes"], f"{file.name} record {number}")}


CORRECTED = {"60.jpg": "mobi", "62.jpg": "aires"}
"""Pictures of TIR-Bench's task `ocr` whose answers its authors' script replaces."""


def read_tir_bench(file: Path, sheet: str) -> Iterator[NumberedRow]:
    """Yield TIR-Bench's rows with the answers that its authors' script puts right."""
    for number, row in read_rows(file, sheet):
        shown = str(row.get("image_1") or "")
        fixed = next((word for name, word in CORRECTED.items() if name in shown), None)
        yield number, {**row, "answer": fixed} if fixed and row.get("task") == "ocr" else row


READERS: dict[str, ReadFile] = {
    "": read_rows,
    "amber": read_amber,
    "cmmmu": read_cmmmu,
    "mm-vet-v2": read_mm_vet_v2,
    "mmvu": read_mmvu,
    "odinw-13": read_odinw,
    "refspatial": read_refspatial,
    "tempcompass": read_tempcompass,
    "tir-bench": read_tir_bench,
}


def named_reader(name: str, where: str) -> ReadFile:
    """Return the reader of a name; the empty one reads rows as they are."""
    if name not in READERS:
        raise DataError(f"{where}: dataset.reader {not_among(name, [one for one in READERS if one], ' is unknown')}")
    return READERS[name]
