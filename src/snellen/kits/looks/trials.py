"""The stored turns of a task to what each trial did with its tools: its calls, what it looked at, and what it took."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ...core.looks import Look, LookEnd
from ...core.types import ImageSent, Sample, Timing, Usage
from ...data.regions import is_box, told_boxes
from ...model.served.prices import Prices, Tokens
from ...store.reader import RunReader
from .standins import gold_box

Key = tuple[str, str, int]
"""sample, variant, repeat"""
Box = tuple[float, float, float, float]
"""left, top, right, bottom in pixels of the source file"""


class LookTrial(NamedTuple):
    """One trial of a run with tools; of one that was offered none (the arm `plain`) there is no `end`."""

    end: LookEnd | None
    tokens: int
    """Of all its turns, given and made; 0 where the server did not count."""
    seconds: float
    """NaN where it is not known."""
    money: float
    """NaN where the price or the tokens are not known."""
    looks: tuple[Look, ...] = ()
    """What its calls came to, in order."""
    sizes: tuple[tuple[int, int], ...] = ()
    """Width and height of the pictures that were sent, before the model's own size policy."""

    @property
    def called(self) -> bool:
        """Tell whether a tool was called, well or not."""
        return self.end is not None and self.end.calls > 0


class _Detail(Struct):
    look: LookEnd | None = None


class _Reply(Struct):
    """The part of a reply that says what it took; the rest is skipped, not decoded."""

    detail: _Detail = msgspec.field(default_factory=_Detail)
    usage: Usage | None = None
    timing: Timing | None = None
    cached: bool = False
    images: tuple[ImageSent, ...] = ()


class _Looks(Struct):
    looks: tuple[Look, ...] = ()


_REPLIES = "SELECT sample, variant, repeat, body FROM predictions WHERE +task = ?"
_LOOKS = "SELECT sample, variant, repeat, looks FROM turns WHERE task = ? AND turn > 0 ORDER BY turn"
_ANY = "SELECT 1 FROM turns WHERE task = ? LIMIT 1"
_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'turns'"


def has_looks(reader: RunReader, task: str) -> bool:
    """Tell whether a task was asked with tools."""
    known = next(reader.rows(_TABLE), None) is not None  # a run of 0.2 has no such table
    return known and next(reader.rows(_ANY, (task,)), None) is not None


def look_trials(reader: RunReader, task: str, prices: Prices | None = None) -> dict[Key, LookTrial]:
    """Return every trial of a task that was asked with tools; nothing of any other task."""
    if not has_looks(reader, task):
        return {}
    looks: dict[Key, tuple[Look, ...]] = {}
    decode_looks = msgspec.json.Decoder(_Looks).decode
    for sample, variant, repeat, body in reader.rows(_LOOKS, (task,)):
        key = (sample, variant, repeat)
        looks[key] = looks.get(key, ()) + decode_looks(body).looks
    decode = msgspec.json.Decoder(_Reply).decode
    return {
        (sample, variant, repeat): _trial(decode(body), looks.get((sample, variant, repeat), ()), prices)
        for sample, variant, repeat, body in reader.rows(_REPLIES, (task,))
    }


def _trial(reply: _Reply, looks: tuple[Look, ...], prices: Prices | None) -> LookTrial:
    end, usage, timing = reply.detail.look, reply.usage, reply.timing
    if end is not None:
        given, made = end.tokens
        seconds = end.seconds or math.nan
    else:
        given, made = ((usage.input_tokens or 0), (usage.output_tokens or 0)) if usage else (0, 0)
        seconds = math.nan if timing is None or reply.cached else timing.done - timing.sent
    money = prices.cost(Tokens(input=given, output=made)) if prices and given else math.nan
    sizes = tuple(one.original or (one.width, one.height) for one in reply.images)
    tokens = given + made if given else 0  # a count of what was made alone is no cost
    return LookTrial(end, tokens, seconds, money, looks, sizes)


def size_of(sample: Sample, picture: int, fact: LookTrial) -> tuple[int, int] | None:
    """Return the size of a picture's source (counted from 0); None where nobody knows it, as of one that was shrunk."""
    image = sample.images[picture] if picture < len(sample.images) else None
    if image is None:
        return None
    if image.width and image.height:
        return image.width, image.height
    return fact.sizes[picture] if picture < len(fact.sizes) and not image.edits else None


def gold_boxes(
    sample: Sample, picture: int, size: tuple[int, int] | None, options: Mapping[str, Any] = MappingProxyType({})
) -> list[Box]:
    """Return the regions that the data names on a picture of a sample (counted from 0), in its pixels.

    `boxes` or `box` of its meta or tags, in pixels or as fractions, which need the picture's `size`; else an answer in
    the coordinates that the card's `options` state, as the arm `gold` takes it.
    """
    if picture >= len(sample.images):
        return []
    page = sample.images[picture].page
    found = list(_placed(told_boxes(sample), size, picture if page is None else page - 1))
    if found or picture or size is None:
        return found
    own = gold_box(sample, options, size)
    return [] if own is None else [own]


def _placed(told: Iterable[Any], size: tuple[int, int] | None, page: int) -> Iterator[Box]:
    for each in told:
        at, values = (each.get("page", 0), each.get("box")) if isinstance(each, Mapping) else (0, each)
        if at != page or not is_box(values) or (max(values) <= 1.0 and size is None):
            continue
        across, down = size if size is not None and max(values) <= 1.0 else (1, 1)
        left, top, right, bottom = values[0] * across, values[1] * down, values[2] * across, values[3] * down
        if left < right and top < bottom:
            yield left, top, right, bottom


def source_of(look: Look, sample: Sample, before: Sequence[Look]) -> int:
    """Return which picture of the sample a look was about, counted from 0; a look at a crop is one at its source.

    A frame of a film is none of them: it counts as one after the last.
    """
    if look.image is not None and look.image.frame is not None and not look.image.frame.still:
        return len(sample.images)
    places = [place for place, image in enumerate(sample.images) if look.image and image.ref == look.image.ref]
    if len(places) == 1:
        return places[0]
    if look.picture <= len(sample.images):
        return max(0, look.picture - 1)
    parent = next((one for one in before if one.shown == look.picture), None)
    return 0 if parent is None else source_of(parent, sample, [one for one in before if one is not parent])
