"""Documents into a variant folder: page files, the box of every line, the manifest; one page in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import structs

from ...core.errors import UsageError
from ...core.ids import sha256_hex
from ..needles.overlays import Overlay, draw_overlays
from .fonts import TextFont, font_sha256
from .layout import Line, clean_text, lay_out
from .manifest import DocumentRecord, Manifest, PageRecord, document_record, page_record, write_manifest
from .page_style import PageStyle
from .pages import page_name
from .render import Accent, cropped_size, page_font, png_bytes, render_pages
from .texts import Document, document_id, pdf_pages
from .visual_tokens import DEFAULT_TOKENIZER, count_tokens, visual_tokens

_SMALLEST_PT, _LARGEST_PT = 3.0, 48.0


Marks: TypeAlias = Callable[[str], tuple[Sequence[Accent], Mapping[int, Sequence[Overlay]]]]
"""A document's id -> stretches in colour, and what is drawn over each page."""


def publish(
    documents: Iterable[Document],
    folder: Path,
    style: PageStyle,
    *,
    tokenizer: str = DEFAULT_TOKENIZER,
    source: dict[str, str] | None = None,
    marks: Marks = lambda _: ((), {}),
) -> Manifest:
    """Render every document into `folder/images` and write lines and manifest beside it."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "lines").mkdir(exist_ok=True)
    press = _Press(folder, style, page_font(style), tokenizer)
    records = {document.id: press.publish(document, *marks(document.id)) for document in documents}
    manifest = Manifest("render", records, structs.asdict(style), font_sha256(style.font), tokenizer, source or {})
    write_manifest(folder, manifest)
    return manifest


def publish_pdf(path: Path, folder: Path, dpi: float) -> Manifest:
    """Raster a PDF's own pages (extra `pdf`)."""
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    pages = []
    for number, pixels in enumerate(pdf_pages(path, dpi), start=1):
        name = page_name(document_id(path), number)
        data = png_bytes(pixels, dpi)
        (images / name).write_bytes(data)
        pages.append(page_record(name, data, (pixels.shape[1], pixels.shape[0])))
    manifest = Manifest("pdf", {document_id(path): document_record(pages)}, {"dpi": dpi}, source=source_record(path))
    write_manifest(folder, manifest)
    return manifest


def source_record(path: Path) -> dict[str, str]:
    """Name a source file and its hash (a folder has no hash of its own)."""
    return {"name": path.name, "sha256": sha256_hex(path.read_bytes())} if path.is_file() else {"name": path.name}


def page_sizes(text: str, style: PageStyle, font: TextFont | None = None) -> list[tuple[int, int]]:
    """Return the sizes of the pages a text would fill, without drawing them."""
    pages = list(lay_out(clean_text(text), style, font or page_font(style)))
    whole = [style.page_px if style.crop != "all" else cropped_size(lines, style) for lines in pages]
    return [*whole[:-1], cropped_size(pages[-1], style)] if style.crop == "last" else whole


def solve_size(text: str, style: PageStyle, ratio: float, family: str, tokenizer: str = DEFAULT_TOKENIZER) -> PageStyle:
    """Return the style whose font size gives `ratio` text tokens per visual token for one model family.

    The last page is cut below its text, else whole pages would be the finest step.
    """
    if ratio <= 0:
        raise UsageError(f"ratio {ratio} must be above 0")
    style = structs.replace(style, crop="last") if style.crop == "none" else style
    wanted = count_tokens(text, tokenizer) / ratio
    spread = style.leading_pt / style.size_pt

    def too_large(size_pt: float, leading_pt: float) -> bool:
        """Tell whether the pages of this size cost more than wanted."""
        sized = structs.replace(style, size_pt=size_pt, leading_pt=leading_pt)
        return visual_tokens(page_sizes(text, sized), family) > wanted

    size = _bisect(lambda size_pt: too_large(size_pt, size_pt * spread), _SMALLEST_PT, _LARGEST_PT)
    # Glyphs grow by whole pixels, so the line height does the rest.
    leading = _bisect(partial(too_large, size), size * spread * 0.85, size * spread * 1.3)
    return structs.replace(style, size_pt=size, leading_pt=leading)


def _bisect(too_large: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(13):
        middle = (low + high) / 2
        low, high = (low, middle) if too_large(middle) else (middle, high)
    return round(low, 3)


class _Press(NamedTuple):
    folder: Path
    style: PageStyle
    font: TextFont
    tokenizer: str

    def publish(
        self, document: Document, accents: Sequence[Accent], overlays: Mapping[int, Sequence[Overlay]]
    ) -> DocumentRecord:
        """Write the pages and lines of one document."""
        font = self.font
        font.missing.clear()
        pages: list[PageRecord] = []
        with (self.folder / "lines" / f"{document.id}.jsonl").open("wb") as stream:
            for page in render_pages(document.text, self.style, font, accents):
                name = page_name(document.id, page.number)
                pixels = draw_overlays(page.pixels, overlays.get(page.number, ()), font)
                data = png_bytes(pixels, self.style.dpi)
                (self.folder / "images" / name).write_bytes(data)
                pages.append(page_record(name, data, (pixels.shape[1], pixels.shape[0])))
                stream.writelines(msgspec.json.encode(_line_record(page.number, line)) + b"\n" for line in page.lines)
        unknown = sum(document.text.count(character) for character in font.missing)
        size, share = len(document.text), round(unknown / max(1, len(document.text)), 6)
        glyphs = {"missing_glyph_share": share, "missing_glyphs": "".join(sorted(font.missing)[:40])}
        return document_record(pages, count_tokens(document.text, self.tokenizer), characters=size, **glyphs)


def _line_record(page: int, line: Line) -> dict[str, object]:
    return {"page": page, "column": line.column, "start": line.start, "end": line.end, "box": line.box}
