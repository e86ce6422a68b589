"""Text into drawn glyphs: shaped by runs of one face, falling back per cluster, counting what no font can draw."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import ImageFont, features

from ...core.errors import EnvironmentProblem
from .font_files import BUILT_IN, FontFile, face_codes, find_face, font_set, open_face, try_face

Bitmap: TypeAlias = NDArray[np.uint8]
Glyph: TypeAlias = tuple[Bitmap, int, int, int]
"""Coverage, left offset, top offset from the baseline, advance; all in pixels."""
Ink: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp], Bitmap, int]

_NO_INK: Bitmap = np.zeros((0, 0), np.uint8)
_CACHED = 200_000
_COMPLEX = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0590-\u109f\u1100-\u11ff\u135d-\u135f\u1700-\u18af\u1900-\u1cff\u1dc0-\u1dff"
    "\u200c-\u200f\u202a-\u202e\u2066-\u2069\u20d0-\u20ff\u302a-\u302f\u3099\u309a\ua66f-\ua67d\ua800-\ua97f\ua980-\uabff"
    "\ud7b0-\ud7ff\ufb1d-\ufdff\ufe00-\ufe0f\ufe20-\ufe2f\ufe70-\ufefc\U00010800-\U00011fff\U0001e800-\U0001efff"
    "\U0001f3fb-\U0001f3ff\U000e0020-\U000e01ef]"
)
"""Letters that join, reorder, stack or run right to left, and marks that stand on others: shaped, not stamped."""
_JOINERS = "\u200c\u200d"
_VOWELS_BEFORE, _VOWELS_AFTER = "เแโใไເແໂໃໄ", "ะาำๅະາຳ"
_VIRAMA = 9
"""The combining class of the sign that binds consonants."""


class _Face(NamedTuple):
    file: FontFile
    plain: ImageFont.FreeTypeFont
    codes: frozenset[int] | None

    def has(self, character: str) -> bool:
        """Tell whether the face has a glyph of its own for a character."""
        if self.codes is not None:
            return ord(character) in self.codes
        return _inked(self.plain, character)


class TextFont:
    """One font at one size with fallbacks: measures and draws words and characters, each only once."""

    def __init__(self, name: str, size_px: float, letter_spacing_px: int = 0) -> None:
        self.name = name
        self.size_px = size_px
        self._spacing = letter_spacing_px
        self._faces: list[_Face] = []
        self._unopened = iter(_candidates(name))
        self._face_of: dict[str, int | None] = {}
        self._glyphs: dict[str, Glyph] = {}
        self._inks: dict[str, Ink] = {}
        self._words: dict[tuple[str, bool], Glyph] = {}
        self._advances: dict[str, int] = {}
        self._shapers: dict[int, ImageFont.FreeTypeFont] = {}

    @property
    def ascent_px(self) -> int:
        """Pixels above the baseline."""
        return int(self._face(0).plain.getmetrics()[0])

    def advance(self, text: str) -> int:
        """Return the width of a word in pixels."""
        known = self._advances.get(text)
        if known is None:
            known = self.word(text)[3] if is_complex(text) else sum(self.glyph(character)[3] for character in text)
            if len(self._advances) > _CACHED:
                self._advances.clear()
            self._advances[text] = known
        return known

    def glyph(self, character: str) -> Glyph:
        """Return one drawn character; one that no font has is drawn as a box."""
        known = self._glyphs.get(character)
        if known is None:
            known = self._glyphs[character] = self._draw_glyph(character)
        return known

    def ink(self, character: str) -> Ink:
        """Return a character's inked pixels alone: rows from the baseline, columns from the pen, coverage, advance."""
        known = self._inks.get(character)
        if known is None:
            bitmap, left, top, advance = self.glyph(character)
            rows, columns = np.nonzero(bitmap)
            known = self._inks[character] = (rows + top, columns + left, bitmap[rows, columns], advance)
        return known

    def word(self, text: str, *, leftward: bool = False) -> Glyph:
        """Return a shaped word: a run of every face it needs, in the order the eye meets them."""
        known = self._words.get((text, leftward))
        if known is None:
            drawn = [self._shape(face, run, leftward) for face, run in self._runs(text)]
            known = _side_by_side(drawn[::-1] if leftward else drawn)
            if len(self._words) > _CACHED:
                self._words.clear()
            self._words[text, leftward] = known
        return known

    def ink_width(self, text: str, *, leftward: bool = False) -> int:
        """Return how far the ink of a word reaches from its pen, as it is drawn: shaped, or glyph by glyph."""
        if leftward or is_complex(text):
            bitmap, left, _, _ = self.word(text, leftward=leftward)
            return int(left + bitmap.shape[1])
        bitmap, left, _, advance = self.glyph(text[-1])
        return int(self.advance(text) - advance + left + bitmap.shape[1])

    def lacking(self, text: str) -> Counter[str]:
        """Return the characters of a text that no installed font has, with how often each occurs."""
        counts = Counter(text)
        return Counter({one: count for one, count in counts.items() if self.face_index(one) is None})

    def fallbacks(self, text: str) -> dict[FontFile, int]:
        """Return the faces other than the named one that a text needs, with how many of its characters each draws."""
        used: Counter[FontFile] = Counter()
        for character, count in Counter(text).items():
            index = self.face_index(character)
            if index:
                used[self._face(index).file] += count
        return dict(used)

    def face_index(self, character: str) -> int | None:
        """Return which face has a character (0: the named one; also for what needs no ink), or None."""
        if character not in self._face_of:
            places = (index for index, face in self._each_face() if face.has(character))
            self._face_of[character] = 0 if _inkless(character) else next(places, None)
        return self._face_of[character]

    def _face(self, index: int) -> _Face:
        while len(self._faces) <= index:
            file = next(self._unopened)
            self._faces.append(_Face(file, open_face(file, self.size_px), face_codes(file)))
        return self._faces[index]

    def _each_face(self) -> Iterator[tuple[int, _Face]]:
        index = 0
        while True:
            try:
                face = self._face(index)
            except StopIteration:
                return
            yield index, face
            index += 1

    def _draw_glyph(self, character: str) -> Glyph:
        index = self.face_index(character)
        if index is None:
            return self._box
        if _inkless(character) and not character.isspace():
            return _NO_INK, 0, 0, 0
        bitmap, left, top, advance = _draw(self._face(index).plain, character)
        return bitmap, left, top, advance + self._spacing

    @cached_property
    def _box(self) -> Glyph:
        """A hollow box: seen, whatever a font would draw for what it lacks."""
        width, height = max(4, round(self.size_px * 0.55)), max(5, round(self.size_px * 0.7))
        box = np.full((height, width), 255, np.uint8)
        edge = max(1, round(self.size_px / 16))
        box[edge:-edge, edge:-edge] = 0
        return box, 1, -height, width + 2 + self._spacing

    def _runs(self, text: str) -> list[tuple[int | None, str]]:
        """Cut a word where the face changes; a cluster of letter and marks is never cut if one face has it all."""
        runs: list[tuple[int | None, str]] = []
        for cluster in clusters(text):
            before = runs[-1][0] if runs else None
            index = self._cluster_face(cluster, before)
            if runs and index == before:
                runs[-1] = (index, runs[-1][1] + cluster)
            else:
                runs.append((index, cluster))
        return runs

    def _cluster_face(self, cluster: str, before: int | None) -> int | None:
        inked = [character for character in cluster if not _inkless(character)]
        if not inked:
            return before if before is not None else 0
        if before is not None and not inked[0].isalpha() and all(map(self._face(before).has, inked)):
            return before  # signs and digits go with their neighbour
        whole = (index for index, face in self._each_face() if all(map(face.has, inked)))
        if any(self.face_index(character) is None for character in inked):
            return None
        return next(whole, self.face_index(inked[0]))

    def _shape(self, index: int | None, text: str, leftward: bool) -> Glyph:
        if index is None:
            return _side_by_side([self._box] * sum(not _inkless(character) for character in text))
        return _draw(self._shaper(index), text, "rtl" if leftward else "ltr")

    def _shaper(self, index: int) -> ImageFont.FreeTypeFont:
        if index not in self._shapers:
            if not features.check("raqm"):
                fix = "apt-get install libfribidi0, or install a Pillow wheel"
                raise EnvironmentProblem(f"this text needs shaping, and Pillow finds no raqm and FriBiDi: {fix}")
            plain = self._face(index).plain
            self._shapers[index] = plain.font_variant(layout_engine=ImageFont.Layout.RAQM)
        return self._shapers[index]


