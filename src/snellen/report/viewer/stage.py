"""The pictures of a trial to stages one can zoom into, with the regions that data and reply name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ...core.errors import SnellenError
from ...core.looks import LOOK_ARMS, PLAIN, Look, LookEnd, arm_of, end_of, variant_of_arm
from ...core.markup import Child, Html, join, shorten, tag
from ...core.text import plural
from ...core.types import Image, ImageSent, Sample, ToolCall, TrialKey
from ...data.images.decode import CHANGED, read_bytes, read_header
from ...data.images.whole_video import is_whole_video
from ...data.look.views import SHRINKING
from ...scoring.aggregates.looks import LookArms
from ...scoring.tables.look_trials import has_looks, is_box, source_of, told_boxes
from ...scoring.tables.table import TrialColumns
from ...store.reader import RunReader
from ...store.turns import StoredTurn
from ..pages.gallery import Shown, read_trial, seen_pictures
from ..pages.look_part import ARM_WORDS, KIND_WORDS
from ..pages.parts import reply_text, row_outcome
from .run_library import OpenRun
from .shell import link, picture, trial_address
from .walk import Walk, place_of

Box = tuple[float, float, float, float]
SAID = 600
"""Characters of a reply between looks that are shown."""


class Looked(msgspec.Struct, frozen=True):
    """A region that was looked at, on a picture of the question: shares of its sides, and which look it was."""

    picture: int
    name: str
    box: Box


def turns_of(reader: RunReader, key: TrialKey) -> list[StoredTurn]:
    """Return the turns of a trial; none of a run without tools."""
    return reader.turns(key) if has_looks(reader, key.task) else []


def numbered(turns: Sequence[StoredTurn]) -> list[tuple[str, Look]]:
    """Return every look by the number of its turn; several of one turn have letters: 1, 2a, 2b."""
    looks = [look for turn in turns for look in turn.looks]
    several = Counter(look.turn for look in looks)
    seen: Counter[int] = Counter()
    named = []
    for look in looks:
        letter = "abcdefghijklmnopqrstuvwxyz"[seen[look.turn] % 26] if several[look.turn] > 1 else ""
        seen[look.turn] += 1
        named.append((f"{look.turn + 1}{letter}", look))
    return named


def looked_at(sample: Sample, turns: Sequence[StoredTurn]) -> list[Looked]:
    """Return the regions that were looked at on the question's own pictures, where these show their whole source."""
    named = numbered(turns)
    every = [look for _, look in named]
    sizes = {place: source_size(image) for place, image in enumerate(sample.images)} if named else {}
    found = []
    for name, look in named:
        place = source_of(look, sample, every)
        size = sizes.get(place)
        if look.region is not None and not look.problem and size is not None:
            left, top, right, bottom = look.region
            box = (left / size[0], top / size[1], right / size[0], bottom / size[1])
            found.append(Looked(place, name, box))
    return found


def source_size(image: Image) -> tuple[int, int] | None:
    """Return the size of a picture's source file; None where the picture shows a part of it, or it is gone."""
    if any(not edit.startswith(SHRINKING) for edit in image.edits):
        return None
    if image.width and image.height:
        return image.width, image.height
    try:
        header = read_header(read_bytes(image), image.ref)
    except SnellenError:
        return None
    return header.width, header.height


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


def looks_part(run: OpenRun, shown: Shown, columns: TrialColumns, walk: Walk) -> Iterator[Child]:
    """Yield what a trial did with its tools: how it ended, call → crop → reply, and the other arms."""
    key = shown.prediction.key
    if not columns.looks:
        return
    turns, end = turns_of(run.reader, key), end_of(shown.prediction)
    if end is not None:
        yield tag("h2", "What it looked at")
        yield tag("p", *_ended(end), class_="looked")
        yield tag("div", *_calls_strip(run, key, turns), class_="columns look-cards", tabindex=0, role="region",
                  aria_label="Call, crop and reply, turn by turn")  # fmt: skip
    yield from _arms(run, columns, key, walk)


def _ended(end: LookEnd) -> Iterator[Child]:
    """Yield in words how the trial went."""
    yield f"{plural(end.turns, 'turn')}, {plural(end.calls, 'call')}, {end.looks:,} done. "
    if end.classes:
        yield f"Not done: {', '.join(f'{count:,} {name}' for name, count in end.classes.items())}. "
    yield from ("Ended as ", tag("b", end.end))
    yield f", by the limit {end.limit}." if end.limit else "."
    if end.shared:
        yield f" {plural(end.shared, 'turn')} shared with another arm."
    if end.foreign:
        yield f" The server looked by itself {end.foreign:,} times: not shown."


