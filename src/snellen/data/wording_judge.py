"""Options to a judge that learns from their wording alone: how often it finds the right one without the picture.

A way of writing that only right options have (words among digits, a capital, a unit) shows here, whatever it is.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.ids import derive_seed
from ..core.types import Sample
from .reform.answer_kinds import plain_kind
from .reform.written_numbers import read_written

FOLDS = 5
WORD_BUCKETS = 64
RIDGE = 5.0
PLAIN_FEATURES = 12

Floats = NDArray[np.float64]


def wording_credit(choices: Sequence[Sample]) -> Floats:
    """Return for each choice the credit of a judge trained on the others: 1 if it takes the right option, ties share.

    Samples of one group stand in one fold, so that nothing is learned from a sample's own neighbours.
    """
    sizes = np.array([len(sample.options) for sample in choices])
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    rows = np.concatenate([_rows(sample) for sample in choices])
    right = np.array([sample.options.index(sample.answers[0]) for sample in choices])
    label = -np.repeat(1.0 / sizes, sizes)
    label[starts + right] += 1.0
    fold = np.repeat([derive_seed("fold", sample.group or sample.id) % FOLDS for sample in choices], sizes)
    scores = np.zeros(len(rows))
    for each in range(FOLDS):
        held = fold == each
        if held.any() and not held.all():
            scores[held] = rows[held] @ _weights(rows[~held], label[~held])
    split = np.split(scores, starts[1:])
    return np.array([_share(values, place) for values, place in zip(split, right, strict=True)])


def _weights(rows: Floats, label: Floats) -> Floats:
    gram = rows.T @ rows + RIDGE * np.eye(rows.shape[1])
    return np.asarray(np.linalg.solve(gram, rows.T @ label), dtype=np.float64)


def _share(scores: Floats, right: int) -> float:
    best = scores >= scores.max() - 1e-9
    return float(best[right]) / float(best.sum())


def _rows(sample: Sample) -> Floats:
    """Return the features of each option, less their mean: only what tells options of one question apart counts."""
    kinds = Counter(_shape(option) for option in sample.options)
    table = np.zeros((len(sample.options), PLAIN_FEATURES + WORD_BUCKETS))
    for place, option in enumerate(sample.options):
        shape, count = _shape(option), len(sample.options)
        table[place, :PLAIN_FEATURES] = (
            len(option) / 20.0,
            option.count(" ") / 3.0,
            option.endswith((".", "。", "!")),
            option[:1].isupper(),
            option.count(",") + option.count(";"),
            sum(map(str.isdigit, option)) / 3.0,
            shape == "digits",
            shape == "number in words",
            shape == "number with more",
            shape in ("colour", "yes/no"),
            not option.isascii(),
            kinds[shape] / count,
        )
        for word in option.casefold().split():
            table[place, PLAIN_FEATURES + zlib.crc32(word.encode()) % WORD_BUCKETS] += 0.5
    table -= table.mean(axis=0)
    return table


def _shape(option: str) -> str:
    written = read_written(option, "how ")
    if written is None:
        return plain_kind("", option) or "words"
    if written.in_words:
        return "number in words"
    return "number with more" if written.before or written.unit else "digits"


def odd_shapes(sample: Sample) -> bool:
    """Tell whether the answer is alone of its kind: a number in words among digits, a colour among things."""
    shapes = [_shape(option) for option in sample.options]
    answer = _shape(sample.answers[0])
    return len(shapes) > 2 and shapes.count(answer) == 1 and len(set(shapes)) == 2
