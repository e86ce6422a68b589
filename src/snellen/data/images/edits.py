"""Edits written in an Image reference (`box:…`, `crop:…`, `perturb:…`), applied to its pixels in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import PIL.Image
import PIL.ImageDraw

from ...core.builtins import default_registry
from ...core.errors import DataError, did_you_mean
from .calibrations import UNSTATED

Edit = Callable[[PIL.Image.Image, str], PIL.Image.Image]

BOX_COLOUR = "#e8222e"
BOX_WIDTH_SHARE = 0.006
"""Line width as a share of the longer side, so a box is as visible on a thumbnail as on a scan."""


def apply_edits(picture: PIL.Image.Image, edits: Sequence[str]) -> PIL.Image.Image:
    """Apply each edit `name:arguments` in turn."""
    for edit in edits:
        name, _, arguments = edit.partition(":")
        if name not in EDITS:
            raise DataError(f"unknown image edit {name!r}{did_you_mean(name, EDITS)}")
        picture = EDITS[name](picture, arguments)
    return picture


def draw_box(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Draw a rectangle given as fractions `x0,y0,x1,y1[,colour]`."""
    numbers = arguments.split(",")
    colour = numbers.pop() if len(numbers) == 5 else ""
    left, top, right, bottom = _to_pixels(numbers, picture.size)
    marked = picture.convert("RGB")
    width = max(2, round(max(picture.size) * BOX_WIDTH_SHARE))
    PIL.ImageDraw.Draw(marked).rectangle((left, top, right - 1, bottom - 1), outline=colour or BOX_COLOUR, width=width)
    return marked


def crop(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Cut out a rectangle given as fractions `x0,y0,x1,y1`."""
    return picture.crop(_to_pixels(arguments.split(","), picture.size))


def perturb(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Degrade the picture: `family:severity[:seed[:calibration]]`, by the registered edit `perturb`."""
    family, *numbers = arguments.split(":")
    if not 1 <= len(numbers) <= 3 or not all(number.isdigit() for number in numbers):
        raise DataError(f"perturbation {arguments!r} is not family:severity[:seed[:calibration]]")
    severity, seed, calibrated = map(int, (*numbers, *("0", str(UNSTATED))[len(numbers) - 1 :]))
    # Registered by name: the families are a large module that most runs never need.
    module = default_registry().get("edit", "perturb")
    result: PIL.Image.Image = module.apply(picture, family, severity, seed, calibrated)
    return result


def _to_pixels(numbers: Sequence[str], size: tuple[int, int]) -> tuple[int, int, int, int]:
    try:
        x0, y0, x1, y1 = (min(1.0, max(0.0, float(number))) for number in numbers)
    except ValueError:
        raise DataError(f"a box needs four fractions x0,y0,x1,y1, not {','.join(numbers)!r}") from None
    if x1 <= x0 or y1 <= y0:
        raise DataError(f"box {','.join(numbers)!r} is empty")
    width, height = size
    left, top = min(width - 1, int(x0 * width)), min(height - 1, int(y0 * height))
    return left, top, max(left + 1, round(x1 * width)), max(top + 1, round(y1 * height))


def scale(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Shrink to a share of both sides, `scale:0.5`."""
    try:
        share = float(arguments)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise DataError(f"scale {arguments!r} is not a share between 0 and 1")
    size = max(1, round(picture.width * share)), max(1, round(picture.height * share))
    return picture.resize(size, PIL.Image.Resampling.LANCZOS)


def fit(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Shrink until the longest side is no longer than so many pixels, `fit:448`."""
    if not arguments.isdigit() or not int(arguments):
        raise DataError(f"fit {arguments!r} is not a number of pixels")
    share = int(arguments) / max(picture.size)
    if share >= 1:
        return picture
    size = max(1, round(picture.width * share)), max(1, round(picture.height * share))
    return picture.resize(size, PIL.Image.Resampling.LANCZOS)


EDITS: dict[str, Edit] = {"box": draw_box, "crop": crop, "fit": fit, "perturb": perturb, "scale": scale}
