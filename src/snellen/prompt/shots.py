"""A sample to examples from other samples: none, fixed, random, most similar, or best by BM25."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from rapidfuzz import fuzz, process

from ..core.errors import ConfigError, did_you_mean
from ..core.tasks import Shots
from ..core.types import Sample

K1, B = 1.5, 0.75
"""The usual constants of BM25 (Robertson and Zaragoza 2009, section 3.4)."""
_WORD = re.compile(r"\w+")

Finder = Callable[[Sample, random.Random], Sequence[Sample]]


def make_retriever(shots: Shots, pool: Sequence[Sample], *, own: bool = True) -> Finder | None:
    """Return a finder over `pool`, or None for zero shots. No sample of its own group is ever an example.

    `own` says that the pool is the samples that are asked: one of them is never its own example.
    """
    if shots.retriever == "zero" or not (shots.count or shots.ids):
        return None
    makers = {"fixed": _fixed, "random": _random, "similar": _similar, "bm25": _bm25}
    if shots.retriever not in makers:
        hint = did_you_mean(shots.retriever, makers)
        raise ConfigError(f"retriever {shots.retriever!r} is unknown{hint}; known: zero, {', '.join(makers)}")
    if shots.retriever != "fixed" and shots.count + own > len(pool):
        raise ConfigError(f"{shots.count} shots need more than the {len(pool)} samples there are")
    return makers[shots.retriever](shots, pool)


def text_of(sample: Sample) -> str:
    """Return the text a sample is found by: its question and its tags."""
    return " ".join([sample.question, *(str(value) for value in sample.tags.values() if value is not None)])


def _fixed(shots: Shots, pool: Sequence[Sample]) -> Finder:
    by_id = {sample.id: sample for sample in pool}
    for name in shots.ids:
        if name not in by_id:
            raise ConfigError(f"fixed shot {name!r} is not a sample{did_you_mean(name, by_id)}")
    chosen = [by_id[name] for name in shots.ids] or list(pool[: shots.count])
    return lambda sample, draw: [example for example in chosen if _may_show(example, sample)]


def _random(shots: Shots, pool: Sequence[Sample]) -> Finder:
    def find(sample: Sample, draw: random.Random) -> Sequence[Sample]:
        """Return the examples for one sample."""
        drawn = draw.sample(range(len(pool)), min(len(pool), shots.count * 4 + 4))
        return [pool[index] for index in drawn if _may_show(pool[index], sample)][: shots.count]

    return find


def _similar(shots: Shots, pool: Sequence[Sample]) -> Finder:
    texts = [text_of(sample) for sample in pool]

    def rank(sample: Sample) -> Iterable[int]:
        """Return the numbers of the samples that share most words with this one."""
        near = process.extract(text_of(sample), texts, scorer=fuzz.token_set_ratio, limit=shots.count * 4 + 8)
        return (index for _, _, index in near)

    return _nearest(shots, pool, rank)


def _bm25(shots: Shots, pool: Sequence[Sample]) -> Finder:
    index = Bm25([text_of(sample) for sample in pool])
    return _nearest(shots, pool, lambda sample: index.rank(text_of(sample)))


def _nearest(shots: Shots, pool: Sequence[Sample], rank: Callable[[Sample], Iterable[int]]) -> Finder:
    """Return a finder of the best that may be shown; the nearest stands last, next to the question."""

    def find(sample: Sample, draw: random.Random) -> Sequence[Sample]:
        """Return the examples for one sample."""
        ranked = (pool[index] for index in rank(sample))
        return [example for example in ranked if _may_show(example, sample)][: shots.count][::-1]

    return find


class Bm25:
    """Okapi BM25 over short texts, by an inverted index."""

    def __init__(self, texts: Sequence[str]) -> None:
        words = [_words(text) for text in texts]
        self._lengths = [len(text) for text in words]
        self._mean = sum(self._lengths) / max(1, len(texts)) or 1.0
        self._holders: dict[str, list[tuple[int, int]]] = {}
        for number, text in enumerate(words):
            for word, count in Counter(text).items():
                self._holders.setdefault(word, []).append((number, count))

    def scores(self, query: str) -> dict[int, float]:
        """Return number of the text -> score for every text that shares a word with the query."""
        totals: dict[int, float] = {}
        for word in set(_words(query)):
            holders = self._holders.get(word, [])
            weight = math.log(1 + (len(self._lengths) - len(holders) + 0.5) / (len(holders) + 0.5))
            for number, count in holders:
                norm = K1 * (1 - B + B * self._lengths[number] / self._mean)
                totals[number] = totals.get(number, 0.0) + weight * count * (K1 + 1) / (count + norm)
        return totals

    def rank(self, query: str) -> list[int]:
        """Return the numbers of the texts from best to worst; those without a shared word follow in order."""
        totals = self.scores(query)
        best = sorted(totals, key=lambda number: (-totals[number], number))
        return best + [number for number in range(len(self._lengths)) if number not in totals]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _may_show(example: Sample, sample: Sample) -> bool:
    same_group = example.group is not None and example.group == sample.group
    return example.id != sample.id and not same_group and bool(example.answers)
