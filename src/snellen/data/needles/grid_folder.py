"""A grid of needles into a folder to ask from: `data.json`, and the pages of every variant beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..documents.manifest import Manifest
from ..documents.page_style import PageStyle
from ..documents.publish import publish
from ..documents.render import Accent, page_font
from ..documents.texts import Document
from .haystack import Haystack
from .locate import Located, locate
from .overlays import Overlay
from .plant import Grid, Planted, instance_of, plant


def write_needles(haystack: Haystack, grid: Grid, folder: Path, styles: Mapping[str, PageStyle]) -> dict[str, Any]:
    """Plant the grid and render it once per style into `folder/NAME/images`; positions count on the first style's pages."""
    documents = list(plant(haystack, grid))
    folder.mkdir(parents=True, exist_ok=True)
    manifests: dict[str, Manifest] = {}
    for index, (name, style) in enumerate(styles.items()):
        located = _locate_all(documents, style, first=index == 0)
        source = {"name": haystack.source, "sha256": haystack.sha256}
        manifests[name] = publish(
            (Document(planted.id, planted.text, {}) for planted in documents),
            folder / name,
            style,
            tokenizer=grid.tokenizer,
            source=source,
            marks=partial(_marks, located),
        )
    data = folder / "data.json"
    data.write_bytes(
        msgspec.json.format(msgspec.json.encode([instance_of(planted) for planted in documents]), indent=1)
    )
    return {
        "data": str(data),
        "documents": len(documents),
        "questions": sum(len(planted.needles) for planted in documents),
        "pages": {
            name: sum(len(document.pages) for document in manifest.documents.values())
            for name, manifest in manifests.items()
        },
    }


def _marks(located: Mapping[str, Located], document: str) -> tuple[list[Accent], dict[int, list[Overlay]]]:
    return located[document].accents, located[document].overlays


def _locate_all(documents: Iterable[Planted], style: PageStyle, *, first: bool) -> dict[str, Located]:
    """Find every position; for further styles on a copy, so that data.json keeps those of the first."""
    font = page_font(style)
    found = {}
    for planted in documents:
        subject = planted if first else msgspec.convert(msgspec.to_builtins(planted), Planted)
        found[planted.id] = locate(subject, style, font)
    return found
