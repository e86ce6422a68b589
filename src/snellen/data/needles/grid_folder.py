"""A grid of needles into a folder to ask from: `data.json`, and the pages of every variant beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..chores import Mapper, do_here
from ..documents.page_style import PageStyle
from ..documents.publish import REFUSE, publish
from ..documents.render import Accent, page_font
from ..documents.texts import Document
from .haystack import Haystack
from .locate import Located, locate
from .overlays import Overlay
from .plant import Grid, Planted, instance_of, plant


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
