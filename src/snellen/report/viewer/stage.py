"""The pictures of a trial to stages one can zoom into, with the regions that data and reply name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from ...core.builtins import parts_of
from ...core.markup import Child, Html, join, tag
from ...core.types import Image, ImageSent, TrialKey
from ...data.images.decode import CHANGED
from ...data.images.whole_video import is_whole_video
from ...data.regions import is_box, told_boxes
from ...scoring.tables.table import TrialColumns
from ...store.reader import RunReader
from ..pages.gallery import Shown, seen_pictures
from .run_library import OpenRun
from .shell import link, picture, trial_address
from .walk import Walk

Box = tuple[float, float, float, float]


class Looked(msgspec.Struct, frozen=True):
    """A region that was looked at, on a picture of the question: shares of its sides, and which look it was."""

    picture: int
    name: str
    box: Box


def kit_trial(run: OpenRun, shown: Shown, columns: TrialColumns, walk: Walk) -> Iterator[Child]:
    """Yield what kits say of a trial."""
    for _, trial in parts_of(columns.task, "trial", run.registry):
        yield from trial(run, shown, columns, walk)


def _looked_at(run: OpenRun, shown: Shown) -> list[Looked]:
    """Return the regions that were looked at in a trial, as kits know them."""
    named = parts_of(run.task(shown.prediction.key.task), "regions", run.registry)
    return [one for _, regions in named for one in regions(run.reader, shown)]


def look_layers(looked: Sequence[Looked], picture: int) -> Iterator[Html]:
    """Yield the rectangles of looks on a picture, and their numbers, which are not stretched with it."""
    own = [one for one in looked if one.picture == picture]
    if not own:
        return
    boxes = [
        tag("rect", x=x0, y=y0, width=x1 - x0, height=y1 - y0, class_="looked")
        for x0, y0, x1, y1 in (one.box for one in own)
    ]
    yield tag("svg", *boxes, viewBox="0 0 1 1", preserveAspectRatio="none", aria_hidden="true")
    numbers = [
        tag("text", one.name, x=f"{one.box[0] * 100:.2f}%", y=f"{one.box[1] * 100:.2f}%", dx=3, dy=14, class_="looked")
        for one in own
    ]
    yield tag("svg", *numbers, role="img", aria_label=f"Looked at: {', '.join(one.name for one in own)}")


PICTURES = 60
TOOLS = (
    ("in", "+", "Larger"),
    ("out", "−", "Smaller"),
    ("fit", "Fit", "As wide as its place"),
    ("actual", "1:1", "One pixel is one pixel"),
    ("grid", "Grid", "Show the grid of pixels"),
    ("full", "Full screen", "Fill the screen, or leave it"),
)
HINT = (
    "Click a picture to see it pixel by pixel, then zoom by wheel or + and −, drag to move, "
    "G for the grid, F for the full screen."
)
_FOUR = re.compile(r"[\[(<]\s*" + r"\s*,\s*".join([r"(-?\d{1,6}(?:\.\d{1,9})?)"] * 4) + r"\s*[\])>]")
"""Four numbers in brackets, as a reply names a region."""


def pictures_of(shown: Shown) -> list[Image]:
    """Return all pictures of a request in the order sent."""
    return [image for turn in shown.request.messages for image in turn.images]


class _Turn(msgspec.Struct):
    images: list[Image] = []


class _Asked(msgspec.Struct):
    """The part of a request that holds its pictures; the rest is skipped, not decoded."""

    messages: list[_Turn] = []


class _Answered(msgspec.Struct):
    """The part of a reply that says what was sent."""

    images: list[ImageSent] = []


_decode = msgspec.json.Decoder(_Asked).decode
_decode_sent = msgspec.json.Decoder(_Answered).decode
_REQUEST = "SELECT request, body FROM predictions WHERE task = ? AND sample = ? AND variant = ? AND repeat = ?"


def stored_pictures(reader: RunReader, key: TrialKey) -> list[Image] | None:
    """Return the pictures of a stored request as they were sent: hundreds are asked for on one page.

    None if it is not stored.
    """
    found = next(reader.rows(_REQUEST, msgspec.structs.astuple(key)), None)
    if found is None:
        return None
    images = [image for turn in _decode(found[0]).messages for image in turn.images]
    sent = _decode_sent(found[1]).images
    if len(sent) != len(images):
        return images
    pictures = seen_pictures(reader)
    return [pictures.seen(image, record) for image, record in zip(images, sent, strict=True)]


def pictures_part(run: OpenRun, shown: Shown) -> Html:
    """Return the strip of all pictures or pages, and a stage for each."""
    images = pictures_of(shown)
    if not images:
        return tag("p", "No picture was sent.", class_="muted")
    if all(map(is_whole_video, images)):
        return tag("p", "No picture was sent: the video went out as its file.", class_="muted")
    looked = _looked_at(run, shown)
    stages = [_stage(run, shown, n, image, looked) for n, image in enumerate(images[:PICTURES])]
    more = tag("p", f"and {len(images) - PICTURES:,} more pictures", class_="muted") if len(images) > PICTURES else None
    overview = _strip(run, shown, images[:PICTURES]) if len(images) > 1 else ""
    return join((overview, *stages, more, _key(shown, images, bool(looked)), tag("p", HINT, class_="muted small")))


def _strip(run: OpenRun, shown: Shown, images: Sequence[Image]) -> Html:
    made = []
    for n, image in enumerate(images):
        name = f"Page {image.page}" if image.page is not None else _when(image) or f"Picture {n + 1}"
        made.append(link((picture(run, shown.prediction.key, n=n), tag("span", name, class_="small")), f"#picture-{n}"))
    return tag("div", *made, class_="strip", tabindex=0, role="group", aria_label="All pictures of this trial")


def _stage(run: OpenRun, shown: Shown, number: int, image: Image, looked: Sequence[Looked]) -> Html:
    seen = [image for turn in shown.seen.messages for image in turn.images][number]
    if seen.ref.startswith(CHANGED):
        name = image.ref.rpartition("/")[2]
        words = f"Picture {number + 1} ({name}) changed since it was sent, and no copy of it was kept: not shown."
        return tag("p", words, class_="card")
    source = trial_address(run, shown.prediction.key, "image", n=number)
    picture = tag("img", src=source, alt=f"Picture {number + 1} of {shown.sample.id} as sent", loading="lazy")
    kinds = (("told", boxes_of(shown, number, image)), ("said", answer_boxes(shown, number, image)))
    boxes = [_rect(box, kind) for kind, found in kinds for box in found]
    layer = tag("svg", *boxes, viewBox="0 0 1 1", preserveAspectRatio="none", aria_hidden="true") if boxes else None
    pane = tag("div", tag("div", picture, layer, *look_layers(looked, number), class_="frame"), class_="pane")
    buttons = [tag("button", sign, type="button", title=words, data_do=name) for name, sign, words in TOOLS]
    tools = tag("div", *buttons, class_="tools", role="toolbar", aria_label=f"Zoom of picture {number + 1}")
    label, name = f"Picture {number + 1}, enlargeable", f"picture-{number}"
    told = tag("p", _when(image), class_="muted small") if image.frame is not None else None
    return tag(
        "div", tools, pane, told, class_="stage", id=name, tabindex=0, role="group", aria_label=label, data_zoom=True
    )


def _when(image: Image) -> str:
    """Return which frame of a video a picture is; nothing for any other picture."""
    return "" if image.frame is None else f"{image.frame.seconds:.3f} s · frame {image.frame.index}"


def _rect(box: Box, kind: str) -> Html:
    x0, y0, x1, y1 = box
    return tag("rect", x=x0, y=y0, width=max(0.0, x1 - x0), height=max(0.0, y1 - y0), class_=kind)


def _key(shown: Shown, images: Sequence[Image], looked: bool) -> Html | None:
    """Say which box is whose, and where a reply's region could not be drawn."""
    told, said = (
        any(list(boxes(shown, n, image)) for n, image in enumerate(images)) for boxes in (boxes_of, answer_boxes)
    )
    off = told and not said and _FOUR.search(shown.prediction.text or "") is not None
    words = (
        ("solid: the region of the data", told),
        ("dashed: the region the reply names, taken as x0, y0, x1, y1", said),
        ("dotted, with numbers: what it looked at, by turn", looked),
        ("the reply names a region that does not lie on the picture", off),
    )
    here = [sentence for sentence, holds in words if holds]
    return tag("p", "; ".join(here), class_="muted small") if here else None


