"""The tools that a model may call: what each is told, and what a call comes to. Nothing of a reply is executed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from ...core.looks import Box, Look
from ...core.types import Tool
from ...data.images.edits import ENHANCEMENTS
from ...data.video.unfold import Film
from .films import MOST_FRAMES, find_moments
from .views import CallError, View, ZoomRules, draw, overlap, read_box, read_number, zoom

TOOLS = ("zoom", "turn", "enhance", "measure", "frame", "page")
SAME = 0.95
"""Regions that share so much are the same look."""
POINTS = {"0-1": "shares of the picture from 0 to 1", "0-1000": "from 0 to 1000 along each side"}


class Terms(NamedTuple):
    """Under which terms calls are done: the frame of coordinates, the rules of a zoom, the model's longest side."""

    frame: str
    rules: ZoomRules = ZoomRules()
    longest: int = 2048
    addressable: str = "all"
    """Which pictures may be named: `all`, `question` (those of the question) or `first`."""
    counted_from: int = 1


class Done(NamedTuple):
    """What a call came to, or one picture of it where it shows several."""

    look: Look
    view: View | None = None
    """The new view, where it shows one."""


def describe(names: Sequence[str], terms: Terms) -> tuple[Tool, ...]:
    """Return the tools as they are offered: the frame stands in the words and in the schema."""
    made = {
        "zoom": Tool("zoom", f"Look closer at a region of a picture. {_frame_words(terms.frame)}", _zoom_schema(terms)),
        "turn": Tool("turn", "Turn a picture clockwise.", _object(degrees={"type": "integer", "enum": [90, 180, 270]})),
        "enhance": Tool(
            "enhance",
            "Change a picture so that faint things are seen.",
            _object(what={"type": "string", "enum": list(ENHANCEMENTS)}),
        ),
        "measure": Tool(
            "measure",
            f"Measure the distance of two points of a picture. {_frame_words(terms.frame)}",
            _object(**{name: _numbers(2, terms) for name in ("start", "end")}),
        ),
        "frame": Tool("frame", FRAME_WORDS, _frame_schema()),
        "page": Tool("page", "See a page of the document in its own size.", _object(picture=None, number=NUMBER)),
    }
    return tuple(made[name] for name in names)


NUMBER = {"type": "integer", "minimum": 1}
FRAME_WORDS = (
    "See frames of the film in their own size: the one nearest to a time in seconds, "
    f"or up to {MOST_FRAMES} evenly from the first to the last of two times."
)


def _frame_schema() -> dict[str, Any]:
    second = {"type": "number", "minimum": 0}
    count = {"type": "integer", "minimum": 1, "maximum": MOST_FRAMES}
    fields = {"seconds": second, "first": second, "last": second, "count": count, "film": NUMBER}
    return {"type": "object", "properties": fields, "additionalProperties": False}


def _frame_words(frame: str) -> str:
    words = POINTS.get(frame, "pixels of the picture")
    return (
        f"Coordinates count {words}, from the left and from the top. Pictures are numbered from 1 as they were shown."
    )


def _zoom_schema(terms: Terms) -> dict[str, Any]:
    return _object(box=_numbers(4, terms) | {"description": "left, top, right, bottom"})


def _numbers(count: int, terms: Terms) -> dict[str, Any]:
    most = {"0-1": {"maximum": 1}, "0-1000": {"maximum": 1000}}.get(terms.frame, {})
    items = {"type": "number", "minimum": 0, **most}
    return {"type": "array", "items": items, "minItems": count, "maxItems": count}


def _object(**properties: Mapping[str, Any] | None) -> dict[str, Any]:
    fields = {"picture": NUMBER, **properties}
    kept = {name: value for name, value in fields.items() if value is not None}
    return {"type": "object", "properties": kept, "required": list(kept), "additionalProperties": False}


def run_calls(
    name: str,
    arguments: Mapping[str, Any],
    views: Sequence[View],
    terms: Terms,
    looks: Sequence[Look],
    *,
    films: Sequence[Film] = (),
) -> list[Done]:
    """Do one call, which may show several pictures; raises CallError with a class where it cannot be done."""
    if name == "frame":
        return [Done(*moment) for moment in find_moments(arguments, films, views)]
    return [run_call(name, arguments, views, terms, looks)]


def run_call(
    name: str, arguments: Mapping[str, Any], views: Sequence[View], terms: Terms, looks: Sequence[Look]
) -> Done:
    """Do a call that shows one picture or none, on the pictures shown so far."""
    if name == "page":
        return _page(arguments, views)
    number, view = _picture(arguments.get("picture", terms.counted_from), views, terms)
    if name == "measure":
        return Done(Look(0, name, picture=number, told=_measured(arguments, view, terms.frame)))
    zoomed = _seen(name, arguments, view, terms)
    region = zoomed.view.source(zoomed.view.region)
    same = (
        any(is_same(look, name, number, region) for look in looks) if name == "zoom" else _is_shown(zoomed.view, views)
    )
    if same:
        raise CallError("repeat", "this was shown already: look at the picture that shows it, or answer")
    shown, (width, height) = len(views) + 1, zoomed.view.shown
    where = "left {}, top {}, right {}, bottom {}".format(*zoomed.view.region)
    told = f"Picture {shown}: {where} of picture {_origin(views, number)} in pixels, shown at {width}x{height}"
    told += f", enlarged {zoomed.enlargement:.4g} times." if zoomed.enlargement != 1 else "."
    look = Look(0, name, "", number, region=region, shown=shown, size=(width, height), enlargement=zoomed.enlargement)
    return Done(replace(look, image=zoomed.view.image, told=told, notes=zoomed.notes), zoomed.view)


