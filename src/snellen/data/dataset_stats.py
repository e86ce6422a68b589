"""Samples to what they are in figures: how many of what, how long, and how questions begin; nothing is judged here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median

from msgspec import Struct

from ..core.types import Sample

QUESTION_WORDS = ("what", "which", "who", "where", "when", "why", "how", "is", "are", "does", "do", "can")
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
INFERENCE_ROLE = "inference"


class Spread(Struct, frozen=True):
    """The middle and the ends of some whole numbers."""

    mean: float
    median: float
    least: int
    most: int


class DatasetStats(Struct, frozen=True):
    """What `snellen data stats` says."""

    samples: int
    forms: dict[str, int]
    options: dict[int, int]
    """Options of a sample -> samples that have so many; so for all that map numbers."""
    pictures: dict[int, int]
    distinct_pictures: int
    answers: dict[int, int]
    question_words: Spread | None
    """Words of a question; for chains, of a sub-question: the inference is asked in words of ours."""
    containing: dict[str, float]
    """Question word -> share of the questions in which it stands anywhere."""
    beginning: dict[str, float]
    """First word -> share of the questions, the ten most frequent."""
    groups: int = 0
    """Dialogues, documents or chains."""
    steps: Spread | None = None
    chains: dict[int, int] = {}
    """Length of a chain -> chains of that length; only where samples are steps of chains."""
    boxes: dict[int, int] = {}
    """Boxes of an item -> items that have so many, where the file has boxes."""


def describe_samples(samples: Iterable[Sample], boxes: Mapping[int, int] | None = None) -> DatasetStats:
    """Count all samples; the order of the file changes nothing."""
    gathered = list(samples)
    lengths = _chain_lengths(gathered)
    words = _words(gathered, chains=bool(lengths))
    return DatasetStats(
        samples=len(gathered),
        forms=dict(Counter(sample.form.value for sample in gathered)),
        options=_counted(len(sample.options) for sample in gathered),
        pictures=_counted(len(sample.images) for sample in gathered),
        distinct_pictures=_distinct_pictures(gathered),
        answers=_counted(len(sample.answers) for sample in gathered),
        question_words=_spread([len(line) for line in words]),
        containing={word: share for word in QUESTION_WORDS if (share := _share(words, word))},
        beginning=_beginnings(words),
        groups=len({sample.group for sample in gathered if sample.group is not None}),
        steps=_spread(lengths),
        chains=_counted(lengths),
        boxes=dict(sorted((boxes or {}).items())),
    )


def _words(samples: Sequence[Sample], *, chains: bool) -> list[list[str]]:
    """Return the words of every question; of chains only those of the steps, which are the file's own."""
    asked = [sample.question for sample in samples if not chains or sample.tags.get("role") != INFERENCE_ROLE]
    return [[word.lower() for word in WORD.findall(question)] for question in asked]


def _beginnings(words: Sequence[Sequence[str]], most: int = 10) -> dict[str, float]:
    first = Counter(line[0] for line in words if line)
    return {word: count / len(words) for word, count in first.most_common(most)}


def _distinct_pictures(samples: Sequence[Sample]) -> int:
    return len({image.sha256 or image.ref for sample in samples for image in sample.images})


def _chain_lengths(samples: Sequence[Sample]) -> list[int]:
    """Return the length of every chain; samples without the tags of chains have none."""
    steps = {sample.group: sample.tags["steps"] for sample in samples if {"role", "steps"} <= set(sample.tags)}
    return [length for length in steps.values() if isinstance(length, int)]


def _share(questions: Sequence[Sequence[str]], word: str) -> float:
    return sum(word in question for question in questions) / len(questions) if questions else 0.0


def _counted(numbers: Iterable[int]) -> dict[int, int]:
    return dict(sorted(Counter(numbers).items()))


def _spread(numbers: Sequence[int]) -> Spread | None:
    return Spread(fmean(numbers), float(median(numbers)), min(numbers), max(numbers)) if numbers else None
