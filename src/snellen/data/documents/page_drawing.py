"""One text, drawn as pages: work that depends on the text, the style and the fonts alone, so that anybody may do it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from ..degrade.sheet_work import picture_libraries
from ..needles.overlays import Overlay, draw_overlays
from .font_files import face_sha256, font_set, font_sha256, try_face
from .fonts import TextFont
from .layout import Line
from .page_style import PageStyle
from .render import Accent, page_font, png_bytes, render_pages


class DrawnPage(Struct, frozen=True, array_like=True):
    """A page as a file, and where its lines stand."""

    number: int
    png: bytes
    width: int
    height: int
    lines: bytes


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
    for page in render_pages(text, style, font, accents):
        pixels = draw_overlays(page.pixels, overlays.get(page.number, ()), font)
        lines = b"".join(msgspec.json.encode(_line_record(page.number, line)) + b"\n" for line in page.lines)
        yield DrawnPage(page.number, png_bytes(pixels, style.dpi), pixels.shape[1], pixels.shape[0], lines)


def _line_record(page: int, line: Line) -> dict[str, object]:
    return {"page": page, "column": line.column, "start": line.start, "end": line.end, "box": line.box}
