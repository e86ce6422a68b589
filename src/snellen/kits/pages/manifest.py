"""What was drawn, as a record beside it: `manifest.json` with style, hashes, sizes, tokens and compression ratios."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import DataError
from ...core.frames import Size
from ...core.ids import sha256_hex
from ...data.visual_tokens import FAMILIES, visual_tokens

FILE = "manifest.json"


class PageRecord(Struct, frozen=True, omit_defaults=True):
    """One page file."""

    file: str
    sha256: str
    width: int
    height: int
    degradation: dict[str, float] = {}
    """PSNR in dB, SSIM and, where a reader was at hand, its character error rate."""


class DocumentRecord(Struct, frozen=True, omit_defaults=True):
    """One document: its pages and what they cost."""

    pages: tuple[PageRecord, ...]
    characters: int = 0
    text_tokens: int = 0
    missing_glyph_share: float = 0.0
    missing_glyph_count: int = 0
    missing_glyphs: str = ""
    words_given: int = 0
    words_drawn: int = 0
    """How many of them stand apart on the pages: fewer means that some run together."""
    fallback_faces: dict[str, int] = {}
    """Face -> characters drawn with it because the style's own font lacks them."""
    visual_tokens: dict[str, int] = {}
    compression_ratio: dict[str, float] = {}


class Manifest(Struct, frozen=True, omit_defaults=True):
    """One variant: a folder of pages."""

    kind: str
    documents: dict[str, DocumentRecord]
    style: dict[str, Any] = {}
    font_sha256: str = ""
    faces: dict[str, str] = {}
    """Fallback face -> hash of its file."""
    tokenizer: str = ""
    source: dict[str, str] = {}
    perturbation: tuple[str, ...] = ()
    calibration: int | None = None
    """The table of levels of the degradations; none stated: that of releases 0.1 and 0.2."""
    seed: int = 0
    version: int = 1


def page_record(name: str, data: bytes, size: Size, degradation: dict[str, float] | None = None) -> PageRecord:
    """Describe one page file by its bytes and size."""
    return PageRecord(file=name, sha256=sha256_hex(data), width=size[0], height=size[1], degradation=degradation or {})


def document_record(pages: list[PageRecord], text_tokens: int = 0, **more: Any) -> DocumentRecord:
    """Add visual tokens per model family and the ratio text tokens / visual tokens."""
    sizes = [(page.width, page.height) for page in pages]
    visual = {family: visual_tokens(sizes, family) for family in FAMILIES}
    ratio = {family: round(text_tokens / tokens, 4) for family, tokens in visual.items() if tokens and text_tokens}
    tokens: dict[str, Any] = {"text_tokens": text_tokens, "visual_tokens": visual, "compression_ratio": ratio}
    return DocumentRecord(pages=tuple(pages), **tokens, **more)


def total_tokens(manifest: Manifest) -> tuple[int, dict[str, int], dict[str, float]]:
    """Return text tokens, visual tokens and their ratio by model family over all documents."""
    documents = manifest.documents.values()
    text = sum(document.text_tokens for document in documents)
    visual: Counter[str] = Counter()
    for document in documents:
        visual.update(document.visual_tokens)
    return text, dict(visual), {family: round(text / tokens, 3) for family, tokens in visual.items() if tokens and text}


def write_manifest(folder: Path, manifest: Manifest) -> Path:
    """Write `manifest.json` whole or not at all; it comes last, so its absence tells of a half-done variant."""
    path = folder / FILE
    draft = path.with_suffix(".json.part")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    draft.replace(path)
    return path


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a variant, or None if it has none; a broken one is a DataError."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is not a manifest of pages: {error}") from None
