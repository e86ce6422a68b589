"""A sample's videos into its question: where they stand, and how this variant shows them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ..core.errors import ConfigError
from ..core.ids import derive_seed
from ..core.message_parts import VIDEO_MARKER
from ..core.types import Sample, Showing, Video
from ..data.degrade.calibrations import CALIBRATION
from ..data.video.showings import VIDEO_AXES, vary_showing
from .place import Placement


def show_videos(
    text: str, sample: Sample, showing: Showing, axes: Mapping[str, str], placement: Placement, *, seed: int
) -> str:
    """Return the text with the sample's videos in their places (`<video>`, or before it)."""
    if not sample.videos:
        vain = next((axis for axis in VIDEO_AXES if axis in axes), None)
        if vain is not None:
            raise ConfigError(f"variant {vain}={axes[vain]}: sample {sample.id!r} has no video")
        return text
    chosen = choose_parts(sample, axes)
    if not chosen:
        return VIDEO_MARKER.sub("", text).lstrip()
    shown = vary_showing(showing, axes)
    edits = tuple(f"perturb:{step}:{{seed}}:{CALIBRATION}" for step in _steps(axes))
    of_group = derive_seed(seed, sample.group or sample.id, "video") % 2**32
    videos = [replace(one, showing=shown, edits=(*one.edits, *edits), seed=of_group) for one in chosen]
    return placement.put_at(VIDEO_MARKER, text, videos)


def choose_parts(sample: Sample, axes: Mapping[str, str]) -> tuple[Video, ...]:
    """Return the videos a trial shows: all, only the part that answers (`control=oracle`), or none."""
    control = axes.get("control")
    if control is None:
        return sample.videos
    if control != "oracle":
        return ()
    seconds = sample.meta.get("needle_seconds")
    if not seconds or len(sample.videos) != 1:
        raise ConfigError(f"control=oracle: when the answer of sample {sample.id!r} is shown is not known")
    return (replace(sample.videos[0], start=float(seconds[0]), end=float(seconds[1])),)


def refuse_videos(example: Sample) -> None:
    """Refuse an example with a video: what it shows would be lost."""
    if example.videos:
        raise ConfigError(f"example {example.id!r} has a video: examples can show pictures only (shots.retriever=zero)")


def _steps(axes: Mapping[str, str]) -> list[str]:
    return axes["perturb"].split("+") if "perturb" in axes else []
