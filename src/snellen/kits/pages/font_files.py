"""Font names into files and faces: what is installed, which face of a collection, what each can draw."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import PIL
from msgspec import Struct
from PIL import ImageFont

from ...core.config import convert, read_config_file
from ...core.errors import UsageError, did_you_mean
from ...core.ids import sha256_hex

_UNICODE = ((3, 10), (0, 6), (0, 4), (3, 1), (0, 3), (0, 2), (0, 1), (0, 0))
"""(platform, encoding) of the maps that count in Unicode, the largest first."""


def code_points(data: bytes, index: int = 0) -> frozenset[int] | None:
    """Return what a TrueType or OpenType file (of a collection: the index-th face) has; None if it does not say."""
    try:
        table = _cmap_offset(data, index)
        maps = dict(_maps(data, table)) if table is not None else {}
        found = next((maps[key] for key in _UNICODE if key in maps), None)
        return None if found is None else frozenset(_codes(data, found))
    except (struct.error, IndexError):
        return None


def _cmap_offset(data: bytes, index: int) -> int | None:
    start = 0
    if data[:4] == b"ttcf":
        (start,) = struct.unpack_from(">I", data, 12 + 4 * index)
    (count,) = struct.unpack_from(">H", data, start + 4)
    for entry in range(count):
        tag, _, offset, _ = struct.unpack_from(">4sIII", data, start + 12 + 16 * entry)
        if tag == b"cmap":
            return int(offset)
    return None


def _maps(data: bytes, table: int) -> Iterator[tuple[tuple[int, int], int]]:
    (count,) = struct.unpack_from(">H", data, table + 2)
    for entry in range(count):
        platform, encoding, offset = struct.unpack_from(">HHI", data, table + 4 + 8 * entry)
        if struct.unpack_from(">H", data, table + offset)[0] in (4, 12):
            yield (platform, encoding), table + offset


def _codes(data: bytes, start: int) -> Iterator[int]:
    if struct.unpack_from(">H", data, start)[0] == 4:
        yield from _segments(data, start)
        return
    (groups,) = struct.unpack_from(">I", data, start + 12)
    for group in range(groups):
        first, last, glyph = struct.unpack_from(">III", data, start + 16 + 12 * group)
        yield from range(first + (glyph == 0), last + 1)


def _segments(data: bytes, start: int) -> Iterator[int]:
    """Yield the code points of a map of format 4; those that lead to glyph 0, the box, are not among them."""
    size = struct.unpack_from(">H", data, start + 6)[0]
    ends, firsts = start + 14, start + 16 + size
    for place in range(0, size, 2):
        (last,), (first,) = struct.unpack_from(">H", data, ends + place), struct.unpack_from(">H", data, firsts + place)
        delta, at = struct.unpack_from(">H", data, firsts + size + place)[0], firsts + 2 * size + place
        (shift,) = struct.unpack_from(">H", data, at)
        for code in range(first, min(last, 0xFFFE) + 1):
            glyph = struct.unpack_from(">H", data, at + shift + 2 * (code - first))[0] if shift else code
            if glyph and (glyph + delta) & 0xFFFF:
                yield code


BUILT_IN = "built-in"
"""Pillow's own font: always there, Latin only."""
SUFFIXES = (".ttf", ".otf", ".ttc", ".otc")
_PLAIN = ("", "regular", "book", "roman", "normal", "text", "vf", "wght", "wdthwght", "variable", "variablefontwght")
_HEAVY = ("medium", "light", "semilight", "demilight", "semibold", "bold", "black", "italic", "oblique", "bolditalic")
_STYLES = (*_PLAIN, *_HEAVY)
"""What may follow a family's name in a file's name, the plain styles first. Anything else is another family."""
_REGIONS = ("jp", "kr", "sc", "tc", "hk")
"""Families of one collection that share all but the forms of some ideographs."""


class ScriptFace(Struct, frozen=True, forbid_unknown_fields=True):
    """One script: letters to try, and the Debian package of a face that has them."""

    sample: str
    package: str


class FontSet(Struct, frozen=True, forbid_unknown_fields=True):
    """catalog/documents/fonts.toml: where missing characters are looked for, and what is recommended."""

    fallbacks: tuple[str, ...]
    scripts: dict[str, ScriptFace]


