"""A grid of needles into a folder to ask from: `data.json`, and the pages of every variant beside it."""

from __future__ import annotations

import bisect
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.ids import rng
from ...data.files.work import Mapper, do_here
from .fonts import TextFont
from .layout import lay_out
from .needle import COLOURS, Needle, PageBox, Statement
from .overlays import Box, Overlay, overlay_size
from .page_style import PageStyle
from .plant import Grid, Haystack, Planted, instance_of, plant
from .publish import REFUSE, publish
from .render import Accent, page_font, span_boxes
from .texts import Document

_TRIES = 200


class Located(Struct):
    """What the renderer adds to a document's plain text."""

    accents: list[Accent]
    overlays: dict[int, list[Overlay]]
    """By page number, from 1."""
    pages: int


def locate(planted: Planted, style: PageStyle, font: TextFont) -> Located:
    """Lay the document out, write every position into its statements, and choose places for visual marks."""
    finder = _Finder(planted, style, font)
    for needle in planted.needles:
        for statement in needle.statements:
            if statement.text:
                finder.find(needle, statement)
    for needle in planted.needles:
        for statement in needle.statements:
            if not statement.text:
                finder.place(needle, statement)
        _fill_question(needle)
    return finder.located


class _Finder:
    def __init__(self, planted: Planted, style: PageStyle, font: TextFont) -> None:
        self._planted = planted
        self._style = style
        self._font = font
        self._pages = list(lay_out(planted.text, style, font))
        self._starts = [page[0].start if page else 0 for page in self._pages]
        self._blocked: dict[int, list[Box]] = {}
        self.located = Located([], {}, len(self._pages))

    def find(self, needle: Needle, statement: Statement) -> None:
        """Note where a planted sentence stands; it may run over a line's or a page's end."""
        start, end = statement.char_start or 0, statement.char_end or 0
        first = max(0, bisect.bisect_right(self._starts, start) - 1)
        for number in range(first, len(self._pages)):
            if self._starts[number] >= end and number > first:
                break
            for line, box in span_boxes(self._pages[number], start, end, self._font):
                self._blocked.setdefault(number + 1, []).append(box)
                statement.boxes.append(PageBox(number + 1, box))
                if statement.page is None:
                    statement.line = self._pages[number].index(line) + 1
                    self._set_place(statement, number + 1, box)
        if statement.kind == "colour":
            at = start + statement.text.index(statement.value)
            self.located.accents.append(Accent(at, at + len(statement.value), COLOURS[needle.fields["colour"]]))

    def place(self, needle: Needle, statement: Statement) -> None:
        """Choose the page and a free place for a mark that is drawn."""
        total = self.located.pages
        page = self._page_without(statement.kind, min(total, int(statement.depth * total) + 1))
        blocked = self._blocked.setdefault(page, [])
        box = self._free_box(statement.kind, blocked, rng(self._planted.seed, self._planted.id, statement.id, "mark"))
        blocked.append(box)
        labels = (needle.fields.get("row", ""), needle.fields.get("column", ""))
        self.located.overlays.setdefault(page, []).append(Overlay(statement.kind, statement.value, box, labels))
        statement.char_depth = statement.token_depth = round((page - 0.5) / total, 4)
        needle.fields["page"] = str(page)
        statement.boxes.append(PageBox(page, box))
        self._set_place(statement, page, box)

    def _set_place(self, statement: Statement, page: int, box: Box) -> None:
        width, height = self._style.page_px
        statement.page, statement.bbox = page, box
        statement.row = round((box[1] + box[3]) / 2 / height, 4)
        statement.column = round((box[0] + box[2]) / 2 / width, 4)

    def _page_without(self, kind: str, wanted: int) -> int:
        """Return the page nearest the wanted one without a mark of this kind: "the stamp on page 3" must be one."""
        taken = {number for number, marks in self.located.overlays.items() if any(mark.kind == kind for mark in marks)}
        free = [number for number in range(1, self.located.pages + 1) if number not in taken]
        return min(free, key=lambda number: (abs(number - wanted), number)) if free else wanted

    def _free_box(self, kind: str, blocked: list[Box], generator: random.Random) -> Box:
        """Find a place that covers no planted sentence; margin marks stand at the bottom edge, sideways ones right."""
        page_width, page_height = self._style.page_px
        width, height = overlay_size(kind, self._font)
        width, height = min(width, page_width), min(height, page_height)
        box = (0, 0, width, height)
        for _ in range(_TRIES):
            x, y = generator.randint(0, page_width - width), generator.randint(0, page_height - height)
            x = page_width - width if kind == "rotated" else x
            y = page_height - height if kind == "margin" else y
            box = (x, y, x + width, y + height)
            if not any(_overlap(box, other) for other in blocked):
                return box
        return box


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _fill_question(needle: Needle) -> None:
    for name, value in needle.fields.items():
        needle.query.question = needle.query.question.replace(f"{{{name}}}", value)


def write_needles(
    haystack: Haystack,
    grid: Grid,
    folder: Path,
    styles: Mapping[str, PageStyle],
    missing_glyphs: str = REFUSE,
    *,
    mapper: Mapper = do_here,
) -> dict[str, Any]:
    """Plant the grid and render it once per style into `folder/NAME/images`; positions are those in the first style."""
    documents = list(plant(haystack, grid))
    folder.mkdir(parents=True, exist_ok=True)
    shared: dict[str, Any] = {"tokenizer": grid.tokenizer, "missing_glyphs": missing_glyphs}
    shared["mapper"] = mapper
    shared["source"] = {"name": haystack.source, "sha256": haystack.sha256}
    pages: dict[str, int] = {}
    places: dict[str, dict[str, dict[str, list[int]]]] = {planted.id: {} for planted in documents}
    for index, (name, style) in enumerate(styles.items()):
        subjects = documents if index == 0 else _copies(documents)
        marks = partial(_marks, _locate_all(subjects, style))
        for planted in subjects:
            places[planted.id][name] = {statement.id: statement.pages for statement in planted.statements}
        texts = (Document(planted.id, planted.text, {}) for planted in documents)
        manifest = publish(texts, folder / name, style, marks=marks, **shared)
        pages[name] = sum(len(document.pages) for document in manifest.documents.values())
    data = folder / "data.json"
    instances = [instance_of(planted) | {"pages_in": places[planted.id]} for planted in documents]
    data.write_bytes(msgspec.json.format(msgspec.json.encode(instances), indent=1))
    questions = sum(len(planted.needles) for planted in documents)
    return {"data": str(data), "documents": len(documents), "questions": questions, "pages": pages}


def _marks(located: Mapping[str, Located], document: str) -> tuple[list[Accent], dict[int, list[Overlay]]]:
    return located[document].accents, located[document].overlays


def _copies(documents: Sequence[Planted]) -> list[Planted]:
    """Return the documents without positions: further styles have their own, and data.json keeps those of the first."""
    copies = msgspec.convert(msgspec.to_builtins(documents), list[Planted])
    for statement in (statement for planted in copies for statement in planted.statements):
        statement.page, statement.boxes = None, []
    return copies


def _locate_all(documents: Iterable[Planted], style: PageStyle) -> dict[str, Located]:
    font = page_font(style)
    return {planted.id: locate(planted, style, font) for planted in documents}
