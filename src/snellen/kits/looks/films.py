"""The tool `frame`: times that a model names to frames of the film, in their own size."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from ...core.errors import DataError
from ...core.looks import Look
from ...core.types import Image
from ...data.images.decode import open_image, read_bytes, read_header
from ...data.images.edits import apply_edits, to_pixels
from ...data.video.frame_rules import kbps_of
from ...data.video.unfold import FRAMES, Film, sized, unfold
from .views import OUTSIDE, CallError, View, first_view, read_number


def open_view(image: Image) -> View:
    """Return the view of a picture of the question."""
    source = own_frame(image)
    header = read_header(read_bytes(source), source.ref)
    size = header.width, header.height
    if not image.edits and source is image:
        return first_view(image, size, size)
    view = first_view(source, size, open_image(image).size)._replace(image=image)
    picture, left, top = open_image(replace(source, edits=())), 0, 0
    for edit in view.base.edits:
        name, _, numbers = edit.partition(":")
        if name == "turn":
            raise DataError(f"image {image.ref!r}: a turned picture cannot be looked at again")
        if name in ("crop", "region"):
            box = to_pixels(numbers.split(","), picture.size) if name == "crop" else tuple(map(int, numbers.split(",")))
            left, top = left + box[0], top + box[1]
        picture = apply_edits(picture, (edit,))
    return view._replace(size=picture.size, region=(0, 0, *picture.size), offset=(left, top))


def frame_view(film: Film, image: Image) -> View:
    """Return the view of a frame; its size is known without decoding it, unless it is edited or a file of its own."""
    if image.edits or image.frame is None or image.frame.still:
        return open_view(image)
    shown = sized(film.reel, image.frame.side)
    size = film.reel.width, film.reel.height
    return first_view(own_frame(image), size, (shown.width, shown.height))._replace(image=image)


def own_frame(image: Image) -> Image:
    """Return a frame in its own size and without loss, as regions are cut from it; another picture is itself."""
    if image.frame is None or image.frame.still:
        return image
    return replace(image, frame=replace(image.frame, side=0, encoding="png"))


MOST_FRAMES = 8
"""So many frames one call shows at most."""
ARGUMENTS = ("seconds", "first", "last", "count")


class Moment(NamedTuple):
    """A frame that a call asked for, as it is shown."""

    look: Look
    view: View


def check_time(film: Film) -> None:
    """Refuse a film whose time is disturbed: its true frames would undo what was done to it."""
    tempo = film.video.showing.tempo
    if tempo and not kbps_of(tempo):
        raise DataError(f"video {film.video.ref!r}: --tools frame would undo tempo={tempo}; leave one of them out")


def shown_frames(film: Film) -> list[View]:
    """Return the frames of a film that stand in a request as pictures; none where it goes out as a video."""
    if film.video.showing.route != "frames":
        return []
    pieces = unfold(film.video, FRAMES, rough=True).pieces
    return [frame_view(film, piece) for piece in pieces if isinstance(piece, Image)]


def find_moments(arguments: Mapping[str, Any], films: Sequence[Film], views: Sequence[View]) -> list[Moment]:
    """Return the frames that a call asks for and that were not shown yet; refuse what cannot be understood."""
    film = _film(arguments.get("film", 1), films)
    notes: list[str] = []
    places = _places(arguments, film, notes)
    found: list[Moment] = []
    for place in places:
        image = own_size(film.frame(place))
        view = frame_view(film, image)._replace(first=False)
        if any(_shows(one, view) for one in views):
            continue
        number = len(views) + len(found) + 1
        told = f"Picture {number}: the frame at {film.second(place):.2f} s, shown at {view.shown[0]}x{view.shown[1]}."
        look = Look(0, "frame", shown=number, size=view.shown, image=image, told=told, notes=tuple(notes))
        found.append(Moment(look, view))
    if not found:
        raise CallError("repeat", "these frames were shown already: look at their pictures, or answer")
    return found


def own_size(image: Image) -> Image:
    """Return a frame in its own size, written as the film's other frames are."""
    if image.frame is None or image.frame.still:
        return replace(image, edits=tuple(edit for edit in image.edits if not edit.startswith("fit:")))
    return replace(image, frame=replace(image.frame, side=0))


def _shows(shown: View, wanted: View) -> bool:
    """Tell whether a picture shows all of a frame already, in no smaller size."""
    whole = shown.region == (0, 0, *shown.size) and not shown.turned and not shown.enhanced
    return whole and shown.base == wanted.base and shown.shown >= wanted.shown


def _film(told: object, films: Sequence[Film]) -> Film:
    number = read_number(told)
    if number not in range(1, len(films) + 1):
        raise CallError("picture", f"there is no film {str(told)[:40]!r}: the question has {len(films)}")
    return films[int(number) - 1]


def _places(arguments: Mapping[str, Any], film: Film, notes: list[str]) -> list[int]:
    """Return which frames are meant, in order of time, each once."""
    told = [name for name in ARGUMENTS if arguments.get(name) is not None]
    if told == ["seconds"]:
        return [_nearest(film, read_number(arguments["seconds"]), notes)]
    if "seconds" in told or not {"first", "last"} <= set(told):
        raise CallError("schema", "give seconds, or first, last and count")
    count = read_number(arguments.get("count", MOST_FRAMES))
    if count not in range(1, MOST_FRAMES + 1):
        raise CallError("schema", f"count must be a whole number from 1 to {MOST_FRAMES}")
    first, last = read_number(arguments["first"]), read_number(arguments["last"])
    if first > last:
        notes.append("swapped")
        first, last = last, first
    step = (last - first) / (count - 1) if count > 1 else 0.0
    start = first if count > 1 else (first + last) / 2
    return sorted({_nearest(film, start + step * number, notes) for number in range(int(count))})


def _nearest(film: Film, second: float, notes: list[str]) -> int:
    """Return the frame whose time is nearest; a time far outside the film is refused."""
    last = len(film.reel.pts) - 1
    begin, end = film.second(0), film.second(0) + film.reel.duration
    slack = OUTSIDE * (end - begin)
    if not begin - slack <= second <= end + slack:
        raise CallError("frame", f"there is no frame at {second:g} s: the film goes from {begin:.2f} to {end:.2f} s")
    if not begin <= second <= end and "clamped" not in notes:
        notes.append("clamped")
    since = min(max(second - begin, 0.0), film.reel.seconds[last])
    after = bisect_left(film.reel.seconds, since)
    near = [place for place in (after - 1, after) if 0 <= place <= last]
    return min(near, key=lambda place: abs(film.reel.seconds[place] - since))


def other_moment(image: Image, films: Sequence[Film], draw_by: random.Random) -> Image | None:
    """Return a frame from another part of the same film, for an arm that shows something else; None without any."""
    film = next((one for one in films if image.frame is not None and one.has(image)), None)
    if film is None or image.frame is None:
        return None
    count, place = len(film.reel.pts), image.frame.index - film.reel.first
    far = [one for one in range(count) if abs(one - place) > count // 4]
    return own_size(film.frame(draw_by.choice(far))) if far else None
