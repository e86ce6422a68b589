"""A sample and the axes `pages` and `control` into the images that are shown and the text beside them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ..core.errors import ConfigError, not_among
from ..core.types import Image, Sample
from ..core.variants import BLANK, NO_VIDEO, OTHER, WITHOUT_PAGE
from .controls import RECALL, OtherPictures, as_many

CONTROLS = ("text", "oracle", "none", "transcript", NO_VIDEO, BLANK, OTHER, WITHOUT_PAGE, RECALL)
"""Same question, other evidence: the text itself, only the needle's page, nothing, the embedded reader's transcript,
everything but the videos, grey pictures, those of another sample, all pages but the needle's.
`recall` asks how the text goes on instead."""
STANDING_IN = (BLANK, OTHER)
"""Controls that show a picture in the place of every picture."""


def choose_pages(sample: Sample, axes: Mapping[str, str], others: OtherPictures | None = None) -> tuple[Image, ...]:
    """Return a trial's images: a rendering (`pages=NAME`), and what `control` makes of it."""
    control = _control(axes)
    if control == OTHER and others is not None:
        rest = {axis: value for axis, value in axes.items() if axis != "control"}
        return as_many(choose_pages(others.demand(sample), rest), len(choose_pages(sample, rest)))
    images = sample.images
    if "pages" in axes:
        pages = sample.meta.get("pages", {}).get(axes["pages"], ())
        edits = tuple(sample.meta.get("edits", {}).get(axes["pages"], ()))
        images = tuple(Image(str(ref), page=number, edits=edits) for number, ref in pages)
    if control == "oracle":
        wanted = needle_pages(sample, axes.get("pages", ""))
        return tuple(image for place, image in enumerate(images, start=1) if (image.page or place) in wanted)
    if control == WITHOUT_PAGE:
        wanted = needle_pages(sample, axes.get("pages", ""))
        return tuple(image for place, image in enumerate(images, start=1) if (image.page or place) not in wanted)
    if control == BLANK:
        return tuple(replace(image, edits=(*image.edits, BLANK)) for image in images)
    return images if control in (None, NO_VIDEO) else ()


def needle_pages(sample: Sample, name: str) -> set[int]:
    """Return the pages that hold the answer in a rendering; none where it breaks its pages elsewhere, or may."""
    known = sample.meta.get("needle_pages_in", {})
    if name in known:
        return set(known[name])
    pages = sample.meta.get("pages", {}).get(name, ())
    same = not name or len(pages) == len(sample.images)  # a degraded copy has the pages of what it was made from
    return set(sample.meta.get("needle_pages", ())) if same else set()


def with_context(sample: Sample, axes: Mapping[str, str], text: str) -> str:
    """Put the document itself (or its transcript) before the question where a control asks for it."""
    control = _control(axes)
    if control not in ("text", "transcript"):
        return text
    context = sample.meta.get("context" if control == "text" else "transcript")
    return f"{context}\n\n{text}" if context else text


def skip_reason(sample: Sample, axes: Mapping[str, str]) -> str | None:
    """Return why a trial cannot be asked (no pages, a gap, too many), or None."""
    control = _control(axes)
    if control in ("none", "text", "transcript"):
        name = {"text": "context", "transcript": "transcript"}.get(str(control))
        missing = name is not None and not sample.meta.get(name)
        return f"no {name} was loaded: add dataset.controls = [{control!r}]" if missing else None
    return _no_pages(sample, axes.get("pages", ""), oracle=control in ("oracle", WITHOUT_PAGE))


def _no_pages(sample: Sample, name: str, *, oracle: bool) -> str | None:
    skipped: Mapping[str, str] = sample.meta.get("skip", {})
    if name in skipped:
        return skipped[name]
    if name and name not in sample.meta.get("pages", {}):
        return f"no pages in variant {name!r}"
    if oracle and not needle_pages(sample, name):
        return "the page that holds the answer is not known" + (f" in variant {name!r}" if name else "")
    return None


def _control(axes: Mapping[str, str]) -> str | None:
    control = axes.get("control")
    if control is not None and control not in CONTROLS:
        raise ConfigError(f"control {not_among(control, CONTROLS, ' is unknown')}")
    return control
