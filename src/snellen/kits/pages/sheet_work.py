"""One sheet of pages, degraded: work that depends on the pages and the steps alone, so that anybody may do it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import PIL
from msgspec import Struct
from PIL import Image, features

from ...data.images.decode import decode
from .perturb import FAMILIES, apply, page_seed
from .quality import degradation
from .render import png_bytes


class Sheet(Struct, frozen=True):
    """Pages of a document that stand together on one picture, and which picture of the document that is."""

    document: str
    number: int
    files: tuple[str, ...]
    grid: tuple[int, int] = (1, 1)
    contents: tuple[bytes, ...] = ()
    """The pages themselves, for whoever has not their files."""

    def read(self) -> Sheet:
        """Return it with the pages' contents."""
        return msgspec.structs.replace(self, contents=tuple(Path(file).read_bytes() for file in self.files))


class DegradeSettings(Struct, frozen=True):
    """What is done with every sheet."""

    steps: tuple[str, ...]
    seed: int
    calibrated: int


class DegradedSheet(Struct, frozen=True):
    """A degraded picture and what it lost."""

    png: bytes
    width: int
    height: int
    loss: dict[str, float]


class SheetDegrader:
    """Degrades sheets; the same pages give the same bytes wherever the libraries are the same."""

    def __init__(self, settings: bytes) -> None:
        self._settings = msgspec.msgpack.decode(settings, type=DegradeSettings)
        self.facts = picture_libraries()

    def __call__(self, item: bytes) -> bytes:
        """Return the degraded sheet."""
        sheet = msgspec.msgpack.decode(item, type=Sheet)
        clean = open_sheet(sheet)
        image = self._apply(clean, sheet)
        made = DegradedSheet(png_bytes(np.asarray(image)), *image.size, degradation(clean, image))
        return msgspec.msgpack.encode(made)

    def _apply(self, image: Image.Image, sheet: Sheet) -> Image.Image:
        """Degrade one picture by every step that touches pixels."""
        how = self._settings
        for step in how.steps:
            family, _, severity = step.partition(":")
            if family in FAMILIES:
                seed = page_seed(how.seed, sheet.document, sheet.number)
                image = apply(image, family, int(severity), seed, how.calibrated)
        return image


def picture_libraries() -> dict[str, Any]:
    """Return the versions that pixels and the bytes of picture files depend on."""
    parts = ("zlib", "jpg", "libjpeg_turbo", "webp", "freetype2", "raqm", "harfbuzz")
    found = {part: features.version(part) for part in parts}
    return {"pillow": PIL.__version__, "numpy": np.__version__, **found}


def open_sheet(sheet: Sheet) -> Image.Image:
    """Return the clean picture of a sheet that was read."""
    named = zip(sheet.contents, sheet.files, strict=True)
    return _stitched([decode(content, Path(file).name) for content, file in named], sheet.grid)


def _stitched(images: Sequence[Image.Image], grid: tuple[int, int]) -> Image.Image:
    if grid == (1, 1):
        return images[0]
    rows, columns = grid
    width, height = max(image.width for image in images), max(image.height for image in images)
    sheet = Image.new(images[0].mode, (columns * width, rows * height), "white")
    for index, image in enumerate(images):
        sheet.paste(image, (index % columns * width, index // columns * height))
    return sheet
