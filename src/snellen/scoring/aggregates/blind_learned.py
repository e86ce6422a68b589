"""Options to a blind judge that learns: does their wording tell the right one from the wrong ones, over the set?"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.ids import derive_seed

# Texts to the words that carry meaning, for everything that compares by overlap.

_WORD = re.compile(r"\w+", re.UNICODE)
_FUNCTION = """
    a an the this that these those it its he she they them his her their there here i you we and or but if so of to in
    on at by for from with without into over under as is are was were be been being am do does did has have had will
    would can could may might must should not no nor what which who whom whose when where why how s t
    """
FUNCTION_WORDS = frozenset(_FUNCTION.split())


@lru_cache(maxsize=200_000)
def content_words(text: str) -> frozenset[str]:
    """Return the words of a text, lower case, without function words and with plain plurals folded."""
    words = (word for word in _WORD.findall(text.casefold()) if word not in FUNCTION_WORDS)
    return frozenset(
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words
    )


def overlap(words: frozenset[str], others: frozenset[str]) -> float:
    """Return which share of `words` is among the others; 0 for no words."""
    return len(words & others) / len(words) if words else 0.0


FOLDS = 5
HASHED = 96
"""Buckets for single words: a word that wrong options favour is an artefact too."""
RIDGE = 10.0
PLAIN = 8

Floats = NDArray[np.float32]


class Choice(NamedTuple):
    """A question with its options; `right` is the place of the right one, from 0."""

    question: str
    options: Sequence[str]
    right: int


def learned_credit(questions: Sequence[Choice], groups: Sequence[int]) -> NDArray[np.float64]:
    """Return per question the chance that a judge trained on the other items takes the right option (ties share it).

    `groups` keeps the questions of one item in one fold. The judge is a ridge regression on features of the options
    alone (length, words, punctuation, capitals, likeness to the others and to the question, hashed words), centred per
    question.
    """
    sizes = np.array([len(question.options) for question in questions])
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    rows = np.concatenate([_features(question) for question in questions])
    label = np.zeros(len(rows), dtype=np.float32)
    label[starts + np.array([question.right for question in questions])] = 1.0
    label -= np.repeat(1.0 / sizes, sizes).astype(np.float32)
    fold = np.array([derive_seed("fold", group) % FOLDS for group in groups])
    row_fold = np.repeat(fold, sizes)
    scores = np.zeros(len(rows), dtype=np.float32)
    for each in range(FOLDS):
        held = row_fold == each
        if held.any() and not held.all():
            scores[held] = rows[held] @ _fit(rows[~held], label[~held])
    of_question = zip(np.split(scores, starts[1:]), questions, strict=True)
    return np.array([_credit(options, question.right) for options, question in of_question])


def _fit(rows: Floats, label: Floats) -> Floats:
    gram = (rows.T @ rows).astype(np.float64) + RIDGE * np.eye(rows.shape[1])
    return np.linalg.solve(gram, (rows.T @ label).astype(np.float64)).astype(np.float32)


def _credit(scores: Floats, right: int) -> float:
    best = scores >= scores.max() - 1e-7
    return float(best[right]) / float(best.sum())


def _features(question: Choice) -> Floats:
    texts = question.options
    bags = [content_words(text) for text in texts]
    asked = content_words(question.question)
    table = np.zeros((len(texts), PLAIN + HASHED), dtype=np.float32)
    for place, (text, bag) in enumerate(zip(texts, bags, strict=True)):
        others = frozenset().union(*(other for index, other in enumerate(bags) if index != place))
        table[place, :PLAIN] = (
            len(text) / 20.0,
            text.count(" ") / 4.0,
            text.endswith((".", "。")),
            text[:1].isupper(),
            text.count(","),
            sum(map(str.isdigit, text)) / 4.0,
            overlap(bag, others),
            overlap(bag, asked),
        )
        for word in bag:
            table[place, PLAIN + zlib.crc32(word.encode()) % HASHED] += 1.0
    table -= table.mean(axis=0)
    return table
