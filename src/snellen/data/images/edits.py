"""Edits written in an Image reference (`box:…`, `crop:…`, `perturb:…`), applied to its pixels in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import PIL.Image
import PIL.ImageDraw
import PIL.ImageFilter
import PIL.ImageOps
import PIL.ImageStat

from ...core.builtins import default_registry
from ...core.errors import DataError, did_you_mean
from .frames import PictureError, check_pixels

CALIBRATION = 3
"""What new runs and folders use. 1: the table of releases 0.1 and 0.2, which stated no number; 2 was not released."""
UNSTATED = 1


def calibrated_variant(variant: str) -> str:
    """Return a variant as a run's identity holds it: with the number, if it degrades anything."""
    axes = variant.split("&")
    return "&".join(f"{axis}@{CALIBRATION}" if axis.startswith("perturb=") else axis for axis in axes)


def stated_calibration(config: Mapping[str, Any]) -> dict[str, int]:
    """Return `{"perturb_calibration": N}` of a run's identity, or nothing if the run degrades no picture."""
    variants = [str(variant) for task in (config.get("tasks") or {}).values() for variant in task.get("variants", ())]
    parts = [part for variant in variants for part in variant.split("&") if part.startswith("perturb=")]
    numbers = [part.partition("@")[2] for part in parts]
    return {"perturb_calibration": int(numbers[0] or UNSTATED)} if numbers else {}


Edit = Callable[[PIL.Image.Image, str], PIL.Image.Image]

BOX_COLOUR = "#e8222e"
GREY = (127, 127, 127)
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
    left, top, right, bottom = to_pixels(numbers, picture.size)
    marked = picture.convert("RGB")
    width = max(2, round(max(picture.size) * BOX_WIDTH_SHARE))
    PIL.ImageDraw.Draw(marked).rectangle((left, top, right - 1, bottom - 1), outline=colour or BOX_COLOUR, width=width)
    return marked


def crop(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Cut out a rectangle given as fractions `x0,y0,x1,y1`."""
    return picture.crop(to_pixels(arguments.split(","), picture.size))


def perturb(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Degrade the picture: `family:severity[:seed[:calibration]]`, by the registered edit `perturb`."""
    family, *numbers = arguments.split(":")
    if not 1 <= len(numbers) <= 3 or not all(number.isdigit() for number in numbers):
        raise DataError(f"perturbation {arguments!r} is not family:severity[:seed[:calibration]]")
    severity, seed, calibrated = map(int, (*numbers, *("0", str(UNSTATED))[len(numbers) - 1 :]))
    result: PIL.Image.Image = _perturbations().apply(picture, family, severity, seed, calibrated)
    return result


@cache
def _perturbations() -> Any:
    """Return the families of degradations: most runs never need them, those that do for every picture."""
    return default_registry().get("edit", "perturb")


def to_pixels(numbers: Sequence[str], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return a box in fractions of a picture as pixels of it."""
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


def blank(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Return a grey picture of the same size: nothing to see, and as many visual tokens."""
    return PIL.Image.new("RGB", picture.size, GREY)


def region(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Cut out a rectangle given in pixels, `region:left,top,right,bottom`; right and bottom are the first outside."""
    try:
        left, top, right, bottom = map(int, arguments.split(","))
    except ValueError:
        raise DataError(f"region {arguments!r} is not left,top,right,bottom in pixels") from None
    if not (0 <= left < right <= picture.width and 0 <= top < bottom <= picture.height):
        raise DataError(f"region {arguments!r} does not lie on a picture of {picture.width}x{picture.height}")
    return picture.crop((left, top, right, bottom))


FILTERS = {"lanczos": PIL.Image.Resampling.LANCZOS, "bicubic": PIL.Image.Resampling.BICUBIC}


def resize(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Draw in another size, `resize:WIDTHxHEIGHT:lanczos|bicubic`."""
    size, _, name = arguments.partition(":")
    width, _, height = size.partition("x")
    if not (width.isdigit() and height.isdigit() and int(width) and int(height) and name in FILTERS):
        raise DataError(f"resize {arguments!r} is not WIDTHxHEIGHT:lanczos or :bicubic")
    try:
        check_pixels(int(width), int(height))
    except PictureError as error:
        raise DataError(f"resize {arguments!r}: {error}") from None
    return picture.resize((int(width), int(height)), FILTERS[name])


TURNS = {
    "90": PIL.Image.Transpose.ROTATE_270,
    "180": PIL.Image.Transpose.ROTATE_180,
    "270": PIL.Image.Transpose.ROTATE_90,
}


def turn(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Turn clockwise by 90, 180 or 270 degrees: pixels change their places and nothing else."""
    if arguments not in TURNS:
        raise DataError(f"turn {arguments!r} is none of {', '.join(TURNS)} degrees")
    return picture.transpose(TURNS[arguments])


def enhance(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Make things easier to see, `enhance:contrast|brighten|sharpen|invert`, by fixed rules."""
    if arguments not in ENHANCEMENTS:
        raise DataError(f"enhance {arguments!r} is none of {', '.join(ENHANCEMENTS)}")
    return ENHANCEMENTS[arguments](picture)


def _stretch(picture: PIL.Image.Image) -> PIL.Image.Image:
    """Map the 1st percentile of each channel to 0 and the 99th to 255."""
    return PIL.Image.merge(picture.mode, [channel.point(_stretch_table(channel)) for channel in picture.split()])


def _stretch_table(channel: PIL.Image.Image) -> list[int]:
    counts = channel.histogram()
    low, high = (_percentile(counts, share) for share in (0.01, 0.99))
    if high <= low:
        return list(range(256))
    return [min(255, max(0, round((value - low) * 255 / (high - low)))) for value in range(256)]


def _percentile(counts: Sequence[int], share: float) -> int:
    """Return the least value that so large a share of pixels does not pass."""
    wanted, seen = share * sum(counts), 0
    for value, count in enumerate(counts):
        seen += count
        if seen >= wanted:
            return value
    return 255


def _brighten(picture: PIL.Image.Image) -> PIL.Image.Image:
    table = [round(255 * (value / 255) ** 0.5) for value in range(256)]
    return picture.point(table * len(picture.getbands()))


def _sharpen(picture: PIL.Image.Image) -> PIL.Image.Image:
    return picture.filter(PIL.ImageFilter.UnsharpMask(radius=2, percent=150, threshold=0))


ENHANCEMENTS: dict[str, Callable[[PIL.Image.Image], PIL.Image.Image]] = {
    "contrast": _stretch,
    "brighten": _brighten,
    "sharpen": _sharpen,
    "invert": PIL.ImageOps.invert,
}


def grey(picture: PIL.Image.Image, arguments: str) -> PIL.Image.Image:
    """Return a plain picture of the same size, `grey:mean` in its mean colour, `grey:127` in that grey."""
    if arguments == "mean":
        means = tuple(map(round, PIL.ImageStat.Stat(picture).mean))
        return PIL.Image.new(picture.mode, picture.size, means[0] if len(means) == 1 else means)
    if not arguments.isdigit() or int(arguments) > 255:
        raise DataError(f"grey {arguments!r} is neither `mean` nor a number to 255")
    return PIL.Image.new("L", picture.size, int(arguments))


EDITS: dict[str, Edit] = {
    "blank": blank,
    "box": draw_box,
    "crop": crop,
    "enhance": enhance,
    "fit": fit,
    "grey": grey,
    "perturb": perturb,
    "region": region,
    "resize": resize,
    "scale": scale,
    "turn": turn,
}
