"""Turns captions and their references into BLEU-1..4, ROUGE-L and CIDEr: per caption and for the corpus.

The figures follow the COCO caption evaluation to the last digit that matters (1e-9): closest reference length and no
smoothing in BLEU, beta 1.2 in ROUGE-L, clipping, length penalty (sigma 6) and the factor 10 in CIDEr.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct
from rapidfuzz.distance import LCSseq

MAX_ORDER = 4
ROUGE_BETA = 1.2
CIDER_SIGMA = 6.0
CIDER_SCALE = 10.0
# The COCO evaluation adds these to numerators and denominators instead of treating zero apart.
_TINY, _SMALL = 1e-15, 1e-9

Gram = tuple[str, ...]


class Caption(Struct, frozen=True):
    """One caption and its references, already tokenised: tokens stand between spaces."""

    text: str
    references: tuple[str, ...]


class BleuCounts(Struct, frozen=True):
    """What BLEU needs of one caption (or, added up, of a corpus)."""

    matched: tuple[int, ...]
    guessed: tuple[int, ...]
    length: int
    reference_length: int

    def __add__(self, other: BleuCounts) -> BleuCounts:
        return BleuCounts(
            tuple(a + b for a, b in zip(self.matched, other.matched, strict=True)),
            tuple(a + b for a, b in zip(self.guessed, other.guessed, strict=True)),
            self.length + other.length,
            self.reference_length + other.reference_length,
        )


NO_COUNTS = BleuCounts((0,) * MAX_ORDER, (0,) * MAX_ORDER, 0, 0)


def count_grams(text: str) -> Counter[Gram]:
    """Count the n-grams of orders 1 to 4 of a text split at white space."""
    tokens = text.split()
    return Counter(tuple(tokens[i : i + n]) for n in range(1, MAX_ORDER + 1) for i in range(len(tokens) - n + 1))


def bleu_counts(caption: Caption) -> BleuCounts:
    """Return clipped matches, guesses and lengths of one caption."""
    length = len(caption.text.split())
    allowed: Counter[Gram] = Counter()
    for reference in caption.references:
        allowed |= count_grams(reference)
    matched = [0] * MAX_ORDER
    for gram, count in (count_grams(caption.text) & allowed).items():
        matched[len(gram) - 1] += count
    guessed = tuple(max(0, length - n) for n in range(MAX_ORDER))
    closest = min((abs(size - length), size) for size in (len(reference.split()) for reference in caption.references))[
        1
    ]
    return BleuCounts(tuple(matched), guessed, length, closest)


def bleu(counts: BleuCounts) -> tuple[float, ...]:
    """Return BLEU-1 to BLEU-4 (0..1) from counts of one caption or of a corpus."""
    ratio = (counts.length + _TINY) / (counts.reference_length + _SMALL)
    penalty = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    values, product = [], 1.0
    for order in range(MAX_ORDER):
        product *= (counts.matched[order] + _TINY) / (counts.guessed[order] + _SMALL)
        values.append(product ** (1 / (order + 1)) * penalty)
    return tuple(values)


def rouge_l(caption: Caption) -> float:
    """Return ROUGE-L (0..1): F-measure of the best recall and the best precision of the longest common subsequence.

    Tokens stand between single spaces, as in the COCO evaluation; so two spaces hold an empty token.
    """
    tokens = caption.text.split(" ")
    references = [reference.split(" ") for reference in caption.references]
    common = [LCSseq.similarity(tokens, reference) for reference in references]
    precision = max(shared / len(tokens) for shared in common)
    recall = max(shared / len(reference) for shared, reference in zip(common, references, strict=True))
    if not precision or not recall:
        return 0.0
    return (1 + ROUGE_BETA**2) * precision * recall / (recall + ROUGE_BETA**2 * precision)


class _Vector(Struct):
    weights: tuple[dict[Gram, float], ...]
    norms: tuple[float, ...]
    bigrams: int


def cider(captions: Sequence[Caption], *, plain: bool = False) -> list[float]:
    """Return one CIDEr value a caption (0..10); the corpus value is their mean.

    This is what the COCO evaluation calls CIDEr: the paper's CIDEr-D, without stemming. `plain` leaves out
    clipping and length penalty (the paper's CIDEr). Document frequencies come from these references alone.
    """
    references = [[count_grams(reference) for reference in caption.references] for caption in captions]
    frequency = Counter(gram for group in references for gram in set().union(*group))
    log_size = math.log(len(captions)) if captions else 0.0
    weigh = partial(_weigh, frequency=frequency, log_size=log_size)
    return [
        CIDER_SCALE
        * _mean(_agreement(weigh(count_grams(caption.text)), weigh(reference), plain) for reference in group)
        for caption, group in zip(captions, references, strict=True)
    ]


def _weigh(counts: Counter[Gram], frequency: Counter[Gram], log_size: float) -> _Vector:
    weights: tuple[dict[Gram, float], ...] = tuple({} for _ in range(MAX_ORDER))
    for gram, count in counts.items():
        weights[len(gram) - 1][gram] = count * (log_size - math.log(max(1, frequency[gram])))
    norms = tuple(math.sqrt(sum(value * value for value in order.values())) for order in weights)
    # The evaluation takes the number of bigrams for the length; so do we.
    return _Vector(weights, norms, sum(count for gram, count in counts.items() if len(gram) == 2))


def _agreement(caption: _Vector, reference: _Vector, plain: bool) -> float:
    penalty = 1.0 if plain else math.exp(-((caption.bigrams - reference.bigrams) ** 2) / (2 * CIDER_SIGMA**2))
    return penalty * _mean(_cosine(caption, reference, order, plain) for order in range(MAX_ORDER))


def _cosine(caption: _Vector, reference: _Vector, order: int, plain: bool) -> float:
    shared, norm = reference.weights[order], caption.norms[order] * reference.norms[order]
    products = (
        (weight if plain else min(weight, shared[gram])) * shared[gram]
        for gram, weight in caption.weights[order].items()
        if gram in shared
    )
    return sum(products) / norm if norm else 0.0


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
