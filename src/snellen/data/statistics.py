"""Samples into what a paper's table says of a dataset: items, questions, steps, question words, options, pictures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from statistics import fmean

from msgspec import Struct

from ..core.types import Sample

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_MOST = 12


class DatasetFigures(Struct, frozen=True):
    """The figures of one dataset. Means are over items or questions, as their names say; None: there is none."""

    items: int
    """Chains, dialogues or documents; a sample on its own is one."""
    questions: int
    forms: dict[str, int]
    steps_per_item: float | None
    items_by_steps: dict[str, int]
    question_words: dict[str, int]
    """The first word of each question -> how often, the most frequent first; `other` is the rest."""
    words_per_question: float | None
    options_per_question: float | None
    pictures: int
    boxes: int | None = None
    """Marked regions, where the file tells them."""
    items_with_several_boxes: int | None = None


def describe_samples(samples: Iterable[Sample]) -> DatasetFigures:
    """Return the figures of a dataset, reading it once."""
    steps: Counter[str] = Counter()
    questions: Counter[str] = Counter()
    forms, words, lengths, options, pictures = Counter[str](), Counter[str](), [], [], set()
    for sample in samples:
        item = sample.group or sample.id
        questions[item] += 1
        steps[item] += sample.tags.get("role") == "step"
        forms[sample.form.value] += 1
        found = _WORD.findall(sample.question)
        words[found[0].casefold() if found else ""] += 1
        lengths.append(len(found))
        options += [len(sample.options)] if sample.options else []
        pictures |= {image.ref for image in sample.images}
    chains = {item: count for item, count in steps.items() if count}
    return DatasetFigures(
        items=len(questions),
        questions=questions.total(),
        forms=dict(forms),
        steps_per_item=_mean(chains.values()),
        items_by_steps={str(length): count for length, count in sorted(Counter(chains.values()).items())},
        question_words=_leading(words),
        words_per_question=_mean(lengths),
        options_per_question=_mean(options),
        pictures=len(pictures),
    )


def _mean(values: Iterable[int]) -> float | None:
    numbers = list(values)
    return round(fmean(numbers), 4) if numbers else None


def _leading(words: Counter[str]) -> dict[str, int]:
    leading = dict(words.most_common(_MOST))
    rest = words.total() - sum(leading.values())
    return leading | ({"other": rest} if rest else {})
