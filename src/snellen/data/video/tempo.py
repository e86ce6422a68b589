"""Disturbances of time: which frames are really seen when some are lost, late, frozen or out of order, and the bitrate.

Pure, seeded.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ...core.errors import ConfigError, not_among

SEVERITIES = range(1, 6)
KBPS = {1: 1000, 2: 500, 3: 250, 4: 125, 5: 60}
"""What the severities of `bitrate` mean: kilobits a second, whatever the size of the picture."""


def drop(chosen: list[int], frames: int, share: float, draw: random.Random) -> list[int]:
    """Lose each frame with this probability; the first that is left is always there."""
    kept = [index for index in chosen if draw.random() >= share]
    return kept or [chosen[draw.randrange(len(chosen))]]


def freeze(chosen: list[int], frames: int, share: float, draw: random.Random) -> list[int]:
    """Show, with this probability, the frame before instead of a frame."""
    seen = chosen[:1]
    for index in chosen[1:]:
        seen.append(seen[-1] if draw.random() < share else index)
    return seen


def jitter(chosen: list[int], frames: int, share: float, draw: random.Random) -> list[int]:
    """Move each frame by up to this share of the distance to its neighbours; the order stays."""
    reach = max(1.0, frames / len(chosen)) * share
    return sorted(min(frames - 1, max(0, round(index + draw.uniform(-reach, reach)))) for index in chosen)


def shuffle(chosen: list[int], frames: int, share: float, draw: random.Random) -> list[int]:
    """Let twice this share of the frames change places; at severity 5 all of them, and never none."""
    moving = [place for place in range(len(chosen)) if draw.random() < 2 * share]
    mixed = [chosen[place] for place in moving]
    draw.shuffle(mixed)
    if mixed == [chosen[place] for place in moving]:
        mixed = mixed[1:] + mixed[:1]
    seen = list(chosen)
    for place, index in zip(moving, mixed, strict=True):
        seen[place] = index
    return seen


def same(chosen: list[int], frames: int, share: float, draw: random.Random) -> list[int]:
    """Show the frames that were chosen: compression changes how they look."""
    return chosen


FAMILIES: dict[str, Callable[[list[int], int, float, random.Random], list[int]]] = {
    "drop": drop,
    "freeze": freeze,
    "jitter": jitter,
    "bitrate": same,
    "shuffle": shuffle,
}


def disturb(tempo: str, chosen: list[int], frames: int, seed: int) -> list[int]:
    """Return the frames that are seen under `family:severity`, a tenth to a half for severities 1 to 5."""
    family, severity = read_tempo(tempo)
    return FAMILIES[family](chosen, frames, severity / 10, random.Random(seed))  # noqa: S311 - reproducible, not secret


def kbps_of(tempo: str) -> int:
    """Return the bitrate a video is compressed to; 0 where it is not."""
    family, severity = read_tempo(tempo) if tempo else ("", 0)
    return KBPS[severity] if family == "bitrate" else 0


def read_tempo(tempo: str) -> tuple[str, int]:
    """Return the family and its severity."""
    family, _, severity = tempo.partition(":")
    if family not in FAMILIES:
        raise ConfigError(f"disturbance of time {not_among(family, FAMILIES, ' is unknown')}")
    if not severity.isdigit() or int(severity) not in SEVERITIES:
        raise ConfigError(f"tempo={tempo} is not family:severity with a severity from 1 to 5")
    return family, int(severity)