def boxes_of(shown: Shown, number: int, image: Image) -> Iterator[Box]:
    """Yield regions to outline on a picture, as fractions: `boxes` or `box` of the sample's meta or columns."""
    number = number if image.page is None else image.page - 1  # one of some pages keeps its own number
    for each in told_boxes(shown.sample):
        page, values = (each.get("page", 0), each.get("box")) if isinstance(each, dict) else (0, each)
        if page == number and is_box(values) and (max(values) <= 1.0 or (image.width and image.height)):
            yield _fractions(values, image)


def answer_boxes(shown: Shown, number: int, image: Image) -> Iterator[Box]:
    """Yield the region a reply names, where the data names one too and it lies on the picture: no scale is guessed."""
    found = _FOUR.search(shown.prediction.text or "")
    if found is None or number or not told_boxes(shown.sample):
        return
    values = [float(part) for part in found.groups()]
    if max(values) <= 1.0 or (image.width and image.height):
        box = _fractions(values, image)
        if _lies_on(box):
            yield box


def _lies_on(box: Box) -> bool:
    x0, y0, x1, y1 = box
    return 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1


def _fractions(values: Sequence[float], image: Image) -> Box:
    pixels = max(values) > 1.0 and image.width and image.height
    scale = (image.width or 1, image.height or 1) if pixels else (1, 1)
    x0, y0, x1, y1 = (value / scale[place % 2] for place, value in enumerate(values))
    return x0, y0, x1, y1
