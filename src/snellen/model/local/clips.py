"""Frames that belong together to one video for a checkpoint's processor, and the words it wants beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import PIL.Image

from ...core.errors import ModelError
from ...core.types import FailureKind, Image, Turn
from ...data.images.decode import open_image


class Clip(NamedTuple):
    """The frames of one video, and when they are shown."""

    frames: tuple[PIL.Image.Image, ...]
    seconds: tuple[float, ...]

    def metadata(self) -> dict[str, Any]:
        """Return what processors that write times between frames want to know."""
        span = self.seconds[-1] - self.seconds[0]
        fps = (len(self.seconds) - 1) / span if span > 0 else 1.0
        places = [round(second * fps) for second in self.seconds]
        return {"fps": fps, "frames_indices": places, "total_num_frames": places[-1] + 1}


def is_joined(image: Image) -> bool:
    """Tell whether a picture is a frame of a video that goes to the model as one."""
    return image.frame is not None and image.frame.joined


def begins_clip(images: Sequence[Image], place: int) -> bool:
    """Tell whether the picture at a place is the first of its video."""
    if not is_joined(images[place]):
        return False
    before = images[place - 1] if place else None
    return before is None or not is_joined(before) or _source(before) != _source(images[place])


def open_pictures(turn: Turn) -> list[PIL.Image.Image]:
    """Return the pictures of a message that are no frames of a video shown as one."""
    return [open_image(image).convert("RGB") for image in turn.images if not is_joined(image)]


def gather_clips(turn: Turn) -> list[Clip]:
    """Return the videos of a message, their frames opened."""
    starts = [place for place in range(len(turn.images)) if begins_clip(turn.images, place)]
    clips = []
    for start in starts:
        stop = start + 1
        while stop < len(turn.images) and is_joined(turn.images[stop]) and not begins_clip(turn.images, stop):
            stop += 1
        images = turn.images[start:stop]
        frames = tuple(open_image(image).convert("RGB") for image in images)
        clips.append(Clip(frames, tuple(image.frame.seconds for image in images if image.frame is not None)))
    return clips


def write_content(turn: Turn) -> list[dict[str, str]]:
    """Return a message in the words of chat templates: a part a text, a picture or a video."""
    kinds = [
        "image" if not is_joined(image) else "video" if begins_clip(turn.images, place) else ""
        for place, image in enumerate(turn.images)
    ]
    shown = turn.arrange([{"type": kind} for kind in kinds])
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in shown]
    return [part for part in parts if part["type"]]


def check_places(text: str, token: str, clips: Sequence[Clip]) -> None:
    """Refuse a prompt that has no place for a video: the model would be asked without it."""
    if clips and (not token or text.count(token) < len(clips)):
        raise ModelError(
            FailureKind.CAPABILITY,
            "the checkpoint's chat template has no place for videos: use -p prompt.video.route=frames",
        )


def video_arguments(groups: Sequence[Sequence[Clip]]) -> dict[str, Any]:
    """Return what a processor is told of the videos of a batch; nothing where there are none."""
    clips = [clip for group in groups for clip in group]
    if not clips:
        return {}
    return {
        "videos": [list(clip.frames) for clip in clips],
        "do_sample_frames": False,  # they were sampled by the policy of the run
        "video_metadata": [clip.metadata() for clip in clips],
    }


def _source(image: Image) -> str:
    """Return what frames of one video have in common: its file, or their folder."""
    still = image.frame is not None and image.frame.still
    return image.ref.rpartition("/")[0] if still else image.ref
