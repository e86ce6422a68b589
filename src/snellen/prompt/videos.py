"""A sample's videos into its question: where they stand, and how this variant shows them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ..core.errors import ConfigError
from ..core.ids import derive_seed
from ..core.message_parts import VIDEO_MARKER, all_videos
from ..core.types import Sample, Showing, Video
from ..core.variants import BLANK, OTHER
from ..data.images.edits import CALIBRATION
from ..data.video.frame_rules import VIDEO_AXES, vary_showing
from .controls import OtherPictures, films
from .place import Placement


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
