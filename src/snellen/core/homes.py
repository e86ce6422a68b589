"""What belongs together to who asks it: the home of a sample or request, and homes to the parts of a run.

A home is a document, a dialogue, a chain or the pictures that questions share. Whoever asks all of a home keeps a
server's prefix cache warm, and no job is ever cut. It is the same in every process and on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .errors import UsageError
from .types import Image, Request, Sample

Home = bytes
PARTS_FOLDER = "run.d"
SUBMIT_FOLDER = "submit"
"""Where the scripts of a run in parts lie, and what its jobs printed."""
"""Where a run in parts keeps what each of them wrote."""


@dataclass(frozen=True, slots=True)
class Part:
    """One of so many parts of a run, counted from 0: part 3 of 64 is `3/64`."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def parse_part(text: str) -> Part:
    """Read `3/64`: the first is 0/64, the last 63/64."""
    index, slash, count = text.partition("/")
    if not (slash and index.isascii() and index.isdigit() and count.isascii() and count.isdigit()):
        raise UsageError(f"--shard {text!r} is neither PART/PARTS, such as 3/64, nor env")
    part = Part(int(index), int(count))
    if not part.index < part.count:
        last = f"the parts of {part.count} are 0/{part.count} to {part.count - 1}/{part.count}"
        raise UsageError(f"--shard {text}: {last if part.count else 'a run has at least one part'}")
    return part


def home_of_sample(task: str, sample: Sample) -> Home:
    """Return the home of a sample: its group (document, dialogue, chain), else its pictures, else itself."""
    if sample.group:
        return _digest((task, "group", sample.group))
    pictures = [image.ref for image in sample.images] + [video.ref for video in sample.videos]
    return _digest((task, "pictures", *pictures) if pictures else (task, "sample", sample.id))


def home_of_request(request: Request) -> Home | None:
    """Return what a request shares with others of its document or dialogue; None for one that stands alone.

    The pictures of the last message that has some (examples stand before it), else the first words of a dialogue.
    """
    for turn in reversed(request.messages):
        if turn.images:
            return home_of_pictures(turn.images)
    return _digest((request.messages[0].text,)) if len(request.messages) > 2 else None


def home_of_pictures(images: Iterable[Image]) -> Home:
    """Return the home of all that show these pictures."""
    return _digest([image.ref for image in images])


def _digest(parts: Sequence[str]) -> Home:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()[:12]


class Assignment:
    """Homes to parts: in the order of the plan, contiguous, each home whole, about as many trials each.

    Give it every sample (`add`) in the order of the plan, then ask. A home that begins at trial `c` of `T` belongs to
    part `c * n // T`. Nothing but the plan decides, so every process finds the same.
    """

    def __init__(self) -> None:
        self._trials: dict[Home, int] = {}
        self._begins: dict[Home, int] | None = None
        self._total = 0

    def add(self, home: Home, trials: int) -> None:
        """Count the trials of one sample for its home."""
        self._trials[home] = self._trials.get(home, 0) + trials
        self._begins = None

    def part_of(self, home: Home, count: int) -> int:
        """Return which of so many parts asks a home."""
        if self._begins is None:
            self._begins, self._total = {}, 0
            for one, trials in self._trials.items():
                self._begins[one] = self._total
                self._total += trials
        return self._begins[home] * count // max(1, self._total)

    def larger_than_a_part(self, count: int) -> int:
        """Return how many homes are larger than an even share: their parts take longer, and others have less."""
        share = sum(self._trials.values()) / count
        return sum(trials > share for trials in self._trials.values())
