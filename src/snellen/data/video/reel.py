"""What is known of a video before its pictures are decoded: when each frame is shown, how large, which are keys."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import DataError


class Reel(Struct, frozen=True, dict=True):
    """The frames of a video in the order shown. Frames of one timestamp count once: nobody could tell them apart."""

    pts: tuple[int, ...]
    """Timestamps in the stream's units, rising."""
    units: tuple[int, int]
    """A unit of them in seconds, as numerator and denominator."""
    fps: float
    """Frames a second, on average, as the file says."""
    width: int
    height: int
    """As shown: after rotation."""
    keys: tuple[int, ...] = (0,)
    """Which frames can be decoded without others, by index."""
    last: float = 0.0
    """How long the last frame is shown, in seconds."""
    codec: str = ""
    container: str = ""
    rotation: int = 0
    first: int = 0
    """The index of the first frame in the file, where this is only a part of it."""
    scenes: tuple[float, ...] = ()
    """How much each frame differs from the one before, 0 to 1; measured only for a policy that asks."""

    @cached_property
    def seconds(self) -> tuple[float, ...]:
        """Return when each frame is shown, counted from the first of the part."""
        return tuple(self.at(pts) for pts in self.pts)

    @property
    def duration(self) -> float:
        """Return how long the frames are shown, in seconds."""
        return self.seconds[-1] + self.last

    def at(self, pts: int) -> float:
        """Return the seconds from the first frame to a timestamp."""
        return (pts - self.pts[0]) * self.units[0] / self.units[1]

    def shown_at(self, seconds: float) -> int:
        """Return the index of the frame that is shown at a time; a time outside is refused."""
        if not 0 <= seconds <= self.duration:
            raise DataError(
                f"there is no frame at {seconds:g} s: the video is {self.duration:.3f} s long; name seconds in it"
            )
        return max(0, bisect_right(self.seconds, seconds + TOLERANCE) - 1)


TOLERANCE = 1e-6
"""Seconds by which a time may miss a timestamp that it means: 0.1 is not a binary fraction."""


def part_of(reel: Reel, start: float | None, end: float | None) -> Reel:
    """Return the frames shown from one second to another; an empty part is refused."""
    if start is None and end is None:
        return reel
    begin, stop = start or 0.0, reel.duration if end is None else end
    kept = [n for n, second in enumerate(reel.seconds) if begin - TOLERANCE <= second <= stop + TOLERANCE]
    if not kept:
        raise DataError(f"there is no frame from {begin:g} s to {stop:g} s: the video is {reel.duration:.3f} s long")
    low, high = kept[0], kept[-1] + 1
    return replace(
        reel,
        pts=reel.pts[low:high],
        keys=tuple(key - low for key in reel.keys if low <= key < high),
        last=reel.last if high == len(reel.pts) else reel.seconds[high] - reel.seconds[high - 1],
        first=reel.first + low,
        scenes=reel.scenes[low:high],
    )