def _calls_strip(run: OpenRun, key: TrialKey, turns: Sequence[StoredTurn]) -> Iterator[Html]:
    named, places = numbered(turns), picture_places(turns)
    for turn in turns:
        reply = turn.prediction
        parts: list[Child] = [tag("header", f"turn {turn.number + 1}", class_="small muted")]
        if reply.text:
            parts.append(reply_text(reply.text, most=SAID))
        written = {call.id: call for call in reply.calls}
        own = [(name, look) for name, look in named if look.turn == turn.number]
        for name, look in own:
            place = places.get(id(look))
            crop = None if place is None else link(picture(run, key, f"Look {name}", n=place), f"#picture-{place}")
            parts.append(_result(name, look, written.pop(look.call, None), crop, place))
        parts += [_written(call, call.problem or "not run") for call in written.values()]
        if turn is turns[-1]:
            parts.append(tag("p", "the last reply", class_="small muted"))
        yield tag("article", *parts, class_="card")


def picture_places(turns: Sequence[StoredTurn]) -> dict[int, int]:
    """Return where each look's picture stands among those of the last request, by the id of the look's record."""
    asked = sum(len(turn.images) for turn in turns[0].request.messages) if turns else 0
    shown = [look for turn in turns for look in turn.looks if look.image is not None]
    return {id(look): asked + place for place, look in enumerate(shown)}


def _written(call: ToolCall, said: Child) -> Html:
    words = tag("code", f"{call.name} {shorten(call.arguments, 200)}")
    return tag("figure", words, tag("figcaption", said, class_="small"))


def _result(name: str, look: Look, call: ToolCall | None, crop: Html | None, place: int | None) -> Html:
    """Return a call as it was written, where that is no part of the reply's text, and what came of it."""
    written = tag("code", f"{call.name} {shorten(call.arguments, 200)}") if call is not None else None
    if look.problem:
        why = tag("figcaption", tag("b", look.problem), f": {shorten(look.told, 200)}", class_="small")
        return tag("figure", written, why)
    if crop is None or place is None:
        told = tag("figcaption", f"{name} → no picture: {shorten(look.told, 200)}", class_="small")
        return tag("figure", written, told)
    enlarged = f", {look.enlargement:.1f} ×" if look.enlargement != 1.0 else ""
    mended = f" ({', '.join(look.notes)})" if look.notes else ""
    return tag(
        "figure", written, crop, tag("figcaption", f"{name} → picture {place + 1}{enlarged}{mended}", class_="small")
    )


def _arms(run: OpenRun, columns: TrialColumns, key: TrialKey, walk: Walk) -> Iterator[Child]:
    """Yield the same question in every arm: what was shown first, and what came of it."""
    own = arm_of(key.variant)[1]
    cards = []
    for arm in LOOK_ARMS:
        other = TrialKey(key.task, key.sample, variant_of_arm(own, arm), key.repeat)
        shown = read_trial(run.reader, other) if other.variant in columns.variants else None
        if shown is not None:
            cards.append(_arm_card(run, columns, arm, shown, walk, here=other == key))
    if len(cards) > 1:
        yield tag("h2", "The same question in every arm")
        yield from _kind_words(columns, key)
        label = "Arms side by side"
        yield tag("div", *cards, class_="columns look-cards", tabindex=0, role="region", aria_label=label)


def _kind_words(columns: TrialColumns, key: TrialKey) -> Iterator[Html]:
    kinds: Mapping[str, str] = dict(zip(columns.samples, LookArms(columns, columns.looks).kinds(), strict=True))
    if kind := kinds.get(key.sample):
        yield tag("p", f"Over all replies this question is {kind}: {KIND_WORDS[kind]}.", class_="muted")


def _arm_card(run: OpenRun, columns: TrialColumns, arm: str, shown: Shown, walk: Walk, *, here: bool) -> Html:
    key = shown.prediction.key
    place = place_of(columns, key)
    outcome = None if place is None else row_outcome(columns, place)
    to = link(arm, walk.trial(run, key), aria_current="true" if here else None)
    turns = turns_of(run.reader, key)
    places = picture_places(turns)
    first: Child = None
    if places:
        first = picture(run, key, f"What arm {arm} showed first", n=min(places.values()))
    called = any(turn.looks for turn in turns)
    words = tag("p", ARM_WORDS[arm] if called or arm == PLAIN else "no tool was called", class_="small muted")
    return tag("article", tag("p", outcome, " ", to), words, first, reply_text(shown.text, shown.span, most=300),
               class_="card")  # fmt: skip


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
    looked = looked_at(shown.sample, turns_of(run.reader, shown.prediction.key))
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