def is_complex(text: str) -> bool:
    """Tell whether a text needs shaping (Arabic, Hebrew, Devanagari, Thai, marks on letters …)."""
    return not text.isascii() and _COMPLEX.search(text) is not None


def clusters(text: str) -> Iterator[str]:
    """Yield what may not be torn apart: a letter with its marks, joined consonants, a vowel and what it belongs to."""
    start = 0
    for place in range(1, len(text)):
        if not _bound(text[place - 1], text[place]):
            yield text[start:place]
            start = place
    if text:
        yield text[start:]


def _bound(before: str, character: str) -> bool:
    if character < "\u0300":
        return False
    marks = unicodedata.category(character)[0] == "M" or character in _JOINERS or character in _VOWELS_AFTER
    return marks or before in _JOINERS or before in _VOWELS_BEFORE or unicodedata.combining(before) == _VIRAMA


def _inkless(character: str) -> bool:
    """Spaces, controls, signs of formatting and variation selectors need no glyph."""
    if character.isspace() or "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef":
        return True
    return unicodedata.category(character) in ("Cc", "Cf", "Zs", "Zl", "Zp")


def _candidates(name: str) -> Iterable[FontFile]:
    found = (face for face in map(try_face, font_set().fallbacks) if face is not None)
    return dict.fromkeys([find_face(name), *found, find_face(BUILT_IN)])


