"""Samples to a handful for a person to read: figures find what is odd on average, not what reads wrong."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..core.ids import rng
from ..core.types import Sample

COUNT = 10


class Excerpt(Struct, frozen=True):
    """What a person needs to judge one question; pictures are named, not shown."""

    id: str
    question: str
    options: tuple[str, ...]
    answers: tuple[str, ...]
    images: tuple[str, ...] = ()


def draw_excerpts(samples: Sequence[Sample], count: int = COUNT) -> tuple[Excerpt, ...]:
    """Draw some of the samples, the same at every look, in the order of the data."""
    places = rng("excerpts", len(samples)).sample(range(len(samples)), min(count, len(samples)))
    return tuple(_excerpt(samples[place]) for place in sorted(places))


def _excerpt(sample: Sample) -> Excerpt:
    names = tuple("inside the file" if image.ref.startswith("data:") else image.ref for image in sample.images)
    return Excerpt(sample.id, sample.question, sample.options, tuple(dict.fromkeys(sample.answers)), names)