class FontFile(NamedTuple):
    """A face: a file and its place in it; no path is Pillow's own font."""

    path: Path | None
    number: int = 0

    @property
    def label(self) -> str:
        """Return what records call it."""
        return (self.path.stem if self.path else BUILT_IN) + (f":{self.number}" if self.number else "")


@cache
def font_set() -> FontSet:
    """Return the fallbacks and the recommended faces."""
    path = str(files("snellen") / "catalog" / "documents" / "fonts.toml")
    return convert(read_config_file(path), FontSet, "fonts")


def font_file(name: str) -> Path | None:
    """Return the file of a font by path, family name or file name; None for Pillow's own font."""
    return find_face(name).path


def find_face(name: str) -> FontFile:
    """Return the face of a name; regular ones before bold ones, and never one of another family."""
    if name == BUILT_IN:
        return FontFile(None)
    if Path(name).suffix.lower() in SUFFIXES:
        if not Path(name).is_file():
            raise UsageError(f"font file {name!r} does not exist")
        return FontFile(Path(name))
    installed = installed_fonts()
    wanted = _squash(name)
    found = _of_family(wanted, installed) or _of_region(wanted, installed)
    if found is None:
        hint = did_you_mean(name, [file.stem for file in installed.values()])
        raise UsageError(f"font {name!r} is not installed{hint}; use a path or {BUILT_IN!r}")
    return found


def font_sha256(name: str) -> str:
    """Return the hash of the font's file, so that a manifest says which glyphs were drawn."""
    return face_sha256(find_face(name))


@cache
def face_sha256(face: FontFile) -> str:
    """Return the hash of a face's file."""
    return sha256_hex(face.path.read_bytes()) if face.path else f"pillow-{PIL.__version__}"


def default_font() -> str:
    """Return the first of the free fonts that this machine has."""
    return next((name for name in font_set().fallbacks if try_face(name)), BUILT_IN)


@cache
def try_face(name: str) -> FontFile | None:
    """Return the face of a name, or None where it is not installed."""
    try:
        return find_face(name)
    except UsageError:
        return None


@cache
def face_codes(face: FontFile) -> frozenset[int] | None:
    """Return the code points a face has; None: its file does not say."""
    if face.path is not None:
        return code_points(face.path.read_bytes(), face.number)
    data = getattr(open_face(face, 12.0), "font_bytes", None)
    return code_points(data) if data else None


def open_face(face: FontFile, size_px: float) -> ImageFont.FreeTypeFont:
    """Open a face at a size, without shaping."""
    if face.path is None:
        built_in = ImageFont.load_default(size=size_px)
        if not isinstance(built_in, ImageFont.FreeTypeFont):
            raise UsageError("this Pillow was built without FreeType: install a Pillow wheel")
        return built_in
    return ImageFont.truetype(str(face.path), size_px, face.number, layout_engine=ImageFont.Layout.BASIC)


@cache
def installed_fonts() -> dict[str, Path]:
    """Return every font file of the machine by its squashed file name; the first folder wins."""
    home = Path.home()
    folders = [Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), home / ".local/share/fonts", home / ".fonts"]
    if sys.platform == "darwin":
        folders += [Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"]
    if os.name == "nt":
        folders.append(Path(os.environ.get("WINDIR", "C:/Windows")) / "Fonts")
    found: dict[str, Path] = {}
    for folder in folders:
        for file in sorted(folder.rglob("*")) if folder.is_dir() else []:
            if file.suffix.lower() in SUFFIXES:
                found.setdefault(_squash(file.stem), file)
    return found


def _of_family(wanted: str, installed: dict[str, Path]) -> FontFile | None:
    return next((FontFile(installed[wanted + style]) for style in _STYLES if wanted + style in installed), None)


def _of_region(wanted: str, installed: dict[str, Path]) -> FontFile | None:
    """Return the face of a collection that bears the wanted family's name (Noto Sans CJK SC is in NotoSansCJK)."""
    collection = _of_family(wanted[:-2], installed) if wanted.endswith(_REGIONS) else None
    if collection is None:
        return None
    for number in range(2 * len(_REGIONS)):
        try:
            family, _ = ImageFont.truetype(str(collection.path), 12, number).getname()
        except OSError:
            return None
        if family and _squash(family) == wanted:
            return FontFile(collection.path, number)
    return None


def _squash(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
