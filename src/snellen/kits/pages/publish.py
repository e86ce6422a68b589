"""Documents into a variant folder: page files, the box of every line, the manifest; one page in memory at a time."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, structs

from ...core.errors import DataError, UsageError, not_among
from ...core.frames import Size
from ...core.ids import sha256_hex
from ...data.files.work import Mapper, WorkSpec, do_here
from ...data.visual_tokens import DEFAULT_TOKENIZER, FAMILIES, count_tokens, visual_tokens
from .font_files import FontFile, face_sha256, font_set, font_sha256, try_face
from .fonts import TextFont
from .layout import Line, clean_text, lay_out, normalise, words_apart, words_given
from .overlays import Overlay, draw_overlays
from .page_style import PageStyle
from .pages import page_name
from .render import Accent, cropped_size, page_font, png_bytes, render_pages
from .sheet_work import picture_libraries
from .texts import Document, document_id, pdf_pages

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


class DrawnPage(Struct, frozen=True, array_like=True):
    """A page as a file, and where its lines stand."""

    number: int
    png: bytes
    width: int
    height: int
    lines: bytes
    words: int = 0
    """How many words stand apart on it."""


class ToDraw(Struct, frozen=True, array_like=True):
    """A text, the stretches of it in colour, and what is drawn over each page."""

    text: str
    accents: Sequence[Accent] = ()
    overlays: Mapping[int, Sequence[Overlay]] = {}


class DocumentDrawer:
    """Draws texts in one style; the same text gives the same bytes wherever fonts and libraries are the same."""

    def __init__(self, settings: bytes) -> None:
        self._style = msgspec.msgpack.decode(settings, type=PageStyle)
        self._font = page_font(self._style)
        faces = {name: try_face(name) for name in font_set().fallbacks}
        fonts = {name: face_sha256(face) for name, face in faces.items() if face is not None}
        self.facts = {**picture_libraries(), "font": font_sha256(self._style.font), "fallbacks": fonts}

    def __call__(self, item: bytes) -> bytes:
        """Return the pages of one text."""
        given = msgspec.msgpack.decode(item, type=ToDraw)
        return msgspec.msgpack.encode(
            list(draw_document(given.text, self._style, self._font, given.accents, given.overlays))
        )


def draw_document(
    text: str,
    style: PageStyle,
    font: TextFont,
    accents: Sequence[Accent],
    overlays: Mapping[int, Sequence[Overlay]],
) -> Iterator[DrawnPage]:
    """Yield the pages of a text, one in memory at a time."""
    laid_out = normalise(clean_text(text), style.newlines)
    for page in render_pages(text, style, font, accents):
        pixels = draw_overlays(page.pixels, overlays.get(page.number, ()), font)
        lines = b"".join(msgspec.json.encode(_line_record(page.number, line)) + b"\n" for line in page.lines)
        height, width = pixels.shape[:2]
        words = words_apart(page.lines, laid_out, font)
        yield DrawnPage(page.number, png_bytes(pixels, style.dpi), width, height, lines, words)


def _line_record(page: int, line: Line) -> dict[str, object]:
    return {"page": page, "column": line.column, "start": line.start, "end": line.end, "box": line.box}


_SMALLEST_PT, _LARGEST_PT = 3.0, 48.0
WORK = "snellen.kits.pages.publish:DocumentDrawer"
REFUSE = "refuse"
MISSING = (REFUSE, "mark")


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
    missing_glyphs: str = REFUSE,
    mapper: Mapper = do_here,
) -> Manifest:
    """Render every document into `folder/images` and write lines and manifest beside it; `mapper` draws.

    A text with characters that no installed font has is refused; with `mark` it is drawn with boxes and counted.
    """
    if missing_glyphs not in MISSING:
        raise UsageError(f"--missing-glyphs {not_among(missing_glyphs, MISSING)}")
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "lines").mkdir(exist_ok=True)
    press = _Press(folder, style, page_font(style), tokenizer, missing_glyphs)
    drawn_pages = _draw_all(press, documents, marks, mapper)
    records = {document.id: press.keep(document, pages) for document, pages in drawn_pages}
    faces = {face.label: face_sha256(face) for face in sorted(press.used, key=lambda face: face.label)}
    drawn: dict[str, Any] = {"style": structs.asdict(style), "font_sha256": font_sha256(style.font), "faces": faces}
    manifest = Manifest("render", records, tokenizer=tokenizer, source=source or {}, **drawn)
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


@dataclass(slots=True)
class _Press:
    folder: Path
    style: PageStyle
    font: TextFont
    tokenizer: str
    missing_glyphs: str
    used: set[FontFile] = field(default_factory=set)
    """Faces other than the style's own that something was drawn with."""

    def check(self, document: Document) -> None:
        """Refuse a text that cannot be drawn, unless boxes are wanted."""
        lacking = self.font.lacking(document.text) if self.missing_glyphs == REFUSE else Counter()
        if lacking:
            raise DataError(_refusal(document.id, lacking))

    def keep(self, document: Document, pages: Iterable[DrawnPage]) -> DocumentRecord:
        """Write the pages and lines of one document."""
        records: list[PageRecord] = []
        drawn = 0
        with (self.folder / "lines" / f"{document.id}.jsonl").open("wb") as stream:
            for page in pages:
                name = page_name(document.id, page.number)
                (self.folder / "images" / name).write_bytes(page.png)
                records.append(page_record(name, page.png, (page.width, page.height)))
                stream.write(page.lines)
                drawn += page.words
        size, fallbacks = len(document.text), self.font.fallbacks(document.text)
        self.used |= fallbacks.keys()
        glyphs: dict[str, Any] = {"fallback_faces": {face.label: count for face, count in fallbacks.items()}}
        given = words_given(clean_text(document.text), self.style.newlines)
        glyphs |= {"words_given": given, "words_drawn": drawn}
        lacking = self.font.lacking(document.text)
        if lacking:
            glyphs |= {"missing_glyph_share": round(lacking.total() / size, 6), "missing_glyph_count": lacking.total()}
            glyphs["missing_glyphs"] = "".join(sorted(lacking)[:40])
        return document_record(records, count_tokens(document.text, self.tokenizer), characters=size, **glyphs)


def _draw_all(
    press: _Press, documents: Iterable[Document], marks: Marks, mapper: Mapper
) -> Iterator[tuple[Document, Iterable[DrawnPage]]]:
    """Yield every document with its pages; here they are drawn one at a time as they are taken."""
    if mapper is do_here:
        for document in documents:
            press.check(document)
            yield document, draw_document(document.text, press.style, press.font, *marks(document.id))
        return
    sent: deque[Document] = deque()

    def items() -> Iterator[bytes]:
        for document in documents:
            press.check(document)
            sent.append(document)
            yield msgspec.msgpack.encode(ToDraw(document.text, *marks(document.id)))

    for result in mapper(WorkSpec(WORK, msgspec.msgpack.encode(press.style)), items()):
        yield sent.popleft(), msgspec.msgpack.decode(result, type=list[DrawnPage])


def _refusal(document: str, lacking: Counter[str]) -> str:
    shown = ", ".join(f"{one} U+{ord(one):04X} ×{count}" for one, count in lacking.most_common(5))
    more = " …" if len(lacking) > 5 else ""
    fix = "install fonts that have them (`snellen doctor` names packages), or draw boxes with --missing-glyphs mark"
    return f"document {document!r}: no installed font has {lacking.total()} of its characters ({shown}{more}): {fix}"
