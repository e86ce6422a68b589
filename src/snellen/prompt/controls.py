"""Controls: the same question with other evidence, or another question of the same sample.

The axes `pages` and `control` of a variant to the pictures and videos that are shown and the text beside them; another
sample's pictures; how the text goes on (`recall`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace

from ..core.errors import ConfigError, not_among
from ..core.ids import derive_seed, rng
from ..core.message_parts import VIDEO_MARKER, all_pictures, all_videos, without_markers
from ..core.types import Image, Params, Request, Sample, Showing, TrialKey, Turn, Video
from ..core.variants import BLANK, NO_VIDEO, OTHER, WITHOUT_PAGE
from ..core.variants import RECALL as RECALL  # noqa: PLC0414 - part of what this module is
from ..data.images.edits import CALIBRATION
from ..data.video.frame_rules import VIDEO_AXES, vary_showing
from .place import Placement, letter_mark

ASK = "This is the beginning of a question of a published test. Reply with nothing but the text that comes next."
MOST_TOKENS = 48
"""A reply is compared with a few words: more need not be paid for."""
NEXT_WORDS = 8
"""Words of a question without options that are to come next."""


def split_text(sample: Sample) -> tuple[str, str]:
    """Return the text that is shown and what comes next: the second option, or the second half of the question."""
    question = without_markers(sample.question).strip()
    if len(sample.options) > 1:
        return f"{question}\n{letter_mark(0)}. {sample.options[0]}\n{letter_mark(1)}.", sample.options[1]
    words = question.split()
    half = len(words) // 2
    return " ".join(words[:half]), " ".join(words[half : half + NEXT_WORDS])


def recall_request(sample: Sample, key: TrialKey, params: Params) -> Request:
    """Return the request of a trial that asks for the next words: no picture, no options to choose from."""
    shown, _ = split_text(sample)
    most = min(params.max_tokens or MOST_TOKENS, MOST_TOKENS)
    return Request(key, (Turn("user", f"{ASK}\n\n{shown}"),), replace(params, max_tokens=most))


TRIES = 64
"""Draws before all samples are looked through: nearly always the first few fit."""


@dataclass(frozen=True, slots=True)
class OtherPictures:
    """Draws, for a question, another sample of the same task: of other pictures, and never of the same answer.

    The draw depends on the seed and the sample alone, so that all repeats, and a run that goes on, see the same one.
    """

    pool: Sequence[Sample]
    seed: int

    @classmethod
    def of(cls, samples: Sequence[Sample], seed: int) -> OtherPictures:
        """Keep what is needed of the samples that show something."""
        return cls([replace(one, question="", turns=()) for one in samples if one.images or one.videos], seed)

    def find(self, sample: Sample) -> Sample | None:
        """Return the other sample, with as many pictures as this one if there is one; None if none may stand in."""
        if not self.pool:
            return None
        draw = rng(self.seed, sample.id, "other picture")
        shown = _shown(sample)
        drawn = (self.pool[draw.randrange(len(self.pool))] for _ in range(TRIES))
        alike = next((one for one in drawn if _alike(one, sample) and _may_stand_in(one, sample, shown)), None)
        return alike or self._look_through(sample, shown, draw)

    def _look_through(self, sample: Sample, shown: set[str], draw: random.Random) -> Sample | None:
        fitting = [one for one in self.pool if _may_stand_in(one, sample, shown)]
        alike = [one for one in fitting if _alike(one, sample)]
        return draw.choice(alike or fitting) if fitting else None

    def demand(self, sample: Sample) -> Sample:
        """Return the other sample; refuse where there is none."""
        other = self.find(sample)
        if other is None:
            raise ConfigError(f"control=other: no other picture of the task may stand in for that of {sample.id!r}")
        return other


def _shown(sample: Sample) -> set[str]:
    return {image.sha256 or image.ref for image in all_pictures(sample)} | {one.ref for one in all_videos(sample)}


def _alike(one: Sample, sample: Sample) -> bool:
    return (len(one.images), len(one.videos)) == (len(sample.images), len(sample.videos))


def _may_stand_in(one: Sample, sample: Sample, shown: set[str]) -> bool:
    """Tell whether a sample shows something else: pictures, answer and group of its own."""
    if one.id == sample.id or (sample.group is not None and one.group == sample.group):
        return False
    if bool(one.images) < bool(sample.images) or bool(one.videos) < bool(sample.videos) or _shown(one) & shown:
        return False
    return not {text.casefold() for text in one.answers} & {text.casefold() for text in sample.answers}


def as_many(pictures: Sequence[Image], count: int) -> tuple[Image, ...]:
    """Return so many of the pictures, from the first again where they are fewer: each place keeps a picture."""
    return tuple(pictures[place % len(pictures)] for place in range(count)) if pictures else ()


def films(other: Sample, count: int) -> tuple[Video, ...]:
    """Return so many videos of another sample."""
    return tuple(islice((one for _ in range(count) for one in other.videos), count))


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


class Projector:
    """Puts the videos of one sample into its texts, as one variant shows them: those of earlier rounds alike."""

    def __init__(
        self,
        sample: Sample,
        showing: Showing,
        axes: Mapping[str, str],
        placement: Placement,
        *,
        seed: int,
        others: OtherPictures | None = None,
    ) -> None:
        self._others = others
        self._sample = sample
        self._axes = axes
        self._placement = placement
        self._any = bool(all_videos(sample))
        vain = next((axis for axis in VIDEO_AXES if axis in axes), None)
        if vain is not None and not self._any:
            raise ConfigError(f"variant {vain}={axes[vain]}: sample {sample.id!r} has no video")
        self._showing = vary_showing(showing, axes) if self._any else showing
        self._edits = tuple(f"perturb:{step}:{{seed}}:{CALIBRATION}" for step in _steps(axes))
        self._seed = derive_seed(seed, sample.group or sample.id, "video") % 2**32 if self._any else 0

    def show(self, text: str, videos: tuple[Video, ...]) -> str:
        """Return a text with its videos in their places (`<video>`, or before it)."""
        if not videos:
            return text
        chosen = choose_parts(self._sample, videos, self._axes, self._others)
        if not chosen:
            return VIDEO_MARKER.sub("", text).lstrip()
        shown = [
            replace(one, showing=self._showing, edits=(*one.edits, *self._edits), seed=self._seed) for one in chosen
        ]
        return self._placement.put_at(VIDEO_MARKER, text, shown)

    def with_rounds(self) -> Sample:
        """Return the sample with the videos of its earlier rounds in their texts."""
        if not any(turn.videos for turn in self._sample.turns):
            return self._sample
        turns = tuple(replace(turn, text=self.show(turn.text, turn.videos), videos=()) for turn in self._sample.turns)
        return replace(self._sample, turns=turns)


def choose_parts(
    sample: Sample, videos: tuple[Video, ...], axes: Mapping[str, str], others: OtherPictures | None = None
) -> tuple[Video, ...]:
    """Return which videos a trial shows: these, only the part that answers, grey ones, another sample's, or none."""
    control = axes.get("control")
    if control is None:
        return videos
    if control == BLANK:
        return tuple(replace(one, edits=(*one.edits, BLANK)) for one in videos)
    if control == OTHER and others is not None:
        return films(others.demand(sample), len(videos))
    if control != "oracle":
        return ()
    seconds = sample.meta.get("needle_seconds")
    if not seconds or len(all_videos(sample)) != 1:
        raise ConfigError(f"control=oracle: when the answer of sample {sample.id!r} is shown is not known")
    return tuple(replace(one, start=float(seconds[0]), end=float(seconds[1])) for one in videos)


def refuse_videos(example: Sample) -> None:
    """Refuse an example with a video: what it shows would be lost."""
    if all_videos(example):
        raise ConfigError(f"example {example.id!r} has a video: examples can show pictures only (shots.retriever=zero)")


def _steps(axes: Mapping[str, str]) -> list[str]:
    return axes["perturb"].split("+") if "perturb" in axes else []