def is_same(look: Look, tool: str, picture: int, region: Box) -> bool:
    """Tell whether a look showed this region of the same picture already."""
    alike = look.region is not None and (look.tool, look.picture) == (tool, picture)
    return alike and look.problem in ("", "repeat") and overlap(look.region or region, region) >= SAME


def _is_shown(view: View, views: Sequence[View]) -> bool:
    """Tell whether a tool has made the very same picture already."""
    return any(one.image == view.image for one in views if not one.first)


def _origin(views: Sequence[View], number: int) -> int:
    """Return the number of the question's picture that a picture was made of."""
    base = views[number - 1].base
    return next((place for place, view in enumerate(views, 1) if view.first and view.base == base), number)


def _seen(name: str, arguments: Mapping[str, Any], view: View, terms: Terms) -> Any:
    plain = ZoomRules(enlarge=0)
    if name == "zoom":
        box = read_box(arguments.get("box"))
        frame = _mixed(box) if terms.frame == "0-1 or pixels" else terms.frame
        return zoom(view, box, frame, terms.rules, terms.longest)
    if name == "turn":
        degrees = read_number(arguments.get("degrees"))
        if degrees not in (90, 180, 270):
            raise CallError("schema", "degrees must be 90, 180 or 270")
        return draw(view._replace(turned=(view.turned + int(degrees)) % 360), plain, terms.longest)
    what = arguments.get("what")
    if what not in ENHANCEMENTS:
        raise CallError("schema", f"what must be one of {', '.join(ENHANCEMENTS)}")
    return draw(view._replace(enhanced=(*view.enhanced, what)), plain, terms.longest)


def _mixed(box: Sequence[float]) -> str:
    return "0-1" if max(box) < 1 else "pixels"


def _picture(told: object, views: Sequence[View], terms: Terms) -> tuple[int, View]:
    """Return the picture that is named, by its number from 1 whatever the dialect counts from."""
    known = [number for number, view in enumerate(views, 1) if terms.addressable == "all" or view.first]
    known = known[:1] if terms.addressable == "first" else known
    try:
        place = int(told) if isinstance(told, int | float) and not isinstance(told, bool) else int(str(told).strip())
    except (ValueError, OverflowError):
        place = terms.counted_from - 1
    number = place + 1 - terms.counted_from
    if terms.addressable == "first":
        number = 1
    if number not in known:
        first, last = terms.counted_from, len(known) - 1 + terms.counted_from
        raise CallError("picture", f"there is no picture {str(told)[:40]!r}: name one from {first} to {last}")
    return number, views[number - 1]


def _measured(arguments: Mapping[str, Any], view: View, frame: str) -> str:
    across, down = view.edges(frame)
    points = []
    for name in ("start", "end"):
        told = arguments.get(name)
        if not isinstance(told, Sequence) or isinstance(told, str) or len(told) != 2:
            raise CallError("schema", f"{name} must be two numbers: from the left, from the top")
        x, y = read_number(told[0]) / across, read_number(told[1]) / down
        if not (0 <= x <= 1 and 0 <= y <= 1):
            raise CallError("frame", f"{name} lies outside the picture, which goes to {across:g}, {down:g}")
        points.append(view.to_base((x, y, x, y))[:2])
    (x0, y0), (x1, y1) = points
    distance, angle = math.hypot(x1 - x0, y1 - y0), math.degrees(math.atan2(y0 - y1, x1 - x0))
    share = 100 * distance / view.size[0]
    return (
        f"{distance:.1f} pixels of the source, {share:.1f} % of its width, at {angle:.1f} degrees above the horizontal."
    )


def _page(arguments: Mapping[str, Any], views: Sequence[View]) -> Done:
    number = read_number(arguments.get("number"))
    pages = {view.base.page or place: (place, view) for place, view in enumerate(views, 1) if view.first}
    if number not in pages:
        raise CallError("picture", f"there is no page {number:g}: the document has {len(pages)}")
    place, view = pages[int(number)]
    seen = draw(view, ZoomRules(enlarge=0), 0).view
    if _is_shown(seen, views):
        raise CallError("repeat", f"page {number:g} was shown already: look at its picture, or answer")
    told = f"Picture {len(views) + 1}: page {number:g} at {seen.shown[0]}x{seen.shown[1]}."
    look = Look(0, "page", "", place, region=seen.source(seen.region), shown=len(views) + 1, size=seen.shown)
    return Done(replace(look, image=seen.image, told=told), seen)
