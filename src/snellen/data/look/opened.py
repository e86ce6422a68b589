"""A question's picture, or a frame of its film, to a view of it: reads files, so never on an event loop."""

from __future__ import annotations

from msgspec.structs import replace

from ...core.errors import DataError
from ...core.types import Image
from ..images.decode import open_image, read_bytes, read_header
from ..images.edits import apply_edits, to_pixels
from ..video.unfold import Film, sized
from .views import View, first_view


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
