"""Labels of several people to how much they agree beyond chance: Cohen's kappa and Krippendorff's alpha."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations

Labels = Mapping[str, str]
"""Reviewer -> label, for one item."""


class Agreement:
    """Counts that follow every decision in constant time, and the coefficients they give at any moment."""

    def __init__(self) -> None:
        self._pairs: Counter[tuple[str, str, str, str]] = Counter()
        """(first reviewer, second reviewer, label of the first, label of the second), reviewers in order of name."""
        self._coincidences: dict[tuple[str, str], float] = {}
        self.items = 0
        """Items with at least two labels."""
        self.unanimous = 0

    def change(self, before: Labels, after: Labels) -> None:
        """Replace one item's labels."""
        self._add(before, -1)
        self._add(after, 1)

    def _add(self, labels: Labels, sign: int) -> None:
        if len(labels) < 2:
            return
        self.items += sign
        self.unanimous += sign * (len(set(labels.values())) == 1)
        weight = sign / (len(labels) - 1)
        for first, second in combinations(sorted(labels), 2):
            left, right = labels[first], labels[second]
            self._pairs[first, second, left, right] += sign
            for pair in ((left, right), (right, left)):
                self._coincidences[pair] = self._coincidences.get(pair, 0.0) + weight

    @property
    def observed(self) -> float | None:
        """Return the share of items with two or more labels on which all are the same."""
        return self.unanimous / self.items if self.items else None

    def kappa(self, first: str, second: str) -> tuple[float | None, int]:
        """Return Cohen's kappa of two reviewers and the items both judged; None: nothing shared, or no spread."""
        first, second = sorted((first, second))
        table = {key[2:]: count for key, count in self._pairs.items() if key[:2] == (first, second) and count}
        total = sum(table.values())
        if not total:
            return None, 0
        agreed = sum(count for (left, right), count in table.items() if left == right) / total
        rows, columns = Counter[str](), Counter[str]()
        for (left, right), count in table.items():
            rows[left] += count
            columns[right] += count
        expected = sum(rows[label] * columns[label] for label in rows) / total**2
        return ((agreed - expected) / (1.0 - expected) if expected < 1.0 else None), total

    def kappas(self) -> dict[tuple[str, str], tuple[float | None, int]]:
        """Return kappa of every pair that shares items."""
        pairs = {key[:2] for key, count in self._pairs.items() if count}
        return {pair: self.kappa(*pair) for pair in sorted(pairs)}

    def alpha(self) -> float | None:
        """Return Krippendorff's alpha for nominal labels, any number of reviewers, gaps allowed; None: no spread."""
        sums = Counter[str]()
        for (left, _), weight in self._coincidences.items():
            sums[left] += weight  # type: ignore[assignment]
        total = sum(sums.values())
        if total <= 1.0:
            return None
        differ = sum(weight for (left, right), weight in self._coincidences.items() if left != right)
        expected = (total**2 - sum(count**2 for count in sums.values())) / (total - 1.0)
        return 1.0 - differ / expected if expected > 1e-9 else None
