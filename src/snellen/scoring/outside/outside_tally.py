"""Turns scored outside records, one at a time, into accuracy, instability and round metrics, in a few bytes a record."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from ...core.errors import DataError
from ...core.types import Estimate
from ...stats.intervals import estimate_mean
from ..aggregates.instability import round_trend
from .outside_fields import Row

_LONGEST_CLASS = 64
_LARGEST_ROUND = 10**12


class Tally:
    """Scores of records grouped by sample id; a sample's records are its repeats."""

    def __init__(self, *, with_rounds: bool = False) -> None:
        self._codes: dict[Hashable, int] = {}
        self._first_record = array("q")
        self._sample = array("q")
        self._value = array("d")
        self._hits = 0
        self._classes: Counter[tuple[int, Hashable]] = Counter()
        self._rounds: dict[float, list[float]] | None = {} if with_rounds else None
        self._origin = "predictions"

    def add(self, row: Row, value: float | None, *, hit: bool = True, chosen: Hashable = None) -> None:
        """Count one record (None: unscored); `chosen` is the class its answer falls in, for the instability."""
        self._origin = row.origin
        identifier = row.identifier("sample_id")
        code = self._codes.setdefault(identifier, len(self._codes))
        if code == len(self._first_record):
            self._first_record.append(row.number)
        self._sample.append(code)
        self._value.append(math.nan if value is None else value)
        self._hits += hit
        self._classes[code, _short(chosen)] += 1
        if self._rounds is not None and value is not None:
            self._add_round(row, value, self._rounds)

    def _add_round(self, row: Row, value: float, rounds: dict[float, list[float]]) -> None:
        number = row.get("round_id")
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < _LARGEST_ROUND:
            row.fail("'round_id' must be a number")
        totals = rounds.setdefault(number, [0.0, 0.0])
        totals[0] += value
        totals[1] += 1

    def __len__(self) -> int:
        return len(self._value)

    def check(self) -> None:
        """Refuse an empty file and unequal numbers of repeats: a mean over them would weigh samples by accident."""
        if not self._value:
            raise DataError(f"{self._origin}: holds no records, so there is nothing to score")
        sizes = np.bincount(np.frombuffer(self._sample, dtype=np.int64)).tolist()
        usual = Counter(sizes).most_common(1)[0][0]
        odd = [code for code, size in enumerate(sizes) if size != usual]
        if odd:
            named = self._describe(odd[:3], sizes) + _more(len(odd))
            raise DataError(
                f"{self._origin}: ragged repeats (a record lost or doubled?): {named} but the others {usual}"
            )

    def _describe(self, odd: Iterable[int], sizes: Sequence[int]) -> str:
        names = {code: identifier for identifier, code in self._codes.items()}
        return ", ".join(
            f"sample {names[code]!r} (first at record {self._first_record[code]}) has {sizes[code]}" for code in odd
        )

    def accuracy(self) -> Estimate:
        """Return the mean score, its interval clustered by sample; unscored records are counted apart."""
        values, samples = np.frombuffer(self._value), np.frombuffer(self._sample, dtype=np.int64)
        scored = ~np.isnan(values)
        return estimate_mean(values[scored], samples[scored], unscored=int((~scored).sum()))

    def hit_rate(self) -> Estimate:
        """Return the share of records whose answer could be read."""
        values = np.zeros(len(self))
        values[: self._hits] = 1.0
        return estimate_mean(values)

    def instability(self) -> Estimate:
        """Return the mean over samples of the entropy (nats) of the chosen classes."""
        counts: dict[int, list[int]] = {}
        for (code, _), count in self._classes.items():
            counts.setdefault(code, []).append(count)
        return estimate_mean(np.array([entropy(group) for group in counts.values()]))

    def rounds(self) -> dict[str, Estimate]:
        """Return correlation and slope of the rounds' mean scores."""
        means = [(number, [total / count]) for number, (total, count) in sorted((self._rounds or {}).items())]
        trend = round_trend(means)
        return {
            "round_correlation": Estimate(trend.correlation, n=len(means)),
            "round_slope": Estimate(trend.slope, n=len(means)),
        }


def entropy(counts: Sequence[int]) -> float:
    """Return the natural-log entropy of an empirical distribution."""
    total = sum(counts)
    return sum(-count / total * math.log(count / total) for count in counts if count != total)


def _short(chosen: Hashable) -> Hashable:
    """Long texts are classes by their hash, so that a class costs the same whatever its length."""
    if isinstance(chosen, str) and len(chosen) > _LONGEST_CLASS:
        return hashlib.blake2b(chosen.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return chosen


def _more(count: int) -> str:
    return f" and {count - 3} more differ," if count > 3 else ","
