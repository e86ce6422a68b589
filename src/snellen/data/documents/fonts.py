"""Font names into drawn glyphs: finding files, falling back per character, counting what no font can draw."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import ImageFont, features

from ...core.errors import UsageError, did_you_mean
from ...core.ids import sha256_hex

Bitmap: TypeAlias = NDArray[np.uint8]
Glyph: TypeAlias = tuple[Bitmap, int, int, int]
"""Coverage, left offset, top offset from the baseline, advance; all in pixels."""
Ink: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp], Bitmap, int]

BUILT_IN = "built-in"
"""Pillow's own font: always there, Latin only."""
FALLBACKS = ("DejaVu Sans", "Noto Sans", "Liberation Sans", "Noto Sans CJK", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei")
SUFFIXES = (".ttf", ".otf", ".ttc")
_NO_INK: Bitmap = np.zeros((0, 0), np.uint8)
_CACHED_WIDTHS = 200_000
_COMPLEX = re.compile("[\u0590-\u08ff\u0900-\u0dff\u0e00-\u109f\u1780-\u17ff\ufb1d-\ufdff\ufe70-\ufefc]")
"""Scripts whose glyphs join, reorder or run right to left: drawn a line at a time by the shaping library."""


class TextFont:
    """One font at one size with fallbacks: measures and draws characters, each only once."""

    def __init__(self, name: str, size_px: float, letter_spacing_px: int = 0) -> None:
        self.name = name
        self.size_px = size_px
        self._spacing = letter_spacing_px
        self._faces = _faces(name, size_px)
        self._glyphs: dict[str, Glyph] = {}
        self._inks: dict[str, Ink] = {}
        self._advances: dict[str, int] = {}
        self.missing: set[str] = set()

    @property
    def ascent_px(self) -> int:
        """Pixels above the baseline."""
        return int(self._faces[0].getmetrics()[0])

    def advance(self, text: str) -> int:
        """Return the width of a word in pixels."""
        known = self._advances.get(text)
        if known is None:
            known = self.draw_line(text)[3] if is_complex(text) else sum(self.glyph(character)[3] for character in text)
            if len(self._advances) > _CACHED_WIDTHS:
                self._advances.clear()
            self._advances[text] = known
        return known

    def glyph(self, character: str) -> Glyph:
        """Return one drawn character; one that no font has is drawn as the first font's box and remembered."""
        known = self._glyphs.get(character)
        if known is None:
            known = self._draw_glyph(character)
            self._glyphs[character] = known
        return known

    def ink(self, character: str) -> Ink:
        """Return a character's inked pixels alone: rows from the baseline, columns from the pen, coverage, advance."""
        known = self._inks.get(character)
        if known is None:
            bitmap, left, top, advance = self.glyph(character)
            rows, columns = np.nonzero(bitmap)
            known = self._inks[character] = (rows + top, columns + left, bitmap[rows, columns], advance)
        return known

    def draw_line(self, text: str) -> Glyph:
        """Draw a whole line of a joining or right-to-left script with the shaping library."""
        inked = {character for character in text if not character.isspace()}
        complete = (face for face in self._faces if not any(_lacks(face, character) for character in inked))
        return _draw(_shaping(next(complete, self._faces[0])), text)

    def _draw_glyph(self, character: str) -> Glyph:
        for face in self._faces:
            if character.isspace() or not _lacks(face, character):
                bitmap, left, top, advance = _draw(face, character)
                return bitmap, left, top, advance + self._spacing
        if unicodedata.category(character) in ("Cc", "Cf", "Mn"):
            return _NO_INK, 0, 0, 0
        self.missing.add(character)
        return _draw(self._faces[0], "\U0010fffd")


def is_complex(text: str) -> bool:
    """Tell whether a text needs shaping (Arabic, Hebrew, Devanagari …)."""
    return not text.isascii() and _COMPLEX.search(text) is not None


def font_file(name: str) -> Path | None:
    """Return the file of a font by path, family name or file name; None for Pillow's own font."""
    if name == BUILT_IN:
        return None
    if Path(name).suffix.lower() in SUFFIXES:
        if not Path(name).is_file():
            raise UsageError(f"font file {name!r} does not exist")
        return Path(name)
    files = _installed()
    wanted = _squash(name)
    longer = (key for key in sorted(files) if key.startswith(wanted))
    for candidate in (wanted, wanted + "regular", wanted + "book", *longer):
        if candidate in files:
            return files[candidate]
    hint = did_you_mean(name, [file.stem for file in files.values()])
    raise UsageError(f"font {name!r} is not installed{hint}; use a path or {BUILT_IN!r}")


def font_sha256(name: str) -> str:
    """Return the hash of the font's file, so that a manifest says which glyphs were drawn."""
    file = font_file(name)
    return sha256_hex(file.read_bytes()) if file else f"pillow-{PIL.__version__}"


def default_font() -> str:
    """Return the first of the free fonts that this machine has."""
    return next((name for name in FALLBACKS if _find(name)), BUILT_IN)


def _squash(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


@cache
def _installed() -> dict[str, Path]:
    """Every font file of the machine by its squashed file name; first folder wins."""
    home = Path.home()
    folders = [Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), home / ".local/share/fonts", home / ".fonts"]
    if sys.platform == "darwin":
        folders += [Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"]
    if os.name == "nt":
        folders.append(Path(os.environ.get("WINDIR", "C:/Windows")) / "Fonts")
    files: dict[str, Path] = {}
    for folder in folders:
        for file in sorted(folder.rglob("*")) if folder.is_dir() else []:
            if file.suffix.lower() in SUFFIXES:
                files.setdefault(_squash(file.stem), file)
    return files


@cache
def _find(name: str) -> Path | None:
    try:
        return font_file(name)
    except UsageError:
        return None


def _faces(name: str, size_px: float) -> list[ImageFont.FreeTypeFont]:
    unique = list(dict.fromkeys([font_file(name), *filter(None, map(_find, FALLBACKS))]))
    faces = [_open(file, size_px) for file in unique]
    return faces if None in unique else [*faces, _open(None, size_px)]


def _open(file: Path | None, size_px: float) -> ImageFont.FreeTypeFont:
    if file is None:
        built_in = ImageFont.load_default(size=size_px)
        if not isinstance(built_in, ImageFont.FreeTypeFont):
            raise UsageError("this Pillow was built without FreeType: install a Pillow wheel")
        return built_in
    return ImageFont.truetype(str(file), size_px, layout_engine=ImageFont.Layout.BASIC)


@cache
def _shaping(face: ImageFont.FreeTypeFont) -> ImageFont.FreeTypeFont:
    return face.font_variant(layout_engine=ImageFont.Layout.RAQM) if features.check("raqm") else face


@cache
def _tofu(face: ImageFont.FreeTypeFont) -> tuple[tuple[int, int], bytes]:
    mask = face.getmask("\U0010fffd", "L")
    return mask.size, bytes(mask)


def _lacks(face: ImageFont.FreeTypeFont, character: str) -> bool:
    """A font lacks what it draws like a code point that no font has (or not at all)."""
    mask = face.getmask(character, "L")
    return 0 in mask.size or (mask.size, bytes(mask)) == _tofu(face)


def _draw(face: ImageFont.FreeTypeFont, text: str) -> Glyph:
    mask, (left, top) = face.getmask2(text, "L", anchor="ls")
    width, height = mask.size
    empty = not (width and height)
    bitmap = _NO_INK if empty else np.frombuffer(bytes(mask), np.uint8).reshape(height, width)
    return bitmap, int(left), int(top), round(face.getlength(text))