def _inked(face: ImageFont.FreeTypeFont, character: str) -> bool:
    """A font without a readable map lacks what it draws like a code point that no font has (or not at all)."""
    mask, box = face.getmask(character, "L"), face.getmask("\U0010fffd", "L")
    return 0 not in mask.size and (mask.size, bytes(mask)) != (box.size, bytes(box))


def _side_by_side(pieces: list[Glyph]) -> Glyph:
    """Put drawn runs one after another on one baseline."""
    if len(pieces) == 1:
        return pieces[0]
    pens = [0, *np.cumsum([advance for *_, advance in pieces]).tolist()]
    placed = [
        (pen + left, top, bitmap) for pen, (bitmap, left, top, _) in zip(pens, pieces, strict=False) if bitmap.size
    ]
    if not placed:
        return _NO_INK, 0, 0, pens[-1]
    x, y = min(left for left, _, _ in placed), min(top for _, top, _ in placed)
    width = max(left + bitmap.shape[1] for left, _, bitmap in placed) - x
    canvas = np.zeros((max(top + bitmap.shape[0] for _, top, bitmap in placed) - y, width), np.uint8)
    for left, top, bitmap in placed:
        target = canvas[top - y : top - y + bitmap.shape[0], left - x : left - x + bitmap.shape[1]]
        np.maximum(target, bitmap, out=target)
    return canvas, x, y, pens[-1]


def _draw(face: ImageFont.FreeTypeFont, text: str, direction: str | None = None) -> Glyph:
    mask, (left, top) = face.getmask2(text, "L", anchor="ls", direction=direction)
    width, height = mask.size
    empty = not (width and height)
    bitmap = _NO_INK if empty else np.frombuffer(bytes(mask), np.uint8).reshape(height, width)
    return bitmap, int(left), int(top), round(face.getlength(text, direction=direction))
